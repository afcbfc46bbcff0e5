"""Edges that exchange their ends: a graph with the same degrees that joins other users."""

import numpy as np

from coterie.graphs.adjacency import Indices
from coterie.graphs.draws import Pairs

# Partners tried for one edge before it is left where it is.
TRIES = 100


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
