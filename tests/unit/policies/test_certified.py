"""Certified choices: every one that says it is certain is the exact policy's, on the same history and seed."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ParameterError
from coterie.graphs.families import FAMILIES
from coterie.kernels import PoolKernel
from coterie.kernels.graph_kernel import graph_kernel
from coterie.models import SparseModel, make_model
from coterie.models.engines.sparse.limits import Limits
from coterie.policies.certified import CertifiedPolicy
from coterie.policies.policy import Policy
from coterie.policies.rules.scores import ucb
from coterie.policies.rules.widths import TheoryWidth

pytest.importorskip("numba")

ARMS: dict[str, ct.ArmKernel] = {"linear": ct.Linear(offset=0.5), "se": ct.SquaredExponential(1.0)}
N_ARMS, N_CANDIDATES, NOISE = 12, 6, 0.1
CERTIFIED: dict[str, Any] = {"engine": "sparse", "engine_options": {"certified": True}}
RIDGES = (0.01, 0.1, 1.0, 10.0)


def make_pair(
    graph: ct.UserGraph, arms: str, ridge: float, *, normalised: bool = False, width: float = 1.0, **options: Any
) -> tuple[CertifiedPolicy, Policy]:
    """A certified policy, and the exact one on the same features."""
    pool = ct.ArmPool(np.random.default_rng(3).normal(size=(N_ARMS, 2)))
    kernel = graph_kernel(graph, ARMS[arms], pool, laplacian_ridge=ridge, normalised=normalised)
    users = ct.Green(laplacian_ridge=ridge, normalised=normalised).matrix(graph)
    exact = make_model(PoolKernel(users, kernel.features @ kernel.features.T), noise_var=NOISE, engine="grid")
    model = SparseModel(kernel, noise_var=NOISE, certified=True, **options)
    parts: dict[str, Any] = {"name": "ucb", "graph": graph, "arms": pool, "score": ucb, "width": width, "seed": 5}
    return CertifiedPolicy(model=model, **parts), Policy(model=exact, **parts)


def play(certified: CertifiedPolicy, exact: Policy, n_rounds: int) -> tuple[int, list[int]]:
    """Plays both on the exact one's choices; returns how many were certain, and the rounds where one of these differed.

    At every step the mean is within its bound, and the variance between its two.
    """
    rng = np.random.default_rng(0)
    taste = rng.normal(size=(certified.graph.n_users, 2))
    n_certain, wrong = 0, []
    for number in range(n_rounds):
        user = int(rng.integers(certified.graph.n_users))
        shown = rng.choice(N_ARMS, size=N_CANDIDATES, replace=False).tolist()
        told, right = certified.select(user, shown), exact.select(user, shown)
        n_certain += bool(told.certain)
        wrong += [number] if told.certain and told.arm != right.arm else []
        assert_bounds_hold(certified, exact, user, shown)
        assert certified.arms is not None
        reward = float(np.tanh(certified.arms.features[right.arm] @ taste[user]) + NOISE**0.5 * rng.normal())
        for policy in (certified, exact):
            policy.update(user, right.arm, reward)
    return n_certain, wrong


def assert_bounds_hold(certified: CertifiedPolicy, exact: Policy, user: int, shown: list[int]) -> None:
    assert isinstance(certified.model, SparseModel)
    mean, std = exact.predict(user, shown)
    arms = np.array(shown)
    told = certified.predict(user, shown)[0]
    assert np.all(np.abs(told - mean) <= certified.model.error_bound(user, arms) * (1 + 1e-9) + 1e-9)
    lower, upper = certified.model.variance_bounds(user, arms[:2])
    slack = 1e-9 * exact.model.max_variance
    assert np.all(lower <= std[:2] ** 2 + slack)
    assert np.all(upper >= std[:2] ** 2 - slack)


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_what_is_certain_is_the_exact_choice(family: str, ridge: float) -> None:
    graph = ct.make_graph(family, 30, seed=1)
    for arms, normalised in (("linear", False), ("se", True)):
        n_certain, wrong = play(*make_pair(graph, arms, ridge, normalised=normalised), 20)
        assert not wrong
        assert (
            n_certain >= 15
        )  # those who have no neighbours and no rewards meet ties: all arms are alike to the kernel


@pytest.mark.parametrize("ridge", [0.1, 1.0])
def test_what_pushes_alone_prove_is_the_exact_choice(ridge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparseModel, "limits", Limits(few_users=0))
    certified, exact = make_pair(ct.make_graph("sbm", 60, seed=1), "linear", ridge, eps=0.02)
    assert isinstance(certified.model, SparseModel)
    certified.model._posterior.solves_globally = False
    n_certain, wrong = play(certified, exact, 60)
    assert not wrong
    assert n_certain >= 40


@pytest.mark.slow
@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("arms", sorted(ARMS))
@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("normalised", [False, True])
def test_what_is_certain_is_the_exact_choice_for_long(family: str, arms: str, ridge: float, normalised: bool) -> None:
    n_users = 300 if (arms, ridge, normalised) == ("linear", 1.0, False) else 60  # 300 take a minute
    certified, exact = make_pair(ct.make_graph(family, n_users, seed=1), arms, ridge, normalised=normalised)
    n_certain, wrong = play(certified, exact, 2000)
    assert not wrong
    # Where everybody is everybody's neighbour, one turn of all takes much of the work that a decision has.
    assert n_certain >= (1600 if family in ("complete", "rbf") else 1800)


def test_ties_of_equal_arms_are_broken_as_the_exact_policy_does() -> None:
    graph = ct.make_graph("ring", 6)
    arms = ct.ArmPool([[1.0, 0.2], [1.0, 0.2], [0.1, 0.1], [1.0, 0.2]])
    asked: dict[str, Any] = {"graph": graph, "arms": arms, "arm_kernel": ct.Linear(), "seed": 3}
    certified, exact = ct.make_policy("lk-gp-ucb", **asked, **CERTIFIED), ct.make_policy("lk-gp-ucb", **asked)
    choices = [(certified.select(user), exact.select(user)) for user in range(6)]
    assert all(told.certain and told.arm == right.arm for told, right in choices)
    assert len({told.arm for told, _ in choices}) > 1


def test_what_is_told_of_a_certain_choice_is_the_refined_belief() -> None:
    certified, exact = make_pair(ct.make_graph("sbm", 40, seed=1), "linear", 0.1)
    play(certified, exact, 40)
    for user in range(40):
        told, right = certified.select(user), exact.select(user)
        assert told.certain
        assert told.std >= right.std - 1e-9
        assert told.score == pytest.approx(told.mean + told.std)


@pytest.mark.parametrize("name", ["greedy", "graph-ucb", "lk-gp-ucb"])
def test_policies_of_mean_and_std_are_certified(name: str) -> None:
    graph = ct.make_graph("sbm", 20, seed=1)
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(8, 3)))
    asked: dict[str, Any] = {"graph": graph, "arms": arms, "noise_var": 0.1, "seed": 3}
    asked |= {} if name == "graph-ucb" else {"arm_kernel": ct.Linear()}
    certified, exact = ct.make_policy(name, **asked, **CERTIFIED), ct.make_policy(name, **asked)
    rng, n_certain = np.random.default_rng(1), 0
    for _ in range(40):
        user = int(rng.integers(20))
        told, right = certified.select(user), exact.select(user)
        assert told.arm == right.arm or not told.certain
        n_certain += bool(told.certain)
        reward = float(rng.normal())
        for policy in (certified, exact):
            policy.update(user, right.arm, reward)
    assert n_certain >= 20


def test_nobody_asked_nobody_is_told() -> None:
    graph, arms = ct.make_graph("ring", 5), ct.ArmPool(np.eye(2))
    assert ct.make_policy("lk-gp-ucb", graph=graph, arms=arms).select(0).certain is None
    assert ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, engine="sparse").select(0).certain is None


@pytest.mark.parametrize("name", ["lk-gp-ts", "epsilon-greedy"])
def test_choices_that_are_drawn_cannot_be_certain(name: str) -> None:
    with pytest.raises(ParameterError, match="only the highest mean"):
        ct.make_policy(name, graph=ct.make_graph("ring", 5), arms=ct.ArmPool(np.eye(2)), **CERTIFIED)


def test_a_width_of_the_model_cannot_be_certain() -> None:
    width = TheoryWidth(norm_bound=1.0, noise_std=0.1)
    with pytest.raises(ParameterError, match="so the width is a number"):
        ct.make_policy(
            "lk-gp-ucb", graph=ct.make_graph("ring", 5), arms=ct.ArmPool(np.eye(2)), width=width, **CERTIFIED
        )
