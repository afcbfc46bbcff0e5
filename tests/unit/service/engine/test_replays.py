"""State is the journal and its replay: equal bytes on one host, 1e-9 with another BLAS kernel, whatever fits do."""

import json
import logging
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie.errors import JournalError
from coterie.service.engine.engine import Engine
from coterie.service.engine.opening import open_engine
from coterie.service.engine.snapshots import state_digest
from coterie.service.journal import Event, MemoryJournal, ServiceJournal
from coterie.service.records import Arm, ArmsChange, RewardRequest, User, UsersChange
from service_engines import USERS, Kept, experiment

PREDICT = """
import threadpoolctl
import json, sys
from coterie.service.engine.engine import Engine
from coterie.service.journal import Event, MemoryJournal

journal = MemoryJournal()
with open(sys.argv[1]) as file:
    journal.append([Event(*fields, body.encode()) for *fields, body in map(json.loads, file)])
engine = Engine(journal)
engine.state.replay(journal.read(1))
bandit = engine.state.experiments["news"].bandit
found = {user: bandit.predict(user, context=json.loads(sys.argv[2])) for user in bandit.users}
kernels = sorted({each.get("architecture", "") for each in threadpoolctl.threadpool_info()})
print(json.dumps([kernels, found]))
"""


def played(n: int, *, context: bool = False, fits_are_waited_for: bool = True, **settings: Any) -> Kept:
    kept, chance = Kept(), random.Random(1)
    kept.engine.create(experiment(**settings))
    for step in range(n):
        given: dict[str, Any] = (
            {"context": {"hour": chance.random(), "device": chance.choice(["phone", "desk"])}} if context else {}
        )
        event = kept.decide(chance.choice(USERS), **given)
        kept.reward(event, float(step % 3 == 0))
        if step == n // 2:
            kept.engine.change_users("news", UsersChange(add=[User(id="new", friends=["ana"])]))
            kept.engine.change_arms("news", ArmsChange(put=[Arm(id="mead", features=[2.0, 2.0])]))
        while fits_are_waited_for and kept.engine.state.experiments["news"].is_fitting:
            time.sleep(0.001)
    kept.commit()
    return kept


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "auto-ucb"},
        {"policy": "auto-ts", "exploration_floor": 0.02, "context": True},
        {"policy": "auto-ucb", "binary": True},
        {"policy": "auto-ucb", "forgetting": 0.9},
        {"policy": "auto-ucb", "fits_are_waited_for": False},
        {"policy": "auto-ucb", "fits_are_waited_for": False, "context": True},
    ],
    ids=str,
)
def test_a_replay_gives_the_same_bytes(settings: dict[str, Any]) -> None:
    kept = played(40, **settings)
    again = Engine(kept.journal, clock=kept.clock())
    again.state.replay(kept.journal.read(1))
    assert state_digest(again.state) == state_digest(kept.engine.state)


@pytest.mark.parametrize("at", [3, 17, 31])
def test_a_replay_from_any_snapshot_gives_the_same_bytes(at: int) -> None:
    kept, chance = Kept(), random.Random(2)
    kept.engine.create(experiment(policy="auto-ts", aggregation="mean"))
    for step in range(35):
        event = kept.decide(chance.choice(USERS), context={"hour": chance.random()}, k=2 if step % 5 == 0 else None)
        for value in (0.5, 1.0)[: 1 + step % 2]:
            kept.reward(event, value * chance.random())
        if step == at:
            kept.snapshot()
    kept.commit()
    opened, recovery = kept.opened()
    fresh, _ = kept.opened(use_snapshots=False)
    assert recovery.snapshot > 0
    assert state_digest(opened.state) == state_digest(fresh.state)


def test_hyperparameters_that_were_taken_are_events() -> None:
    kept = played(40, fits_are_waited_for=True)
    calls = [line["call"] for event in kept.journal.read(1) for line in json.loads(event.body).get("changes", ())]
    assert calls.count("_take_fit") >= 3


def test_another_blas_kernel_gives_the_same_belief(tmp_path: Path) -> None:
    kept = played(60, policy="auto-ucb", context=True)
    with (tmp_path / "events").open("w") as file:
        file.writelines(json.dumps([*event[:-1], event.body.decode()]) + "\n" for event in kept.journal.read(1))
    context = {"hour": 0.3, "device": "desk"}
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Nehalem"}
    asked = [sys.executable, "-c", PREDICT, str(tmp_path / "events"), json.dumps(context)]
    found = subprocess.run(asked, env=env, check=True, capture_output=True, timeout=120)
    kernels, predictions = json.loads(found.stdout)
    assert kernels == ["Nehalem"]  # or the same kernels were compared with themselves
    bandit = kept.engine.state.experiments["news"].bandit
    for user in bandit.users:
        for arm, here in bandit.predict(user, context=context).items():
            assert predictions[user][arm] == pytest.approx(list(here), rel=1e-9, abs=1e-9)


def test_a_snapshot_of_a_journal_that_lost_its_end_is_not_used() -> None:
    kept = played(5)
    kept.snapshot()
    cut = MemoryJournal()
    cut.append(list(kept.journal.read(1))[:-2])
    cut.put_snapshot(next(kept.journal.snapshots()))
    _, recovery = open_engine(cut)
    assert (recovery.snapshot, recovery.n_damaged) == (0, 1)


def test_a_journal_that_was_changed_is_told_of() -> None:
    kept, changed = played(5), MemoryJournal()
    events = list(kept.journal.read(1))
    place = next(i for i, event in enumerate(events) if event.kind == "rewarded")
    body = json.loads(events[place].body)
    body["changes"][0]["with"]["reward"] = 1e6
    events[place] = events[place]._replace(body=json.dumps(body).encode())
    changed.append([Event(*event) for event in events])
    _, recovery = open_engine(changed, clock=kept.clock())
    assert recovery.n_odd == 4  # all after the first


def test_rewards_meanwhile_are_known_to_a_fit_that_is_taken_after_a_restart() -> None:
    kept = played(15, fits_are_waited_for=False)  # the fit at 12 rewards may be under way
    kept.snapshot()
    kept.restart()
    for step in range(10):
        kept.engine.reward(kept.decide("ana"), RewardRequest(value=step / 10))
    kept.commit()
    fresh = Engine(kept.journal, clock=kept.clock())
    fresh.state.replay(kept.journal.read(1))
    assert state_digest(fresh.state) == state_digest(kept.engine.state)


def altered(journal: ServiceJournal, alter: Callable[[dict[str, Any]], None]) -> MemoryJournal:
    """Returns a journal whose decisions were recorded otherwise."""
    out = MemoryJournal()
    for event in list(journal.read(1)):
        body = json.loads(event.body)
        if event.kind == "decided":
            alter(body)
        out.append([event._replace(body=json.dumps(body).encode())])
    return out


def test_numbers_that_come_out_otherwise_are_counted_and_stop_nobody(caplog: pytest.LogCaptureFixture) -> None:
    kept = played(20)

    def other_mean(body: dict[str, Any]) -> None:
        body["changes"][-1]["gave"][0][1] += 1e-4

    with caplog.at_level(logging.WARNING):
        engine, recovery = open_engine(altered(kept.journal, other_mean), clock=kept.clock())
    assert recovery.n_odd == 20
    assert "news: 20 decisions came out otherwise than logged (decision 0: mean is " in caplog.text
    before = kept.engine.state.experiments["news"].bandit
    assert engine.state.experiments["news"].bandit.predict("ana") == before.predict("ana")


def test_a_replay_takes_the_arms_that_were_shown() -> None:
    kept = played(20)

    def other_arm(body: dict[str, Any]) -> None:
        chosen = body["changes"][-1]["gave"][0]
        chosen[0] = body["answer"]["arm"] = "ale" if chosen[0] == "tea" else "tea"

    shown = altered(kept.journal, other_arm)
    engine, _ = open_engine(shown, clock=kept.clock())
    bandit = engine.state.experiments["news"].bandit
    arms = [json.loads(event.body)["answer"]["arm"] for event in shown.read(1) if event.kind == "decided"]
    assert [bandit.arms.ids[row] for row in bandit._learned.events.arms] == arms


def test_a_replay_refuses_an_arm_that_was_no_candidate() -> None:
    kept = played(2)

    def no_arm(body: dict[str, Any]) -> None:
        body["changes"][-1]["gave"][0][0] = "wine"

    with pytest.raises(JournalError, match="arm 'wine' is none of the candidates"):
        open_engine(altered(kept.journal, no_arm), clock=kept.clock())
