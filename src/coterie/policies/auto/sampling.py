"""Which rewards a fit looks at where there are too many: those of users with their neighbours."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from coterie.contracts import Array, Index
from coterie.graphs import UserGraph
from coterie.models import History

WHOLE = 400  # users of a graph that is looked at as a whole, however few rewards there are
MOST_WHOLE, MOST_AROUND = 2_000, 600  # users of a graph looked at as a whole, or else around a sample, at most
LEAST_AROUND = 128  # users around a sample, at least; else one for each pair: more are not worth their decomposition
CONSIDERED, CLUSTER = 4_096, 16  # rows that samples of inputs are drawn from, and how many that are alike come together
BLOCKS, BLOCK_PAIRS, BALLS = 4, 256, 4  # so many samples at most, of so many pairs, each of so many neighbourhoods


class PairSample(NamedTuple):
    """What a fit looks at.

    Attributes:
        users: The users, in the order that they are numbered in.
        rows: Their rows of the history.
        places: The number of each row's user.
    """

    users: Index
    rows: Index
    places: Index


def draw_samples(graph: UserGraph, history: History, rng: np.random.Generator) -> list[PairSample]:
    """Returns all pairs as one sample, or where they are many some samples of users with all their pairs.

    The more pairs, the more samples: what a fit costs stays in proportion to what the decisions before it did.
    """
    users = history.user_array()
    if len(users) <= BLOCK_PAIRS:
        chosen, places = np.unique(users, return_inverse=True)
        return [PairSample(chosen, np.arange(len(users)), places)]
    counts = np.bincount(users, minlength=graph.n_users)
    numbers, out = np.full(graph.n_users, -1), list[PairSample]()
    free = counts > 0
    for _ in range(min(BLOCKS, len(users) // BLOCK_PAIRS)):
        chosen = _gathered(graph.weights, counts * free, rng)
        if len(chosen) == 0:
            break
        free[chosen] = False
        numbers[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(numbers[users] >= 0)
        rows = rows[np.argsort(numbers[users[rows]], kind="stable")][:BLOCK_PAIRS]
        kept = chosen[: numbers[users[rows[-1]]] + 1]
        out.append(PairSample(kept, rows, numbers[users[rows]]))
        numbers[chosen] = -1
    return out


def _gathered(weights: Any, counts: Index, rng: np.random.Generator) -> Index:
    """Returns users with data, breadth first from a few of them along edges between such users; then from others."""
    indptr, indices = weights.indptr, weights.indices
    starts = iter(rng.permutation(np.flatnonzero(counts)).tolist())
    met, pairs = np.zeros(len(counts), dtype=bool), 0
    out: list[int] = []
    while pairs < BLOCK_PAIRS:
        start = next((user for user in starts if not met[user]), None)
        if start is None:
            break
        ball, found = [start], 0
        met[start] = True
        for user in ball:  # grows as it goes
            out.append(user)
            found += int(counts[user])
            if found * BALLS >= BLOCK_PAIRS:
                break
            near = indices[indptr[user] : indptr[user + 1]]
            near = np.unique(near[(counts[near] > 0) & ~met[near]])
            met[near] = True
            ball.extend(rng.permutation(near).tolist())
        met[ball] = False  # those that were seen and not taken may come another time
        met[out] = True
        pairs += found
    return np.array(out, dtype=np.intp)


def surroundings(graph: UserGraph, users: Index, n_pairs: int) -> Index | None:
    """Returns some users and, ring by ring, those around them, the best linked first; None where that is everybody.

    The covariance between two users goes through others: cut off right behind a sample, a graph seems to tie users
    less than it does, and fits make up for that by too small a ridge and a common part.
    """
    if graph.n_users <= min(max(WHOLE, n_pairs), MOST_WHOLE):
        return None
    out, ring = [users], users
    met = np.zeros(graph.n_users, dtype=bool)
    met[users] = True
    left = min(max(LEAST_AROUND, n_pairs), MOST_AROUND) - len(users)
    while left > 0:
        edges = graph.weights[ring]
        ties = np.bincount(edges.indices, edges.data, minlength=graph.n_users)
        ties[met] = 0
        found = np.flatnonzero(ties)
        if len(found) == 0:
            break
        ring = found[np.argsort(-ties[found], kind="stable")[:left]]
        met[ring] = True
        out.append(ring)
        left -= len(ring)
    return np.concatenate(out)


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


def draw_input_samples(
    graph: UserGraph, history: History, alike: Callable[[int, Index], Array], rng: np.random.Generator
) -> list[PairSample]:
    """Returns all rows as one sample, or where they are many some samples of rows of users who are near one another.

    Where arms have contexts a user may have any number of rows. So a sample has at most a share of them, and others of
    theirs may be in the next one. Rows come with those that are most alike: only rewards of nearly the same input tell
    noise from what varies over short distances.

    Args:
        graph: The users.
        history: The rewards.
        alike: Says how alike a row is to others.
        rng: For what is drawn.
    """
    users = history.user_array()
    if len(users) <= BLOCK_PAIRS:
        chosen, places = np.unique(users, return_inverse=True)
        return [PairSample(chosen, np.arange(len(users)), places)]
    left, out = _clustered(_early_first(len(users), rng)[:CONSIDERED], alike), list[PairSample]()
    for _ in range(min(BLOCKS, len(users) // BLOCK_PAIRS)):
        counts = np.bincount(users[left], minlength=graph.n_users)
        quota = max(BLOCK_PAIRS // BALLS, -(-BLOCK_PAIRS // max(int(np.count_nonzero(counts)), 1)))
        chosen = _gathered(graph.weights, np.minimum(counts, quota), rng)
        numbers = np.full(graph.n_users, -1)
        numbers[chosen] = np.arange(len(chosen))
        mine = left[np.argsort(numbers[users[left]], kind="stable")]
        mine = mine[numbers[users[mine]] >= 0]
        places = numbers[users[mine]]
        rank = np.arange(len(mine)) - np.searchsorted(places, places)  # of a row among those of its user
        rows = mine[rank < quota][:BLOCK_PAIRS]
        places = numbers[users[rows]]
        out.append(PairSample(chosen[: places[-1] + 1], rows, places))
        left = left[~np.isin(left, rows)]
    return out


def _early_first(size: int, rng: np.random.Generator) -> Index:
    """Returns all rows in a random order in which the first rows are likelier to come early, as 1 / (256 + row)."""
    return np.argsort(rng.standard_exponential(size) * (BLOCK_PAIRS + np.arange(size)), kind="stable")


def _clustered(rows: Index, alike: Callable[[int, Index], Array]) -> Index:
    """Returns the rows in another order: the first, then those most alike to it, then the next that is left."""
    out, left = list[Index](), rows
    while len(left) > CLUSTER:
        near = np.argpartition(-alike(int(left[0]), left[1:]), CLUSTER - 2)[: CLUSTER - 1] + 1
        taken = np.concatenate([[0], np.sort(near)])
        out.append(left[taken])
        left = np.delete(left, taken)
    return np.concatenate([*out, left])
