"""Snapshots: of one moment, whatever happens while they are made, and no more work than needed."""

import asyncio
import gc
from typing import Any

import pytest

from coterie.product.files import saving
from coterie.service.engine import snapshots as snapshots_module
from coterie.service.engine.commits import Commits
from coterie.service.engine.engine import Engine
from coterie.service.engine.experiment import Experiment
from coterie.service.engine.snapshots import Snapshots, restore, snapshot_of, state_digest
from coterie.service.journal import MemoryJournal, Snapshot
from coterie.service.records import ArmsChange, SettingsChange, UsersChange
from service_engines import Kept, experiment


def played(**settings: Any) -> Kept:
    kept = Kept()
    kept.engine.create(experiment(**settings))
    for step in range(12):
        kept.reward(kept.decide(context={"hour": step / 12}), step / 12, reward_id="r")
    kept.decide(context={"hour": 1.0})
    kept.reward("early", 1.0)
    kept.engine.make_key(["decide"], ["news"])
    kept.commit()
    return kept


def restored(snapshot: Snapshot) -> str:
    engine = Engine(MemoryJournal())
    restore(engine.state, snapshot)
    return state_digest(engine.state)


def test_a_snapshot_is_of_the_moment_in_which_it_was_frozen() -> None:
    kept, snapshots = played(policy="auto-ts", aggregation="last"), Snapshots()
    then, frozen = state_digest(kept.engine.state), snapshots.freeze(kept.engine.state)
    event = kept.decide(context={"hour": 0.5})
    kept.reward(event, 5.0)
    kept.reward(event, 6.0)
    kept.engine.change_users("news", UsersChange(remove=["cy"]))
    kept.engine.change_arms("news", ArmsChange(retire=["gin"]))
    kept.engine.configure("news", SettingsChange(exploration_floor=0.1))
    assert restored(snapshots.snapshot(frozen)) == then
    kept.engine.reset("news")
    assert restored(snapshots.snapshot(frozen)) == then


def test_an_experiment_that_did_not_change_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, snapshots, encoded = played(), Snapshots(), list[int]()
    kept.engine.create(experiment("other"))

    def counted(parts: dict[str, Any]) -> bytes:
        encoded.append(1)
        return saving.bytes_of_parts(parts)

    monkeypatch.setattr(snapshots_module, "bytes_of_parts", counted)
    for changed in (2, 0, 1):
        if changed == 1:
            kept.decide(experiment="other")
        kept.engine.flush()
        del encoded[:]
        made = snapshots.snapshot(snapshots.freeze(kept.engine.state))
        assert len(encoded) == changed
        assert restored(made) == state_digest(kept.engine.state)


def test_many_pending_decisions_are_encoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots_module, "AT_A_TIME", 3)
    kept = played()
    assert restored(snapshot_of(kept.engine.state)) == state_digest(kept.engine.state)


def test_the_garbage_collector_is_as_before_after_a_freeze() -> None:
    kept = played()
    for enabled in (False, True):
        (gc.enable if enabled else gc.disable)()
        try:
            Snapshots().freeze(kept.engine.state)
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


def test_a_snapshot_is_due_after_many_events_and_put_off_for_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def due(n_events: int, fits: bool, seconds: float = 0.0) -> bool:
        kept = played()
        monkeypatch.setattr(Experiment, "is_fitting", fits)
        commits = Commits(kept.engine, kept.journal, when_broken=lambda _: None, snapshot_every=100)
        commits._snapshot_at = asyncio.get_running_loop().time() - seconds
        commits.durable_seq += n_events
        return commits._is_snapshot_due()

    asked = [(99, False), (100, False), (100, True), (199, True), (200, True)]
    assert [asyncio.run(due(*each)) for each in asked] == [False, True, False, False, True]
    assert [asyncio.run(due(n, False, 3601.0)) for n in (0, 1)] == [False, True]
    assert [asyncio.run(due(n, False)) for n in (5_100, 20_000)] == [True, True]
