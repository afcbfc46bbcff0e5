"""Clusters of users found as rewards come in (online clustering of bandits: Gentile, Li and Zappella, 2014)."""

from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array, Index
from coterie.models import Model
from coterie.policies.adaptation.followers import features_of


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


Mask = NDArray[np.bool_]


class Clusters:
    """Lets the user covariance be 1 within a cluster and 0 across; the clusters only ever split.

    Each user has a ridge estimate of their own, theta_u = (I + S_u)^-1 b_u. All users begin joined to each other; a
    reward of user i cuts every (i, j) with |theta_i - theta_j| > c_i + c_j, where c = width sqrt((1 + log(1 + T)) /
    (1 + T)) after T rewards of that user. The clusters are the connected components, and a linear model with that user
    covariance is ridge regression on the rewards of a whole cluster. A reward costs O(d^2 + n d), a split a rebuild.
    Where users are many, see `JoinedClusters`.

    Args:
        n_users: How many users.
        width: How far apart estimates may be: the smaller, the sooner users part.
        pool: The features of the arms, one row each; None where arms are vectors already.

    Examples:
        >>> clusters = Clusters(2, width=0.5)
        >>> clusters.see(0, np.array([1.0]), 1.0), clusters.see(1, np.array([1.0]), -2.0)
        (False, True)
        >>> clusters.matrix()
        array([[1., 0.],
               [0., 1.]])
    """

    def __init__(self, n_users: int, *, width: float, pool: Array | None = None) -> None:
        self.labels = np.zeros(n_users, dtype=np.intp)
        self._pool = pool
        self._estimates = Estimates(n_users, width=width)
        self._joined = ~np.eye(n_users, dtype=np.bool_)

    def follow(self, model: Model, t: int, user: int, arm: Any, reward: float) -> None:  # noqa: ARG002 - any reward
        """Takes note of a reward; changes the model's user covariance if a cluster splits."""
        if self.see(user, features_of(self._pool, arm), reward):
            model.set_user_cov(self.matrix())

    def see(self, user: int, features: Array, reward: float) -> bool:
        """Takes note of a reward, and returns whether a cluster split."""
        self._estimates.learn(user, features, reward)
        return self._cut(user) and self._split(user)

    def matrix(self) -> Array:
        """Returns 1 for two users of one cluster and 0 for others."""
        return np.equal.outer(self.labels, self.labels).astype(np.float64)

    def _cut(self, user: int) -> bool:
        """Parts the user from those whose estimates are too far off, and returns whether there were any. O(n d)."""
        far = self._estimates.far(user, np.flatnonzero(self._joined[user]))
        self._joined[user, far] = self._joined[far, user] = False
        return len(far) > 0

    def _split(self, user: int) -> bool:
        """Names the clusters that the user's falls into, each by its first member; returns whether it split."""
        left = self.labels == self.labels[user]
        if np.count_nonzero(self._reached(user)) == np.count_nonzero(left):
            return False
        while left.any():
            first = int(left.argmax())
            part = self._reached(first)
            self.labels[part] = first
            left &= ~part
        return True

    def _reached(self, user: int) -> Mask:
        """Returns who is connected to the user, themselves included. O(n^2) at most."""
        reached: Mask = self._joined[user].copy()
        reached[user] = True
        size = 0
        while (grown := int(np.count_nonzero(reached))) > size:
            size = grown
            reached |= self._joined[reached].any(axis=0)
        return reached
