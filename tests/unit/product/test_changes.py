"""Users and edges that come to a Bandit: cheaply where the belief can follow, and the same either way."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import FactorisationError, GraphError, UnknownUserError
from coterie.product.bandit import Bandit

ARMS = dict(zip("abcdef", np.random.default_rng(0).normal(size=(6, 3)), strict=True))
COHORT = {"eve": {"ana": 1.0, "fay": 2.0}, "fay": {"eve": 2.0}, "gus": None}


def make(**options: Any) -> Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)], users=["ana", "bo", "cy", "dee"])
    bandit = Bandit(**{"graph": graph, "arms": ARMS, "policy": "lk-gp-ucb", "engine": "grid", "seed": 3, **options})
    rng = np.random.default_rng(1)
    for _ in range(20):
        bandit.learn(graph.users[int(rng.integers(4))], "abcdef"[int(rng.integers(6))], float(rng.normal()))
    return bandit


def beliefs(bandit: Bandit) -> np.ndarray:
    return np.array([list(bandit.predict(user).values()) for user in bandit.graph.users])


def rebuilt(bandit: Bandit) -> np.ndarray:
    bandit._learned.relearn(bandit._learned.policy.hyperparameters())
    return beliefs(bandit)


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "auto-ucb", "auto-ts", "graph-ucb"])
def test_a_cohort_is_one_change_and_the_policy_is_not_made_anew(policy: str) -> None:
    bandit = make(policy=policy)
    made = bandit._learned.policy
    bandit.add_users(COHORT)
    bandit.connect("gus", "ana", 0.5)
    bandit.connect("ana", "bo", 3.0)
    assert bandit._learned.policy is made
    assert bandit.graph.weight("eve", "fay") == 2.0
    np.testing.assert_allclose(beliefs(bandit), rebuilt(bandit), atol=1e-9)


@pytest.mark.parametrize("options", [{"engine": "exact"}, {"forgetting": 0.9}, {"policy": "club", "engine": "auto"}])
def test_where_the_belief_cannot_follow_it_is_computed_anew(options: dict[str, Any]) -> None:
    bandit, other = make(**options), make(**options)
    made = bandit._learned.policy
    bandit.add_users(COHORT)
    assert bandit._learned.policy is not made
    for user, friends in (("eve", {"ana": 1.0}), ("fay", {"eve": 2.0}), ("gus", None)):
        other.add_user(user, friends)
    np.testing.assert_allclose(beliefs(bandit), beliefs(other), atol=1e-9)


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "auto-ucb"])
def test_an_edge_that_goes_leaves_what_was_learned(policy: str) -> None:
    bandit = make(policy=policy)
    before, kept = beliefs(bandit), bandit._learned.policy.hyperparameters()
    bandit.connect("ana", "dee", 0.7)
    bandit.disconnect("ana", "dee")
    np.testing.assert_allclose(beliefs(bandit), before, atol=1e-9)
    after = bandit._learned.policy.hyperparameters()
    if kept is not None and after is not None:
        assert after["log_scale"] == pytest.approx(kept["log_scale"])
        assert after["fits"] == kept["fits"]


def test_a_bad_cohort_changes_nothing() -> None:
    bandit = make()
    before = beliefs(bandit)
    with pytest.raises(UnknownUserError):
        bandit.add_users({"eve": {"ana": 1.0}, "fay": {"nobody": 1.0}})
    with pytest.raises(GraphError):
        bandit.add_users({"eve": {"ana": 1.0}, "fay": {"eve": -1.0}})
    assert bandit.graph.n_users == 4
    np.testing.assert_array_equal(beliefs(bandit), before)


def test_waiting_decisions_and_doubts_follow() -> None:
    bandit = make(pending="hallucinate")
    waiting = bandit.decide("ana")
    bandit.add_user("eve", {"ana": 1.0})
    assert bandit.decide("eve").id == waiting.id + 1
    bandit.reward(waiting.id, 1.0)
    assert (bandit.n_rewards, bandit.n_pending) == (21, 1)


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "auto-ucb"])
@pytest.mark.parametrize("then", [0, 15])
def test_what_was_kept_is_saved(tmp_path: Path, policy: str, then: int) -> None:
    bandit = make(policy=policy)
    bandit.add_users(COHORT)
    bandit.disconnect("bo", "cy")
    for number in range(then):
        bandit.learn("eve", "abcdef"[number % 6], float(number))
    bandit.save(tmp_path / "bandit.coterie")
    again = Bandit.load(tmp_path / "bandit.coterie")
    np.testing.assert_allclose(beliefs(again), beliefs(bandit), atol=1e-9)
    assert again.describe() == bandit.describe()


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "auto-ucb"])
def test_an_edge_that_would_drown_the_belief_in_rounding_is_refused_and_changes_nothing(policy: str) -> None:
    bandit = make(policy=policy)
    before = beliefs(bandit)
    for weight in (1e12, 1e15, 1e50):
        with pytest.raises(FactorisationError, match=r"at most 1e\+10 times the ridge"):
            bandit.connect("ana", "cy", weight)
    np.testing.assert_array_equal(beliefs(bandit), before)
    assert bandit.graph.weight("ana", "cy") == 0.0


def test_an_edge_of_almost_no_weight_is_as_none() -> None:
    bandit = make()
    before = beliefs(bandit)
    bandit.connect("ana", "cy", 1e-240)
    np.testing.assert_allclose(beliefs(bandit), before, atol=1e-9)
