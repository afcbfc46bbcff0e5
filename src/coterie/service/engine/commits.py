"""Group commit: an answer leaves after the commit of its event, and what happens meanwhile shares the next one.

A quick disk is waited for where the decisions are made: on most machines a commit takes a fraction of a millisecond,
and to wake a thread for it and to be woken again takes as long. What comes meanwhile waits in its connection. A commit
after a slow one, or with upkeep before it, is made in a thread, and decisions go on.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from time import perf_counter

from coterie.algebra.giving_way import giving_way
from coterie.service.engine.engine import Engine
from coterie.service.engine.failures import UnavailableError
from coterie.service.engine.snapshots import FrozenState, Snapshots
from coterie.service.journal import Event, JournalFullError, ServiceJournal

log = logging.getLogger(__name__)
RETRIED_AFTER = 0.5  # seconds, for a batch that found no room
QUICK = 0.002  # seconds
PART = 50  # a snapshot is due after one part in so many of all events, so that writing them takes a share of the time


class Commits:
    """Writes the events of an engine to its journal, batch after batch.

    Args:
        engine: Whose events.
        journal: Where they go.
        when_broken: Called when nobody knows what the journal holds: the process has to end.
        snapshot_every: Events after which a snapshot is taken, or more where there were many; 0 for never.
        snapshot_after: Seconds after which one is taken at the next event, however few there were.
        snapshot_seq: The number of the last event that a snapshot has; none given means all there are. Processes that
            end early would otherwise leave ever more to replay.

    Attributes:
        durable_seq: The number of the last event that is durable.
        is_full: Whether there is no room: events wait, and the engine is to take no further ones.
        is_broken: Whether the journal is broken.
        n_batches: How many batches were written.
        n_snapshots: How many snapshots were written.
        snapshot_seconds: How long the last snapshot kept the engine from deciding.
    """

    def __init__(
        self,
        engine: Engine,
        journal: ServiceJournal,
        *,
        when_broken: Callable[[BaseException], None],
        snapshot_every: int = 20_000,
        snapshot_after: float = 3600.0,
        snapshot_seq: int | None = None,
        quick: float = QUICK,
    ) -> None:
        self._engine, self._journal, self._when_broken = engine, journal, when_broken
        self._snapshot_every, self._snapshot_after = snapshot_every, snapshot_after
        self._snapshots, self._snapshot_at = Snapshots(), 0.0
        self._snapshot_seq = engine.state.seq if snapshot_seq is None else snapshot_seq
        self.durable_seq, self.n_batches, self.n_snapshots = journal.last_seq, 0, 0
        self.is_full = self.is_broken = self._is_stopping = False
        self.snapshot_seconds = 0.0
        self._quick, self._seconds = quick, inf  # how long the last commit took
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._there_is_work = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="coterie-journal")
        self._task: asyncio.Task[None] | None = None
        self._snapshot_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts to write, in the event loop that runs."""
        loop = asyncio.get_running_loop()
        self._engine.state.when_changed, self._snapshot_at = self._there_is_work.set, loop.time()
        self._there_is_work.set()
        self._task = loop.create_task(self._run())

    @property
    def n_waiting(self) -> int:
        """How many answers wait for a commit."""
        return len(self._waiting)

    def check_open(self) -> None:
        """Raises if no change can be taken at the moment."""
        has_ended = self._task is not None and self._task.done()
        if self.is_broken or self.is_full or has_ended:
            what = "there is no room for the journal" if self.is_full else "the service has stopped"
            what = "the journal is broken" if self.is_broken else what
            raise UnavailableError(what, "every change is in the journal", "Try again later; the operator is needed")

    async def durable(self, seq: int) -> None:
        """Waits until an event is durable, or raises if nobody can promise it."""
        if seq <= self.durable_seq:
            return
        self.check_open()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((seq, future))
        await future

    async def stop(self) -> None:
        """Writes what there is, takes a last snapshot, and ends; what finds no room is given up: nobody was told."""
        if self._task is not None:
            self._engine.flush()
            self._is_stopping = True
            self._there_is_work.set()
            await self._task
        if self._snapshot_task is not None:
            await self._snapshot_task
        if self._snapshot_every and self._snapshot_seq < self.durable_seq == self._engine.state.seq:
            await self._snapshot()
        self._thread.shutdown()

    async def _run(self) -> None:
        try:
            while not self.is_broken:
                await self._there_is_work.wait()
                self._there_is_work.clear()
                while batch := self._engine.state.take_batch():
                    if not await self._commit(batch):
                        return
                if self._is_stopping:
                    return
                if self._is_snapshot_due() and (self._snapshot_task is None or self._snapshot_task.done()):
                    self._snapshot_task = asyncio.get_running_loop().create_task(self._snapshot())
        except Exception as error:  # whatever it was, nobody would write any more
            self._break(error)

    async def _commit(self, batch: list[Event]) -> bool:
        """Returns whether a batch is durable; tries again while there is no room."""
        while not await self._write(batch):
            if self.is_broken or self._is_stopping:
                return False
            await asyncio.sleep(RETRIED_AFTER)
        return True

    async def _write(self, batch: list[Event]) -> bool:
        """Returns whether a batch is durable by now."""
        try:
            if self._seconds < self._quick and not self._journal.has_upkeep:
                self._append(batch)
            else:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._append, batch)
        except JournalFullError as error:
            if not self.is_full:
                log.error("no room for the journal: %s", error)
            self.is_full = True
            self._refuse(error)
            return False
        except Exception as error:  # nobody knows what the journal holds
            self._break(error)
            return False
        self.is_full, self.n_batches = False, self.n_batches + 1
        self.durable_seq = batch[-1].seq
        while self._waiting and self._waiting[0][0] <= self.durable_seq:
            future = self._waiting.popleft()[1]
            if not future.done():
                future.set_result(None)
        return True

    def _append(self, batch: list[Event]) -> None:
        self._seconds, started = inf, perf_counter()
        self._journal.append(batch)
        self._seconds = perf_counter() - started

    def _break(self, error: Exception) -> None:
        self.is_broken = True
        log.critical("the journal is broken: %s", error)
        self._refuse(error)
        self._when_broken(error)

    def _refuse(self, error: Exception) -> None:
        """Tells all who wait that nobody can promise that their event is durable: it may be, later."""
        while self._waiting:
            future = self._waiting.popleft()[1]
            if not future.done():
                rule = "an answer is given for what is durable"
                remedy = "Send it again with the same ids: it is made once"
                future.set_exception(UnavailableError(f"the journal took nothing: {error}", rule, remedy))

    def _is_snapshot_due(self) -> bool:
        """Returns whether a snapshot is due; while a fit goes on, which it would wait for, it can be put off."""
        events = self.durable_seq - self._snapshot_seq
        enough = max(self._snapshot_every, self.durable_seq // PART)
        if not self._snapshot_every or not events:
            return False
        late = asyncio.get_running_loop().time() - self._snapshot_at >= self._snapshot_after
        waits = events < 2 * enough and any(each.is_fitting for each in self._engine.state.experiments.values())
        return (late or events >= enough) and not waits

    async def _snapshot(self) -> None:
        """Takes a snapshot between two events; it is encoded and written beside what happens meanwhile."""
        loop = asyncio.get_running_loop()
        try:
            self._engine.flush()
            started = loop.time()
            frozen = self._snapshots.freeze(self._engine.state)
            self._snapshot_at = loop.time()
            self.snapshot_seconds = self._snapshot_at - started
            self._snapshot_seq = frozen.saved["seq"]
            await self.durable(self._snapshot_seq)
            await asyncio.to_thread(self._put, frozen)
            self.n_snapshots += 1
        except Exception as error:  # a longer replay, nothing else
            log.warning("no snapshot was written: %s", error)

    def _put(self, frozen: FrozenState) -> None:
        with giving_way(lambda: self._is_stopping):
            self._journal.put_snapshot(self._snapshots.snapshot(frozen))
