"""A graph that changes in place: users and edges join in amortised constant time, and bounds of residuals stay true.

`GrowingRows` has the rows of the graph's matrix, with room to spare. `Hubs` has tolerances of residuals that are larger
at hubs, and their supersolution. With null the vector for which L_rho null = ridge null, write reach = null ratio and
shape = null share. Then L_rho reach >= shape says share <= lift / scale + ridge ratio, with lift = L ratio
(L combinatorial) and scale 1, or the degree where L_rho is normalised. So a changed edge moves the lift of its two
ends, and nobody else's.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from coterie.contracts import Array
from coterie.graphs.edits import Edit

GraphRows = tuple[Any, Any, Any, Any]

LEAST_ROOM = 4
SPARE = 1.25
LEAST_SHARE = 0.5
MOST_TURNS = 200
LONGEST = 1.5  # times the reach where nobody waits, as when a kernel is made
MARGIN = 1e-6  # of a share, for sums that are kept up to date


class Entries(NamedTuple):
    """By how much entries of a row beside the diagonal have grown, and those of its column with them."""

    row: int
    others: Any
    amounts: Array


class Room:
    """Buffers behind arrays of an owner, which get longer at their end: each doubles when it runs out."""

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}

    def lengthen(self, owner: Any, length: int, **fills: float) -> None:
        """Makes the named arrays so long, new rows filled with these values. Amortised O(new rows)."""
        for name, fill in fills.items():
            array, buffer = getattr(owner, name), self._buffers.get(name)
            if buffer is None or array.base is not buffer or len(buffer) < length:
                buffer = self._buffers[name] = with_room(array, 2 * length, fill)
            setattr(owner, name, buffer[:length])


class GrowingRows:
    """The weights of a symmetric graph, row by row, neighbours ascending as in CSR; a full row moves to the end.

    Args:
        plain: The weights, in CSR.
        degrees: Their row sums.
        normalised: Whether entries are the weights over the roots of both degrees, or the weights themselves.

    Attributes:
        rows: Where each row starts and ends, neighbours, and entries; for reading.
        degrees: The row sums.
        changed: Whether `matrices` would give others than last time.
    """

    def __init__(self, plain: sp.csr_array, degrees: Array, *, normalised: bool) -> None:
        self.normalised, self.changed, self._room = normalised, True, Room()
        self._starts, self._ends = plain.indptr[:-1].copy(), plain.indptr[1:].copy()
        self._space = self._ends - self._starts
        self._used = int(plain.nnz)
        room = int(SPARE * self._used) + 256
        self._near, self._plain = with_room(plain.indices, room, 0), with_room(plain.data, room, 0.0)
        self._entries = self._plain
        self.degrees = np.array(degrees)
        if normalised:
            root = self._root(np.arange(len(self.degrees)))
            owners = np.repeat(np.arange(len(root)), self._space)
            self._entries = with_room(plain.data / (root[owners] * root[plain.indices]), room, 0.0)
        self._show()

    def matrices(self) -> tuple[sp.csr_array, sp.csr_array]:
        """Returns entries and plain weights in CSR. O(edges)."""
        sizes = self._ends - self._starts
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(self._starts.dtype)
        places = np.repeat(self._starts - indptr[:-1], sizes) + np.arange(indptr[-1])
        shape = len(sizes), len(sizes)
        made = [sp.csr_array((a[places], self._near[places], indptr), shape=shape) for a in self._held()]
        self.changed = False
        return made[0], made[-1]

    def lengthen(self, n_users: int) -> None:
        """Makes room for users, who have no edges yet. Amortised O(newcomers)."""
        self._room.lengthen(self, n_users, _starts=0, _ends=0, _space=0, degrees=0.0)
        self.changed = True
        self._show()

    def row(self, user: int) -> tuple[Any, Array]:
        """Returns the neighbours of a user and their plain weights."""
        inside = slice(self._starts[user], self._ends[user])
        return self._near[inside].copy(), self._plain[inside]

    def set_edge(self, row: int, other: int, weight: float) -> list[Entries]:
        """Sets a weight, 0 for none, and returns which entries grew by how much."""
        self.changed = True
        before = self._put(row, other, weight), self._put(other, row, weight)
        if self.normalised:
            grown = [self._rescaled(row), self._rescaled(other)]
        else:
            grown = [Entries(row, np.array([other]), np.array([weight - before[0]]))]
        if weight == 0:
            self._drop(row, other)
            self._drop(other, row)
        return grown

    def _put(self, row: int, other: int, weight: float) -> float:
        """Writes one plain weight and brings the row's degree up to date; returns the weight before."""
        place = self._find(row, other)
        newest, known = place == self._ends[row], self._has(row, other, place)
        before = float(self._plain[place]) if known else 0.0
        if not known:
            place = self._insert(row, other, place)
        self._plain[place] = weight
        inside = slice(self._starts[row], self._ends[row])
        # A sum that only grows at its end needs no other terms; any other is recomputed, or rounding would accumulate.
        self.degrees[row] = self.degrees[row] + weight if newest else self._plain[inside].sum()
        return before

    def _rescaled(self, row: int) -> Entries:
        """Divides the weights of a row by the roots of the degrees as they are now, and those of its column."""
        inside = slice(self._starts[row], self._ends[row])
        near = self._near[inside].copy()
        fresh = self._plain[inside] / (self._root(np.array([row])) * self._root(near))
        amounts = fresh - self._entries[inside]
        self._entries[inside] = fresh
        for other, entry in zip(near.tolist(), fresh.tolist(), strict=True):
            self._entries[self._find(other, row)] = entry
        return Entries(row, near, amounts)

    def _root(self, users: Any) -> Array:
        degrees = self.degrees[users]
        return np.sqrt(np.where(degrees > 0, degrees, 1.0))

    def _find(self, row: int, other: int) -> int:
        start, end = int(self._starts[row]), int(self._ends[row])
        return start + int(np.searchsorted(self._near[start:end], other))

    def _has(self, row: int, other: int, place: int) -> bool:
        return bool(place < self._ends[row] and self._near[place] == other)

    def _insert(self, row: int, other: int, place: int) -> int:
        """Makes a place for a neighbour, its weight 0, and returns it."""
        if self._ends[row] - self._starts[row] == self._space[row]:
            place += self._moved(row)
        end = int(self._ends[row])
        for array in (self._near, *self._held()):
            array[place + 1 : end + 1] = array[place:end]
            array[place] = 0
        self._near[place] = other
        self._ends[row] = end + 1
        return place

    def _drop(self, row: int, other: int) -> None:
        place, end = self._find(row, other), int(self._ends[row])
        for array in (self._near, *self._held()):
            array[place : end - 1] = array[place + 1 : end]
        self._ends[row] = end - 1

    def _moved(self, row: int) -> int:
        """Moves a row to the end, with twice the space, and returns by how far it moved."""
        start, end = int(self._starts[row]), int(self._ends[row])
        space, to = max(2 * (end - start), LEAST_ROOM), self._used
        if to + space > len(self._near):
            self._widen(int(SPARE * (to + space)) + 256)
        for array in (self._near, *self._held()):
            array[to : to + end - start] = array[start:end]
        self._starts[row], self._ends[row], self._space[row] = to, to + end - start, space
        self._used = to + space
        return to - start

    def _widen(self, room: int) -> None:
        if room > np.iinfo(self._starts.dtype).max:
            self._starts, self._ends, self._space = (
                each.astype(np.int64) for each in (self._starts, self._ends, self._space)
            )
        same = self._entries is self._plain
        self._near, self._plain = with_room(self._near, room, 0), with_room(self._plain, room, 0.0)
        self._entries = self._plain if same else with_room(self._entries, room, 0.0)
        self._show()

    def _held(self) -> tuple[Array, ...]:
        return (self._entries, self._plain) if self.normalised else (self._plain,)

    def _show(self) -> None:
        self.rows: GraphRows = _locked(self._starts, self._ends, self._near, self._entries)


class Hubs:
    """What `shape` and `reach` are made of, for users and edges that come and go.

    Args:
        rows: The graph.
        ridge: The paper's rho.
        kept: Ratio, share and lift of each user.
    """

    def __init__(self, rows: GrowingRows, ridge: float, kept: dict[str, Array]) -> None:
        self._rows, self._ridge, self._room = rows, ridge, Room()
        self.ratio, self.share, self.lift = (np.array(kept[name]) for name in ("ratio", "share", "lift"))

    def state(self) -> dict[str, Any]:
        """Returns what makes the same again, to the bit."""
        return {"ratio": self.ratio, "share": self.share, "lift": self.lift}

    def follow(self, n_users: int, edits: Iterable[Edit]) -> set[int] | None:
        """Takes newcomers, and edges that the rows have taken already; returns whose reach or share may have changed.

        Whose share would fall below a half gets a longer reach instead, which takes from the lift of the neighbours,
        and so on. None if that goes too far, or weights are so heavy that rounding matters: hubs cannot wait then.
        """
        n_before = len(self.ratio)
        self._room.lengthen(self, n_users, ratio=1 / self._ridge, share=1.0, lift=0.0)
        touched: set[int] = set()
        for row, other, old, new in edits:
            if abs(new - old) * 1e-15 > MARGIN * self._ridge * min(self._scales([row, other])):
                return None
            pull = (new - old) * float(self.ratio[row] - self.ratio[other])
            self.lift[row] += pull
            self.lift[other] -= pull
            touched.update((row, other))
        return touched if self._settled(touched, n_before) else None

    def _settled(self, touched: set[int], n_before: int) -> bool:
        """Lengthens reaches until every share is at least a half, a newcomer's 1; returns whether that went well."""
        met = np.array(sorted(touched), dtype=np.intp)
        short, turns = deque(dict.fromkeys([*met[met >= n_before].tolist(), *self._below(met)])), 0
        while short:
            user, turns = short.popleft(), turns + 1
            near = self._lengthened(user)
            if turns > MOST_TURNS or self.ratio[user] * self._ridge > LONGEST:
                return False
            touched.update(near.tolist())
            short.extend(set(self._below(near)) - set(short))
        whom = np.array(sorted(touched), dtype=np.intp)
        self.share[whom] = np.minimum(self.share[whom], (1 - MARGIN) * self._cover(whom))
        return True

    def _lengthened(self, user: int) -> Any:
        """Lengthens a reach until the user's share can be 1, and returns the neighbours."""
        near, weights = self._rows.row(user)
        scale, degree = self._scales([user])[0], self._rows.degrees[user]
        self.lift[user] = weights @ (self.ratio[user] - self.ratio[near])  # recomputed: rounding would accumulate
        more = (1 - self._cover([user])[0]) * scale / (degree + self._ridge * scale)
        self.ratio[user] += more
        self.lift[user] += degree * more
        self.lift[near] -= weights * more
        return near

    def _below(self, users: Any) -> list[int]:
        return [int(user) for user in users[self._cover(users) < LEAST_SHARE]]

    def _cover(self, users: Any) -> Array:
        """Returns the largest share that is true."""
        return np.asarray(self.lift[users] / self._scales(users) + self._ridge * self.ratio[users])

    def _scales(self, users: Any) -> Array:
        degrees = self._rows.degrees[users]
        return np.where(degrees > 0, degrees, 1.0) if self._rows.normalised else np.ones(len(degrees))


def rows_of(weights: sp.csr_array) -> GraphRows:
    """Returns a CSR matrix as compiled code takes it: where each row starts and ends, neighbours, and entries."""
    rows: GraphRows = _locked(weights.indptr[:-1], weights.indptr[1:], weights.indices, weights.data)
    return rows


def _locked(*arrays: Any) -> Any:
    """Returns the arrays for reading: compiled code has another type for writeable ones."""
    views = tuple(array[:] for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views


def with_room(array: Any, length: int, fill: float = 0.0) -> Any:
    """Returns a copy with room at its end for so many rows in all; zeros take no memory before they are used."""
    shape = max(length, len(array)), *array.shape[1:]
    out = np.zeros(shape, dtype=array.dtype) if fill == 0 else np.full(shape, fill, dtype=array.dtype)
    out[: len(array)] = array
    return out
