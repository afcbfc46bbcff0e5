"""How a `SparseModel` is read: means, stds, their bounds, certain choices, and what moved an estimate."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.models.base import CertifiedBelief, Index
from coterie.models.engines.sparse.held import Held

COARSE = 0.02
STALE_SHARE = 4.0  # times the accuracy, of the trace


class Reading(Held):
    """What can be asked of the belief; only `read` keeps what it computes."""

    def read(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and an upper bound of the std; a block that is missing or stale is computed, and kept."""
        place = self._marginals.slot[user]
        if place < 0 or self._is_stale(place):
            self._marginals.put(user, *self._variance_bounds.marginal(user, self._data))
        return self._read(user, arms, self._marginals.matrix[self._marginals.slot[user]])

    def peek(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std, and keeps nothing."""
        with self._leaving_no_trace():
            return self._read(user, arms, self._block(user))

    @contextmanager
    def _leaving_no_trace(self) -> Iterator[None]:
        """Lets go of users' matrices that are made meanwhile."""
        mark = self._data.mark()
        try:
            yield
        finally:
            self._data.back_to(mark)

    def read_means(self, users: Index, arms: Index) -> Array:
        """Returns the means of the same arms for several users, a row each."""
        return np.asarray(self._posterior.weights[users] @ self._rows(arms).T)

    def std_bound(self, user: int, arms: Index) -> Array:
        """Returns an upper bound of the std by one scalar solve and the user's own rewards, where none is kept."""
        place = self._marginals.slot[user]
        block = self._variance_bounds.by_own_data(user, self._data) if place < 0 else self._marginals.matrix[place]
        return self._read(user, arms, block)[1]

    def read_covariance(self, user: int, arms: Index) -> Array:
        """Returns the joint covariance, or rather one that is above it."""
        rows = self._rows(arms)
        with self._leaving_no_trace():
            return np.asarray(rows @ self._block(user) @ rows.T)

    def prior_std(self, user: int, arms: Any = None) -> Array:
        """Returns the std of these arms before any observation, or a little more: by half the accuracy at most."""
        rows = self.checked_arms(arms)
        return np.sqrt(self._variance_bounds.prior_variance(self.checked_user(user)) * self.kernel.arm_diag(rows))

    def error_bound(self, user: int, arms: Any = None) -> Array:
        """Returns how far the mean of each of these arms can be from the exact one, at most. O(users that wait).

        Users are rows of the graph, arms rows of the pool. The exact mean is that of the kernel's features; what these
        miss of the arm kernel, as `explain()` says, comes on top.

        By diagonal dominance of A no weight vector is off by more than reach_u max_v |residual_v| / shape_v.
        """
        row, rows = self.checked_user(user), self.checked_arms(arms)
        return np.asarray(self._posterior.level() * self.kernel.reach[row] * np.sqrt(self.kernel.arm_diag(rows)))

    def reward_weights(self, user: int, arm: int, users: Index, arms: Index, counts: Array) -> tuple[Array, Array]:
        """Returns the weight of each pair's mean reward in the mean of one pair, and what it were without others' data.

        By one solve for that pair, so within what the solve leaves; nothing is kept.
        """
        row, scaled = self.kernel.features[arm], self._rows(arms) * (counts / self._noise_var)[:, None]
        self._solve(user, row, finer=self.eps)
        places = self._work.place[users]
        found = np.where((places >= 0)[:, None], self._work.solution[places], 0.0)
        alone = row @ self._variance_bounds.by_own_data(user, self._data)
        return np.einsum("ij,ij->i", scaled, found), np.where(users == user, scaled @ alone, 0.0)

    def read_certain(self, user: int, arms: Index, factor: float) -> CertifiedBelief:
        """Returns mean and std as `read` does, refined until the highest mean + factor * std is certain, if it can be.

        Certain is what these features' exact belief would choose; `kernel.feature_error` says what they miss.
        """
        return self._certifier.decide(user, arms, self.read(user, arms), factor, self._data, self._posterior)

    def variance_bounds(self, user: int, arms: Any = None) -> tuple[Array, Array]:
        """Returns a lower and an upper bound of the variance of each of these arms, within the accuracy if work allows.

        Both are of the function, without noise. One solve for each arm of distinct features.
        """
        row, rows = self.checked_user(user), self.checked_arms(arms)
        return self._certifier.variances(row, rows, self.peek(row, rows), self.accuracy, self._data, self._posterior)

    def _rows(self, arms: Index) -> Array:
        return self.kernel.features.take(arms, axis=0)

    def _read(self, user: int, arms: Index, block: Array) -> tuple[Array, Array]:
        rows = self._rows(arms)
        mean, variance = rows @ self._posterior.weights[user], np.einsum("ij,ij->i", rows @ block, rows)
        return np.asarray(mean), np.sqrt(np.maximum(variance, 0.0, out=variance), out=variance)

    def _is_stale(self, place: int) -> bool:
        return bool(
            self._marginals.stale[place] > STALE_SHARE * self._fineness * np.trace(self._marginals.matrix[place])
        )

    def _block(self, user: int) -> Array:
        place = self._marginals.slot[user]
        return self._variance_bounds.marginal(user, self._data)[0] if place < 0 else self._marginals.matrix[place]

    @property
    def info_gain(self) -> float:
        """A lower bound of log det(I + K/noise_var) over all observations. O(rewards) once after a change of edges."""
        self._sum_again()
        return self._info_gain

    @property
    def log_marginal_likelihood(self) -> float:
        """About log p(rewards)."""
        self._sum_again()
        return self._log_likelihood

    def _sum_again(self) -> None:
        if self._sums_are_old:
            fresh = self._fresh()
            self._info_gain, self._log_likelihood = fresh._info_gain, fresh._log_likelihood
            self._sums_are_old = False

    def _solve(self, user: int, row: Array, finer: float = 1.0) -> None:
        """Solves A z = e_u (x) row so far that the nearest are reached; `repair` goes on where it matters."""
        share = min(COARSE, self.kernel.ridge / float(self.kernel.diagonal[user]))
        threshold = finer * share * float(np.linalg.norm(row)) / float(self.kernel.shape[user])
        self._work.start(user, row)
        self._work.run(self._push.push_local, self._data, threshold, self.max_work)
