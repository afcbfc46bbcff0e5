"""An engine from its journal: the newest snapshot that can be read, and the events since."""

import logging
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from msgspec import MsgspecError

from coterie.errors import CoterieError
from coterie.service.engine.clock import ServiceClock
from coterie.service.engine.engine import Engine
from coterie.service.engine.snapshots import restore
from coterie.service.journal import ServiceJournal

log = logging.getLogger(__name__)


class Recovery(NamedTuple):
    """How an engine came to where its journal ends.

    Attributes:
        snapshot: The number of the event after which the snapshot was taken that it started from; 0 for none.
        n_events: How many events were made again.
        n_damaged: How many newer snapshots could not be used.
        seconds: How long it took.
        n_odd: How many decisions came out otherwise than they were logged, when they were made again.
    """

    snapshot: int
    n_events: int
    n_damaged: int
    seconds: float
    n_odd: int = 0


def open_engine(
    journal: ServiceJournal,
    *,
    clock: ServiceClock | None = None,
    use_snapshots: bool = True,
    progress: Callable[[int], None] | None = None,
) -> tuple[Engine, Recovery]:
    """Returns an engine that stands where its journal ends, and is live.

    Args:
        journal: What happened so far.
        clock: The time of events.
        use_snapshots: Whether to start from a snapshot; otherwise every event is made again.
        progress: Called with the number of each event.
    """
    started, n_bad = monotonic(), 0
    engine = Engine(journal, clock=clock)
    for snapshot in journal.snapshots() if use_snapshots else ():
        if snapshot.seq > journal.last_seq:
            n_bad += 1  # it is of a journal that lost its end
            continue
        try:
            restore(engine.state, snapshot)
            break
        except (CoterieError, MsgspecError, ValueError, LookupError, TypeError) as error:
            n_bad += 1
            log.warning("snapshot %d cannot be used: %s", snapshot.seq, error)
    first = engine.state.seq
    engine.state.replay(journal.read(first + 1), progress)
    n_made, seconds, n_odd = engine.state.seq - first, monotonic() - started, _told_of_odd(engine)
    recovery = Recovery(first, n_made, n_bad + journal.n_damaged, seconds, n_odd)
    engine.state.go_live()
    return engine, recovery


def _told_of_odd(engine: Engine) -> int:
    """Returns how many decisions came out otherwise than they were logged; the log says so of each experiment."""
    together = 0
    for experiment in engine.state.experiments.values():
        n_odd, first = experiment.odd_decisions
        together += n_odd
        if n_odd:
            why = "another version, processor or number of BLAS threads may do that; arms are those that were shown"
            log.warning("%s: %d decisions came out otherwise than logged (%s): %s", experiment.id, n_odd, first, why)
    return together
