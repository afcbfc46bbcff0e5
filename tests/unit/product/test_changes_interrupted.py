"""A change is made whole or not at all, whatever is raised at whatever line of it."""

import json
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.policies.auto import climbing, prior
from interruption import FAILURES, INTERRUPTS, InterruptedHereError, Interruption

pytestmark = pytest.mark.filterwarnings("ignore::coterie.errors.FitWarning")  # a fit that lacks memory is given up

ARMS = {name: [float(i % 3), float(i // 3)] for i, name in enumerate("abcdef")}
USERS = ["ana", "bo", "cy", "dee"]
ENGINES: list[dict[str, Any]] = [
    {"policy": "lk-gp-ucb", "engine": engine}
    for engine in ("dense", "exact", "grid", "features", "linear", "hybrid", "sparse")
]
ENGINES += [
    {"policy": "auto-ucb"},
    {"policy": "auto-ts", "engine": "local", "engine_options": {"near_rows": 6, "trend_features": 5}},
    {"policy": "auto-ucb", "reward": "binary", "likelihood": "bernoulli"},
    {"policy": "lk-gp-ts", "pending": "hallucinate", "max_pending": 3, "min_propensity": 0.05},
    {"policy": "lk-gp-ucb", "forgetting": 0.9},
    {"policy": "club"},
    {"policy": "graph-ucb", "expire_after": 1e6},
    {"policy": "auto-ts", "places": [1.0, 0.5, 0.5]},
]
# How far a posterior may be from the one conditioned on all rewards at once, in prior stds: the error that `sparse`
# states, and how far probabilities may be from those of settled sites. A std of `sparse` is any upper bound.
STATED = {"sparse": 0.1, "bernoulli": 0.1}


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
    bandit.add_user("extra-999")
    return bandit


def counts(bandit: ct.Bandit, journal: Path) -> tuple[Any, ...]:
    """What must be as before to the last bit, or as after."""
    with bandit.frozen() as parts:
        events, ledger = parts["events"], parts["ledger"]
        calls = [line["call"] for line in map(json.loads, journal.read_bytes().splitlines()) if "call" in line]
        return (
            parts["n_decisions"],
            list(zip(events.users, events.arms, events.rewards, strict=True)),
            list(zip(ledger.numbers, *map(ledger.column, ("user", "arm")), strict=True)),
            list(zip(ledger.settled, ledger.events, strict=True)),
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


def _replace_many(bandit: ct.Bandit, value: float) -> None:
    rewarded, waiting = _rewarded(bandit), _waiting(bandit)
    bandit.reward_many([waiting, rewarded], [1.0, value], replace=True)


CALLS: dict[str, Callable[..., Any]] = {
    "decide": lambda bandit, **_: bandit.decide("ana"),
    "decide_many": lambda bandit, **_: bandit.decide_many(["ana", "cy", "ana"], ["a", "c", "d"]),
    "rank": lambda bandit, **_: bandit.rank("ana", list("abcd"), 3),
    "reward": lambda bandit, **_: bandit.reward(_waiting(bandit), 1.0),
    "replace": lambda bandit, t: bandit.reward(_rewarded(bandit), float(t % 2), replace=True),
    "replace_many": lambda bandit, t: _replace_many(bandit, float(t % 2)),
    "learn": lambda bandit, **_: bandit.learn("bo", "d", 1.0),
    "add_user": lambda bandit, t: bandit.add_user(f"new-{t}", friends={"bo": 1.0}),
    "remove_user": lambda bandit, t: bandit.remove_user(f"extra-{t}"),
    "connect": lambda bandit, t: bandit.connect("ana", ["bo", "cy", "dee"][t % 3], 1.0 + t % 7),
    "add_arms": lambda bandit, t: bandit.add_arms({f"arm-{t}": [0.5, 1.0]}),
    "retire_arms": lambda bandit, **_: bandit.retire_arms(["f"]),
}


def _waiting(bandit: ct.Bandit) -> int:
    """Returns a decision that waits for its reward."""
    return next(number for number, _ in bandit._ledger.pending())


def _rewarded(bandit: ct.Bandit) -> int:
    """Returns a decision that has its reward."""
    return next(number for number, _ in bandit._ledger.settled())


def length_of(bandit: ct.Bandit, call: Callable[..., Any]) -> int:
    """Returns how many lines of Coterie's own code a call runs."""
    with Interruption(-1, InterruptedHereError) as counted:
        call(bandit, t=999)
    return counted.n_lines


def check_interrupted(bandit: ct.Bandit, folder: Path, name: str, t: int, at: Interruption) -> bool:
    """Calls with an interruption; returns whether all is as before, or raises if it is neither so nor as after."""
    journal, model = folder / "journal", bandit._learned.policy.model
    compared = 1 if model.engine == "sparse" else 2
    stated = STATED.get(bandit._likelihood, STATED.get(model.engine, 0.0))
    tolerance = 1e-6 + stated * float(model.prior_std(0).max())
    if not bandit.n_pending:
        bandit.decide("bo")
    if name == "remove_user":
        bandit.add_user(f"extra-{t}", friends={"bo": 1.0})
    before, believed, hyper = counts(bandit, journal), beliefs(bandit), learned(bandit)
    with at, suppress(at.error):
        CALLS[name](bandit, t=t)
    after = counts(bandit, journal)
    if after != before:  # as after: one change more
        assert len(after[-1]) == len(before[-1]) + 1
        return False
    np.testing.assert_allclose(beliefs(bandit)[..., :compared], believed[..., :compared], atol=tolerance)
    assert learned(bandit) == hyper
    return True


def interrupt(
    folder: Path, options: dict[str, Any], name: str, errors: tuple[type[BaseException], ...], most: int
) -> None:
    """Interrupts a call at up to so many of its lines, one after another, and replays the journal."""
    bandit = made(folder, options)
    n_lines = length_of(bandit, CALLS[name])
    lines = np.unique(np.linspace(1, n_lines, most).astype(int)).tolist()
    raised = zip(count(), lines, cycle(errors))
    undone = [check_interrupted(bandit, folder, name, t, Interruption(at, error)) for t, at, error in raised]
    assert any(undone)
    believed = beliefs(bandit)
    del bandit
    again = beliefs(ct.Bandit.load(folder / "snapshot", journal=folder / "journal"))
    if errors is INTERRUPTS:
        np.testing.assert_array_equal(again, believed)  # a replay recovers where the bandit did
    else:
        np.testing.assert_allclose(again, believed, atol=1e-6)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("options", ENGINES, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("errors", [INTERRUPTS, FAILURES], ids=["interrupts", "failures"])
@pytest.mark.parametrize("most", [8, pytest.param(150, marks=pytest.mark.slow)])
def test_an_exception_at_any_line_leaves_all_as_before_or_as_after(
    tmp_path: Path, options: dict[str, Any], name: str, errors: tuple[type[BaseException], ...], most: int
) -> None:
    if options.get("likelihood") == "bernoulli" and errors is FAILURES:
        errors = (MemoryError,)  # the other is how its evidence says that a point cannot be, which is no failure
    interrupt(tmp_path, options, name, errors, most)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_table_is_learned_whole_or_not_at_all(error: type[BaseException]) -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")], users=USERS)
    bandit = ct.Bandit(graph=graph, arms=ARMS, policy="auto-ucb")
    table = {"user": USERS * 3, "arm": list("abcdefabcdef"), "reward": list(np.linspace(-1, 1, 12))}
    bandit.fit(table)
    n_lines = length_of(ct.Bandit(graph=graph, arms=ARMS, policy="auto-ucb"), partial(_fit, table))
    for at in np.linspace(1, n_lines, 40).astype(int).tolist():
        before, believed, hyper = bandit.n_rewards, beliefs(bandit)[..., 0], learned(bandit)
        with Interruption(at, error), suppress(error):
            bandit.fit(table)
        if bandit.n_rewards == before:
            np.testing.assert_allclose(beliefs(bandit)[..., 0], believed, atol=0.1)
            assert learned(bandit) == hyper
        else:
            assert bandit.n_rewards == before + 12


def _fit(table: dict[str, Any], bandit: ct.Bandit, **_: Any) -> None:
    bandit.fit(table)


def test_a_signal_while_a_fit_is_waited_for_leaves_the_reward_to_be_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, fit = np.random.default_rng(3), prior.fit
    arms, graph = ct.ArmPool(rng.normal(size=(30, 4))), ct.make_graph("sbm", 40, seed=1)
    bandit = ct.Bandit(graph=graph, arms=arms, journal=tmp_path / "journal")
    bandit.save(tmp_path / "snapshot")
    for _ in range(63):
        bandit.learn(int(rng.integers(40)), int(rng.integers(30)), float(rng.normal()))

    def slow(*args: Any, **rest: Any) -> Any:
        time.sleep(0.5)
        return fit(*args, **rest)

    monkeypatch.setattr(climbing, "fit", slow)
    for _ in range(4):
        bandit.learn(int(rng.integers(40)), int(rng.integers(30)), float(rng.normal()))
    decision = bandit.decide(3)
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            bandit.reward(decision.id, 5.0)  # the 68th, which takes the fit that the 64th began
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
    assert (bandit.n_rewards, bandit.n_pending, bandit._learned.policy.n_rewards) == (67, 1, 67)
    bandit.reward(decision.id, 5.0)
    assert (bandit.n_rewards, bandit.n_pending, bandit._learned.policy.n_rewards) == (68, 0, 68)


def test_a_rollback_that_is_interrupted_is_done_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit = made(tmp_path, {"policy": "lk-gp-ucb", "engine": "exact"})
    before, believed = counts(bandit, tmp_path / "journal"), beliefs(bandit)

    def fail(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bandit._ledger, "settle", fail)
        patch.setattr(bandit._ledger, "roll_back", fail)
        with pytest.raises(KeyboardInterrupt):
            bandit.reward(_waiting(bandit), 1.0)
    assert counts(bandit, tmp_path / "journal") == before
    np.testing.assert_allclose(beliefs(bandit), believed, atol=1e-9)
