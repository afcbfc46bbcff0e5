"""The regressor: the dense formula, scikit-learn's own regressor and checks, and what it says of bad tables."""

import importlib
import pickle
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import coterie as ct
from coterie.errors import KernelError, MissingExtraError, ParameterError, UnknownNameError, UnknownUserError
from strategies import graphs

pytest.importorskip("sklearn", reason="scikit-learn comes with the extra 'sklearn'")

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie.product.regressor import READ_ROWS, LaplacianKernelRegressor

Table = NDArray[Any]

GRAPH = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")], users=["ana", "bo", "cy", "dee"])
NAMED = np.array([["ana", 0.0, 1.0], ["bo", 1.0, 2.0], ["dee", 0.5, 0.5]], dtype=object)
FAR = np.array([0.0, 5.0, 5.0])
REWARDS = np.array([3.0, 5.0, 1.0])


def table(n_users: int, n_rows: int, *, seed: int = 0, n_arms: int = 8) -> tuple[Table, Table]:
    """Rows of numbered users and repeated arms, and rewards about 7."""
    rng = np.random.default_rng(seed)
    arms = rng.normal(size=(n_arms, 2))[rng.integers(n_arms, size=n_rows)]
    return np.column_stack([rng.integers(n_users, size=n_rows), arms]), rng.normal(7.0, 2.0, size=n_rows)


def dense(
    X: Table, y: Table, Z: Table, *, user_cov: Table, lengthscale: float, noise_var: float
) -> tuple[Table, Table]:
    """Equation 4 of the paper, written out, on centred rewards."""

    def covariances(A: Table, B: Table) -> Table:
        squared = ((A[:, None, 1:] - B[None, :, 1:]) ** 2).sum(axis=2)
        between_users = user_cov[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))]
        return np.asarray(between_users * np.exp(-0.5 * squared / lengthscale**2))

    weights = np.linalg.solve(covariances(X, X) + noise_var * np.eye(len(X)), covariances(X, Z))
    variance = np.diag(covariances(Z, Z)) - np.sum(weights * covariances(X, Z), axis=0)
    return y.mean() + weights.T @ (y - y.mean()), np.sqrt(np.maximum(variance, 0.0))


@given(graph=graphs(), n_rows=st.integers(1, 40), seed=st.integers(0, 1000), ridge=st.floats(0.05, 2.0))
def test_it_is_the_dense_formula(graph: ct.UserGraph, n_rows: int, seed: int, ridge: float) -> None:
    X, y = table(graph.n_users, n_rows, seed=seed)
    Z, _ = table(graph.n_users, 12, seed=seed + 1)
    regressor = LaplacianKernelRegressor(graph=graph, laplacian_ridge=ridge, lengthscale=0.7, noise_var=0.2)
    user_cov = np.linalg.inv(graph.regularised_laplacian(ridge).toarray())
    mean, std = regressor.fit(X, y).predict(Z, return_std=True)
    want_mean, want_std = dense(X, y, Z, user_cov=user_cov, lengthscale=0.7, noise_var=0.2)
    np.testing.assert_allclose(mean, want_mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(std**2, want_std**2, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(regressor.predict(Z), mean)


def peer() -> GaussianProcessRegressor:
    return GaussianProcessRegressor(ConstantKernel(1 / 0.4) * RBF(0.7), alpha=0.2, optimizer=None)


def test_without_users_it_is_scikit_learns_gaussian_process() -> None:
    X, y = table(3, 40)
    ours = LaplacianKernelRegressor(user_column=None, laplacian_ridge=0.4, lengthscale=0.7, noise_var=0.2).fit(X, y)
    got, want = ours.predict(X + 0.3, return_std=True), peer().fit(X, y - y.mean()).predict(X + 0.3, return_std=True)
    np.testing.assert_allclose(got[0], want[0] + y.mean(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(got[1], want[1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("graph", [None, ct.make_graph("empty", 3)])
def test_users_who_share_nothing_have_a_gaussian_process_each(graph: ct.UserGraph | None) -> None:
    X, y = table(3, 60)
    ours = LaplacianKernelRegressor(graph=graph, laplacian_ridge=0.4, lengthscale=0.7, noise_var=0.2).fit(X, y)
    for user in range(3):
        own = X[:, 0] == user
        theirs = peer().fit(X[own, 1:], y[own] - y.mean())
        got, want = ours.predict(X[own] + [0, 0.3, 0.3], return_std=True), theirs.predict(X[own, 1:] + 0.3, True)
        np.testing.assert_allclose(got[0], want[0] + y.mean(), rtol=0, atol=1e-9)
        np.testing.assert_allclose(got[1], want[1], rtol=0, atol=1e-9)


def test_without_a_graph_a_stranger_is_given_the_prior() -> None:
    regressor = LaplacianKernelRegressor(laplacian_ridge=0.25).fit(NAMED, REWARDS)
    mean, std = regressor.predict(np.array([["zoe", 0.0, 1.0]], dtype=object), return_std=True)
    assert (mean.tolist(), std.tolist()) == ([3.0], [2.0])


@pytest.mark.parametrize("lengthscale", [0.7, "median"])
@pytest.mark.parametrize("graph", [None, ct.make_graph("ring", 5)])
def test_fitting_in_parts_is_fitting_at_once(graph: ct.UserGraph | None, lengthscale: Any) -> None:
    X, y = table(5, 50)
    whole = LaplacianKernelRegressor(graph=graph, lengthscale=lengthscale).fit(X, y)
    parts = LaplacianKernelRegressor(graph=graph, lengthscale=lengthscale)
    for rows in np.split(np.arange(50), [1, 4, 30]):
        parts.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(parts.predict(X, return_std=True), whole.predict(X, return_std=True))
    assert parts.arm_kernel_ == whole.arm_kernel_
    assert parts.model_.n_observations == 50


def test_fit_forgets_what_was_learned_before() -> None:
    X, y = table(5, 50)
    regressor = LaplacianKernelRegressor(graph=ct.make_graph("ring", 5)).fit(X[:9], y[:9])
    regressor.fit(X, y)
    assert regressor.model_.n_observations == 50


def test_repeated_rows_are_one_pair_to_the_model() -> None:
    X, y = table(2, 200, n_arms=3)
    assert len(LaplacianKernelRegressor().fit(X, y).model_.history) == 6


def test_the_median_is_over_distinct_arms() -> None:
    X = np.array([[0, 0.0]] * 9 + [[0, 3.0]])
    kernel = LaplacianKernelRegressor().fit(X, np.arange(10)).arm_kernel_
    assert kernel == ct.SquaredExponential(3.0)


def test_an_offset_of_the_rewards_moves_every_prediction_by_as_much() -> None:
    X, y = table(5, 50)
    regressor = LaplacianKernelRegressor(graph=ct.make_graph("ring", 5))
    mean, std = regressor.fit(X, y).predict(X + FAR, return_std=True)
    moved, same = regressor.fit(X, y + 1000.0).predict(X + FAR, return_std=True)
    np.testing.assert_allclose(moved, mean + 1000.0, rtol=0, atol=1e-8)
    np.testing.assert_allclose(same, std, rtol=0, atol=1e-12)


def test_a_friend_is_told_more_than_a_stranger() -> None:
    regressor = LaplacianKernelRegressor(graph=GRAPH).fit(NAMED[:1], [3.0])
    _, std = regressor.predict(np.array([[user, 0.0, 1.0] for user in GRAPH.users], dtype=object), return_std=True)
    assert std[0] < std[1] < std[2] < std[3]


def test_a_long_table_is_read_in_parts() -> None:
    X, y = table(2, 30)
    regressor = LaplacianKernelRegressor().fit(X, y)
    long = np.tile(X, (READ_ROWS // 10, 1))
    np.testing.assert_allclose(regressor.predict(long), np.tile(regressor.predict(X), READ_ROWS // 10), atol=1e-10)


def test_another_arm_kernel() -> None:
    kernel = ct.Matern52("median") + ct.Linear()
    regressor = LaplacianKernelRegressor(graph=GRAPH, arm_kernel=kernel).fit(NAMED, REWARDS)
    assert regressor.arm_kernel_ == kernel.resolve(NAMED[:, 1:].astype(float))


def test_users_by_row() -> None:
    numbered = np.column_stack([[GRAPH.index[user] for user in NAMED[:, 0]], NAMED[:, 1:].astype(float)])
    by_row = LaplacianKernelRegressor(graph=GRAPH, users="rows").fit(numbered, REWARDS)
    by_id = LaplacianKernelRegressor(graph=GRAPH).fit(NAMED, REWARDS)
    np.testing.assert_array_equal(by_row.predict(numbered), by_id.predict(NAMED))
    with pytest.raises(UnknownUserError, match=r"user 4\.0 is unknown; the graph's users are 0, 1, 2, 3"):
        by_row.predict([[4.0, 0.0, 1.0]])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("user_column", ["who", 1])
def test_dataframes(frame: Any, user_column: int | str) -> None:
    given = frame({"x": [0.0, 1.0, 0.5], "who": ["ana", "bo", "dee"], "z": [1.0, 2.0, 0.5]})
    regressor = LaplacianKernelRegressor(graph=GRAPH, user_column=user_column).fit(given, REWARDS)
    plain = LaplacianKernelRegressor(graph=GRAPH).fit(NAMED, REWARDS)
    np.testing.assert_array_equal(regressor.predict(given), plain.predict(NAMED))
    assert regressor.feature_names_in_.tolist() == ["x", "who", "z"]
    with pytest.raises(ValueError, match="feature names should match"):
        regressor.predict(given[["who", "x", "z"]])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_long_integers_stay_apart_beside_floats(frame: Any) -> None:
    given = frame({"who": [2**60, 2**60 + 1], "x": [0.5, 0.5]})
    low, high = LaplacianKernelRegressor().fit(given, [0.0, 10.0]).predict(given)
    assert low < 1 < 9 < high


def fitted() -> LaplacianKernelRegressor:
    return LaplacianKernelRegressor(graph=GRAPH).fit(NAMED, REWARDS)


def row(*values: Any) -> Table:
    return np.array([values], dtype=object)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        (row("Bo", 0.0, 1.0), UnknownUserError, "user 'Bo' is unknown.*Did you mean 'bo'"),
        (row(7, 0.0, 1.0), UnknownUserError, "user 7 is unknown; the graph's users are 'ana', 'bo', 'cy', 'dee'"),
        (row(None, 0.0, 1.0), UnknownUserError, "user None is unknown"),
        (row({"a": 1}, 0.0, 1.0), UnknownUserError, "user {'a': 1} is not hashable"),
        (row("bo", 0.0), ValueError, "X has 2 features, but LaplacianKernelRegressor is expecting 3"),
        (row("bo", 0.0, np.nan), ValueError, "contains NaN"),
        (row("bo", 0.0, np.inf), ValueError, "infinity"),
        (row("bo", 0.0, "blue"), ValueError, "could not convert string to float: 'blue'"),
    ],
)
def test_bad_rows_are_refused_and_leave_no_trace(given: Table, kind: type[Exception], words: str) -> None:
    regressor = fitted()
    before = regressor.predict(NAMED, return_std=True)
    with pytest.raises(kind, match=words):
        regressor.predict(given)
    with pytest.raises(kind, match=words):
        regressor.partial_fit(given, [1.0])
    np.testing.assert_array_equal(regressor.predict(NAMED, return_std=True), before)


@pytest.mark.parametrize("rewards", [[1.0, np.nan, 2.0], [1.0, np.inf, 2.0], [1.0, 2.0]])
def test_bad_rewards_are_refused(rewards: list[float]) -> None:
    with pytest.raises(ValueError, match=r"NaN|infinity|inconsistent numbers"):
        LaplacianKernelRegressor(graph=GRAPH).fit(NAMED, rewards)


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"graph": [("ana", "bo")]}, KernelError, "the graph is a list"),
        ({"user_column": None}, ParameterError, "user_column is None with a graph"),
        ({"user_column": None, "graph": None}, ValueError, "could not convert string to float: 'ana'"),
        ({"user_column": 3}, ParameterError, "user_column is 3; it is a position from 0 to 2"),
        ({"user_column": "who"}, UnknownNameError, "user_column 'who' is unknown; only a dataframe has names"),
        ({"users": "names"}, ParameterError, "users is 'names'; it is 'ids' or 'rows'"),
        ({"laplacian_ridge": 0.0}, KernelError, "laplacian_ridge is 0.0"),
        ({"laplacian_ridge": 0.0, "graph": None}, KernelError, "laplacian_ridge is 0.0"),
        ({"lengthscale": -1.0}, KernelError, "lengthscale is -1.0"),
        ({"noise_var": 0.0}, ParameterError, "noise_var is 0.0"),
        ({"arm_kernel": "rbf"}, ParameterError, "arm_kernel is 'rbf'"),
        ({"arm_kernel": ct.Linear(), "lengthscale": 2.0}, ParameterError, "Give it to the arm kernel instead"),
    ],
)
def test_bad_settings_are_named_by_fit(settings: dict[str, Any], kind: type[Exception], words: str) -> None:
    regressor = LaplacianKernelRegressor(**{"graph": GRAPH, **settings})
    with pytest.raises(kind, match=words):
        regressor.fit(NAMED, REWARDS)


def test_a_misspelt_column_is_told_its_like() -> None:
    with pytest.raises(UnknownNameError, match=r"columns are 'user', 'x'\. Did you mean 'user'"):
        LaplacianKernelRegressor(user_column="users").fit(pd.DataFrame({"user": ["ana"], "x": [1.0]}), [1.0])


def test_a_prediction_before_any_fit() -> None:
    with pytest.raises(NotFittedError):
        LaplacianKernelRegressor(graph=GRAPH).predict(NAMED)


def test_a_pickled_regressor_goes_on_where_it_was() -> None:
    thawed = pickle.loads(pickle.dumps(fitted()))
    np.testing.assert_array_equal(thawed.predict(NAMED, return_std=True), fitted().predict(NAMED, return_std=True))
    more = row("cy", 0.0, 0.0)
    both = thawed.partial_fit(more, [9.0]), fitted().partial_fit(more, [9.0])
    np.testing.assert_array_equal(both[0].predict(NAMED), both[1].predict(NAMED))


@pytest.mark.parametrize("user_column", [0, None])
def test_the_callers_arrays_may_change_after_a_fit(user_column: int | None) -> None:
    X, y = table(3, 20)
    want = LaplacianKernelRegressor(user_column=user_column).fit(X, y).predict(X)
    lent, paid = X[:15].copy(), y[:15].copy()
    regressor = LaplacianKernelRegressor(user_column=user_column).fit(lent, paid)
    lent[:], paid[:] = 0.0, 0.0
    np.testing.assert_array_equal(regressor.partial_fit(X[15:], y[15:]).predict(X), want)


def test_clones_keep_the_graph_and_forget_the_fit() -> None:
    copied = clone(fitted())
    assert copied.graph == GRAPH
    assert not hasattr(copied, "model_")
    assert set(copied.get_params()) == {
        "graph", "user_column", "users", "laplacian_ridge", "arm_kernel", "lengthscale", "noise_var"
    }  # fmt: skip


def test_a_search_behind_a_scaler_finds_that_friends_are_alike() -> None:
    graph = ct.make_graph("ring", 12)
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(12, size=90), rng.normal(50.0, 10.0, size=(90, 1))])
    y = 3.0 * np.sin(2 * np.pi * X[:, 0] / 12) + 0.1 * X[:, 1] + rng.normal(0.0, 0.1, size=90)
    scaled = ColumnTransformer([("user", "passthrough", [0]), ("arm", StandardScaler(), [1])])
    pipeline = make_pipeline(scaled, LaplacianKernelRegressor())
    search = GridSearchCV(pipeline, {"laplaciankernelregressor__graph": [None, graph]}, cv=3).fit(X, y)
    assert search.best_params_ == {"laplaciankernelregressor__graph": graph}
    assert search.best_score_ > 0.9


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "coterie.product.regressor")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(MissingExtraError, match=r"needs 'sklearn\.base', which is not installed.*extra 'sklearn'"):
        importlib.import_module("coterie.product.regressor")


def unmet(estimator: LaplacianKernelRegressor) -> dict[str, str]:
    """The checks that do not apply, and why. With a graph none does: their first column holds no users."""
    if estimator.user_column is None:
        return {}
    return {"check_dtype_object": "wants a TypeError for a dict in any column; as a user it is an UnknownUserError"}


@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn has no types
    [LaplacianKernelRegressor(), LaplacianKernelRegressor(user_column=None)],
    expected_failed_checks=unmet,
    xfail_strict=True,
)
def test_scikit_learns_own_checks(estimator: LaplacianKernelRegressor, check: Any) -> None:
    check(estimator)
