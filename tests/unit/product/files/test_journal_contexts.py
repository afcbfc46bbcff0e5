"""Bandits with contexts: saved at any moment they go on the same, and a journal makes every decision again."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.errors import CoterieError
from coterie.product.changes import CHANGES
from coterie.product.files.recording import decisions_in

USERS = ["ana", "bo", 7, "dee"]
GRAPH = ct.UserGraph.from_edges([("ana", "bo"), ("bo", 7, 0.5)], users=USERS)
ARMS = dict(zip("abcde", np.random.default_rng(0).normal(size=(5, 2)).tolist(), strict=True))
TABLE = {user: {"age": 20.0 + 7 * i, "region": "ns"[i % 2]} for i, user in enumerate(USERS)}
CLOSED = {"hour": {"kind": "number", "default": 12.0}, "device": ["phone", "device-1"], "on": "flag"}
KINDS: dict[str, dict[str, Any]] = {
    "learned": {},
    "stated": {"context_schema": CLOSED},
    "rows": {"context_schema": 2},
    "sampled": {"policy": "auto-ts", "min_propensity": 0.05},
    "joint": {"policy": "auto-ts", "sampling": "joint"},
    "featureless": {"arms": list(ARMS)},
    "priced": {"request_features": ["price"]},
    "users": {"users": TABLE},
    "users alone": {"users": TABLE, "context_schema": {}},
    "forgetting": {"forgetting": 0.9},
    "window": {"window": 6, "arms": list(ARMS)},
    "hallucinate": {"pending": "hallucinate"},
    "binary": {"reward": "binary", "expire_after": 6.0, "max_pending": 4},
    "exact": {"engine": "exact"},
    "dense": {"engine": "dense", "policy": "auto-ts"},
    "trend": {"engine": "local", "engine_options": {"near_rows": 8, "exact_rows": 8, "trend_features": 6}},
    "features": {
        "engine": "features",
        "engine_options": {"exact_rows": 8, "trend_features": 6},
        "context_schema": {"hour": "number", "device": "category", "on": "flag"},
    },
    "features, a schema that is learned": {"engine": "features", "policy": "auto-ts"},
}
Step = tuple[str, int, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [*["decide", "learn"] * 4, *["reward", "save"] * 3, "read", "many", "keep", "guest", *sorted(CHANGES)]
        ),
        st.integers(0, 2**16),
        st.floats(-3, 3, allow_subnormal=False),
    ),
    min_size=8,
    max_size=30,
)


def told(decision: ct.Decision) -> tuple[Any, ...]:
    """Returns all that is known of a decision."""
    return (decision._compared(), decision.propensity, decision.propensity_error, decision.candidates)


class Life:
    """A bandit with contexts that lives through generated steps, beside one that is loaded whenever it is saved."""

    def __init__(self, folder: Path, name: str, **options: Any) -> None:
        self.folder, self.now, self.name = folder, 100.0, name
        given = {"graph": GRAPH, "arms": ARMS, "seed": 3, **KINDS[name], **options}
        self.bandit = ct.Bandit(journal=folder / "journal", clock=lambda: self.now, **given)
        self.binary, self.has_features = given.get("reward") == "binary", self.bandit.arms.has_features
        self.made: list[ct.Decision] = []
        self.saved: list[tuple[Path, int]] = []
        self.save()

    def save(self) -> None:
        """Saves the bandit, and checks that a loaded one believes and saves the same."""
        path = self.folder / f"snapshot-{len(self.saved)}"
        self.bandit.save(path)
        self.saved.append((path, self.bandit.n_decisions))
        loaded = ct.Bandit.load(path, journal=None, clock=lambda: self.now)
        assert loaded.context_schema == self.bandit.context_schema
        assert loaded.pending == self.bandit.pending
        if self.bandit.context_schema is not None:
            assert self.believed(loaded) == self.believed(self.bandit)

    def believed(self, bandit: ct.Bandit) -> Any:
        context = self.context(3, learned=bool(bandit.context_schema and bandit.context_schema.fields))
        return [bandit.predict(user, self.shown(bandit.arms.ids, 5), context) for user in bandit.graph.users]

    def context(self, pick: int, *, learned: bool = True) -> Any:
        if self.name == "users alone" or not learned:
            return None
        if self.name == "rows":
            return [pick % 24, pick / 7]
        context: dict[str, Any] = {"hour": pick % 24, "device": f"device-{pick % 5}", "on": pick % 3 == 0}
        if self.name == "stated" and pick % 4 == 0:
            del context["hour"]
        return context

    def shown(self, arms: Any, pick: int, *, guests: bool = False) -> Any:
        """Returns candidates: ids, or a mapping where the request gives features or an arm is new."""
        if self.name != "priced" and not guests:
            return None if pick % 2 else arms[pick % 3 :]
        price = [pick % 5 / 2] if self.name == "priced" else []
        shown: dict[Any, Any] = dict.fromkeys(arms[pick % 3 :], price or None)
        if guests:
            shown[f"new-{pick}"] = [pick % 7 / 3, 0.4, *price] if self.has_features else price or None
        return shown

    def take(self, step: str, pick: int, value: float) -> None:
        """Does what the step says with users and arms picked by a number; a refused call is part of life."""
        bandit, self.now = self.bandit, self.now + pick % 5
        value = float(value > 0) if self.binary else value
        users, arms, context = bandit.graph.users, bandit.arms.ids, self.context(pick)
        user, other, arm = users[pick % len(users)], users[pick // 7 % len(users)], arms[pick // 3 % len(arms)]
        one: Any = {arm: [pick % 5 / 2]} if self.name == "priced" else arm
        features = {"age": 30.0 + value, "region": "nsw"[pick % 3]}
        more: dict[str, Any] = {"features": features} if "users" in self.name else {}
        many = {"features": {f"new-{pick}": features, f"newer-{pick}": features}} if more else {}
        calls: dict[str, Callable[[], Any]] = {
            "decide": lambda: bandit.decide(user, self.shown(arms, pick), context),
            "guest": lambda: bandit.decide(user, self.shown(arms, pick, guests=True), context),
            "keep": lambda: bandit.decide(user, self.shown(arms, pick, guests=True), context, keep=True),
            "many": lambda: bandit.decide_many(iter((user, other)), arms, iter((context, self.context(pick + 1)))),
            "reward": lambda: bandit.reward(pick % max(len(self.made), 1), value, replace=pick % 3 == 0),
            "reward_many": lambda: bandit.reward_many(
                [n for n, _ in zip(bandit.pending, "ab", strict=False)], [value] * 2
            ),
            "learn": lambda: bandit.learn(user, one, value, context),
            "learn_many": lambda: bandit.learn_many([user, other], [one, one], [value, 1.0], [context, context]),
            "read": lambda: (bandit.predict(user, None, context), bandit.explain(user, one, context)),
            "add_user": lambda: bandit.add_user(f"new-{pick}", {user: abs(value) + 0.1}, **more),
            "add_users": lambda: bandit.add_users({f"new-{pick}": {user: 0.4}, f"newer-{pick}": None}, **many),
            "remove_user": lambda: bandit.remove_user(user) if len(users) > 3 else None,
            "connect": lambda: bandit.connect(user, other, abs(value) + 0.1),
            "connect_many": lambda: bandit.connect_many(iter([(user, other, abs(value)), (other, users[0], 0.0)])),
            "disconnect": lambda: bandit.disconnect(user, other),
            "add_arms": lambda: bandit.add_arms(
                {f"new-{pick}": [value, 0.1]} if self.has_features else [f"new-{pick}"]
            ),
            "update_features": lambda: bandit.update_features({arm: [value, -value]}),
            "retire_arms": lambda: bandit.retire_arms(iter([arm])),
            "revive_arms": lambda: bandit.revive_arms(iter([arm])),
        }
        if step == "save":
            self.save()
            return
        try:
            given = calls[step]() if step in calls else None
        except CoterieError:
            return
        self.made += decisions_in(given)


def lived(folder: Path, name: str, steps: list[Step]) -> Life:
    life = Life(folder, name)
    for step in [*steps, ("save", 0, 0.0), ("decide", 1, 0.0), ("decide", 2, 0.0)]:
        life.take(*step)
    return life


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=3, deadline=None)
@given(steps=STEPS)
@example(steps=[("decide", t, 0.0) for t in range(3)])
@example(steps=[(["learn", "learn", "keep", "save"][t % 4], 13 * t, 0.7 * t % 2) for t in range(40)])
def test_every_decision_in_a_context_is_made_again_from_any_snapshot(name: str, steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        life = lived(Path(folder), name, steps)
        for snapshot, n_decisions in life.saved:
            for decision in life.made[n_decisions:]:
                again = ct.replay(snapshot, life.folder / "journal", decision=decision.id)
                assert told(again) == told(decision)


@pytest.mark.parametrize("name", KINDS)
def test_a_journal_that_is_cut_anywhere_gives_what_came_before(tmp_path: Path, name: str) -> None:
    steps = ["learn", "decide", "keep", "guest", "reward", "many", "learn", "decide", "add_user", "reward", "learn"]
    life = lived(tmp_path, name, [(step, 7 * t, 0.3 * t) for t, step in enumerate(steps * 2)])
    snapshot, path = life.saved[0][0], tmp_path / "journal"
    del life.bandit
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    ends = [len(line) for line in whole.splitlines(keepends=True)]
    changes = [json.loads(line) for line in whole.splitlines()]
    for cut in sorted({*rng.integers(ends[0] + ends[1], len(whole), 12).tolist(), len(whole)}):
        path.write_bytes(whole[:cut])
        n_whole = int(np.searchsorted(np.cumsum(ends), cut, side="right"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)  # of a last line that is cut off
            bandit = ct.Bandit.load(snapshot, journal=path, clock=lambda: 1e4)
        made = sum(len(line.get("gave", ())) for line in changes[:n_whole])
        assert bandit.n_decisions == made
        del bandit


def test_lines_without_contexts_are_what_they_were(tmp_path: Path) -> None:
    bandit = ct.Bandit(graph=GRAPH, arms=ARMS, journal=tmp_path / "journal")
    bandit.decide("ana", ["a", "b"])
    bandit.learn("bo", "c", 1.0)
    bandit.learn_many(["bo"], ["a"], [0.5])
    bandit.decide_many(["ana", "bo"])
    bandit.add_user("eve", {"ana": 1.0})
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text(encoding="utf-8").splitlines()]
    assert [line["with"] for line in lines if "with" in line] == [
        {"user": "ana", "candidates": ["a", "b"]},
        {"user": "bo", "arm": "c", "reward": 1.0},
        {"users": ["bo"], "arms": ["a"], "rewards": [0.5]},
        {"users": ["ana", "bo"]},
        {"user": "eve", "friends": {"pairs": [["ana", 1.0]]}},
    ]
