"""`UserGraph`: who is near whom."""

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from numbers import Real
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from coterie.errors import DuplicateIdError, GraphError, ParameterError
from coterie.graphs import laplacian, spectrum
from coterie.graphs.adjacency import (
    Indices,
    Symmetrise,
    canonical,
    edge_weight,
    from_pairs,
    read_matrix,
    self_loop,
    user_id,
)
from coterie.graphs.build import NearestWeights, read_edges, read_features, read_networkx, read_table
from coterie.graphs.edits import Edit, GraphChange, without_user
from coterie.graphs.laplacian import Components
from coterie.graphs.random_pairs import swapped_pairs
from coterie.graphs.spectrum import Spectrum
from coterie.graphs.storage import StoredGraph

Friends: TypeAlias = Mapping[Any, float] | Iterable[Any] | None  # weights by user, or users whose edges have weight 1


class UserGraph(StoredGraph):
    """An undirected graph of users with non-negative weights; it never changes, edits return a new one.

    Users have any hashable ids and keep the order in which they were given; user i is row i of every matrix.

    Args:
        users: The ids, without repeats.
        weights: A symmetric matrix with one row per user and a zero diagonal, dense or sparse.

    Examples:
        >>> graph = UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 2.0)])
        >>> graph
        UserGraph(n_users=3, n_edges=2)
        >>> graph.neighbours("bo")
        {'ana': 1.0, 'cy': 2.0}
    """

    @classmethod
    def from_edges(
        cls, edges: Iterable[Any], *, users: Iterable[Hashable] | None = None, symmetrise: Symmetrise | None = None
    ) -> Self:
        """Returns the graph of an edge list of (user, user) or (user, user, weight); O(edges).

        Args:
            edges: Each pair once is enough; the default weight is 1 and weight 0 means no edge.
            users: All users in the order wanted; default: as they appear in the edges.
            symmetrise: Reads the list as directed and joins the two directions by this rule;
                a direction that is absent counts as 0.

        Examples:
            >>> UserGraph.from_edges([("ana", "bo", 3), ("bo", "ana", 1)], symmetrise="mean").weight("ana", "bo")
            2.0
        """
        return cls._wrap(*read_edges(edges, users=users, symmetrise=symmetrise))

    @classmethod
    def from_matrix(
        cls, matrix: Any, *, users: Iterable[Hashable] | None = None, symmetrise: Symmetrise | None = None
    ) -> Self:
        """Returns the graph of a square weight matrix, dense or sparse; users default to 0, 1, ...; O(entries).

        Examples:
            >>> UserGraph.from_matrix([[0, 2], [2, 0]], users=["ana", "bo"]).weight("ana", "bo")
            2.0
        """
        return cls._wrap(*read_matrix(matrix, users=users, symmetrise=symmetrise))

    @classmethod
    def from_networkx(cls, graph: Any, *, weight: str | None = "weight", symmetrise: Symmetrise | None = None) -> Self:
        """Returns the same graph as a networkx one; edges without the attribute `weight` weigh 1; O(nodes + edges).

        Examples:
            >>> import networkx as nx
            >>> UserGraph.from_networkx(nx.cycle_graph(4))
            UserGraph(n_users=4, n_edges=4)
        """
        return cls._wrap(*read_networkx(graph, weight=weight, symmetrise=symmetrise))

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        weight: Hashable | None = None,
        users: Iterable[Hashable] | None = None,
        symmetrise: Symmetrise | None = None,
    ) -> Self:
        """Returns the graph of a dataframe or dict of columns: user, other and perhaps weight; O(rows).

        Columns go by name where they are called user and other, user and friend, source and target, or from and to. Any
        two columns beside the weight do as well, in that order.

        Args:
            table: An eager dataframe, or a mapping from names to columns.
            weight: The column of the weights; by default "weight", where there is one; no other is taken for it.
            users: The users in the order they are to have; by default as the table names them.
            symmetrise: How the weights of two directions become one; by default they must be the same.

        Examples:
            >>> UserGraph.from_table({"from": ["ana", "bo"], "to": ["bo", "cy"], "weight": [1.0, 2.0]})
            UserGraph(n_users=3, n_edges=2)
            >>> UserGraph.from_table({"a": ["ana"], "b": ["bo"], "calls": [7]}, weight="calls").weight("ana", "bo")
            7.0
        """
        return cls._wrap(*read_table(table, weight=weight, users=users, symmetrise=symmetrise))

    @classmethod
    def from_features(
        cls,
        features: Any,
        *,
        users: Iterable[Hashable] | None = None,
        k: int = 10,
        weights: NearestWeights = "rbf",
        mutual: bool = False,
        lengthscale: float | str = "median",
    ) -> Self:
        """Returns the graph that joins each row of features to its k nearest; about O(n k log n) in few dimensions.

        Args:
            features: One row per user.
            users: The ids of the rows; default 0, 1, ...
            k: Neighbours of each user, from 1 to n_users - 1.
            weights: "rbf" for exp(-distance^2 / (2 lengthscale^2)), or "binary" for 1.
            mutual: Keep an edge only if each is among the k nearest of the other, instead of either.
            lengthscale: A number, or "median" for the median distance to the neighbours.

        Examples:
            >>> UserGraph.from_features([[0.0], [1.0], [5.0]], k=1, weights="binary").neighbours(1)
            {0: 1.0, 2: 1.0}
        """
        return cls._wrap(
            *read_features(features, users=users, k=k, weights=weights, mutual=mutual, lengthscale=lengthscale)
        )

    def laplacian(self, *, normalised: bool = False) -> sp.csr_array:
        """Returns L = D - W, or I - D^-1/2 W D^-1/2 with zero rows for isolated users; O(edges).

        Examples:
            >>> UserGraph.from_edges([("ana", "bo", 2)]).laplacian().toarray().tolist()
            [[2.0, -2.0], [-2.0, 2.0]]
        """
        return laplacian.laplacian(self._weights, normalised=normalised)

    def regularised_laplacian(self, laplacian_ridge: float, *, normalised: bool = False) -> sp.csr_array:
        """Returns L_rho = L + laplacian_ridge I; the ridge must be above 0, for L is always singular; O(edges).

        Examples:
            >>> UserGraph.from_edges([("ana", "bo", 2)]).regularised_laplacian(0.5).toarray().tolist()
            [[2.5, -2.0], [-2.0, 2.5]]
        """
        return laplacian.regularised_laplacian(self._weights, laplacian_ridge=laplacian_ridge, normalised=normalised)

    def spectrum(self, k: int | None = None, *, normalised: bool = False) -> Spectrum:
        """Returns the k smallest eigenpairs of the Laplacian, ascending; all of them when k is None.

        Dense and O(n^3) when k is None or there are at most 2,000 users, by Lanczos otherwise. The result
        is not kept: ask once.

        Examples:
            >>> UserGraph.from_edges([("ana", "bo", 2)]).spectrum().values.round(12).tolist()
            [0.0, 4.0]
        """
        return spectrum.spectrum(self._weights, self._components, k=k, normalised=normalised)

    @cached_property
    def _components(self) -> Components:
        return laplacian.components(self._weights)

    def components(self) -> Components:
        """Returns the number of components and the label of each user; O(users + edges), once.

        Examples:
            >>> UserGraph.from_edges([("ana", "bo")], users=["ana", "cy", "bo"]).components().labels.tolist()
            [0, 1, 0]
        """
        return self._components

    @property
    def n_components(self) -> int:
        """The number of components; also how often 0 is an eigenvalue of the Laplacian."""
        return self._components.count

    @property
    def component_labels(self) -> Indices:
        """The number of each user's component, from 0; read-only."""
        return self._components.labels

    @property
    def is_connected(self) -> bool:
        """Whether there is at most one component."""
        return self.n_components <= 1

    @cached_property
    def _extremes(self) -> tuple[float, float]:
        return spectrum.extremes(self._weights, self._components)

    @property
    def spectral_ratio(self) -> float:
        """S_spec: the smallest non-zero eigenvalue of L over the largest, 1 without edges; computed once."""
        low, high = self._extremes
        return low / high if self.n_edges else 1.0

    @property
    def algebraic_connectivity(self) -> float:
        """The second smallest eigenvalue of L; 0 when the graph is not connected or has one user."""
        return self._extremes[0] if self.is_connected else 0.0

    def add_user(self, user: Hashable, friends: Friends = None) -> tuple[Self, GraphChange]:
        """Returns the graph with one more user, in the last row so that all others keep theirs; amortised O(friends).

        Examples:
            >>> graph, change = UserGraph.from_edges([("ana", "bo")]).add_user("cy", {"bo": 2.0})
            >>> graph.users, change.edges
            (('ana', 'bo', 'cy'), (('cy', 'bo', 0.0, 2.0),))
        """
        return self.add_users({user_id(user): friends})

    def add_users(self, users: Mapping[Any, Friends]) -> tuple[Self, GraphChange]:
        """Returns the graph with more users, in the last rows; friends may be newcomers too. Amortised O(friends).

        Examples:
            >>> graph, change = UserGraph.from_edges([("ana", "bo")]).add_users({"cy": {"bo": 2.0}, "dee": {"cy": 1.0}})
            >>> graph.users, change.edges
            (('ana', 'bo', 'cy', 'dee'), (('cy', 'bo', 0.0, 2.0), ('dee', 'cy', 0.0, 1.0)))
        """
        if not isinstance(users, Mapping):
            rule = "users maps newcomers to their friends"
            raise GraphError(f"users = {users!r} is not a mapping", rule, "Pass a dict such as {'eve': {'ana': 1.0}}")
        rows = {self._new_id(user): row for row, user in enumerate(users, start=self.n_users)}
        near: dict[tuple[int, int], tuple[Hashable, Hashable, float, float]] = {}
        for user, friends in users.items():
            for friend, weight in _weights_of(friends).items():
                edge = (user, user_id(friend), 0.0, _positive(user, friend, weight))
                there = rows[edge[1]] if edge[1] in rows else self.index_of(friend)
                first = near.setdefault((min(rows[user], there), max(rows[user], there)), edge)
                if first[-1] != edge[-1]:
                    problem = f"edge {(user, friend)!r} has weights {first[-1]!r} and {edge[-1]!r}"
                    raise GraphError(problem, "an edge has one weight", "Name it once")
        edits = [Edit(*pair, 0.0, edge[-1]) for pair, edge in near.items()]
        return self._with(list(rows), edits), GraphChange("add-user", tuple(users), tuple(near.values()))

    def _new_id(self, user: Any) -> Hashable:
        """Returns an id that the graph does not know yet, or raises."""
        new = user_id(user)
        if new in self:
            raise DuplicateIdError(f"user {new!r} is in the graph already", "user ids are unique", "Use another id")
        return new

    def remove_user(self, user: Hashable) -> tuple[Self, GraphChange]:
        """Returns the graph without the user; users in later rows move up by one; O(edges).

        Examples:
            >>> UserGraph.from_edges([("ana", "bo"), ("bo", "cy")]).remove_user("ana")[0].users
            ('bo', 'cy')
        """
        row = self.index_of(user)
        gone = self.users[row]
        edges = tuple((gone, friend, weight, 0.0) for friend, weight in self.neighbours(user).items())
        rest = (*self.users[:row], *self.users[row + 1 :])
        return self._wrap(rest, without_user(self._weights, row)), GraphChange("remove-user", (gone,), edges)

    def set_edge(self, u: Hashable, v: Hashable, weight: float) -> tuple[Self, GraphChange]:
        """Returns the graph in which the two users are joined with this weight, which is above 0; amortised O(1).

        Examples:
            >>> UserGraph.from_edges([("ana", "bo")]).set_edge("ana", "bo", 3)[1].edges
            (('ana', 'bo', 1.0, 3.0),)
        """
        return self._with_edge("set-edge", u, v, _positive(u, v, weight))

    def set_edges(self, edges: Iterable[tuple[Hashable, Hashable, float]]) -> tuple[Self, GraphChange]:
        """Returns the graph in which pairs of users have these weights; weight 0 means no edge. Amortised O(edges).

        Examples:
            >>> graph = UserGraph.from_edges([("ana", "bo")], users=["ana", "bo", "cy"])
            >>> graph.set_edges([("ana", "bo", 0.0), ("bo", "cy", 2.0)])[0].neighbours("bo")
            {'cy': 2.0}
        """
        given: dict[tuple[int, int], tuple[Hashable, Hashable, float, float]] = {}
        for u, v, weight in edges:
            i, j = self.index_of(u), self.index_of(v)
            pair, new = (min(i, j), max(i, j)), _positive(u, v, weight) if weight else 0.0
            if i == j:
                raise self_loop((u, v))
            if pair in given:
                raise GraphError(f"edge {(u, v)!r} is named twice", "an edge has one weight", "Name it once")
            given[pair] = (self.user_at(i), self.user_at(j), self.weight(u, v), new)
        changed = {pair: edge for pair, edge in given.items() if edge[2] != edge[3]}
        edits = [Edit(*pair, old, new) for pair, (_, _, old, new) in changed.items()]
        return self._with((), edits), GraphChange("set-edge", edges=tuple(changed.values()))

    def remove_edge(self, u: Hashable, v: Hashable) -> tuple[Self, GraphChange]:
        """Returns the graph in which the two users, who are joined now, are not; amortised O(1).

        Examples:
            >>> UserGraph.from_edges([("ana", "bo")]).remove_edge("ana", "bo")[0]
            UserGraph(n_users=2, n_edges=0)
        """
        if not self.has_edge(u, v):
            raise GraphError(f"{u!r} and {v!r} are not joined", "only an edge can be removed", "Check with has_edge")
        return self._with_edge("remove-edge", u, v, 0.0)

    def _with_edge(
        self, kind: Literal["set-edge", "remove-edge"], u: Hashable, v: Hashable, weight: float
    ) -> tuple[Self, GraphChange]:
        i, j = self.index_of(u), self.index_of(v)
        old = self.weight(u, v)
        change = GraphChange(kind, edges=((self.user_at(i), self.user_at(j), old, weight),))
        return self._with((), [Edit(min(i, j), max(i, j), old, weight)]), change

    def permuted(self, seed: int | np.random.Generator) -> Self:
        """Returns the same users with their places in the graph permuted at random: a control.

        Examples:
            >>> UserGraph.from_edges([("ana", "bo")], users=["ana", "bo", "cy"]).permuted(0)
            UserGraph(n_users=3, n_edges=1)
        """
        order = np.random.default_rng(seed).permutation(self.n_users)
        return self._wrap(self.users, canonical(self._weights[order][:, order]))

    def rewired(self, share: float, seed: int | np.random.Generator, *, least: float = 0.0) -> Self:
        """Returns the graph after a share of its edges exchanged ends in pairs: a control that keeps the degrees.

        Every user keeps the number of neighbours, and a weight travels with its edge. An exchange that would join a
        user to themselves, or two who are joined already, is not made, so a complete graph stays as it is; with
        `least`, a graph so dense that a smaller part of these edges can move is refused. The result need not be
        connected. O(edges).

        Examples:
            >>> UserGraph.from_edges([("ana", "bo"), ("cy", "dee")]).rewired(1.0, 0).has_edge("ana", "bo")
            False
        """
        if not (isinstance(share, Real) and 0 <= share <= 1):
            raise ParameterError(f"share = {share!r} is out of range", "it lies between 0 and 1", "Pass, say, 0.5")
        upper = sp.triu(self._weights, k=1).tocoo()
        n_moved = round(float(share) * self.n_edges)
        rows, cols = swapped_pairs(upper.row, upper.col, n_moved, np.random.default_rng(seed))
        new = self._wrap(self.users, from_pairs(self.n_users, rows, cols, upper.data))
        moved = self.n_edges - (self._weights.astype(bool).multiply(new._weights.astype(bool))).nnz // 2
        if moved < least * n_moved:
            raise GraphError(
                f"only {moved} of {n_moved} edges can exchange their ends",
                "a graph this dense has too few pairs that are not joined",
                "Use permuted(seed) instead",
            )
        return new


def _weights_of(friends: Friends) -> Mapping[Any, float]:
    """Returns the weight of each friend: 1 where only friends are listed.

    Examples:
        >>> _weights_of(["ana", "bo"])
        {'ana': 1.0, 'bo': 1.0}
    """
    if friends is None or isinstance(friends, Mapping):
        return friends or {}
    if isinstance(friends, str | bytes) or not isinstance(friends, Iterable):
        rule, remedy = "friends maps users to weights, or lists users", "Pass {'ana': 1.0}, or ['ana'] for weights of 1"
        raise GraphError(f"friends = {friends!r} is neither", rule, remedy)
    return dict.fromkeys(friends, 1.0)


def _positive(u: Hashable, v: Hashable, weight: float) -> float:
    if u == v:
        raise self_loop((u, v))
    number = edge_weight(weight, (u, v))
    if number == 0:
        raise GraphError(f"edge {(u, v)!r} has weight {weight!r}", "an edge weighs more than 0", "Use remove_edge")
    return number
