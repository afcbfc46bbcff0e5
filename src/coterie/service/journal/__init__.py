"""What happened, in one order, for ever: an append-only log of events, and snapshots that shorten its replay."""

from coterie.service.journal.interface import (
    Event,
    JournalBroken,
    JournalFull,
    ServiceJournal,
    Snapshot,
)
from coterie.service.journal.memory import MemoryJournal

__all__ = ["Event", "JournalBroken", "JournalFull", "MemoryJournal", "ServiceJournal", "Snapshot"]
