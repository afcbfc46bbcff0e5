"""A change is made whole or not at all, whatever is raised at whatever line of it."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import NumericalError

SOURCE = str(Path(ct.__file__).parent)
ARMS = {name: [float(i % 3), float(i // 3)] for i, name in enumerate("abcdef")}
USERS = ["ana", "bo", "cy", "dee"]
ENGINES: list[dict[str, Any]] = [
    {"policy": "lk-gp-ucb", "engine": engine}
    for engine in ("dense", "exact", "grid", "features", "linear", "hybrid", "sparse")
]
ENGINES += [
    {"policy": "auto-ucb"},
    {"policy": "auto-ts", "engine": "sparse"},
    {"policy": "auto-ucb", "reward": "binary", "likelihood": "bernoulli"},
    {"policy": "lk-gp-ts", "pending": "hallucinate", "max_pending": 3, "min_propensity": 0.05},
    {"policy": "lk-gp-ucb", "forgetting": 0.9},
    {"policy": "club"},
    {"policy": "graph-ucb", "expire_after": 1e6},
]
STATED = {"sparse": 0.2}  # how far its posterior may be from the exact one, in prior stds


class InterruptedHereError(BaseException):
    """What is raised at a line; nothing of ours catches it by its type."""


class Interruption:
    """Raises at a line of Coterie's own code, counted from the start."""

    def __init__(self, at: int, error: type[BaseException]) -> None:
        self._at, self.error = at, error
        self.n_lines = 0

    def __enter__(self) -> "Interruption":
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line":
            self.n_lines += 1
            if self.n_lines == self._at:
                sys.settrace(None)
                raise self.error("here", "rule", "remedy") if self.error is NumericalError else self.error
        return self._trace


def made(tmp_path: Path, options: dict[str, Any]) -> ct.Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)], users=USERS)
    bandit = ct.Bandit(graph=graph, arms=ARMS, journal=tmp_path / "journal", **options)
    bandit.save(tmp_path / "snapshot")
    rng = np.random.default_rng(0)
    for t in range(7):
        decision = bandit.decide(USERS[t % 4])
        if t < 5:
            bandit.reward(decision.id, float(rng.integers(2)))
    bandit.decide("dee", ["a", "b"])
    return bandit


def counts(bandit: ct.Bandit, journal: Path) -> tuple[Any, ...]:
    """What must be as before to the last bit, or as after."""
    with bandit.frozen() as parts:
        events = parts["events"]
        calls = [line["call"] for line in map(json.loads, journal.read_bytes().splitlines()) if "call" in line]
        return (
            parts["n_decisions"],
            list(zip(events.users, events.arms, events.rewards, strict=True)),
            [(number, each.user, each.arm) for number, each in parts["pending"]],
            parts["settled"],
            parts["retired"],
            bandit.graph.users,
            bandit.graph.n_edges,
            bandit.arms.ids,
            [call for call in calls if call != "_recover"],
        )


def beliefs(bandit: ct.Bandit) -> Any:
    return np.array([list(bandit.predict(user).values()) for user in bandit.graph.users])


def learned(bandit: ct.Bandit) -> Any:
    policy = bandit._learned.policy
    return [list(hyper) for _, hyper in policy.fits] if hasattr(policy, "fits") else []


CALLS: dict[str, Callable[[ct.Bandit, Any], Any]] = {
    "decide": lambda bandit, t: bandit.decide("ana"),
    "decide_many": lambda bandit, t: bandit.decide_many(["ana", "cy", "ana"], ["a", "c", "d"]),
    "reward": lambda bandit, t: bandit.reward(_waiting(bandit), 1.0),
    "replace": lambda bandit, t: bandit.reward(0, float(t % 2), replace=True),
    "learn": lambda bandit, t: bandit.learn("bo", "d", 1.0),
    "add_user": lambda bandit, t: bandit.add_user(f"new-{t}", friends={"bo": 1.0}),
    "remove_user": lambda bandit, t: bandit.remove_user(bandit.graph.users[-1]),
    "connect": lambda bandit, t: bandit.connect("ana", "dee", 1.0 + t),
    "add_arms": lambda bandit, t: bandit.add_arms({f"arm-{t}": [0.5, 1.0]}),
    "retire_arms": lambda bandit, t: bandit.retire_arms(["f"]),
}


def _waiting(bandit: ct.Bandit) -> int:
    """Returns a decision that waits for its reward; one is made if there is none."""
    for number, _ in bandit._ledger.pending():
        return number
    return bandit.decide("bo").id


def length_of(bandit: ct.Bandit, call: Callable[[ct.Bandit, Any], Any]) -> int:
    """Returns how many lines of Coterie's own code a call runs."""
    with Interruption(-1, InterruptedHereError) as counted:
        call(bandit, 999)
    return counted.n_lines


def check_interrupted(bandit: ct.Bandit, folder: Path, call: Callable[[ct.Bandit], Any], at: Interruption) -> bool:
    """Calls with an interruption; returns whether all is as before, or raises if it is neither so nor as after."""
    journal, engine = folder / "journal", bandit._learned.policy.model
    tolerance = 1e-6 + STATED.get(engine.engine, 0.0) * float(engine.prior_std(0).max())
    before, believed, hyper = counts(bandit, journal), beliefs(bandit), learned(bandit)
    with at, suppress(at.error):
        call(bandit)
    after = counts(bandit, journal)
    if after != before:  # as after: one change more
        assert len(after[-1]) == len(before[-1]) + 1
        return False
    np.testing.assert_allclose(beliefs(bandit), believed, atol=tolerance)
    assert learned(bandit) == hyper
    return True


def interrupt(folder: Path, options: dict[str, Any], name: str, error: type[BaseException], most: int) -> None:
    """Interrupts a call at up to so many of its lines, one after another, and replays the journal."""
    bandit, call = made(folder, options), CALLS[name]
    n_lines = length_of(bandit, call)
    lines = np.unique(np.linspace(1, n_lines, most).astype(int)).tolist()
    undone = [
        check_interrupted(bandit, folder, partial(call, t=t), Interruption(at, error)) for t, at in enumerate(lines)
    ]
    assert sum(undone) >= len(lines) / 3
    believed = beliefs(bandit)
    del bandit
    again = ct.Bandit.load(folder / "snapshot", journal=folder / "journal")
    np.testing.assert_array_equal(beliefs(again), believed)  # a replay recovers where the bandit did


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("options", ENGINES, ids=lambda options: "-".join(map(str, options.values())))
def test_an_exception_at_a_line_leaves_all_as_before_or_as_after(
    tmp_path: Path, options: dict[str, Any], name: str
) -> None:
    interrupt(tmp_path, options, name, InterruptedHereError, most=8)


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, NumericalError])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("options", ENGINES, ids=lambda options: "-".join(map(str, options.values())))
def test_an_exception_at_any_line_leaves_all_as_before_or_as_after(
    tmp_path: Path, options: dict[str, Any], name: str, error: type[BaseException]
) -> None:
    interrupt(tmp_path, options, name, error, most=400)
