"""When `auto` means `sparse`, and what is said of it."""

import numpy as np
import pytest

import coterie as ct
from coterie.errors import MissingExtraError, UnknownNameError
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models import make_model, sparse_choice
from coterie.models.sparse_choice import GraphSizes, choose_sparse

ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(30, 4)))
GIB = 2**30


def sizes(n_users: int, ridge: float = 0.1, n_arms: int = 50) -> GraphSizes:
    return GraphSizes(n_users, 5 * n_users, n_arms, 10, ridge, 10 + ridge)


@pytest.mark.parametrize(
    ("given", "rounds", "expected"),
    [
        (sizes(20, ridge=100.0), None, False),  # a small grid
        (sizes(1_000, ridge=10.0), None, True),  # a large one
        (sizes(1_000, ridge=0.1), None, False),  # users x ridge is 100
        (sizes(20_000, ridge=1.0), None, True),
        (sizes(20_000, ridge=0.01), 50, True),  # users x ridge is small, but nothing else fits
        (sizes(1_000_000, ridge=1e-4), None, True),
    ],
)
def test_the_rule(given: GraphSizes, rounds: int | None, expected: bool) -> None:
    pytest.importorskip("numba")
    verdict = choose_sparse(given, expected_rounds=rounds, memory_limit=8 * GIB)
    assert verdict.sparse == expected


def test_where_it_is_too_slow_that_is_said() -> None:
    why = choose_sparse(sizes(5_000, ridge=0.1), memory_limit=8 * GIB).why
    assert "users x ridge = 500 is below 1000" in why


def test_where_numba_is_missing_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_choice, "is_installed", lambda _: False)
    verdict = choose_sparse(sizes(5_000, ridge=1.0), memory_limit=8 * GIB)
    assert not verdict.sparse
    assert "pip install 'coterie[scale]'" in verdict.why
    assert choose_sparse(sizes(100), memory_limit=8 * GIB).why == ""
    with pytest.raises(MissingExtraError, match="100000 users need engine 'sparse'"):
        choose_sparse(sizes(100_000), memory_limit=8 * GIB)


def test_auto_on_a_graph_kernel_is_sparse() -> None:
    pytest.importorskip("numba")
    model = make_model(GraphKernel(ct.make_graph("ring", 5), np.eye(2)), why="; it is small")
    assert "engine 'sparse': chosen because the graph itself stands for the covariance of all users; it is small." in (
        model.describe()
    )


def test_a_policy_on_a_large_graph_says_why_it_is_sparse() -> None:
    pytest.importorskip("numba")
    graph = ct.make_graph("ring", 100_000)
    policy = ct.make_policy("graph-ucb", graph=graph, arms=ARMS)
    choice = policy.select(7)
    policy.update(7, choice.arm, 1.0)
    assert policy.model.engine == "sparse"
    assert "a covariance of all 100000 users would need 298.0 GiB" in policy.describe()
    assert policy.predict(8)[0][ARMS.index_of(choice.arm)] > 0


def test_a_policy_without_numba_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_choice, "is_installed", lambda _: False)
    policy = ct.make_policy("lk-gp-ucb", graph=ct.make_graph("ring", 400), arms=ARMS, laplacian_ridge=10.0)
    assert policy.model.engine != "sparse"
    assert "needs 'numba', which is not installed" in policy.describe()


@pytest.mark.parametrize("users", [ct.Heat(), ct.Green(laplacian_ridge=10.0, power=2.0)])
def test_other_user_kernels_are_left_alone(users: ct.UserKernel) -> None:
    policy = ct.make_policy("lk-gp-ucb", graph=ct.make_graph("ring", 400), arms=ARMS, user_kernel=users)
    assert policy.model.engine != "sparse"


def test_auto_takes_no_options_of_sparse_however_large_the_graph() -> None:
    pytest.importorskip("numba")
    with pytest.raises(UnknownNameError, match="only 'memory_limit'"):
        ct.make_policy("graph-ucb", graph=ct.make_graph("ring", 50_000), arms=ARMS, engine_options={"eps": 0.5})


def test_the_options_of_the_features_reach_the_kernel() -> None:
    pytest.importorskip("numba")
    graph = ct.make_graph("ring", 10)
    options = {"max_features": 3, "eps": 0.5}
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=ARMS, engine="sparse", engine_options=options)
    assert isinstance(policy.model.kernel, GraphKernel)
    assert policy.model.kernel.features.shape == (30, 3)
