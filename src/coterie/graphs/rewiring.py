"""Edges that exchange their ends: a graph with the same degrees that joins other users.

Two ways to the same end. `swapped_pairs` goes edge by edge and moves exactly as many as asked, where that can be;
`rewirings` exchanges half of the edges with the other half at once, for a null distribution of a hundred large graphs.
Their draws differ, and stored results depend on those of the first.
"""

from collections.abc import Iterator

import numpy as np

from coterie.graphs.adjacency import Indices
from coterie.graphs.random_pairs import Pairs

# Partners tried for one edge before it is left where it is.
TRIES = 100
SWEEPS = 6  # of a rewiring at once; in each about half of the edges exchange ends with the other half


def swapped_pairs(rows: Indices, cols: Indices, n_moved: int, rng: np.random.Generator) -> Pairs:
    """Returns the pairs after `n_moved` of them, chosen at random, exchanged an end with one another.

    (a, b) and (c, d) become (a, d) and (c, b), so that every user keeps the number of neighbours. An exchange that
    would give a self loop or a pair twice is not made; an edge that finds no partner stays. O(pairs).

    Examples:
        >>> rows, cols = swapped_pairs(np.array([0, 2]), np.array([1, 3]), 2, np.random.default_rng(0))
        >>> sorted([*rows.tolist(), *cols.tolist()])
        [0, 1, 2, 3]
    """
    ends = [list(pair) for pair in zip(rows.tolist(), cols.tolist(), strict=True)]
    taken = {frozenset(pair) for pair in ends}
    chosen: list[int] = rng.permutation(len(ends))[:n_moved].tolist()
    moved: set[int] = set()
    for edge in chosen:
        if edge not in moved:
            moved |= _swapped(ends, taken, edge, chosen, rng)
    left, right = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    return left, right


def _swapped(
    ends: list[list[int]], taken: set[frozenset[int]], edge: int, chosen: list[int], rng: np.random.Generator
) -> set[int]:
    """Returns the edges that were moved: this one and a partner, or none."""
    partners, turns = rng.integers(len(chosen), size=TRIES).tolist(), rng.integers(2, size=TRIES).tolist()
    for place, turn in zip(partners, turns, strict=True):
        a, b = ends[edge]
        c, d = ends[chosen[place]][:: 1 - 2 * turn]
        new = {frozenset((a, d)), frozenset((c, b))}
        if a != d and c != b and len(new) == 2 and not new & taken:
            taken.difference_update([frozenset((a, b)), frozenset((c, d))])
            taken.update(new)
            ends[edge], ends[chosen[place]] = [a, d], [c, b]
            return {edge, chosen[place]}
    return set()


def rewirings(rows: Indices, cols: Indices, n_users: int, *, count: int, seed: int) -> Iterator[Pairs]:
    """Yields graphs of the same degrees as pairs of columns, each from the given one and apart from the others.

    O(pairs log pairs) a graph, without a loop over edges: a hundred rewirings of 100,000 edges are wanted.
    """
    rng = np.random.default_rng(seed)
    for _ in range(count):
        ends = rows, cols
        for _ in range(SWEEPS):
            ends = swept(*ends, n_users, rng)
        yield ends


def swept(rows: Indices, cols: Indices, n_users: int, rng: np.random.Generator) -> Pairs:
    """Returns the pairs after each met another, drawn at random, and exchanged an end with it where that is allowed.

    (a, b) and (c, d) become (a, d) and (c, b), unless that would join a user to themselves or two who are joined
    already, or are joined by another exchange of this sweep.

    Examples:
        >>> rows, cols = swept(np.array([0, 2]), np.array([1, 3]), 4, np.random.default_rng(0))
        >>> sorted([*rows.tolist(), *cols.tolist()]), {frozenset((0, 1)), frozenset((2, 3))} & set(zip(rows, cols))
        ([0, 1, 2, 3], set())
    """
    half = len(rows) // 2
    order, turn = rng.permutation(len(rows)), rng.random(half) < 0.5
    first, second = order[:half], order[half : 2 * half]
    a, b = rows[first], cols[first]
    c, d = np.where(turn, cols[second], rows[second]), np.where(turn, rows[second], cols[second])
    keys = _keys(np.concatenate([a, c]), np.concatenate([d, b]), n_users)
    _, place, count = np.unique(keys, return_inverse=True, return_counts=True)
    new = (count[place] == 1) & ~np.isin(keys, _keys(rows, cols, n_users))
    allowed = (a != d) & (c != b) & new[:half] & new[half:]
    left, right = rows.copy(), cols.copy()
    left[first[allowed]], right[first[allowed]] = a[allowed], d[allowed]
    left[second[allowed]], right[second[allowed]] = c[allowed], b[allowed]
    return left, right


def _keys(rows: Indices, cols: Indices, n_users: int) -> Indices:
    """Returns one number for each pair, whichever of the two comes first."""
    return np.asarray(np.minimum(rows, cols) * n_users + np.maximum(rows, cols))
