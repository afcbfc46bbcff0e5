"""An engine that runs: opened from its journal beside the event loop, committing, and letting decisions expire."""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from coterie.service.engine.clock import ServiceClock
from coterie.service.engine.commits import Commits
from coterie.service.engine.engine import Engine
from coterie.service.engine.failures import UnavailableError
from coterie.service.engine.opening import Recovery, open_engine
from coterie.service.journal import ServiceJournal

log = logging.getLogger(__name__)


class Running(NamedTuple):
    """What there is once the replay is done."""

    engine: Engine
    commits: Commits
    journal: ServiceJournal
    recovery: Recovery


class _StoppedError(Exception):
    """The replay need not go on."""


def end_process(error: BaseException) -> None:
    """Ends the process at once: nobody knows what the journal holds, and only a new start can find out."""
    log.critical("the process ends: %s", error)
    logging.shutdown()
    os._exit(70)


class RunningEngine:
    """Opens a journal, replays it, and runs the engine until it is stopped.

    Args:
        open_journal: Returns the journal; called in a thread.
        clock: The time of events.
        snapshot_every: Events after which a snapshot is taken; 0 for never.
        tick_every: Seconds between looks for what has waited too long.
        when_broken: Called when the journal cannot be opened, or nobody knows what it holds.

    Attributes:
        n_replayed: The number of the last event that was made again.
    """

    def __init__(
        self,
        open_journal: Callable[[], ServiceJournal],
        *,
        clock: ServiceClock | None = None,
        snapshot_every: int = 20_000,
        tick_every: float = 1.0,
        when_broken: Callable[[BaseException], None] = end_process,
    ) -> None:
        self._open_journal, self._clock, self._when_broken = open_journal, clock, when_broken
        self._snapshot_every, self._tick_every = snapshot_every, tick_every
        self._running: Running | None = None
        self._ticks: asyncio.Task[None] | None = None
        self._is_stopping = False
        self.n_replayed = 0

    @property
    def is_ready(self) -> bool:
        """Whether the replay is done and nobody has stopped it."""
        return self._running is not None and not self._is_stopping

    @property
    def engine(self) -> Engine:
        """The engine; raises UnavailableError until it is ready."""
        return self._ready().engine

    @property
    def commits(self) -> Commits:
        """What makes its events durable; raises UnavailableError until it is ready."""
        return self._ready().commits

    @property
    def recovery(self) -> Recovery:
        """How the engine came to where its journal ends; raises UnavailableError until it is ready."""
        return self._ready().recovery

    @property
    def journal(self) -> ServiceJournal:
        """What happened so far; raises UnavailableError until it is ready."""
        return self._ready().journal

    def _ready(self) -> Running:
        if self._running is None:
            what = f"the service has replayed {self.n_replayed} events"
            raise UnavailableError(what, "it answers once all of them are", "Try again later; /readyz says when")
        return self._running

    async def start(self) -> None:
        """Opens the journal and replays it in a thread, then begins to commit and to let decisions expire."""
        try:
            journal, engine, recovery = await asyncio.to_thread(self._open)
        except _StoppedError:
            return
        except Exception as error:
            log.critical("the journal cannot be opened: %s", error)
            self._when_broken(error)
            raise
        if self._is_stopping:
            journal.close()
            return
        commits = Commits(
            engine,
            journal,
            when_broken=self._when_broken,
            snapshot_every=self._snapshot_every,
            snapshot_seq=recovery.snapshot,
        )
        commits.start()
        self._running = Running(engine, commits, journal, recovery)
        self._ticks = asyncio.create_task(self._tick())
        log.info("%d events were made again in %.1f s", recovery.n_events, recovery.seconds)

    def _open(self) -> tuple[ServiceJournal, Engine, Recovery]:
        journal = self._open_journal()
        try:
            engine, recovery = open_engine(journal, clock=self._clock, progress=self._progress)
        except BaseException:
            journal.close()
            raise
        return journal, engine, recovery

    def _progress(self, seq: int) -> None:
        self.n_replayed = seq
        if self._is_stopping:
            raise _StoppedError

    async def _tick(self) -> None:
        """Lets what has waited too long expire, a part at a time, while there is room for it in the journal."""
        while True:
            await asyncio.sleep(self._tick_every)
            try:
                while not self.commits.is_full and self.engine.tick():
                    await asyncio.sleep(0)
            except Exception:
                log.exception("decisions that waited too long did not expire")

    async def stop(self) -> None:
        """Makes durable what there is, takes a snapshot, and closes the journal."""
        self._is_stopping = True
        if self._ticks is not None:
            self._ticks.cancel()
            with suppress(asyncio.CancelledError):
                await self._ticks
        if self._running is not None:
            await self._running.commits.stop()
            self._running.journal.close()


async def ensure_admin_key(running: RunningEngine) -> str | None:
    """Returns a new key that may do everything if there is no key at all, once it is durable; none otherwise."""
    engine = running.engine
    if len(engine.state.keys) > 0:
        return None
    _, key, seq = engine.make_key(["admin"])
    await running.commits.durable(seq)
    return key
