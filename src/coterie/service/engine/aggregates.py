"""What several rewards of one decision come to."""

from msgspec import Struct

from coterie.service.records import Aggregation


class Aggregate(Struct, frozen=True, gc=False, array_like=True):
    """The rewards of a decision so far, in a few numbers from which every aggregation can be had.

    Attributes:
        count: How many came.
        first: The first.
        last: The last.
        total: Their sum.
        largest: The largest.

    Examples:
        >>> rewards = Aggregate.of(1.0).with_one(4.0).with_one(1.0)
        >>> [rewards.value(how) for how in ("first", "last", "sum", "mean", "max")]
        [1.0, 1.0, 6.0, 2.0, 4.0]
    """

    count: int
    first: float
    last: float
    total: float
    largest: float

    @classmethod
    def of(cls, value: float) -> "Aggregate":
        """Returns what one reward comes to."""
        return cls(1, value, value, value, value)

    def with_one(self, value: float) -> "Aggregate":
        """Returns what these and another come to."""
        return Aggregate(self.count + 1, self.first, value, self.total + value, max(self.largest, value))

    def value(self, how: Aggregation) -> float:
        """Returns what they come to."""
        if how == "mean":
            return self.total / self.count
        return {"first": self.first, "last": self.last, "sum": self.total, "max": self.largest}[how]
