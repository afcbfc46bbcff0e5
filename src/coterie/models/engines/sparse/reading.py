"""How a `SparseModel` is read: means, stds, their bounds, certain choices, and what moved an estimate."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.models.base import Index
from coterie.models.engines.sparse.batch import likelihood
from coterie.models.engines.sparse.certainty import Certain
from coterie.models.engines.sparse.common import Common
from coterie.models.engines.sparse.doubts import Doubts
from coterie.models.engines.sparse.held import Held
from coterie.models.engines.sparse.mixed import MixedBounds
from coterie.models.engines.sparse.pulls import shared_field, whole_products

COARSE = 0.02
STALE_SHARE = 4.0  # times the accuracy, of the trace


class Reading(Held):
    """What can be asked of the belief; only `read` keeps what it computes."""

    def read(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and an upper bound of the std; a block that is missing or stale is computed, and kept."""
        place = self._marginals.slot[user]
        if place < 0 or self._is_stale(place):
            self._marginals.put(user, *self._bounds.marginal(user, self._data))
        return self._read(user, arms, self._marginals.matrix[self._marginals.slot[user]])

    def peek(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std, and keeps nothing."""
        with self._leaving_no_trace():
            return self._read(user, arms, self._block(user))

    @contextmanager
    def _leaving_no_trace(self) -> Iterator[None]:
        """Lets go of users' matrices that are made meanwhile."""
        held = [blocks for blocks in (self._data, self._own) if blocks is not None]
        marks = [blocks.mark() for blocks in held]
        try:
            yield
        finally:
            for blocks, mark in zip(held, marks, strict=True):
                blocks.back_to(mark)

    def read_means(self, users: Index, arms: Index) -> Array:
        """Returns the means of the same arms for several users, a row each."""
        if self._everybody is None:
            self._everybody = self._residual.whole(self._data)
        return np.asarray(self._everybody[users] @ self._rows(arms).T)

    def std_bound(self, user: int, arms: Index) -> Array:
        """Returns an upper bound of the std by one scalar solve and the user's own rewards, where none is kept."""
        place = self._marginals.slot[user]
        block = self._bounds.by_own_data(user, self._data) if place < 0 else self._marginals.matrix[place]
        return self._read(user, arms, block)[1]

    def common_variances(self, arms: Index) -> Array | None:
        """Returns an upper bound of the variance of what all users have in common, for each arm; none without it.

        It is made anew when rewards have doubled, among few users when they are a quarter more.
        """
        if self._common is None:
            return None
        rows = self._rows(arms)
        return np.asarray(np.einsum("ij,ij->i", rows @ self._common.covariance, rows))

    def read_covariance(self, user: int, arms: Index) -> Array:
        """Returns the joint covariance, or rather one that is above it."""
        rows = self._rows(arms)
        with self._leaving_no_trace():
            return np.asarray(rows @ self._block(user) @ rows.T)

    def prior_std(self, user: int, arms: Any = None) -> Array:
        """Returns the std of these arms before any observation, or a little more: by half the accuracy at most."""
        rows = self.checked_arms(arms)
        return np.sqrt(self._bounds.prior_variance(self.checked_user(user)) * self.kernel.arm_diag(rows))

    def error_bound(self, user: int, arms: Any = None) -> Array:
        """Returns how far the mean of each of these arms can be from the exact one, at most. O(users that wait).

        Users are rows of the graph, arms rows of the pool. The exact mean is that of the kernel's features; what these
        miss of the arm kernel, as `explain()` says, comes on top.

        By diagonal dominance of A no weight vector is off by more than reach_u max_v |residual_v| / shape_v. With a
        common part all residuals may add up, so where that says more than `eps` a solve for everybody says how far
        they do, once after each change: O((edges + rewards) x features) for each of its steps. Nothing is changed.
        """
        row, rows = self.checked_user(user), self.checked_arms(arms)
        bound = self._error(row, rows)
        if self._common is None or np.all(bound <= self.eps * self.prior_std(row, rows)):
            return bound
        return np.minimum(bound, self._doubts(self._common).closely(row, *self._shared(row, rows)))

    def _error(self, user: int, arms: Index) -> Array:
        """Returns a bound from what is at hand."""
        size = self._shared(user, arms)[1]
        bound = np.asarray(self._residual.level() * self.kernel.reach[user] * size)
        if self._common is None:
            return bound
        doubts = self._doubts(self._common)
        bound += doubts.shared * self._common.spread[user] * size
        if doubts.strain < np.inf:
            bound = np.minimum(bound, doubts.strain * self.std_bound(user, arms))
        return bound

    def _shared(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns what the graph's and the common weights are multiplied by for these arms, and its lengths."""
        if self._own is None:
            return self._rows(arms), np.sqrt(self.kernel.arm_diag(arms))
        rows = self._own.rows(user, self._rows(arms))[0]
        return rows, np.linalg.norm(rows, axis=1)

    def _doubts(self, common: Common) -> Doubts:
        if self._doubted is None:
            self._doubted = Doubts(self.kernel, common, self._residual, self._data)
        return self._doubted

    def pulls(self, user: int, arm: int, users: Index, arms: Index, counts: Array) -> tuple[Array, Array]:
        """Returns the weight of each pair's mean reward in the mean of one pair, and what it were without others' data.

        By one solve for that pair, with a common part one for all users, so within what the solve leaves; nothing is
        kept.
        """
        row, scaled = self.kernel.features[arm], self._rows(arms) * (counts / self._noise_var)[:, None]
        shared = row if self._own is None else self._own.rows(user, row[None, :])[0][0]
        if self._common is not None:
            found = shared_field(self.kernel, self._data, self._common, user, shared)[users]
        else:
            self._solve(user, shared, finer=self.eps)
            places = self._work.place[users]
            found = np.where((places >= 0)[:, None], self._work.solution[places], 0.0)
        if self._own is None:
            pulled = np.einsum("ij,ij->i", scaled, found)
        else:
            pulled = whole_products(self._own, user, row, users, scaled, found)
        alone = row @ self._bounds.by_own_data(user, self._data)
        return pulled, np.where(users == user, scaled @ alone, 0.0)

    def read_certain(self, user: int, arms: Index, factor: float) -> Certain:
        """Returns mean and std as `read` does, refined until the highest mean + factor * std is certain, if it can be.

        Certain is what these features' exact belief would choose; `kernel.feature_error` says what they miss. With an
        own or common part nothing is refined: the bounds at hand decide.
        """
        belief = self.read(user, arms)
        if isinstance(self._bounds, MixedBounds):
            lowest = np.sqrt(self._quadratic(arms, self._bounds.lowest(user, self._data)))
            return self._certainty.settled(arms, belief, self._error(user, arms), lowest, factor)
        return self._certainty.decide(user, arms, belief, factor, self._data, self._residual)

    def variance_bounds(self, user: int, arms: Any = None) -> tuple[Array, Array]:
        """Returns a lower and an upper bound of the variance of each of these arms, within the accuracy if work allows.

        Both are of the function, without noise. One solve for each arm of distinct features.
        """
        row, rows = self.checked_user(user), self.checked_arms(arms)
        belief = self.peek(row, rows)
        if isinstance(self._bounds, MixedBounds):
            return self._quadratic(rows, self._bounds.lowest(row, self._data)), belief[1] ** 2
        return self._certainty.variances(row, rows, belief, self.accuracy, self._data, self._residual)

    def _rows(self, arms: Index) -> Array:
        return self.kernel.features.take(arms, axis=0)

    def _read(self, user: int, arms: Index, block: Array) -> tuple[Array, Array]:
        rows = self._rows(arms)
        variance = np.einsum("ij,ij->i", rows @ block, rows)
        return self._mean(user, rows), np.sqrt(np.maximum(variance, 0.0, out=variance), out=variance)

    def _mean(self, user: int, rows: Array) -> Array:
        weights = self._residual.weights[user]
        if not self._mixed:
            return np.asarray(rows @ weights)
        shared, more = (rows, 0.0) if self._own is None else self._own.rows(user, rows)
        return np.asarray(shared @ (weights + self._residual.shift) + more)

    def _quadratic(self, arms: Index, block: Array) -> Array:
        rows = self._rows(arms)
        return np.asarray(np.maximum(np.einsum("ij,ij->i", rows @ block, rows), 0.0))

    def _is_stale(self, place: int) -> bool:
        return bool(
            self._marginals.stale[place] > STALE_SHARE * self._fineness * np.trace(self._marginals.matrix[place])
        )

    def _block(self, user: int) -> Array:
        place = self._marginals.slot[user]
        return self._bounds.marginal(user, self._data)[0] if place < 0 else self._marginals.matrix[place]

    @property
    def info_gain(self) -> float:
        """A lower bound of log det(I + K/noise_var) over all observations. O(rewards) once after a change of edges."""
        self._sum_again()
        return self._info_gain + (0.0 if self._common is None else self._common.gain())

    @property
    def log_marginal_likelihood(self) -> float:
        """About log p(rewards); with an own or common part from the means at all pairs: O(users + pairs) then."""
        self._sum_again()
        if not self._mixed or not len(self.history):
            return self._log_likelihood
        return likelihood(self.kernel, self._data, self._residual, self.info_gain)

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
