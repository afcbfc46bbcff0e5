"""The users and weights of a graph, and looking things up in them."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from coterie.errors import UnknownUserError, listed, or_similar
from coterie.graphs.adjacency import Floats, read_matrix
from coterie.graphs.laplacian import degrees


class StoredGraph:
    """Users and weights that never change; `UserGraph` adds reading, spectra and edits.

    Args:
        users: The ids, without repeats.
        weights: A symmetric matrix with one row per user and a zero diagonal, dense or sparse.
    """

    def __init__(self, *, users: Iterable[Hashable], weights: Any) -> None:
        self._keep(*read_matrix(weights, users=users, symmetrise=None))

    def _keep(self, users: tuple[Hashable, ...], weights: sp.csr_array) -> None:
        for array in (weights.data, weights.indices, weights.indptr):
            array.flags.writeable = False
        self._users = users
        self._weights = weights
        self._index = {user: i for i, user in enumerate(users)}

    @classmethod
    def _wrap(cls, users: tuple[Hashable, ...], weights: sp.csr_array) -> Self:
        # For weights that are right by construction; everything from outside passes the readers first.
        graph = cls.__new__(cls)
        graph._keep(users, weights)
        return graph

    @property
    def users(self) -> tuple[Hashable, ...]:
        """The ids, in the order of the rows."""
        return self._users

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self._users)

    @property
    def n_edges(self) -> int:
        """The number of edges, each counted once."""
        return int(self._weights.nnz) // 2

    @property
    def index(self) -> Mapping[Hashable, int]:
        """The row of each user, read-only."""
        return MappingProxyType(self._index)

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
            remedy = or_similar(user, self._users, "Check the id, or add the user with add_user")
            raise UnknownUserError(f"user {user!r} is unknown", f"users are {listed(self._users)}", remedy)
        return self._index[user]

    def neighbours(self, user: Hashable) -> dict[Hashable, float]:
        """Returns the weight of each neighbour of the user, in the order of the rows; O(degree).

        Examples:
            >>> StoredGraph(users=["ana", "bo"], weights=[[0, 2], [2, 0]]).neighbours("bo")
            {'ana': 2.0}
        """
        row = self.index_of(user)
        inside = slice(self._weights.indptr[row], self._weights.indptr[row + 1])
        near, values = self._weights.indices[inside].tolist(), self._weights.data[inside].tolist()
        return {self._users[i]: weight for i, weight in zip(near, values, strict=True)}

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
        start, end = self._weights.indptr[i], self._weights.indptr[i + 1]
        place = start + int(np.searchsorted(self._weights.indices[start:end], j))
        found = place < end and self._weights.indices[place] == j
        return float(self._weights.data[place]) if found else 0.0

    def __len__(self) -> int:
        return self.n_users

    def __contains__(self, user: object) -> bool:
        try:
            return user in self._index
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
