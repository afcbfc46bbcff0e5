"""With contexts, too, a change is made whole or not at all, whatever is raised at whatever line of it."""

import json
from collections.abc import Callable
from contextlib import suppress
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from interruption import FAILURES, INTERRUPTS, InterruptedHereError, Interruption

pytestmark = pytest.mark.filterwarnings("ignore::coterie.errors.FitWarning")  # a fit that lacks memory is given up

ARMS = {name: [float(i % 3), float(i // 3)] for i, name in enumerate("abcdef")}
USERS = ["ana", "bo", "cy", "dee"]
AGES = {user: {"age": 20.0 + 5 * i, "region": "ns"[i % 2]} for i, user in enumerate(USERS)}
KINDS: dict[str, dict[str, Any]] = {
    "local": {"users": AGES},
    "exact": {"engine": "exact"},
    "trend": {
        "policy": "auto-ts",
        "engine": "local",
        "engine_options": {"near_rows": 6, "exact_rows": 6, "trend_features": 5},
    },
    "features": {
        "engine": "features",
        "engine_options": {"exact_rows": 6, "trend_features": 5},
        "context_schema": {"hour": "number", "device": "category"},
    },
    "featureless": {"arms": list(ARMS)},
    "forgetting": {"forgetting": 0.9},
    "hallucinate": {"pending": "hallucinate", "max_pending": 3, "min_propensity": 0.05},
}
NIGHT = {"hour": 21, "device": "phone"}


def context(t: int) -> dict[str, Any]:
    return {"hour": t % 24, "device": f"device-{t % 3}"}


def made(folder: Path, name: str) -> ct.Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)], users=USERS)
    bandit = ct.Bandit(**{"graph": graph, "arms": ARMS, **KINDS[name]}, journal=folder / "journal")
    bandit.save(folder / "snapshot")
    rng = np.random.default_rng(0)
    for t in range(9):
        decision = bandit.decide(USERS[t % 4], None, context(t))
        if t < 7:
            bandit.reward(decision.id, float(rng.normal()))
    _add_user(bandit, 999, who="extra")
    return bandit


def held(bandit: ct.Bandit, journal: Path) -> tuple[Any, ...]:
    """What must be as before to the last bit, or as after."""
    with bandit.frozen() as parts:
        events, ledger = parts["events"], parts["ledger"]
        calls = [line["call"] for line in map(json.loads, journal.read_bytes().splitlines()) if "call" in line]
        return (
            parts["n_decisions"],
            list(zip(events.users, events.arms, events.rewards, map(tuple, events.inputs), strict=True)),
            dict(events.guests),
            list(zip(ledger.numbers, *map(ledger.column, ("user", "arm", "guest")), strict=True)),
            list(map(tuple, ledger.column("input"))),
            list(zip(ledger.settled, ledger.events, strict=True)),
            parts["retired"],
            parts["settings"]["options"],
            bandit.graph.users,
            bandit.graph.n_edges,
            (bandit.arms.ids, bandit.arms.features.tolist()),
            bandit.context_schema,
            bandit._learned.user_features,
            [call for call in calls if call != "_recover"],
        )


def beliefs(bandit: ct.Bandit) -> Any:
    return np.array([list(bandit.predict(user, list("abc"), context(2)).values()) for user in USERS])


def new_arm(bandit: ct.Bandit) -> list[float] | None:
    return [0.5, 1.0] if bandit.arms.has_features else None


def _add_user(bandit: ct.Bandit, t: int, who: str = "new") -> None:
    features = {"features": {"age": 30.0 + t % 7, "region": "w"}} if bandit._learned.user_features else {}
    bandit.add_user(f"{who}-{t}", {"bo": 1.0}, **features)


def _add_arms(bandit: ct.Bandit, t: int) -> None:
    bandit.add_arms({f"arm-{t}": [0.5, 1.0]} if bandit.arms.has_features else [f"arm-{t}"])


def _update(bandit: ct.Bandit, t: int) -> None:
    if bandit.arms.has_features:
        bandit.update_features({"f": [0.1 * t, 1.0]})
    else:
        bandit.connect("ana", "dee", 1.0 + t % 5)


def _with(bandit: ct.Bandit, t: int, *, keep: bool) -> None:
    arm, of_pool = (f"one-{t}", None) if keep or bandit.arms.has_features else ("a", None)
    shown = {"b": of_pool, arm: new_arm(bandit)}
    bandit.decide("ana", shown, {"hour": t % 24, "device": f"new-{t}"}, keep=keep)


def _replace(bandit: ct.Bandit, t: int) -> None:
    rewarded = next(number for number, _ in bandit._ledger.settled())
    bandit.reward(rewarded, float(t % 2), replace=True)


CALLS: dict[str, Callable[[ct.Bandit, int], Any]] = {
    "decide": lambda bandit, t: bandit.decide("ana", None, {"hour": 3, "device": f"new-{t}"}),
    "guest": lambda bandit, t: _with(bandit, t, keep=False),
    "keep": lambda bandit, t: _with(bandit, t, keep=True),
    "decide_many": lambda bandit, t: bandit.decide_many(["ana", "cy"], ["a", "c"], [context(t), context(t + 1)]),
    "reward": lambda bandit, _: bandit.reward(next(iter(bandit.pending)), 1.0),
    "replace": _replace,
    "learn": lambda bandit, t: bandit.learn("bo", "d", 1.0, {"hour": 3, "device": f"new-{t}"}),
    "learn_many": lambda bandit, t: bandit.learn_many(["bo", "cy"], ["d", "e"], [1.0, 0.0], [context(t), NIGHT]),
    "add_user": _add_user,
    "remove_user": lambda bandit, t: bandit.remove_user(f"extra-{t}"),
    "add_arms": _add_arms,
    "update": _update,
}


def length_of(bandit: ct.Bandit, call: Callable[[ct.Bandit, int], Any]) -> int:
    with Interruption(-1, InterruptedHereError) as counted:
        call(bandit, 999)
    return counted.n_lines


def check_interrupted(bandit: ct.Bandit, folder: Path, name: str, t: int, at: Interruption) -> bool:
    """Calls with an interruption; returns whether all is as before, or raises if it is neither so nor as after."""
    if not bandit.n_pending:
        bandit.decide("bo", None, NIGHT)
    if name == "remove_user":
        _add_user(bandit, t, who="extra")
    believed = beliefs(bandit)  # first: whoever reads may refresh weights that have faded, which has a line of its own
    before = held(bandit, folder / "journal")
    with at, suppress(at.error):
        CALLS[name](bandit, t)
    after = held(bandit, folder / "journal")
    if after != before:  # as after: one change more
        assert len(after[-1]) == len(before[-1]) + 1
        return False
    has_trend = getattr(bandit._learned.policy.model, "near_rows", 128) < 128  # a new one is chosen for a new posterior
    np.testing.assert_allclose(beliefs(bandit), believed, atol=0.2 if has_trend else 1e-6)
    return True


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("errors", [INTERRUPTS, FAILURES], ids=["interrupts", "failures"])
@pytest.mark.parametrize("most", [6, pytest.param(150, marks=pytest.mark.slow)])
def test_an_exception_at_any_line_leaves_contexts_as_before_or_as_after(
    tmp_path: Path, kind: str, name: str, errors: tuple[type[BaseException], ...], most: int
) -> None:
    bandit = made(tmp_path, kind)
    n_lines = length_of(bandit, CALLS[name])
    lines = np.unique(np.linspace(1, n_lines, most).astype(int)).tolist()
    raised = zip(count(), lines, cycle(errors))
    undone = [check_interrupted(bandit, tmp_path, name, t, Interruption(at, error)) for t, at, error in raised]
    assert any(undone)
    believed, schema = beliefs(bandit), bandit.context_schema
    del bandit
    loaded = ct.Bandit.load(tmp_path / "snapshot", journal=tmp_path / "journal")
    assert loaded.context_schema == schema
    if errors is INTERRUPTS:
        np.testing.assert_array_equal(beliefs(loaded), believed)  # a replay recovers where the bandit did
    else:
        np.testing.assert_allclose(beliefs(loaded), believed, atol=1e-6)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_first_context_that_is_interrupted_is_none(error: type[BaseException]) -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])
    n_lines = length_of(ct.Bandit(graph=graph, arms=ARMS), lambda bandit, _: bandit.decide("ana", None, NIGHT))
    undone = 0
    for at in np.linspace(1, n_lines, 60).astype(int).tolist():
        bandit = ct.Bandit(graph=graph, arms=ARMS)
        with Interruption(at, error), suppress(error):
            bandit.decide("ana", None, NIGHT)
        if bandit.n_decisions == 0:
            undone += 1
            assert bandit.context_schema is None
            assert bandit.decide("ana", None, [1.0, 2.0, 3.0]).id == 0  # another first context is as well
        else:
            assert bandit.context_schema is not None
    assert undone > 30
