"""Group commit: an answer leaves after the commit of its event, and what happens meanwhile shares the next one."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from coterie.service.engine.engine import Engine
from coterie.service.engine.failures import UnavailableError
from coterie.service.engine.snapshots import snapshot_of
from coterie.service.journal import Event, JournalFullError, ServiceJournal, Snapshot, SnapshotError

log = logging.getLogger(__name__)
RETRIED_AFTER = 0.5  # seconds, for a batch that found no room


class Commits:
    """Writes the events of an engine to its journal, batch after batch, in a thread of its own.

    Args:
        engine: Whose events.
        journal: Where they go.
        when_broken: Called when nobody knows what the journal holds: the process has to end.
        snapshot_every: Events after which a snapshot is taken; 0 for never.

    Attributes:
        durable_seq: The number of the last event that is durable.
        is_full: Whether there is no room: events wait, and the engine is to take no further ones.
        is_broken: Whether the journal is broken.
        n_batches: How many batches were written.
        snapshot_seconds: How long the last snapshot kept the engine from deciding.
    """

    def __init__(
        self,
        engine: Engine,
        journal: ServiceJournal,
        *,
        when_broken: Callable[[BaseException], None],
        snapshot_every: int = 20_000,
    ) -> None:
        self._engine, self._journal, self._when_broken = engine, journal, when_broken
        self._snapshot_every, self._snapshot_seq = snapshot_every, engine.state.seq
        self.durable_seq, self.n_batches = journal.last_seq, 0
        self.is_full = self.is_broken = False
        self.snapshot_seconds = 0.0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._there_is_work = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="coterie-journal")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts to write, in the event loop that runs."""
        self._engine.state.when_changed = self._there_is_work.set
        self._there_is_work.set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def n_waiting(self) -> int:
        """How many answers wait for a commit."""
        return len(self._waiting)

    def check_open(self) -> None:
        """Raises if no change can be taken at the moment."""
        if self.is_broken or self.is_full:
            what = "the journal is broken" if self.is_broken else "there is no room for the journal"
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
        """Writes what there is, takes a last snapshot, and ends."""
        if self._task is not None:
            while not (self.is_broken or self.is_full) and self.durable_seq < self._engine.state.seq:
                await asyncio.sleep(0.005)
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if not (self.is_broken or self.is_full) and self._snapshot_every:
            await self._snapshot()
            if self.durable_seq < self._engine.state.seq:
                await self._write(self._engine.state.take_batch())
        self._thread.shutdown()

    async def _run(self) -> None:
        while not self.is_broken:
            await self._there_is_work.wait()
            self._there_is_work.clear()
            batch = self._engine.state.take_batch()
            while batch and not self.is_broken and not await self._write(batch):
                await asyncio.sleep(RETRIED_AFTER)
            if self._snapshot_every and self.durable_seq - self._snapshot_seq >= self._snapshot_every:
                await self._snapshot()

    async def _write(self, batch: list[Event]) -> bool:
        """Returns whether a batch is durable by now."""
        if not batch:
            return True
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._journal.append, batch)
        except JournalFullError as error:
            if not self.is_full:
                log.error("no room for the journal: %s", error)
            self.is_full = True
            self._refuse(error)
            return False
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                raise
            self.is_broken = True
            log.critical("the journal is broken: %s", error)
            self._refuse(error)
            self._when_broken(error)
            return False
        self.is_full, self.n_batches = False, self.n_batches + 1
        self.durable_seq = batch[-1].seq
        while self._waiting and self._waiting[0][0] <= self.durable_seq:
            future = self._waiting.popleft()[1]
            if not future.done():
                future.set_result(None)
        return True

    def _refuse(self, error: BaseException) -> None:
        """Tells all who wait that nobody can promise that their event is durable: it may be, later."""
        while self._waiting:
            future = self._waiting.popleft()[1]
            if not future.done():
                rule = "an answer is given for what is durable"
                remedy = "Send it again with the same ids: it is made once"
                future.set_exception(UnavailableError(f"the journal took nothing: {error}", rule, remedy))

    async def _snapshot(self) -> None:
        """Takes a snapshot; it is written once the events before it are durable, beside what happens meanwhile."""
        loop = asyncio.get_running_loop()
        self._engine.flush()
        started = loop.time()
        snapshot = snapshot_of(self._engine.state)
        self.snapshot_seconds = loop.time() - started
        self._snapshot_seq = snapshot.seq
        if await self._write(self._engine.state.take_batch()):
            await loop.run_in_executor(None, self._put, snapshot)

    def _put(self, snapshot: Snapshot) -> None:
        try:
            self._journal.put_snapshot(snapshot)
        except SnapshotError as error:  # a longer replay, nothing else
            log.warning("no snapshot was written: %s", error)
