"""What happened, in one order, for ever: an append-only log of events, and snapshots that shorten its replay."""

from coterie.service.journal.interface import (
    Event,
    JournalBrokenError,
    JournalFullError,
    JournalOrderError,
    ServiceJournal,
    Snapshot,
    SnapshotError,
)
from coterie.service.journal.memory import MemoryJournal
from coterie.service.journal.sqlite import SqliteJournal

__all__ = [
    "Event",
    "JournalBrokenError",
    "JournalFullError",
    "JournalOrderError",
    "MemoryJournal",
    "ServiceJournal",
    "Snapshot",
    "SnapshotError",
    "SqliteJournal",
]
