"""What was computed of the latest rows, so that a decision need not: bounded memory, however many rows there are."""

from typing import Any

import numpy as np

from coterie.contracts import Array, Index

FIRST_ROOM = 64


class RecentRows:
    """A row of numbers for each of the latest rows of a history.

    Args:
        width: How many numbers.
        most: How many rows are kept.

    Attributes:
        n_rows: How many rows there are, those that are not kept any more included.

    Examples:
        >>> kept = RecentRows(1, most=2)
        >>> kept.extend(np.array([[1.0], [2.0], [3.0]]))
        >>> kept.first, kept.take(np.array([2, 1])).tolist()
        (1, [[3.0], [2.0]])
    """

    __slots__ = ("_most", "_room", "n_rows")

    def __init__(self, width: int, most: int) -> None:
        self._most, self.n_rows = most, 0
        self._room = np.empty((0, width))

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return int(self._room.shape[1])

    @property
    def first(self) -> int:
        """The first row that is kept."""
        return max(self.n_rows - self._most, 0)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self._room.nbytes)

    def extend(self, rows: Any) -> None:
        """Adds rows at the end, in the place of the oldest where there is no more room."""
        total = self.n_rows + len(rows)
        if total > len(self._room) and len(self._room) < self._most:
            room = np.empty((min(max(2 * len(self._room), total, FIRST_ROOM), self._most), self._room.shape[1]))
            room[: self.n_rows] = self._room[: self.n_rows]
            self._room = room
        kept = rows[-self._most :]
        self._room[np.arange(total - len(kept), total) % self._most] = kept
        self.n_rows = total

    def take(self, rows: Index) -> Array:
        """Returns what is kept of some rows, none of them before the first."""
        return self._room.take(rows % self._most, axis=0)
