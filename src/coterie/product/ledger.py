"""Decisions that wait for their rewards: any order, any time, once each, within a limit and an expiry."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from coterie.errors import DecisionError


class Pending(NamedTuple):
    """A decision whose reward has not come: for which user and arm, and when it was made (0 where nothing expires)."""

    user: int
    arm: int
    made_at: float


class Mark(NamedTuple):
    """The tables of a ledger, to go back to."""

    waiting: "OrderedDict[int, Pending]"
    settled: "OrderedDict[int, int]"


class Ledger:
    """The pending decisions, oldest first, and where the rewards of settled ones went.

    Args:
        limit: How many pending decisions are remembered; the oldest are forgotten first. As many settled ones are.
        expire_after: Seconds after which a decision is forgotten; none means never.
        clock: Tells the time in seconds.

    Examples:
        >>> ledger = Ledger(limit=2, expire_after=None, clock=lambda: 0.0)
        >>> for number in range(3):
        ...     ledger.open(number, user=0, arm=number)
        >>> [number for number, _ in ledger.pending()]
        [1, 2]
        >>> ledger.settle(1, event=0).arm
        1
    """

    def __init__(self, *, limit: int, expire_after: float | None, clock: Callable[[], float]) -> None:
        self.limit = limit
        self.expire_after = expire_after
        self._clock = clock
        self._open: OrderedDict[int, Pending] = OrderedDict()
        self._settled: OrderedDict[int, int] = OrderedDict()
        self._done: list[tuple[int, Pending | None, int | None]] = []  # what to undo, since `begin`

    def __len__(self) -> int:
        self._expire()
        return len(self._open)

    def begin(self) -> "Mark":
        """Returns a mark to roll back to; there is one at a time."""
        self._done = []
        return Mark(self._open, self._settled)

    def roll_back(self, mark: "Mark") -> None:
        """Takes back everything since the mark; can be repeated.

        Examples:
            >>> ledger = Ledger(limit=2, expire_after=None, clock=lambda: 0.0)
            >>> for number in range(2):
            ...     ledger.open(number, user=0, arm=number)
            >>> mark = ledger.begin()
            >>> ledger.open(2, user=0, arm=2), ledger.settle(1, event=0) and None
            (None, None)
            >>> ledger.roll_back(mark)
            >>> [number for number, _ in ledger.pending()], list(ledger.settled())
            ([0, 1], [])
        """
        self._open, self._settled = mark
        for number, waited, event in reversed(self._done):
            _put(self._open, number, waited)
            _put(self._settled, number, event)
            if event is not None:  # only the first to come are ever dropped
                self._settled.move_to_end(number, last=False)
        if any(waited is not None for _, waited, _ in self._done):
            for number in sorted(self._open):  # they were made in this order
                self._open.move_to_end(number)

    def pending(self) -> Iterator[tuple[int, Pending]]:
        """Yields the pending decisions, oldest first."""
        self._expire()
        yield from self._open.items()

    def settled(self) -> Iterator[tuple[int, int]]:
        """Yields the settled decisions that are remembered, and the number of their event."""
        yield from self._settled.items()

    def open(self, number: int, *, user: int, arm: int, made_at: float | None = None) -> None:
        """Remembers a decision."""
        if made_at is None:
            made_at = 0.0 if self.expire_after is None else self._clock()
        self._note(number)
        self._open[number] = Pending(user, arm, made_at)
        self._expire()
        while len(self._open) > self.limit:
            self._drop_oldest()

    def look(self, number: int, *, n_decisions: int) -> Pending:
        """Returns a pending decision, or raises and says why there is none."""
        self._expire()
        if number in self._open:
            return self._open[number]
        if number in self._settled:
            raise DecisionError(
                f"decision {number!r} was rewarded already",
                "a decision is rewarded once",
                "Pass replace=True if this reward takes the place of the first",
            )
        if not 0 <= number < n_decisions:
            raise DecisionError(
                f"decision {number!r} is unknown",
                f"decisions are numbered from 0 to {n_decisions - 1}" if n_decisions else "no decision was made yet",
                "Pass the id of a Decision",
            )
        raise DecisionError(
            f"decision {number!r} is no longer remembered: its user or arm was removed, or it has waited too long",
            f"{self.limit} decisions are, for {self.expire_after or 'unlimited'} seconds, while user and arm are there",
            "Use learn(user, arm, reward), or raise max_pending or expire_after",
        )

    def settle(self, number: int, *, event: int) -> Pending:
        """Takes a decision off the pending ones and remembers its event."""
        self._note(number)
        decision = self._open.pop(number)
        self._settled[number] = event
        while len(self._settled) > self.limit:
            self._note(next(iter(self._settled)))
            self._settled.popitem(last=False)
        return decision

    def remember(self, settled: Iterable[tuple[int, int]]) -> None:
        """Takes over settled decisions and their events."""
        self._settled = OrderedDict((number, event) for number, event in settled)

    def event_of(self, number: int) -> int | None:
        """Returns the event of a settled decision, if it is remembered."""
        return self._settled.get(number)

    def renumber(self, places: dict[int, int], users: dict[int, int], arms: dict[int, int]) -> None:
        """Follows events, users and arms to new rows; what concerns one that is gone is forgotten."""
        self._open = OrderedDict(
            (number, Pending(users[each.user], arms[each.arm], each.made_at))
            for number, each in self._open.items()
            if each.user in users and each.arm in arms
        )
        self._settled = OrderedDict(
            (number, places[event]) for number, event in self._settled.items() if event in places
        )

    def _expire(self) -> None:
        if self.expire_after is None:
            return
        oldest = self._clock() - self.expire_after
        while self._open and next(iter(self._open.values())).made_at < oldest:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._note(next(iter(self._open)))
        self._open.popitem(last=False)

    def _note(self, number: int) -> None:
        """Remembers what is known of a decision before that changes."""
        self._done.append((number, self._open.get(number), self._settled.get(number)))


def _put(table: "OrderedDict[int, Any]", number: int, value: Any) -> None:
    """Lets a table hold this for a number; nothing for None."""
    if value is None:
        table.pop(number, None)
    else:
        table[number] = value
