"""Decisions made together are those made one after another, to the bit."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import CandidatesError, NumericalError
from coterie.models import ENGINES
from coterie.product.bandit import Bandit

ARMS = dict(zip("abcdef", np.random.default_rng(0).normal(size=(6, 3)), strict=True))
USERS = ["ana", "dee", "ana", "cy", "bo", "ana"]


def make(rewards: int = 20, **options: Any) -> Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)], users=["ana", "bo", "cy", "dee"])
    bandit = Bandit(**{"graph": graph, "arms": ARMS, "policy": "lk-gp-ucb", "engine": "grid", "seed": 3, **options})
    rng = np.random.default_rng(1)
    for _ in range(rewards):
        bandit.learn(graph.users[int(rng.integers(4))], "abcdef"[int(rng.integers(6))], float(rng.normal()))
    return bandit


def told(decision: Any) -> tuple[Any, ...]:
    names = ("id", "user", "arm", "mean", "std", "explored", "propensity", "propensity_error", "candidates")
    return tuple(getattr(decision, name) for name in names)


def assert_same(one: Bandit, other: Bandit, candidates: list[str] | None) -> None:
    together = one.decide_many(USERS, candidates)
    apart = [other.decide(user, candidates) for user in USERS]
    assert [told(each) for each in together] == [told(each) for each in apart]
    assert list(one._ledger.pending()) == list(other._ledger.pending())
    assert told(one.decide("ana")) == told(other.decide("ana"))


def widening(t: int, model: Any) -> float:  # noqa: ARG001 - the signature of a width
    return 1.0 + 0.1 * t


def careful(mean: Any, std: Any, width: float, **_: Any) -> Any:
    return mean - width * std


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no rewards, so all are tied": {"rewards": 0, "arms": {name: [1.0] for name in "abcdef"}},
    "exploration": {"min_propensity": 0.1},
    "expiry": {"expire_after": 10.0, "clock": lambda: 5.0},
    "few pending": {"max_pending": 3},
    "forgetting": {"forgetting": 0.9},
    "hallucinate": {"pending": "hallucinate"},
    "a width of one's own": {"width": widening},
    "a score of one's own": {"score": careful},
    "joint": {"policy": "lk-gp-ts", "sampling": "joint"},
}


@pytest.mark.parametrize("candidates", [None, list("bdf"), ["c"]])
@pytest.mark.parametrize("options", sorted(OPTIONS))
def test_they_are_the_same_whatever_the_options(options: str, candidates: list[str] | None) -> None:
    assert_same(make(**OPTIONS[options]), make(**OPTIONS[options]), candidates)


@pytest.mark.parametrize("engine", [*sorted(ENGINES), "auto"])
@pytest.mark.parametrize("policy", ["lk-gp-ucb", "lk-gp-ts", "auto-ucb", "auto-ts", "graph-ucb", "graph-ts", "greedy"])
def test_they_are_the_same_on_every_engine(engine: str, policy: str) -> None:
    assert_same(make(engine=engine, policy=policy), make(engine=engine, policy=policy), None)


@pytest.mark.parametrize("policy", ["epsilon-greedy", "random", "club", "gp-ucb", "per-user-linucb", "popularity"])
def test_they_are_the_same_for_other_policies(policy: str) -> None:
    assert_same(make(engine="auto", policy=policy), make(engine="auto", policy=policy), None)


def test_a_batch_believes_what_was_believed_when_it_was_made() -> None:
    bandit = make(policy="lk-gp-ts")
    together = bandit.decide_many(USERS)
    apart = [told(each) for each in make(policy="lk-gp-ts").decide_many(USERS)]
    for each in together:
        bandit.reward(each.id, 5.0)
    assert [told(each) for each in together] == apart


def test_ties_are_broken_by_the_decisions_own_draw() -> None:
    options: dict[str, Any] = {"rewards": 0, "arms": {name: [1.0] for name in "abcdef"}}
    arms = {each.arm for each in make(**options).decide_many(USERS * 5)}
    assert len(arms) > 3


def test_mistakes_are_told_and_decide_nothing() -> None:
    bandit = make(width=1e308)
    with pytest.raises(NumericalError), np.errstate(over="ignore", invalid="ignore"):
        bandit.decide_many(["dee", "ana"])
    with pytest.raises(CandidatesError):
        bandit.decide_many(USERS, [])
    with pytest.raises(CandidatesError):
        bandit.decide_many(USERS, ["a", "a"])
    assert bandit.decide_many([]) == []
    assert (bandit.n_pending, bandit._learned.policy.n_decisions) == (0, 0)
