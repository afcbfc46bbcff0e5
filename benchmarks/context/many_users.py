"""The same protocol with 100 users on a graph of 5 communities, each of which permutes the labels.

A row goes to a user drawn at random, and what pays is the class that the user's community makes of its label. Coterie
plays it with the graph, as one model for all, and as one model for each user.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.context.data import SETS, Labelled
from benchmarks.context.ours import OneUser, Served
from benchmarks.context.protocol import Learner, Method, Pass, one_pass
from coterie.contracts import Index
from coterie.graphs import UserGraph, make_graph

N_USERS = 100
N_COMMUNITIES = 5
INSIDE, ACROSS = 0.5, 0.01  # the probability of an edge


@dataclass(frozen=True)
class Communities:
    """A set that is dealt to users, whose communities permute its labels."""

    data: Labelled

    @property
    def name(self) -> str:
        return f"{self.data.name}, {N_USERS} users"

    @property
    def n_rows(self) -> int:
        return self.data.n_rows

    @property
    def n_classes(self) -> int:
        return self.data.n_classes

    def head(self, n_rows: int) -> "Communities":
        return Communities(self.data.head(n_rows))

    def contexts(self) -> list[Any]:
        return self.data.contexts()

    def dealt(self, seed: int) -> tuple[Index, Index, Index]:
        """Returns the order of the rows, and the user and the class that pays in each round."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(self.n_rows)
        users = rng.integers(N_USERS, size=self.n_rows)
        permuted = np.array([rng.permutation(self.n_classes) for _ in range(N_COMMUNITIES)])
        return order, users, permuted[community(users), self.data.labels[order]]


def community(users: Index) -> Index:
    """Returns the community of each user, as the graph has them: contiguous, of equal size."""
    return users // (N_USERS // N_COMMUNITIES)


def graph_of(seed: int) -> UserGraph:
    """Returns a graph that is dense inside the communities and sparse between them."""
    return make_graph("sbm", N_USERS, n_blocks=N_COMMUNITIES, inside=INSIDE, across=ACROSS, seed=seed)


class OnTheGraph(Served):
    """One bandit, with the graph as it is."""

    def __init__(self, n_classes: int, seed: int) -> None:
        super().__init__(n_classes)
        self._all = self.bandit(graph_of(seed), seed)

    def decide(self, row: tuple[int, Any]) -> tuple[int, float]:
        return self.choose(self._all, *row)


class ForAll(OneUser):
    """One model for all: every round is given to one single user."""

    def decide(self, row: tuple[int, Any]) -> tuple[int, float]:
        return super().decide(row[1])


class Apart(Served):
    """One model for each user: bandits that know nothing of each other."""

    def __init__(self, n_classes: int, seed: int) -> None:
        super().__init__(n_classes)
        alone = UserGraph.from_edges([], users=["one"])
        self._each = [self.bandit(alone, seed + user) for user in range(N_USERS)]

    def decide(self, row: tuple[int, Any]) -> tuple[int, float]:
        return self.choose(self._each[row[0]], "one", row[1])


def play_many(method: Method, data: Communities, seed: int, *, limit: float = math.inf) -> Pass:
    """Plays one pass over a set that is dealt to the users."""
    rows = method.rows(data)
    rounds = ((int(user), rows[place], int(right)) for place, user, right in zip(*data.dealt(seed), strict=True))
    return one_pass(method.make(data, seed), (((user, row), right) for user, row, right in rounds), limit=limit)


def _made(data: Communities, seed: int, *, kind: Callable[[int, int], Learner]) -> Learner:
    return kind(data.n_classes, seed)


ENTRIES = [
    Method("coterie", name, partial(_made, kind=kind), Communities.contexts, patient=True)
    for name, kind in (("the graph", OnTheGraph), ("one model for all", ForAll), ("one model a user", Apart))
]
MANY: Mapping[str, Callable[[], Communities]] = {
    f"{name}, {N_USERS} users": lambda name=name: Communities(SETS[name]())  # type: ignore[misc] # of a default
    for name in ("digits", "clusters")
}
