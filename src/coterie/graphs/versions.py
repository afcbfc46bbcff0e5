"""What versions of a growing graph share: lists that only get longer, of which each version knows its part.

So adding costs what is added, and no version ever sees what came after it. Only the newest version can add to what is
shared; a second branch from an older one takes a copy. Who adds claims the end first, in one step that no other thread
can come between: there is no lock, which a fork could leave held for ever. What an interrupted addition leaves in an
index is no entry of any version: whatever is found there is compared with the list itself.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple


class Edit(NamedTuple):
    """One weight that was set, between two rows in ascending order; weight 0 means no edge."""

    row: int
    other: int
    old: float
    new: float


class Ids(Mapping[Hashable, int]):
    """The ids of a graph's users in the order of their rows, and the row of each; read-only.

    Examples:
        >>> first = Ids(["ana", "bo"])
        >>> second = first.with_more(["cy"])
        >>> second["cy"], second.at(2), "cy" in first, len(first)
        (2, 'cy', False, 2)
    """

    __slots__ = ("_all", "_claims", "_n", "_rows")

    def __init__(self, ids: Iterable[Hashable]) -> None:
        self._all = list(ids)
        self._rows = {user: row for row, user in enumerate(self._all)}
        self._n = len(self._all)
        self._claims: dict[int, object] = {}

    def __getitem__(self, user: Hashable) -> int:
        row = self._rows[user]
        if row >= self._n or self._all[row] != user:
            raise KeyError(user)
        return row

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Hashable]:
        return islice(self._all, self._n)

    def __repr__(self) -> str:
        return f"Ids({dict(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Ids, (tuple(self),)

    def at(self, row: int) -> Hashable:
        """Returns the id of a row, 0 <= row < n. O(1)."""
        return self._all[row]

    def extends(self, before: "Ids") -> bool:
        """Returns whether this begins with all ids of another, in their order; O(1) between versions."""
        if self._all is before._all:
            return before._n <= self._n
        return all(mine == theirs for mine, theirs in zip(self, before, strict=False)) and before._n <= self._n

    def with_more(self, ids: Sequence[Hashable]) -> "Ids":
        """Returns a version with more ids, none of which is in this one. O(more) if this is the newest version."""
        if not ids:
            return self
        if not _is_first(self._claims, self._n):
            return Ids([*self, *ids])
        out = Ids.__new__(Ids)
        out._all, out._rows, out._claims, out._n = self._all, self._rows, self._claims, self._n + len(ids)
        self._rows.update(zip(ids, range(self._n, out._n), strict=True))
        self._all.extend(ids)
        return out


class Edits:
    """Weights that were set since a matrix was made, in order.

    Examples:
        >>> first = Edits([Edit(0, 1, 0.0, 2.0)])
        >>> second = first.with_more([Edit(0, 1, 2.0, 3.0)])
        >>> first.weight(1, 0), second.weight(0, 1), second.weight(0, 2), second.near(1)
        (2.0, 3.0, None, {0: 3.0})
    """

    __slots__ = ("_all", "_claims", "_n", "_numbers")

    def __init__(self, edits: Sequence[Edit] = ()) -> None:
        self._all: list[Edit] = []
        self._numbers: dict[int, dict[int, list[int]]] = {}  # of the edits between a row and another
        self._n = len(edits)
        self._claims: dict[int, object] = {}
        self._note(edits)

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Edit]:
        return islice(self._all, self._n)

    def weight(self, row: int, other: int) -> float | None:
        """Returns the weight that was set last between two rows, if one was."""
        return self._last(row, other)

    def near(self, row: int) -> dict[int, float]:
        """Returns the weights that were set last beside a row. O(their number)."""
        found = {other: self._last(row, other) for other in list(self._numbers.get(row, {}))}
        return {other: weight for other, weight in found.items() if weight is not None}

    def since(self, before: "Edits") -> list[Edit] | None:
        """Returns what was added to an earlier version; none if that is no version of this. O(added)."""
        if before._n > self._n or (before._n > 0 and self._all is not before._all):
            return None
        return self._all[before._n : self._n]

    def with_more(self, edits: Sequence[Edit]) -> "Edits":
        """Returns a version with more edits. O(more) if this is the newest version."""
        if not edits:
            return self
        if not _is_first(self._claims, self._n):
            return Edits([*self, *edits])
        out = Edits.__new__(Edits)
        out._all, out._numbers, out._claims, out._n = self._all, self._numbers, self._claims, self._n + len(edits)
        self._note(edits)
        return out

    def _note(self, edits: Sequence[Edit]) -> None:
        for number, edit in enumerate(edits, start=len(self._all)):
            self._numbers.setdefault(edit.row, {}).setdefault(edit.other, []).append(number)
            self._numbers.setdefault(edit.other, {}).setdefault(edit.row, []).append(number)
        self._all.extend(edits)

    def _last(self, row: int, other: int) -> float | None:
        pair, numbers = {row, other}, self._numbers.get(row, {}).get(other, [])
        edits = (self._all[number] for number in reversed(numbers) if number < self._n)
        return next((edit.new for edit in edits if {edit.row, edit.other} == pair), None)


def _is_first(claims: dict[int, object], n: int) -> bool:
    """Returns whether nobody has added to a list of this length before; whoever asks first has."""
    mine = object()
    return claims.setdefault(n, mine) is mine
