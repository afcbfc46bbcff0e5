"""Which rewards a fit looks at where there are too many: those of users with their neighbours."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.graphs import UserGraph
from coterie.models import History

WHOLE = 400  # users of a graph that is looked at as a whole
MOST_USERS, MOST_PAIRS, BALLS = 300, 400, 4

Index = NDArray[np.intp]


class Sample(NamedTuple):
    """What a fit looks at.

    Attributes:
        users: The users, in the order that they are numbered in.
        rows: Their rows of the history.
        places: The number of each row's user.
    """

    users: Index
    rows: Index
    places: Index


def draw_sample(graph: UserGraph, history: History, rng: np.random.Generator) -> Sample:
    """Returns users with all their pairs, neighbours together, until there are enough pairs or users."""
    users = history.user_array()
    if len(users) <= MOST_PAIRS and graph.n_users <= WHOLE:
        chosen, places = np.unique(users, return_inverse=True)
        return Sample(chosen, np.arange(len(users)), places)
    counts = np.bincount(users, minlength=graph.n_users)
    chosen = _gathered(graph.weights, counts, rng)
    numbers = np.full(graph.n_users, -1)
    numbers[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero(numbers[users] >= 0)
    rows = rows[np.argsort(numbers[users[rows]], kind="stable")][:MOST_PAIRS]
    kept = chosen[: numbers[users[rows[-1]]] + 1]
    return Sample(kept, rows, numbers[users[rows]])


def _gathered(weights: Any, counts: Index, rng: np.random.Generator) -> Index:
    """Returns users with data, breadth first from a few of them along edges between such users; then from others."""
    indptr, indices = weights.indptr, weights.indices
    starts = iter(rng.permutation(np.flatnonzero(counts)).tolist())
    met, pairs = np.zeros(len(counts), dtype=bool), 0
    out: list[int] = []
    while pairs < MOST_PAIRS and len(out) < MOST_USERS:
        start = next((user for user in starts if not met[user]), None)
        if start is None:
            break
        ball, found = [start], 0
        met[start] = True
        for user in ball:  # grows as it goes
            out.append(user)
            found += int(counts[user])
            if found * BALLS >= MOST_PAIRS or len(out) >= MOST_USERS:
                break
            near = indices[indptr[user] : indptr[user + 1]]
            near = np.unique(near[(counts[near] > 0) & ~met[near]])
            met[near] = True
            ball.extend(rng.permutation(near).tolist())
        met[ball] = False  # those that were seen and not taken may come another time
        met[out] = True
        pairs += found
    return np.array(out, dtype=np.intp)


def neighbourhood_laplacian(graph: UserGraph, users: Index, *, normalised: bool = False) -> Array:
    """Returns the Laplacian among some users, their neighbours eliminated and what lies beyond these held at zero.

    It is the Schur complement of a matrix with the whole graph's degrees, so it has no negative eigenvalue.
    """
    whole = graph.laplacian(normalised=normalised)
    rows = whole[users]
    inside = np.zeros(graph.n_users, dtype=bool)
    inside[users] = True
    beyond = np.flatnonzero((np.bincount(rows.indices, minlength=graph.n_users) > 0) & ~inside)
    out = rows[:, beyond]
    through = (out @ sp.diags_array(1 / whole.diagonal()[beyond]) @ out.T).toarray()
    laplacian = rows[:, users].toarray() - through
    return np.asarray((laplacian + laplacian.T) / 2)
