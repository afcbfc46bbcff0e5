"""The interface of a journal: the engine knows no more of a store than this.

State is the journal and its replay. A snapshot only shortens the replay: losing all of them loses time, nothing else.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from coterie.errors import CoterieError

KEPT_SNAPSHOTS = 3  # the last ones; a damaged one costs a longer replay as long as an older one is there


class JournalFullError(CoterieError):
    """There is no room for a batch: nothing of it is kept, and it can be appended again when there is."""


class JournalBrokenError(CoterieError):
    """The store failed in a way after which nobody knows what it holds: the process has to end, and start again."""


class JournalOrderError(CoterieError, ValueError):
    """A batch that does not follow the last event: nothing of it is kept."""


class SnapshotError(CoterieError):
    """A snapshot could not be written: the journal is as it was, and a replay takes longer."""


class Event(NamedTuple):
    """One thing that happened.

    Attributes:
        seq: Its number, from 1, without gaps.
        at: When, in seconds since 1970; never less than that of the event before.
        experiment: The id of the experiment; empty for what concerns none, such as keys.
        kind: What happened; `service/engine/events.py` has the list.
        key: What it can be found by, beside its number: the id of a decision. Empty where nobody looks for it.
        body: The rest, as JSON.
    """

    seq: int
    at: float
    experiment: str
    kind: str
    key: str
    body: bytes


class Snapshot(NamedTuple):
    """The whole state after an event.

    Attributes:
        seq: The number of that event.
        content: The state, as the engine wrote it.
    """

    seq: int
    content: bytes


class ServiceJournal(Protocol):
    """An append-only log with snapshots; one writer appends, any thread reads."""

    @property
    def last_seq(self) -> int:
        """The number of the last event; 0 if there is none."""
        ...

    @property
    def has_upkeep(self) -> bool:
        """Whether the next batch takes longer than others, since something is to be done first."""
        ...

    def append(self, events: Sequence[Event]) -> None:
        """Keeps a batch, all of it or nothing, durably when this returns.

        Raises:
            JournalFullError: Nothing was kept, and the same batch can be tried again.
            JournalBrokenError: Nobody knows; the process has to end.
            JournalOrderError: The numbers do not follow `last_seq` one by one; nothing was kept.
        """
        ...

    def read(self, from_seq: int, *, experiment: str | None = None) -> Iterator[Event]:
        """Yields the events from a number on, in order; those of one experiment if it is named."""
        ...

    def find(self, key: str) -> list[Event]:
        """Returns the events with this key, in order."""
        ...

    def put_snapshot(self, snapshot: Snapshot) -> None:
        """Keeps a snapshot, whole or not at all; older ones than the last few may go.

        Raises:
            SnapshotError: There is no room, or it cannot be written; the journal is as it was.
        """
        ...

    def snapshots(self) -> Iterator[Snapshot]:
        """Yields the snapshots whose checksum is right, newest first; `n_damaged` counts the others."""
        ...

    @property
    def n_damaged(self) -> int:
        """How many snapshots were found damaged since this journal was opened."""
        ...

    def close(self) -> None:
        """Lets go of the store; can be repeated."""
        ...


def check_order(events: Sequence[Event], *, after: int) -> None:
    """Raises unless events have the numbers that follow `after`, one by one."""
    for expected, event in enumerate(events, after + 1):
        if event.seq != expected:
            problem = f"an event has number {event.seq} where {expected} is due"
            raise JournalOrderError(problem, "numbers have no gaps, and no two events share one", "Append in order")
