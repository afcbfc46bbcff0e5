"""Clusters of many users: who is joined is a sparse graph that only loses edges, and a model of groups follows it."""

from collections import deque
from math import log
from typing import Any

import numpy as np
import scipy.sparse as sp

from coterie.contracts import Array, Index
from coterie.graphs import make_graph
from coterie.models import Model
from coterie.models.engines.groups import GroupsModel
from coterie.policies.adaptation.clusters import Estimates
from coterie.policies.adaptation.followers import features_of

ALL_JOINED = 2000  # up to so many users everybody begins joined to everybody
EDGES = 3.0  # times log n for each user, where there are more
START = 0xC1B  # a stream of its own, beside those of decisions


def joined_at_first(n_users: int, seed: int) -> sp.csr_array:
    """Returns who is joined before any reward: all pairs, or of many users a connected random graph.

    Its mean degree is 3 log n: Gentile, Li and Zappella begin so where users are many, for such a graph is connected,
    and so are its parts on clusters that are not too small, with high probability.

    Examples:
        >>> joined_at_first(3, 0).nnz
        6
    """
    if n_users <= ALL_JOINED:
        return make_graph("complete", n_users).weights
    rng = np.random.default_rng([START, seed])
    share = EDGES * log(n_users) / n_users
    return make_graph("erdos-renyi", n_users, edge_prob=share, seed=rng, connected="retry").weights


class Search:
    """A search for everybody who is connected to a user: who was reached, and who of them was not looked at yet."""

    __slots__ = ("reached", "waiting")

    def __init__(self, user: int) -> None:
        self.reached, self.waiting = {user}, deque([user])

    def join(self, other: "Search") -> None:
        """Takes over what another search has found, the two having met."""
        self.reached |= other.reached
        self.waiting.extend(other.waiting)


class Joined:
    """Who is joined to whom: a graph without weights that only loses edges.

    Examples:
        >>> joined = Joined(make_graph("ring", 5).weights)
        >>> joined.cut(0, np.array([1]))
        >>> joined.near(0), joined.part(Search(0), Search(1))
        (array([4]), None)
        >>> joined.cut(3, np.array([4]))
        >>> joined.part(Search(1), Search(0))
        array([0, 4])
    """

    __slots__ = ("_ends", "_others", "_there")

    def __init__(self, weights: sp.csr_array) -> None:
        ordered = weights if weights.has_sorted_indices else weights.sorted_indices()
        self._ends = ordered.indptr.tolist()
        self._others = np.array(ordered.indices, dtype=np.intp)
        self._there = np.ones(len(self._others), dtype=np.bool_)

    def near(self, user: int) -> Index:
        """Returns who is joined to the user, in order. O(degree at first)."""
        row = slice(self._ends[user], self._ends[user + 1])
        return np.asarray(self._others[row][self._there[row]])

    def cut(self, user: int, others: Index) -> None:
        """Parts the user from these others, who are joined to them. O(log degree) for each."""
        for one, other in [(user, each) for each in others.tolist()] + [(each, user) for each in others.tolist()]:
            start, end = self._ends[one], self._ends[one + 1]
            self._there[start + int(np.searchsorted(self._others[start:end], other))] = False

    def part(self, one: Search, other: Search) -> Index | None:
        """Returns everybody on the side with fewer edges if two users are not connected, and None if they are.

        Both searches go on in turn. That takes about twice the edges of the side returned; or until they meet, and then
        the first goes on from where both are.
        """
        sides, work = (one, other), [0, 0]
        while True:
            turn = int(work[1] < work[0])
            side = sides[turn]
            if not side.waiting:
                return np.array(sorted(side.reached), dtype=np.intp)
            near = self.near(side.waiting.popleft()).tolist()
            fresh = [each for each in near if each not in side.reached]
            side.reached.update(fresh)
            side.waiting.extend(fresh)
            if not sides[1 - turn].reached.isdisjoint(fresh):
                one.join(other)
                return None
            work[turn] += len(near) + 1


class JoinedClusters:
    """Lets the groups of a model be the connected components of who is joined; they only ever split.

    The rule is that of `Clusters`, on the users that are joined at first. A reward costs O(d^2) and O(d) for each user
    that is joined to its own; a split costs the search for the smaller part and O(d^2) for each pair it has rewards of.

    Args:
        joined: Who is joined at first, in CSR; symmetric and connected.
        width: How far apart estimates may be: the smaller, the sooner users part.
        pool: The features of the arms, one row each.

    Examples:
        >>> clusters = JoinedClusters(joined_at_first(2, 0), width=0.5, pool=np.ones((1, 1)))
        >>> clusters.see(0, np.array([1.0]), 1.0), clusters.see(1, np.array([1.0]), -2.0)
        ([], [(array([1]), 1)])
    """

    def __init__(self, joined: sp.csr_array, *, width: float, pool: Array) -> None:
        n_users = int(joined.shape[0])
        self.labels = np.zeros(n_users, dtype=np.int64)
        self.n_clusters = 1
        self._pool = pool
        self._estimates = Estimates(n_users, width=width)
        self._joined = Joined(joined)

    def follow(self, model: Model, t: int, user: int, arm: Any, reward: float) -> None:  # noqa: ARG002 - any reward
        """Takes note of a reward; lets the model's groups split as the clusters do."""
        assert isinstance(model, GroupsModel)
        for part, label in self.see(user, features_of(self._pool, arm), reward):
            model.split(part, label)

    def see(self, user: int, features: Array, reward: float) -> list[tuple[Index, int]]:
        """Takes note of a reward, and returns who left their cluster, each part with its new name."""
        self._estimates.learn(user, features, reward)
        far = self._estimates.far(user, self._joined.near(user))
        if len(far) == 0:
            return []
        self._joined.cut(user, far)
        return self._split(user, far.tolist())

    def _split(self, user: int, cut: list[int]) -> list[tuple[Index, int]]:
        """Finds the parts of the user's cluster: each holds the user or one of those cut off."""
        parts, last, found = [], user, Search(user)
        for other in cut:
            if other in found.reached or self.labels[other] != self.labels[last]:
                continue  # connected to the last, or in a part that was found whole
            more = Search(other)
            part = self._joined.part(found, more)
            if part is None:
                continue
            label, self.n_clusters = self.n_clusters, self.n_clusters + 1
            self.labels[part] = label
            parts.append((part, label))
            if self.labels[last] == label:
                last, found = other, more  # who stays behind under the old name
        return parts
