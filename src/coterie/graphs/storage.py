"""The users and weights of a graph, and looking things up in them."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from coterie.errors import UnknownUserError, listed, or_similar
from coterie.graphs.adjacency import Floats, read_matrix
from coterie.graphs.edits import Difference, Edit, Edits, difference, is_first, merged
from coterie.graphs.laplacian import degrees

MOST_EDITS = 1024  # wait to be merged, or as many as MOST_SHARE of what merging goes through
MOST_SHARE = 1 / 32


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
        if not is_first(self._claims, self._n):
            return Ids([*self, *ids])
        out = Ids.__new__(Ids)
        out._all, out._rows, out._claims, out._n = self._all, self._rows, self._claims, self._n + len(ids)
        self._rows.update(zip(ids, range(self._n, out._n), strict=True))
        self._all.extend(ids)
        return out


class StoredGraph:
    """Users and weights that never change; `UserGraph` adds reading, spectra and edits.

    Args:
        users: The ids, without repeats.
        weights: A symmetric matrix with one row per user and a zero diagonal, dense or sparse.
    """

    def __init__(self, *, users: Iterable[Hashable], weights: Any) -> None:
        self._keep(*read_matrix(weights, users=users, symmetrise=None))

    def _keep(self, users: Iterable[Hashable], weights: sp.csr_array) -> None:
        self._ids = Ids(users)
        self._n_edges = int(weights.nnz) // 2
        self._rebase(weights)

    def _rebase(self, weights: sp.csr_array) -> None:
        for array in (weights.data, weights.indices, weights.indptr):
            array.flags.writeable = False
        # In this order: edits that are made twice change nothing, so another thread reads the same at any moment.
        self._base = weights
        self._edits = Edits()

    @classmethod
    def _wrap(cls, users: Iterable[Hashable], weights: sp.csr_array) -> Self:
        # For weights that are right by construction; everything from outside passes the readers first.
        graph = cls.__new__(cls)
        graph._keep(users, weights)
        return graph

    def _with(self, users: Sequence[Hashable], edits: Sequence[Edit]) -> Self:
        """Returns the graph with more users and with these weights set; amortised O(users + edits)."""
        graph = type(self).__new__(type(self))
        graph._ids = self._ids.with_more(users) if users else self._ids
        graph._base, graph._edits = self._base, self._edits.with_more(edits)
        graph._n_edges = self._n_edges + sum((edit.new > 0) - (edit.old > 0) for edit in edits)
        if len(graph._edits) > MOST_EDITS + MOST_SHARE * (graph._base.shape[0] + graph._base.nnz):
            graph._rebase(merged(graph._base, len(graph._ids), graph._edits))
        return graph

    @property
    def _weights(self) -> sp.csr_array:
        """The weights with all edits in them, merged when they are asked for."""
        if len(self._edits) or self._base.shape[0] < len(self._ids):
            self._rebase(merged(self._base, len(self._ids), self._edits))
        return self._base

    @cached_property
    def _users(self) -> tuple[Hashable, ...]:
        return tuple(self._ids)

    @property
    def users(self) -> tuple[Hashable, ...]:
        """The ids, in the order of the rows. O(n) once; `user_at` gives one of them."""
        return self._users

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self._ids)

    @property
    def n_edges(self) -> int:
        """The number of edges, each counted once."""
        return self._n_edges

    @property
    def index(self) -> Mapping[Hashable, int]:
        """The row of each user, read-only."""
        return self._ids

    @property
    def weights(self) -> sp.csr_array:
        """The symmetric weights W; the arrays are read-only."""
        # A fresh wrapper each time: assigning to a new entry would otherwise swap the arrays of ours.
        own = self._weights
        return sp.csr_array((own.data, own.indices, own.indptr), shape=own.shape)

    @cached_property
    def degrees(self) -> Floats:
        """The weighted degree of each user, read-only."""
        sums = degrees(self._weights)
        sums.flags.writeable = False
        return sums

    def index_of(self, user: Hashable) -> int:
        """Returns the row of the user.

        Examples:
            >>> StoredGraph(users=["ana", "bo"], weights=[[0, 2], [2, 0]]).index_of("bo")
            1
        """
        if user not in self:
            remedy = or_similar(user, self._users, "Check the id, or add the user first")
            raise UnknownUserError(f"user {user!r} is unknown", f"users are {listed(self._users)}", remedy)
        return self._ids[user]

    def user_at(self, row: int) -> Hashable:
        """Returns the id of a row. O(1), where the first look at `users` after an edit takes O(n).

        Examples:
            >>> StoredGraph(users=["ana", "bo"], weights=[[0, 2], [2, 0]]).user_at(1)
            'bo'
        """
        return self._ids.at(range(self.n_users)[row])

    def neighbours(self, user: Hashable) -> dict[Hashable, float]:
        """Returns the weight of each neighbour of the user, in the order of the rows; O(degree).

        Examples:
            >>> StoredGraph(users=["ana", "bo"], weights=[[0, 2], [2, 0]]).neighbours("bo")
            {'ana': 2.0}
        """
        row = self.index_of(user)
        near, values = self._stored(row)
        found = dict(zip(near.tolist(), values.tolist(), strict=True)) | self._edits.near(row)
        return {self._ids.at(i): weight for i, weight in sorted(found.items()) if weight > 0}

    def _stored(self, row: int) -> tuple[Any, Any]:
        """Returns the neighbours of a row and their weights, without the edits."""
        if row >= self._base.shape[0]:
            return np.empty(0, dtype=np.int32), np.empty(0)
        inside = slice(self._base.indptr[row], self._base.indptr[row + 1])
        return self._base.indices[inside], self._base.data[inside]

    def edges(self) -> Iterator[tuple[Hashable, Hashable, float]]:
        """Yields (user, user, weight) once for each edge, in the order of the rows.

        Examples:
            >>> list(StoredGraph(users=["ana", "bo"], weights=[[0, 2], [2, 0]]).edges())
            [('ana', 'bo', 2.0)]
        """
        upper = sp.triu(self._weights, k=1, format="csr").tocoo()
        for i, j, weight in zip(upper.row.tolist(), upper.col.tolist(), upper.data.tolist(), strict=True):
            yield self._users[i], self._users[j], weight

    def has_edge(self, u: Hashable, v: Hashable) -> bool:
        """Returns whether the two users are joined; O(log degree).

        Examples:
            >>> StoredGraph(users=["ana", "bo"], weights=[[0, 2], [2, 0]]).has_edge("bo", "ana")
            True
        """
        return self.weight(u, v) > 0

    def weight(self, u: Hashable, v: Hashable) -> float:
        """Returns the weight between two users, 0 if they are not joined; O(log degree).

        Examples:
            >>> StoredGraph(users=["ana", "bo"], weights=[[0, 2], [2, 0]]).weight("bo", "ana")
            2.0
        """
        i, j = self.index_of(u), self.index_of(v)
        edited = self._edits.weight(i, j)
        if edited is not None:
            return edited
        near, values = self._stored(i)
        place = int(np.searchsorted(near, j))
        return float(values[place]) if place < len(near) and near[place] == j else 0.0

    def changes_since(self, before: "StoredGraph") -> Difference | None:
        """Returns who joined and which weights changed since an earlier graph; none if users left or moved.

        O(changes) between versions of a graph, unless their weights were asked for or merged meanwhile: then O(edges).

        Examples:
            >>> before = StoredGraph(users=["ana", "bo"], weights=[[0, 2], [2, 0]])
            >>> StoredGraph(users=["ana", "bo"], weights=[[0, 3], [3, 0]]).changes_since(before)
            Difference(newcomers=0, edges=(Edit(row=0, other=1, old=2.0, new=3.0),))
        """
        if not self._ids.extends(before._ids):
            return None
        added = self._edits.since(before._edits) if self._base is before._base else None
        if added is None:
            added = difference(before._weights, self._weights)
        return Difference.of(added, newcomers=self.n_users - before.n_users)

    def __len__(self) -> int:
        return self.n_users

    def __contains__(self, user: object) -> bool:
        try:
            return user in self._ids
        except TypeError:  # what cannot be hashed cannot be an id
            return False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredGraph):
            return NotImplemented
        mine, theirs = self._weights, other._weights
        return (
            self._users == other._users
            and np.array_equal(mine.indptr, theirs.indptr)
            and np.array_equal(mine.indices, theirs.indices)
            and np.array_equal(mine.data, theirs.data)
        )

    def __hash__(self) -> int:
        return hash((self._users, self.n_edges))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_users={self.n_users}, n_edges={self.n_edges})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays are writeable; going through _wrap locks them again.
        return type(self)._wrap, (self._users, self._weights)
