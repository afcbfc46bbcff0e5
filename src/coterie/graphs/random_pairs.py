"""Random pairs of users, as two arrays of ends: the raw material of the random families, and of rewired graphs.

A rewired graph has the same degrees and joins other users: edges exchange their ends. There are two ways to it.
`swapped_pairs` goes edge by edge and moves exactly as many as asked, where that can be; `rewirings` exchanges half of
the edges with the other half at once, for a null distribution of a hundred large graphs. Their draws differ, and stored
results depend on those of the first.
"""

from collections.abc import Iterator
from math import sqrt

import numpy as np

from coterie.graphs.adjacency import Indices

Pairs = tuple[Indices, Indices]

# Partners tried for one edge before it is left where it is.
TRIES = 100
SWEEPS = 6  # of a rewiring at once; in each about half of the edges exchange ends with the other half


def random_pairs(n_users: int, edge_prob: float, rng: np.random.Generator) -> Pairs:
    """Returns every pair of users with this probability, independently; O(pairs returned).

    Examples:
        >>> rows, cols = random_pairs(4, 1.0, np.random.default_rng(0))
        >>> list(zip(rows.tolist(), cols.tolist()))
        [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]
    """
    return _pair_of(_successes(n_users * (n_users - 1) // 2, edge_prob, rng))


def _successes(n_trials: int, prob: float, rng: np.random.Generator) -> Indices:
    """Returns which of n independent trials succeed.

    The gaps between successes are geometric, so only the successes are drawn and never the n trials.
    """
    if prob == 0:
        return np.empty(0, dtype=np.int64)
    found, last = [np.empty(0, dtype=np.int64)], -1
    while last < n_trials - 1:
        expected = (n_trials - last) * prob
        gaps = rng.geometric(prob, size=int(expected + 4 * sqrt(expected)) + 16)
        # A gap past the end ends the search however long it is; cutting it keeps the sum from overflowing.
        found.append(last + np.cumsum(np.minimum(gaps, n_trials + 1)))
        last = int(found[-1][-1])
    positions = np.concatenate(found)
    return positions[positions < n_trials]


def _pair_of(number: Indices) -> Pairs:
    """Returns the pairs (i, j), i < j, with these numbers in the order (0,1), (0,2), (1,2), (0,3), ..."""
    j = ((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.int64)
    # Past 10^8 users the square root can be rounded up to the next whole number, and never down.
    j -= j * (j - 1) // 2 > number
    return number - j * (j - 1) // 2, j


def block_labels(n_users: int, n_blocks: int) -> Indices:
    """Returns the block of each user: contiguous, and of nearly equal size.

    Examples:
        >>> block_labels(5, 2).tolist()
        [0, 0, 0, 1, 1]
    """
    labels: Indices = np.arange(n_users) * n_blocks // n_users
    return labels


def block_pairs(n_users: int, n_blocks: int, inside: float, across: float, rng: np.random.Generator) -> Pairs:
    """Returns pairs with one probability inside the blocks and another across; O(pairs returned).

    Examples:
        >>> rows, cols = block_pairs(4, 2, 1.0, 0.0, np.random.default_rng(0))
        >>> list(zip(rows.tolist(), cols.tolist()))
        [(0, 1), (2, 3)]
    """
    labels = block_labels(n_users, n_blocks)
    # Pairs drawn over everyone and then kept only where the blocks differ have the law wanted across.
    rows, cols = random_pairs(n_users, across, rng)
    differ = labels[rows] != labels[cols]
    all_rows, all_cols = [rows[differ]], [cols[differ]]
    first = 0
    for size in np.bincount(labels).tolist():
        rows, cols = random_pairs(size, inside, rng)
        all_rows.append(rows + first)
        all_cols.append(cols + first)
        first += size
    return np.concatenate(all_rows), np.concatenate(all_cols)


def preferential_pairs(n_users: int, attach: int, rng: np.random.Generator) -> Pairs:
    """Returns a star of attach + 1 users, then `attach` links per newcomer in proportion to degree; O(n attach).

    Examples:
        >>> len(preferential_pairs(10, 2, np.random.default_rng(0))[0])
        16
    """
    rows, cols = [0] * attach, list(range(1, attach + 1))
    # Each user stands here once per link, so a uniform draw is one in proportion to degree.
    ends = rows + cols
    for newcomer in range(attach + 1, n_users):
        chosen: dict[int, None] = {}
        while len(chosen) < attach:
            for place in rng.integers(len(ends), size=attach - len(chosen)).tolist():
                chosen[ends[place]] = None
        rows.extend(chosen)
        cols.extend([newcomer] * attach)
        ends.extend(chosen)
        ends.extend([newcomer] * attach)
    return np.array(rows, dtype=np.int64), np.array(cols, dtype=np.int64)


def rewired_pairs(n_users: int, k: int, rewire: float, rng: np.random.Generator) -> Pairs:
    """Returns a ring where each user meets the k nearest, the far end of some links drawn again; O(n k).

    Examples:
        >>> len(rewired_pairs(10, 4, 0.5, np.random.default_rng(0))[0])
        20
    """
    links: list[set[int]] = [{(user + step) % n_users for step in _steps(k)} for user in range(n_users)]
    for step in range(1, k // 2 + 1):
        moved = np.flatnonzero(rng.random(n_users) < rewire).tolist()
        for user in moved:
            _rewire(links, user, (user + step) % n_users, rng)
    pairs = [(user, friend) for user, friends in enumerate(links) for friend in sorted(friends) if user < friend]
    rows, cols = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return rows, cols


def _steps(k: int) -> list[int]:
    return [sign * step for step in range(1, k // 2 + 1) for sign in (1, -1)]


def _rewire(links: list[set[int]], user: int, friend: int, rng: np.random.Generator) -> None:
    n_users = len(links)
    # A user who knows everyone has nobody new to meet, and a link that was moved away already stays moved.
    if len(links[user]) >= n_users - 1 or friend not in links[user]:
        return
    target = int(rng.integers(n_users))
    while target == user or target in links[user]:
        target = int(rng.integers(n_users))
    links[user].remove(friend)
    links[friend].remove(user)
    links[user].add(target)
    links[target].add(user)


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
