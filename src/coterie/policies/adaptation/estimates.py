"""A ridge estimate of each user alone, and how far two of them may be apart."""

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array

Index = NDArray[np.intp]


class Estimates:
    """theta_u = (I + S_u)^-1 b_u of each user, and a radius width sqrt((1 + log(1 + T)) / (1 + T)) after T rewards.

    Args:
        n_users: How many users.
        width: How far apart estimates may be: the smaller, the sooner users part.
    """

    def __init__(self, n_users: int, *, width: float) -> None:
        self.width = width
        self._counts = [0] * n_users
        self._radius = np.full(n_users, width)
        self._estimates = np.zeros((n_users, 0))
        self._inverses: dict[int, Array] = {}

    def learn(self, user: int, features: Array, reward: float) -> None:
        """Brings the user's estimate up to date, by Sherman and Morrison. O(d^2)."""
        if not self._inverses:
            self._estimates = np.zeros((len(self._radius), len(features)))
        inverse = self._inverses.setdefault(user, np.eye(len(features)))
        column = inverse @ features
        scale = 1.0 + float(features @ column)
        self._estimates[user] += column * ((reward - float(features @ self._estimates[user])) / scale)
        inverse -= column[:, None] * (column / scale)
        self._counts[user] += 1
        count = 1 + self._counts[user]
        self._radius[user] = self.width * sqrt((1 + log(count)) / count)

    def far(self, user: int, others: Index) -> Index:
        """Returns those of the others whose estimates are farther off than both radii. O(d) for each."""
        gaps = self._estimates[others] - self._estimates[user]
        apart = np.sqrt(np.einsum("ij,ij->i", gaps, gaps)) > self._radius[others] + self._radius[user]
        return np.asarray(others[apart])
