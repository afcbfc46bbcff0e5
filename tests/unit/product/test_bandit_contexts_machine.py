"""Any sequence of calls with contexts: while rewards are few, the bounded engine chooses as the exact one does."""

import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import coterie as ct

GRAPH = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy"), ("cy", "dee")])
ARMS = dict(zip("abcd", np.random.default_rng(0).normal(size=(4, 2)).round(3).tolist(), strict=True))
TABLE = {user: {"age": 20.0 + 9 * i, "region": "ns"[i % 2]} for i, user in enumerate(GRAPH.users)}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "featureless": {"arms": list(ARMS)},
    "users": {"users": TABLE},
    "window": {"window": 30},
    "forgetting": {"forgetting": 0.97},
    "hallucinate": {"pending": "hallucinate"},
    "binary": {"reward": "binary", "min_propensity": 0.1},
}
CONTEXTS = st.fixed_dictionaries(
    {
        "hour": st.integers(0, 23),
        "speed": st.floats(-2, 2).map(lambda number: round(number, 2)),
        "device": st.sampled_from(["phone", "desktop", "watch", "fridge"]),
        "on": st.booleans(),
    }
)
PICKS = st.integers(0, 2**16)
VALUES = st.floats(-3, 3).map(lambda number: round(number, 2))


class Contexts(RuleBasedStateMachine):
    """Two bandits, one on `local` and one on `exact`, that are called alike."""

    @initialize(kind=st.sampled_from(sorted(KINDS)), first=CONTEXTS)
    def begin(self, kind: str, first: dict[str, Any]) -> None:
        given = {"graph": GRAPH, "arms": ARMS, "seed": 1, **KINDS[kind]}
        self.both = [ct.Bandit(**given), ct.Bandit(**given, engine="exact")]
        self.binary, self.has_features = kind == "binary", kind != "featureless"
        self.traits, self.n_new, self.rewarded = kind == "users", 0, list[int]()
        self.decide(first, 0)

    def value(self, value: float) -> float:
        return float(value > 0) if self.binary else value

    def compare(self, decisions: list[ct.Decision]) -> None:
        one, other = decisions
        assert (one.id, one.user, one.arm, one.explored) == (other.id, other.user, other.arm, other.explored)
        np.testing.assert_allclose([one.mean, one.std], [other.mean, other.std], rtol=1e-5, atol=1e-6)

    def user(self, pick: int) -> Any:
        return self.both[0].users[pick % len(self.both[0].users)]

    def arm(self, pick: int) -> Any:
        return self.both[0].arms.ids[pick % len(self.both[0].arms)]

    @rule(context=CONTEXTS, pick=PICKS)
    def decide(self, context: dict[str, Any], pick: int) -> None:
        shown = None if pick % 3 else list(self.both[0].arms.ids[pick % 2 :])
        self.compare([each.decide(self.user(pick), shown, context) for each in self.both])

    @precondition(lambda self: len(self.both[0].arms) < 9)  # more could not all be explored
    @rule(context=CONTEXTS, pick=PICKS, keep=st.booleans())
    def decide_with_a_new_arm(self, context: dict[str, Any], pick: int, keep: bool) -> None:
        self.n_new += 1
        features = [pick % 7 / 3, pick % 5 / 2] if self.has_features else None
        shown = {self.arm(pick): None, f"new-{self.n_new}": features}
        self.compare([each.decide(self.user(pick), shown, context, keep=keep or not features) for each in self.both])

    @precondition(lambda self: self.both[0].n_pending and self.both[0].n_rewards < 100)
    @rule(value=VALUES, pick=PICKS)
    def reward(self, value: float, pick: int) -> None:
        waiting = list(self.both[0].pending)
        number = waiting[pick % len(waiting)]
        self.rewarded.append(number)
        for each in self.both:
            each.reward(number, self.value(value))

    @precondition(lambda self: self.rewarded)
    @rule(value=VALUES, pick=PICKS)
    def replace(self, value: float, pick: int) -> None:
        number = self.rewarded[pick % len(self.rewarded)]
        for each in self.both:
            if number in dict(each._ledger.settled()):
                each.reward(number, self.value(value), replace=True)

    @precondition(lambda self: self.both[0].n_rewards < 100)
    @rule(context=CONTEXTS, value=VALUES, pick=PICKS)
    def learn(self, context: dict[str, Any], value: float, pick: int) -> None:
        for each in self.both:
            each.learn(self.user(pick), self.arm(pick // 3), self.value(value), context)

    @precondition(lambda self: len(self.both[0].users) < 8)
    @rule(pick=PICKS)
    def add_user(self, pick: int) -> None:
        self.n_new += 1
        more = {"features": {"age": 20.0 + pick % 30, "region": "nsw"[pick % 3]}} if self.traits else {}
        friends = {self.user(pick): 1.0} if pick % 2 else None
        for each in self.both:
            each.add_user(f"user-{self.n_new}", friends, **more)

    @precondition(lambda self: len(self.both[0].users) > 3)
    @rule(pick=PICKS)
    def remove_user(self, pick: int) -> None:
        gone = self.user(pick)
        for each in self.both:
            each.remove_user(gone)

    @precondition(lambda self: len(self.both[0].arms) < 9)
    @rule(pick=PICKS)
    def add_arms(self, pick: int) -> None:
        self.n_new += 1
        name = f"arm-{self.n_new}"
        for each in self.both:
            each.add_arms({name: [pick % 9 / 4, pick % 4 / 3]} if self.has_features else [name])

    @precondition(lambda self: self.has_features)
    @rule(pick=PICKS)
    def update_features(self, pick: int) -> None:
        for each in self.both:
            each.update_features({self.arm(pick): [pick % 8 / 3, pick % 3 / 2]})

    @rule()
    def save_and_load(self) -> None:
        with TemporaryDirectory() as folder:
            for number, each in enumerate(self.both):
                each.save(Path(folder) / "bandit")
                self.both[number] = ct.Bandit.load(Path(folder) / "bandit")

    @rule()
    def copy_one(self) -> None:
        self.both[0] = copy.deepcopy(self.both[0])

    @invariant()
    def they_know_the_same(self) -> None:
        one, other = self.both
        assert one.context_schema == other.context_schema
        assert one.pending == other.pending
        assert list(one._learned.events.arm_ids(one.arms.ids)) == list(other._learned.events.arm_ids(other.arms.ids))


@pytest.mark.parametrize(("n_runs", "n_steps"), [(10, 30), pytest.param(150, 80, marks=pytest.mark.slow)])
def test_the_bounded_engine_chooses_as_the_exact_one(n_runs: int, n_steps: int) -> None:
    run = settings(max_examples=n_runs, stateful_step_count=n_steps, deadline=None)
    run_state_machine_as_test(Contexts, settings=run)
