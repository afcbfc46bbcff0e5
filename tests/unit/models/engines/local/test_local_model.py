"""Engine "local": exact while all rows are near or the trend has every feature, close to it else, at bounded cost."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.algebra import cholesky
from coterie.errors import FactorisationError, NumericalError, ParameterError
from coterie.kernels import FreeKernel, PoolKernel
from coterie.kernels.additive import AdditiveKernel, EvaluatedPool, UserParts
from coterie.models import make_model, restore_model
from coterie.models.engines.local.model import BLOCK, LOOKED_AT, LocalModel
from coterie.models.engines.local.trend import MOST_INDUCING


def kernel_of(n_users: int, n_arms: int, seed: int = 0) -> PoolKernel:
    rng = np.random.default_rng(seed)
    users, arms = rng.normal(size=(n_users, n_users)), rng.normal(size=(n_arms, 6))
    return PoolKernel(users @ users.T / n_users + 0.2, arms @ arms.T / 6 + 0.1 * np.eye(n_arms))


def taught(models: list[Any], size: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    n_users, n_arms = models[0].n_users, models[0].kernel.n_arms
    for _ in range(size):
        user, arm, reward = int(rng.integers(n_users)), int(rng.integers(n_arms)), float(rng.normal())
        for model in models:
            model.update(user, arm, reward)


def check_equal(model: LocalModel, dense: Any) -> None:
    for user in range(model.n_users):
        for found, exact in zip(model.predict(user), dense.predict(user), strict=True):
            np.testing.assert_allclose(found, exact, atol=1e-9)
        np.testing.assert_allclose(model.covariance(user), dense.covariance(user), atol=1e-9)


@settings(max_examples=15)
@given(st.integers(1, 12), st.integers(0, 9))
def test_with_every_feature_in_the_trend_it_is_exact_however_few_rows_are_near(near: int, seed: int) -> None:
    kernel = kernel_of(6, 8, seed)
    dense = make_model(kernel, noise_var=0.1, engine="dense")
    model = LocalModel(kernel, noise_var=0.1, near_rows=near, trend_features=200)
    taught([model, dense], 70, seed)
    model.rebuild()  # with a trend for all users and arms there are
    taught([model, dense], 10, seed + 1)
    assert model._trend is not None
    check_equal(model, dense)
    assert model.info_gain == pytest.approx(dense.info_gain, abs=1e-8)
    assert model.log_marginal_likelihood == pytest.approx(dense.log_marginal_likelihood, abs=1e-7)


def test_blocks_of_a_user_are_independent_given_the_trend() -> None:
    """The weights of the trend are those of a dense model whose residual ties only rows of one block."""
    kernel = kernel_of(3, 40)
    model = LocalModel(kernel, noise_var=0.3, near_rows=10, trend_features=12)
    taught([model], 200)
    users, arms, values = model.history.user_array(), model.history.arm_array(), model.history.mean_array()
    assert model._trend is not None
    features = model._features(users, arms)
    residual = kernel.cross(users, arms, users, arms) - features @ features.T
    block = np.array([model._rows_of[user].index(row) // BLOCK for row, user in enumerate(users.tolist())])
    same = (users[:, None] == users) & (block[:, None] == block)
    noisy = np.where(same, residual, 0.0) + np.diag(0.3 / model.history.count_array())
    precision = np.eye(12) + features.T @ np.linalg.solve(noisy, features)
    np.testing.assert_allclose(model._cov, np.linalg.inv(precision), atol=1e-9)
    np.testing.assert_allclose(model._mean, np.linalg.solve(precision, features.T @ np.linalg.solve(noisy, values)))


def test_what_the_trend_leaves_is_a_kernel() -> None:
    kernel = kernel_of(20, 30)
    model = LocalModel(kernel, noise_var=0.1, near_rows=10, trend_features=25)
    taught([model], 50)
    every = np.repeat(np.arange(20), 30), np.tile(np.arange(30), 20)
    features = model._features(*every)
    left = kernel.cross(*every, *every) - features @ features.T
    assert np.linalg.eigvalsh(left)[0] > -1e-9
    assert features.shape[1] == 25


def test_it_is_close_to_the_exact_posterior_with_few_features_and_rows() -> None:
    graph = ct.make_graph("sbm", 60, seed=1)
    kernel = PoolKernel(np.asarray(ct.Green(laplacian_ridge=0.3).matrix(graph)) + 0.3, kernel_of(2, 40).arm_cov)
    exact, model = make_model(kernel, noise_var=0.3, engine="exact"), LocalModel(kernel, noise_var=0.3, near_rows=64)
    taught([exact, model], 900)
    for user in range(0, 60, 7):
        mean, std = exact.predict(user)
        near, wide = model.predict(user)
        prior = exact.prior_std(user)
        assert np.max(np.abs(near - mean) / prior) < 0.3
        assert np.sqrt(np.mean(((near - mean) / prior) ** 2)) < 0.12
        assert np.all((wide > 0.9 * std) & (wide < 1.3 * std))


def test_the_rows_are_the_users_own_and_those_that_covary_most_with_the_candidates() -> None:
    kernel = kernel_of(5, 40)
    model = LocalModel(kernel, noise_var=0.3, near_rows=8, trend_features=12)
    taught([model], 30)  # no more than are looked at
    arms, (users, known) = np.array([3, 17]), (model.history.user_array(), model.history.arm_array())
    rows = model._nearest(2, arms)[0]
    alike = np.abs(kernel.cross(users, known, np.full(2, 2), arms)).max(axis=1)
    own = users == 2
    assert 0 < np.count_nonzero(own) < 8
    assert set(rows.tolist()) == set(np.argsort(-alike - 1e9 * own)[:8].tolist())


def test_a_decision_and_a_reward_touch_no_more_however_many_rewards_there_are() -> None:
    class Counting(EvaluatedPool):
        entries = 0

        def arm_cross(self, arms: Any, others: Any) -> Any:
            Counting.entries += len(arms) * len(others)
            return super().arm_cross(arms, others)

    rng = np.random.default_rng(0)
    kernel = Counting(np.eye(80) + 0.5, ct.SquaredExponential(2.0), rng.normal(size=(400, 4)))
    model, most = LocalModel(kernel, noise_var=0.3, near_rows=32, trend_features=64), []
    for size in (400, 1600):
        taught([model], size - model.n_observations, seed=size)
        model.rebuild()
        Counting.entries = 0
        model.read(3, np.arange(20))
        model.learn(3, 7, 0.1)
        most.append(Counting.entries)
    bound = (
        LOOKED_AT * 32 * 20 + 32 * (32 + 20) + (32 + 20 + 1) * MOST_INDUCING + (BLOCK + 1) * (BLOCK + 1 + MOST_INDUCING)
    )
    assert max(most) <= bound


@pytest.mark.parametrize("size", [20, 300])
def test_a_restored_one_is_the_same_to_the_bit(size: int) -> None:
    model = LocalModel(kernel_of(15, 30), noise_var=0.2, near_rows=40, trend_features=30)
    taught([model], size)
    again: Any = restore_model(deepcopy(model.state()), model.kernel)
    assert again.is_sound()
    taught([model, again], 30, seed=5)
    for user in range(15):
        for one, two in zip(model.predict(user), again.predict(user), strict=True):
            np.testing.assert_array_equal(one, two)


def test_weights_that_the_rewards_do_not_give_are_noticed() -> None:
    model = LocalModel(kernel_of(15, 30), noise_var=0.2, near_rows=40, trend_features=30)
    taught([model], 300)
    for name in ("mean", "cov"):
        state = deepcopy(model.state())
        state[name] = state[name] * 1.01
        with pytest.raises(NumericalError, match="a belief on engine 'local' is off by"):
            restore_model(state, model.kernel).is_sound()


def test_the_trend_is_chosen_once_rows_are_more_than_near_and_by_a_rebuild() -> None:
    model = LocalModel(kernel_of(15, 60), noise_var=0.2, near_rows=20, trend_features=30)
    taught([model], 15)
    assert "Exact: all" in model.describe()
    taught([model], 400, seed=2)
    assert "nearest of" in model.describe()
    assert len(model._chosen_for) == 21
    rows = len(model.history)
    model.rebuild()
    assert len(model._chosen_for) == rows


def test_it_asks_for_a_pool() -> None:
    with pytest.raises(ParameterError, match="engine 'local' was asked for without a pool"):
        LocalModel(FreeKernel(np.eye(2), ct.Linear()))


def test_a_replica_has_the_options_and_knows_nothing() -> None:
    model = LocalModel(kernel_of(5, 6), near_rows=7, trend_features=9)
    taught([model], 3)
    other = model.replica()(model.kernel, noise_var=0.5)
    assert (other.near_rows, other.trend_features, other.noise_var, other.n_observations) == (7, 9, 0.5, 0)  # type: ignore[attr-defined]


def test_on_a_graph_without_a_matrix_over_users_it_is_near_the_exact_one() -> None:
    graph = ct.make_graph("sbm", 50, seed=4)
    arms = np.random.default_rng(3).normal(size=(30, 3))
    parts = UserParts(scale=2.0, ridge=0.5, own=0.2, common=0.4, normalised=False)
    kernel = AdditiveKernel(graph, parts, ct.SquaredExponential(1.5), arms)
    green = np.asarray(ct.Green(laplacian_ridge=0.5).matrix(graph))
    dense = EvaluatedPool(2.0 * green + 0.2 * np.eye(50) + 0.4, ct.SquaredExponential(1.5), arms)
    model, exact = LocalModel(kernel, noise_var=0.2), make_model(dense, noise_var=0.2, engine="exact")
    taught([model, exact], 100)
    for user in range(0, 50, 5):
        mean, std = exact.predict(user)
        near, wide = model.predict(user)
        prior = exact.prior_std(user)
        assert np.max(np.abs(near - mean) / prior) < 0.3
        assert np.sqrt(np.mean(((near - mean) / prior) ** 2)) < 0.15
        assert np.max(np.abs(wide - std) / prior) < 0.25


@pytest.mark.parametrize("size", [3, 30, 200])
def test_without_a_matrix_over_users_a_restored_one_is_sound(size: int) -> None:
    """Its sums are those of all rows, though a decision takes only those of users around."""
    parts = UserParts(scale=2.0, ridge=0.5, own=0.2, common=0.4, normalised=False)
    kernel = AdditiveKernel(ct.make_graph("ring", 300), parts, ct.SquaredExponential(1.5), np.arange(24.0)[:, None] / 8)
    model = LocalModel(kernel, noise_var=0.2)
    taught([model], size)
    again = restore_model(deepcopy(model.state()), kernel)
    assert again.is_sound()
    other = AdditiveKernel(
        ct.make_graph("sbm", 300, seed=1), parts, ct.SquaredExponential(1.5), np.arange(24.0)[:, None] / 8
    )
    with pytest.raises(NumericalError):
        restore_model(deepcopy(model.state()), other).is_sound()


@pytest.mark.parametrize("at", [1, 2, 5])
def test_a_rebuild_or_a_batch_that_fails_leaves_the_model_as_it_was(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LocalModel(kernel_of(6, 20), near_rows=20, trend_features=10)
    taught([model], 100)
    calls, kernel = iter(range(1000)), model.kernel

    def failing(matrix: Any, log: Any, **options: Any) -> Any:
        if next(calls) == at:
            raise FactorisationError("a matrix", "a rule", "A remedy")
        return cholesky(matrix, log, **options)

    monkeypatch.setattr("coterie.models.engines.local.model.cholesky", failing)
    with pytest.raises(FactorisationError):
        model.set_user_cov(np.eye(6) + 0.5)
    calls = iter(range(1000))
    with pytest.raises(FactorisationError):
        model.update_many([0, 1, 2], [0, 1, 2], [5.0, 5.0, 5.0])
    assert model.kernel is kernel
    assert model.n_observations == 100
    model.rebuild()
    again = LocalModel(kernel, near_rows=20, trend_features=10)
    again.relearn(deepcopy(model.history))
    for user in range(6):
        np.testing.assert_allclose(model.predict(user), again.predict(user), atol=1e-12)
