"""Edits of a graph: what one does to the weights, and the list of edits that versions of a graph share.

Such a list only gets longer, and each version has its part of it, so adding costs what is added, and no version ever
sees what came after it. Only the newest version can add to what is shared; a second branch from an older one takes a
copy. Who adds claims the end first, in one step that no other thread can come between: there is no lock, which a fork
could leave held for ever. What an interrupted addition leaves in an index is no entry of any version: whatever is found
there is compared with the list itself.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from coterie.graphs.adjacency import Floats, Indices, canonical, from_pairs


class Edit(NamedTuple):
    """One weight that was set, between two rows in ascending order; weight 0 means no edge."""

    row: int
    other: int
    old: float
    new: float


@dataclass(frozen=True, slots=True)
class GraphChange:
    """What one edit of a graph did.

    Attributes:
        kind: The edit.
        users: The ids added or removed.
        edges: Tuples (user, user, old weight, new weight); weight 0 means no edge.
    """

    kind: Literal["add-user", "remove-user", "set-edge", "remove-edge"]
    users: tuple[Hashable, ...] = ()
    edges: tuple[tuple[Hashable, Hashable, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of a graph whose users all stayed in their rows.

    Attributes:
        newcomers: How many users joined, in the last rows.
        edges: The weights that changed, each pair once.
    """

    newcomers: int
    edges: tuple[Edit, ...]

    @classmethod
    def of(cls, edits: Iterable[Edit], *, newcomers: int) -> "Difference":
        """Returns what edits, made one after another, come to."""
        found: dict[tuple[int, int], Edit] = {}
        for edit in edits:
            pair = edit.row, edit.other
            found[pair] = edit._replace(old=found[pair].old) if pair in found else edit
        return cls(newcomers, tuple(edit for edit in found.values() if edit.old != edit.new))


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
        if not is_first(self._claims, self._n):
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


def is_first(claims: dict[int, object], n: int) -> bool:
    """Returns whether nobody has added to a list of this length before; whoever asks first has."""
    mine = object()
    return claims.setdefault(n, mine) is mine


def difference(before: sp.csr_array, after: sp.csr_array) -> list[Edit]:
    """Returns the weights that differ, where rows may have been added; O(edges).

    Examples:
        >>> difference(canonical([[0.0]]), canonical([[0, 2], [2, 0]]))
        [Edit(row=0, other=1, old=0.0, new=2.0)]
    """
    old = sp.csr_array((before.data, before.indices, before.indptr), shape=before.shape)
    old.resize(after.shape)
    changed = sp.triu(after != old, k=1).tocoo()
    pairs = zip(changed.row.tolist(), changed.col.tolist(), strict=True)
    return [Edit(row, other, float(old[row, other]), float(after[row, other])) for row, other in pairs]


def merged(weights: sp.csr_array, n_users: int, edits: Iterable[Edit]) -> sp.csr_array:
    """Returns the weights of so many users with the edits made; O(edges).

    Examples:
        >>> merged(canonical([[0.0]]), 2, [Edit(0, 1, 0.0, 2.0)]).toarray().tolist()
        [[0.0, 2.0], [2.0, 0.0]]
    """
    last = {(edit.row, edit.other): edit.new for edit in edits}
    ends = np.array(list(last), dtype=np.int64).reshape(-1, 2)
    rows, cols, old = _upper(weights)
    kept = ~np.isin(rows * np.int64(n_users) + cols, ends[:, 0] * n_users + ends[:, 1])
    pairs = np.concatenate([rows[kept], ends[:, 0]]), np.concatenate([cols[kept], ends[:, 1]])
    return from_pairs(n_users, *pairs, np.concatenate([old[kept], np.array(list(last.values()), dtype=np.float64)]))


def without_user(weights: sp.csr_array, index: int) -> sp.csr_array:
    """Returns the weights without one user; those after it move up by one; O(edges).

    Examples:
        >>> without_user(canonical([[0, 1, 0], [1, 0, 2], [0, 2, 0]]), 0).toarray().tolist()
        [[0.0, 2.0], [2.0, 0.0]]
    """
    kept = np.delete(np.arange(weights.shape[0]), index)
    return canonical(weights[kept][:, kept])


def _upper(weights: sp.csr_array) -> tuple[Indices, Indices, Floats]:
    upper = sp.triu(weights, k=1).tocoo()
    return upper.row, upper.col, upper.data
