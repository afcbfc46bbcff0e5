"""Many rewirings of a large graph: every user keeps the number of neighbours, and who they are is left to chance."""

from collections.abc import Iterator

import numpy as np

from coterie.logs.log import Ints

SWEEPS = 6  # in each about half of the edges exchange ends with the other half


def rewirings(rows: Ints, cols: Ints, n_users: int, *, count: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Yields graphs of the same degrees as pairs of columns, each from the given one and apart from the others.

    It does as `UserGraph.rewired` does, for all edges together: a hundred rewirings of 100,000 edges are wanted.
    """
    rng = np.random.default_rng(seed)
    for _ in range(count):
        ends = rows, cols
        for _ in range(SWEEPS):
            ends = swept(*ends, n_users, rng)
        yield ends


def swept(rows: Ints, cols: Ints, n_users: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
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


def _keys(rows: Ints, cols: Ints, n_users: int) -> Ints:
    """Returns one number for each pair, whichever of the two comes first."""
    return np.asarray(np.minimum(rows, cols) * n_users + np.maximum(rows, cols))
