"""Group commit: an answer leaves after its commit, whatever the journal does."""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from coterie.service.engine import commits as commits_module
from coterie.service.engine.commits import Commits
from coterie.service.engine.engine import Engine
from coterie.service.engine.failures import UnavailableError
from coterie.service.engine.opening import open_engine
from coterie.service.engine.snapshots import state_digest
from coterie.service.journal import Event, JournalBrokenError, JournalFullError, MemoryJournal, Snapshot
from coterie.service.records import DecisionRequest, RewardRequest
from service_engines import USERS, Kept, experiment


class Odd(MemoryJournal):
    """A journal that is slow, full or broken when a test says so; it keeps where each batch ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[int] = []
        self.in_thread: list[bool] = []  # whether each batch came from another thread
        self.seconds = 0.0  # that each takes
        self.has_upkeep = False
        self.is_full = self.is_broken = self.is_slow = False
        self._chance = random.Random(0)

    def append(self, events: Sequence[Event]) -> None:
        self.in_thread.append(threading.current_thread() is not threading.main_thread())
        time.sleep(self.seconds)
        if self.is_slow:
            time.sleep(self._chance.random() * 0.004)
        if self.is_full:
            raise JournalFullError("it is full", "there is room", "Make some")
        if self.is_broken:
            raise JournalBrokenError("it is broken", "it is whole", "Mend it")
        assert [event.seq for event in events] == list(range(self.last_seq + 1, self.last_seq + len(events) + 1))
        super().append(events)
        self.ends.append(self.last_seq)


class Service:
    """An engine with its commits."""

    def __init__(self, journal: Odd, **options: Any) -> None:
        self.journal, self.broken = journal, list[BaseException]()
        self.engine: Engine = open_engine(journal)[0]
        self.commits = Commits(self.engine, journal, when_broken=self.broken.append, **options)

    async def decide(self, user: str, event_id: str) -> int:
        self.commits.check_open()
        answer, _ = self.engine.decide("news", DecisionRequest(user=user, event_id=event_id))
        await self.commits.durable(answer.seq)
        return answer.seq

    async def reward(self, event_id: str, reward_id: str) -> int:
        self.commits.check_open()
        answer = self.engine.reward(event_id, RewardRequest(value=1.0, reward_id=reward_id))
        await self.commits.durable(answer.seq)
        return answer.seq


def served(test: Callable[[Service], Awaitable[None]], journal: Odd | None = None, **options: Any) -> Service:
    """Returns a service after a test of it, stopped."""

    async def run() -> Service:
        service = Service(journal or Odd(), **options)
        service.engine.create(experiment(policy="random"))
        service.commits.start()
        try:
            await test(service)
        finally:
            await service.commits.stop()
        return service

    return asyncio.run(run())


def test_sixteen_writers_have_one_order_that_respects_real_time() -> None:
    told: list[tuple[float, float, int]] = []  # when it was asked for, when it was acknowledged, its number

    async def write(service: Service, writer: int) -> None:
        chance = random.Random(writer)
        for step in range(12):
            event_id, asked = f"w{writer}-{step}", time.monotonic()
            told.append((asked, 0.0, 0))
            place = len(told) - 1
            seq = await service.decide(chance.choice(USERS), event_id)
            told[place] = asked, time.monotonic(), seq
            if chance.random() < 0.5:
                await service.reward(event_id, "r")
            await asyncio.sleep(chance.random() * 0.002)

    async def test(service: Service) -> None:
        service.journal.is_slow = True
        await asyncio.gather(*(write(service, writer) for writer in range(16)))

    service = served(test, snapshot_every=20)
    events = list(service.journal.read(1))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len({seq for _, _, seq in told}) == len(told) == 16 * 12
    assert len(service.journal.ends) < len(events) / 2, "batches are shared"
    in_order = sorted(told)
    for asked, _, seq in in_order:
        assert all(other < seq for _, acknowledged, other in in_order if acknowledged < asked)


def test_only_a_quick_disk_is_waited_for_where_decisions_are_made() -> None:
    async def test(service: Service) -> None:
        for number, seconds in enumerate((0.0, 0.0, 0.3, 0.0, 0.0)):
            service.journal.seconds = seconds
            await service.decide(USERS[0], f"e{number}")

    assert served(test, quick=0.15).journal.in_thread[:5] == [True, False, False, True, False]
    assert all(served(test, quick=0.0).journal.in_thread)


def test_a_commit_with_upkeep_before_it_is_made_in_a_thread() -> None:
    async def test(service: Service) -> None:
        for number, has_upkeep in enumerate((False, False, True, False)):
            service.journal.has_upkeep = has_upkeep
            await service.decide(USERS[0], f"e{number}")

    assert served(test, quick=60.0).journal.in_thread[:4] == [True, False, True, False]


def test_nothing_acknowledged_is_missing_wherever_the_journal_is_cut() -> None:
    at_ack: list[tuple[int, int]] = []  # what was durable when a number was acknowledged

    async def write(service: Service, writer: int) -> None:
        for step in range(8):
            seq = await service.decide(USERS[writer % 4], f"w{writer}-{step}")
            at_ack.append((service.journal.ends[-1], seq))

    async def test(service: Service) -> None:
        service.journal.is_slow = True
        await asyncio.gather(*(write(service, writer) for writer in range(8)))

    journal = served(test).journal
    for end in journal.ends[:: max(len(journal.ends) // 5, 1)]:
        cut = MemoryJournal()
        cut.append([event for event in journal.read(1) if event.seq <= end])
        known = open_engine(cut, use_snapshots=False)[0]
        for durable, seq in at_ack:
            if durable <= end:
                assert seq <= end
                key = next(event.key for event in journal.read(seq) if event.seq == seq)
                assert known.state.decided(key) is not None


def test_a_full_journal_refuses_and_then_goes_on_with_what_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits_module, "RETRIED_AFTER", 0.01)

    async def test(service: Service) -> None:
        await service.decide("ana", "e1")
        service.journal.is_full = True
        with pytest.raises(UnavailableError, match="the journal took nothing"):
            await service.decide("ana", "e2")
        with pytest.raises(UnavailableError, match="no room"):
            await service.decide("ana", "e3")
        assert service.engine.view("news").n_decisions == 2  # reads go on
        service.journal.is_full = False
        while service.commits.is_full:
            await asyncio.sleep(0.01)
        before = service.engine.state.seq
        await service.decide("ana", "e2")  # the same again: it was made once
        assert service.engine.state.seq == before
        await service.decide("ana", "e3")

    service = served(test)
    assert [event.key for event in service.journal.read(1) if event.kind == "decided"] == ["e1", "e2", "e3"]
    assert service.broken == []
    again = Kept(journal=service.journal).engine
    assert again.view("news").n_decisions == 3


def test_a_journal_that_fills_up_while_a_snapshot_is_taken_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits_module, "RETRIED_AFTER", 0.01)

    async def test(service: Service) -> None:
        for step in range(20):
            service.journal.is_full = step % 5 == 4
            try:
                await service.decide("ana", f"e{step}")
            except UnavailableError:
                service.journal.is_full = False
                while service.commits.is_full:
                    await asyncio.sleep(0.005)

    service = served(test, snapshot_every=3)
    assert service.commits.n_snapshots > 2
    assert [event.seq for event in service.journal.read(1)] == list(range(1, service.journal.last_seq + 1))
    assert len([event for event in service.journal.read(1) if event.kind == "decided"]) == 20


def test_a_broken_journal_is_never_tried_again() -> None:
    async def test(service: Service) -> None:
        await service.decide("ana", "e1")
        service.journal.is_broken = True
        with pytest.raises(UnavailableError, match="the journal took nothing"):
            await service.decide("ana", "e2")
        service.journal.is_broken = False
        with pytest.raises(UnavailableError, match="the journal is broken"):
            await service.decide("ana", "e3")

    service = served(test)
    assert [type(error) for error in service.broken] == [JournalBrokenError]
    assert [event.key for event in service.journal.read(1) if event.kind == "decided"] == ["e1"]


def test_a_repeat_is_answered_only_once_the_first_is_durable() -> None:
    async def test(service: Service) -> None:
        service.journal.is_slow = True
        seqs = await asyncio.gather(*(service.decide("ana", "e1") for _ in range(5)))
        assert len(set(seqs)) == 1
        assert service.journal.last_seq >= seqs[0]
        await asyncio.gather(*(service.reward("e1", "r") for _ in range(5)))
        assert service.commits.durable_seq == service.engine.state.seq

    service = served(test)
    assert [event.kind for event in service.journal.read(1)][2:] == ["decided", "rewarded"]


def test_nobody_waits_for_a_service_that_has_stopped() -> None:
    async def run() -> None:
        service = Service(Odd())
        service.engine.create(experiment(policy="random"))
        service.commits.start()
        await service.commits.stop()
        answer, _ = service.engine.decide("news", DecisionRequest(user="ana"))
        with pytest.raises(UnavailableError, match="the service has stopped"):
            await asyncio.wait_for(service.commits.durable(answer.seq), timeout=5)

    asyncio.run(run())


def test_a_start_after_a_stop_is_from_a_snapshot() -> None:
    async def test(service: Service) -> None:
        for step in range(10):
            await service.decide("ana", f"e{step}")
            await service.reward(f"e{step}", "r")

    service = served(test, snapshot_every=1000)
    again, recovery = open_engine(service.journal)
    assert (recovery.snapshot, recovery.n_events) == (service.journal.last_seq, 0)
    assert again.view("news").n_rewards == 10


def test_snapshots_that_cannot_be_written_are_a_longer_replay_and_nothing_else() -> None:
    class Unwilling(Odd):
        def put_snapshot(self, snapshot: Snapshot) -> None:  # noqa: ARG002
            raise JournalFullError("it is full", "there is room", "Make some")

    async def test(service: Service) -> None:
        for step in range(12):
            await service.decide("ana", f"e{step}")

    service = served(test, Unwilling(), snapshot_every=2)
    assert (service.commits.n_snapshots, service.commits.is_broken) == (0, False)
    live = state_digest(service.engine.state)
    again = Engine(service.journal)
    again.state.replay(service.journal.read(1))
    assert state_digest(again.state) == live
