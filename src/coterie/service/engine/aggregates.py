"""What several rewards of one decision come to."""

from dataclasses import dataclass

from coterie.service.records import Aggregation


@dataclass(slots=True)
class Aggregate:
    """The rewards of a decision so far, in a few numbers from which every aggregation can be had.

    Attributes:
        count: How many came.
        first: The first.
        last: The last.
        total: Their sum.
        largest: The largest.

    Examples:
        >>> rewards = Aggregate()
        >>> for value in (1.0, 4.0, 1.0):
        ...     rewards.add(value)
        >>> [rewards.value(how) for how in ("first", "last", "sum", "mean", "max")]
        [1.0, 1.0, 6.0, 2.0, 4.0]
    """

    count: int = 0
    first: float = 0.0
    last: float = 0.0
    total: float = 0.0
    largest: float = 0.0

    def add(self, value: float) -> None:
        """Takes another reward."""
        if self.count == 0:
            self.first = self.largest = value
        self.count += 1
        self.last = value
        self.total += value
        self.largest = max(self.largest, value)

    def with_one(self, value: float) -> "Aggregate":
        """Returns what these and another come to."""
        out = Aggregate(self.count, self.first, self.last, self.total, self.largest)
        out.add(value)
        return out

    def value(self, how: Aggregation) -> float:
        """Returns what they come to; there is at least one."""
        if how == "mean":
            return self.total / self.count
        return {"first": self.first, "last": self.last, "sum": self.total, "max": self.largest}[how]
