"""What happened, in one order, for ever: an append-only log of events, and snapshots that shorten its replay."""

from coterie.service.journal.interface import (
    Event,
    JournalBrokenError,
    JournalFullError,
    ServiceJournal,
    Snapshot,
)
from coterie.service.journal.memory import MemoryJournal

__all__ = ["Event", "JournalBrokenError", "JournalFullError", "MemoryJournal", "ServiceJournal", "Snapshot"]
