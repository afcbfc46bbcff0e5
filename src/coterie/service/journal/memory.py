"""A journal that is gone with the process: for tests, and for measuring what durability costs."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from coterie.service.journal.interface import KEPT_SNAPSHOTS, Event, Snapshot, check_order


class MemoryJournal:
    """A journal in memory.

    Examples:
        >>> journal = MemoryJournal()
        >>> journal.append([Event(1, 0.0, "news", "decision", "e1", b"{}")])
        >>> journal.last_seq, [event.kind for event in journal.find("e1")]
        (1, ['decision'])
    """

    n_damaged, has_upkeep = 0, False

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._by_key: defaultdict[str, list[Event]] = defaultdict(list)
        self._snapshots: list[Snapshot] = []

    @property
    def last_seq(self) -> int:
        """The number of the last event; 0 if there is none."""
        return len(self._events)

    def append(self, events: Sequence[Event]) -> None:
        """Keeps a batch."""
        check_order(events, after=self.last_seq)
        self._events.extend(events)
        for event in events:
            if event.key:
                self._by_key[event.key].append(event)

    def read(self, from_seq: int, *, experiment: str | None = None) -> Iterator[Event]:
        """Yields the events from a number on, in order; those of one experiment if it is named."""
        for event in self._events[max(from_seq - 1, 0) :]:
            if experiment is None or event.experiment == experiment:
                yield event

    def find(self, key: str) -> list[Event]:
        """Returns the events with this key, in order."""
        return list(self._by_key.get(key, ()))

    def put_snapshot(self, snapshot: Snapshot) -> None:
        """Keeps a snapshot, and the last few before it."""
        older = [each for each in self._snapshots if each.seq < snapshot.seq]
        self._snapshots = [snapshot, *older][:KEPT_SNAPSHOTS]

    def snapshots(self) -> Iterator[Snapshot]:
        """Yields the snapshots, newest first."""
        yield from self._snapshots

    def close(self) -> None:
        """Does nothing."""
