"""An engine that runs: it opens beside the loop, commits, lets decisions expire, and stops whole."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from coterie.service.engine.clock import ServiceClock
from coterie.service.engine.failures import UnavailableError
from coterie.service.engine.running import RunningEngine, ensure_admin_key
from coterie.service.engine.snapshots import state_digest
from coterie.service.journal import Event, JournalBrokenError, MemoryJournal
from coterie.service.records import Arm, DecisionRequest, Edge, Graph, NewExperiment

NEWS = NewExperiment(
    id="news",
    graph=Graph(edges=[Edge(user="ana", other="bo")]),
    arms=[Arm(id="tea"), Arm(id="ale")],
    wait_time=60.0,
    default_reward=0.0,
)


class Closing(MemoryJournal):
    """A journal that says whether it was closed, and whose replay can be held up."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False
        self.reads = threading.Event()
        self.may_read = threading.Event()
        self.may_read.set()

    def read(self, from_seq: int, *, experiment: str | None = None) -> Iterator[Event]:
        """Yields the events, each when it may."""
        for event in super().read(from_seq, experiment=experiment):
            self.reads.set()
            assert self.may_read.wait(10)
            yield event

    def close(self) -> None:
        """Is closed from now on."""
        self.is_closed = True


def test_nothing_can_be_asked_until_the_replay_is_done() -> None:
    running = RunningEngine(MemoryJournal)
    for part in ("engine", "commits", "journal", "recovery"):
        with pytest.raises(UnavailableError):
            getattr(running, part)
    assert not running.is_ready


def test_it_comes_back_as_it_stopped_from_a_snapshot() -> None:
    async def play() -> None:
        journal = Closing()
        first = RunningEngine(lambda: journal)
        await first.start()
        assert await ensure_admin_key(first) is not None
        assert await ensure_admin_key(first) is None
        first.engine.create(NEWS)
        first.engine.decide("news", DecisionRequest(user="ana", event_id="e1"))
        before = first.engine.view("news")
        await first.stop()
        assert journal.is_closed
        assert journal.last_seq == first._ready().engine.state.seq
        second = RunningEngine(lambda: journal)
        await second.start()
        assert second.recovery.n_events == 0
        assert second.engine.view("news").n_pending == before.n_pending == 1
        assert await ensure_admin_key(second) is None
        digest = state_digest(second.engine.state)
        await second.stop()
        assert digest == state_digest(second._ready().engine.state)

    asyncio.run(play())


def test_decisions_expire_by_themselves() -> None:
    async def play() -> None:
        now = [0.0]
        clock = ServiceClock(wall=lambda: 1e9, steady=lambda: now[0])
        running = RunningEngine(MemoryJournal, clock=clock, tick_every=0.01)
        await running.start()
        running.engine.create(NEWS)
        running.engine.decide("news", DecisionRequest(user="ana"))
        now[0] = 61.0
        while running.engine.view("news").n_rewards == 0:
            await asyncio.sleep(0.01)
        assert running.engine.view("news").n_pending == 0
        await running.stop()

    asyncio.run(asyncio.wait_for(play(), 20))


def test_a_journal_that_cannot_be_opened_ends_the_process() -> None:
    def no_journal() -> MemoryJournal:
        raise JournalBrokenError("the store is damaged", "it is whole", "Bring a copy")

    async def play() -> None:
        ended: list[BaseException] = []
        running = RunningEngine(no_journal, when_broken=ended.append)
        with pytest.raises(JournalBrokenError):
            await running.start()
        assert len(ended) == 1
        assert not running.is_ready
        await running.stop()

    asyncio.run(play())


@pytest.mark.parametrize("n_experiments", [0, 1])
def test_a_stop_ends_a_replay(n_experiments: int) -> None:
    async def play() -> None:
        journal = Closing()
        before = RunningEngine(lambda: journal, snapshot_every=0)
        await before.start()
        for _ in range(n_experiments):
            before.engine.create(NEWS)
        await before.stop()
        journal.is_closed = False
        journal.may_read.clear()
        running = RunningEngine(lambda: journal)
        starting = asyncio.create_task(running.start())
        await asyncio.to_thread(journal.reads.wait, 10)
        await running.stop()
        journal.may_read.set()
        await starting
        assert not running.is_ready
        assert journal.is_closed

    asyncio.run(asyncio.wait_for(play(), 20))


def test_processes_that_end_early_leave_no_ever_longer_replay() -> None:
    journal = MemoryJournal()

    async def killed(n_decisions: int) -> int:
        running = RunningEngine(lambda: journal, snapshot_every=30)
        await running.start()
        if not running.engine.state.experiments:
            running.engine.create(NEWS)
        for _ in range(n_decisions):
            running.engine.decide("news", DecisionRequest(user="ana"))
            await running.commits.durable(running.engine.state.seq)
        while running.commits._snapshot_task is not None and not running.commits._snapshot_task.done():
            await asyncio.sleep(0.001)
        return running.recovery.n_events  # and nobody stops it

    replayed = [asyncio.run(killed(20)) for _ in range(6)]
    assert max(replayed) < 60
