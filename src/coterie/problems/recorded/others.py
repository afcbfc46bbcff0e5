"""Candidates that a user never had: distinct, uniform or in proportion to popularity."""

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array

Ints = NDArray[np.int64]

# Arms drawn at once for each other that is wanted: most are new, so few rounds need more.
_DRAWS = 3


class Others:
    """Draws arms one after the other, each in proportion to its weight, without those had and those drawn before.

    Args:
        had: Pairs of user and arm that are never drawn, as user * n_arms + arm, sorted and distinct.
        weights: One for each arm, >= 0; an arm of weight 0 is never drawn.

    Examples:
        >>> others = Others(had=np.array([0, 4]), weights=np.ones(3))
        >>> sorted(others.draw(np.array([0]), 2, np.random.default_rng(0))[0].tolist())
        [1, 2]
    """

    __slots__ = ("_bounds", "_had", "_weights")

    def __init__(self, *, had: Ints, weights: Array) -> None:
        self._had, self._weights = had, weights
        sums = np.cumsum(weights)
        self._bounds = sums / sums[-1]

    def left(self, n_users: int) -> Ints:
        """Returns for each user how many arms can be drawn."""
        n_arms = len(self._weights)
        users, arms = np.divmod(self._had, n_arms)
        drawable = self._weights > 0
        return np.asarray(drawable.sum() - np.bincount(users[drawable[arms]], minlength=n_users))

    def draw(self, users: Ints, count: int, rng: np.random.Generator) -> Ints:
        """Returns `count` arms for each of these users, a row each. O(count log events) a row, seldom O(arms).

        An arm that may not be drawn is drawn again, which leaves the law of the others as it is.
        """
        tried = np.searchsorted(self._bounds, rng.random((len(users), _DRAWS * count)), side="right")
        fresh = ~self._is_had(users[:, None] * len(self._weights) + tried) & _first_of_its_row(tried)
        found = np.argsort(~fresh, axis=1, kind="stable")[:, :count]  # the fresh ones in the order they were drawn
        chosen = np.take_along_axis(tried, found, axis=1)
        for row in np.flatnonzero(fresh.sum(axis=1) < count):
            chosen[row] = self._finished(int(users[row]), tried[row][fresh[row]], count, rng)
        return np.asarray(chosen)

    def _is_had(self, pairs: Ints) -> NDArray[np.bool_]:
        if not len(self._had):
            return np.zeros(pairs.shape, dtype=bool)
        places = np.minimum(np.searchsorted(self._had, pairs), len(self._had) - 1)
        return np.asarray(self._had[places] == pairs)

    def _finished(self, user: int, begun: Ints, count: int, rng: np.random.Generator) -> Ints:
        """Returns the arms drawn so far and the missing ones: the first of exponential clocks, one for each arm."""
        n_arms = len(self._weights)
        rates = self._weights.copy()
        start, end = np.searchsorted(self._had, [user * n_arms, (user + 1) * n_arms])
        rates[self._had[start:end] - user * n_arms] = 0.0
        rates[begun] = 0.0
        open_ = np.flatnonzero(rates)
        clocks = rng.standard_exponential(len(open_)) / rates[open_]
        return np.concatenate([begun, open_[np.argsort(clocks)[: count - len(begun)]]])


def _first_of_its_row(table: Ints) -> NDArray[np.bool_]:
    """Returns where an entry is the first of its value in its row."""
    order = np.argsort(table, axis=1, kind="stable")
    ordered = np.take_along_axis(table, order, axis=1)
    first = np.ones(table.shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    out = np.empty_like(first)
    np.put_along_axis(out, order, first, axis=1)
    return out
