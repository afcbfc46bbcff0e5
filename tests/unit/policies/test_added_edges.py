"""A policy whose graph changes: the same rewards, the same settings, the new graph."""

from math import exp, log
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.policies.auto import AutoPolicy
from coterie.policies.policy import Policy

ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(6, 3)), ids=list("abcdef"))
GRAPH = ct.UserGraph.from_edges(
    [("ana", "bo"), ("bo", "cy", 0.5), ("cy", "ana", 2.0)], users=["ana", "bo", "cy", "dee"]
)


def taught(name: str, rounds: int = 40, **options: Any) -> Policy:
    policy = ct.make_policy(name, graph=GRAPH, arms=ARMS, engine="grid", **options)
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        user, arm = GRAPH.users[int(rng.integers(4))], ARMS.ids[int(rng.integers(6))]
        policy.update(user, arm, float(rng.normal()) + 3.0 * (user == "ana"))
    return policy


def beliefs(policy: Policy) -> np.ndarray:
    return np.array([policy.predict(user) for user in policy.graph.users])


CHANGED = GRAPH.add_users({"eve": {"ana": 1.0, "dee": 0.2}, "fay": {"eve": 3.0}, "gus": None})[0]


@pytest.mark.parametrize("name", ["lk-gp-ucb", "lk-gp-ts", "graph-ucb", "auto-ucb", "auto-ts"])
def test_it_believes_and_decides_as_one_made_there(name: str) -> None:
    policy = taught(name)
    history, kept = policy.model.history, policy.hyperparameters()
    assert policy.relink(CHANGED)
    assert policy.graph is CHANGED
    fresh = ct.make_policy(name, graph=CHANGED, arms=ARMS, engine="grid")
    if kept is None:
        fresh.relearn(history)
    else:
        history.shift(kept["centre"])
        fresh.relearn_with(kept, history)
    np.testing.assert_allclose(beliefs(policy), beliefs(fresh), atol=1e-9)
    fresh.n_decisions = policy.n_decisions
    for user in CHANGED.users:
        assert policy.select(user).arm == fresh.select(user).arm
    assert policy.select("fay").user == "fay"


def test_a_policy_that_cannot_follow_changes_nothing() -> None:
    policy = taught("lk-gp-ucb")
    before = beliefs(policy)
    for graph in (GRAPH.remove_user("dee")[0], GRAPH.remove_edge("ana", "bo")[0], GRAPH.set_edge("ana", "bo", 0.5)[0]):
        assert not policy.relink(graph)
        assert policy.graph is GRAPH
    np.testing.assert_array_equal(beliefs(policy), before)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("club", {}),
        ("gp-ucb", {}),
        ("exchangeable-gp-ucb", {}),
        ("coop-kernel-ucb", {}),
        ("lk-gp-ucb", {"user_kernel": ct.Heat()}),
        ("lk-gp-ucb", {"noise_var": ct.SpectralSchedule(base=0.05, horizon=100)}),
    ],
)
def test_other_user_kernels_are_rebuilt(name: str, options: dict[str, Any]) -> None:
    assert not taught(name, **options).relink(CHANGED)


def test_hyperparameters_are_kept_and_the_graph_part_keeps_its_meaning() -> None:
    policy = taught("auto-ucb")
    assert isinstance(policy, AutoPolicy)
    before, fits = policy.hyper, list(policy.fits)
    scale = exp(before.graph) / policy.context.mean_gain(before.ridge)
    assert policy.relink(CHANGED)
    assert policy.fits == fits
    assert policy.hyper._replace(graph=0.0) == before._replace(graph=0.0)
    assert policy.hyper.graph == pytest.approx(log(scale * policy.context.mean_gain(before.ridge)))
    laplacian = CHANGED.laplacian().toarray()
    want = scale * np.linalg.inv(laplacian + exp(before.ridge) * np.eye(7)) + exp(before.common)
    want += exp(before.own) * np.eye(7)
    want /= policy.hyper.variance
    np.testing.assert_allclose(policy.model.kernel.user_cov, want, rtol=1e-10)
    again = policy.context.kernel(policy.hyper).user_cov
    np.testing.assert_allclose(np.asarray(again), want, rtol=1e-10)


def test_the_next_epoch_fits_on_the_new_graph() -> None:
    policy = taught("auto-ucb", rounds=31)
    assert isinstance(policy, AutoPolicy)
    assert policy.relink(CHANGED)
    assert policy.fits[-1][0] == 24
    for _ in range(3):
        policy.update("fay", "a", 1.0)
    assert policy.fits[-1][0] == 32
    np.testing.assert_allclose(policy.model.kernel.user_cov, policy.context.kernel(policy.hyper).user_cov)


def test_on_sparse_any_edges_may_change() -> None:
    pytest.importorskip("numba")
    policy = ct.make_policy("lk-gp-ucb", graph=GRAPH, arms=ARMS, engine="sparse", engine_options={"eps": 1e-6})
    for number, user in enumerate(["ana", "bo", "cy", "ana", "bo"]):
        policy.update(user, "abcde"[number], float(number))
    kernel = policy.model.kernel
    changed = CHANGED.set_edge("ana", "gus", 2.0)[0].remove_edge("ana", "bo")[0].set_edge("bo", "cy", 0.1)[0]
    assert policy.relink(CHANGED)
    assert policy.relink(changed)
    fresh = ct.make_policy("lk-gp-ucb", graph=changed, arms=ARMS, engine="exact")
    fresh.relearn(policy.model.history)
    np.testing.assert_allclose(beliefs(policy)[:, 0], beliefs(fresh)[:, 0], atol=1e-4)
    assert np.all(beliefs(policy)[:, 1] >= beliefs(fresh)[:, 1] * (1 - 1e-9))
    assert policy.select("gus").user == "gus"
    assert kernel.n_users == 4
    assert not policy.relink(changed.remove_user("ana")[0])
    assert policy.graph is changed
