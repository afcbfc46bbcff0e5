"""The belief over the weights of each user's features, in the graph's own basis.

The recursion of `grid` on users x features in the place of users x arms, for pools of low rank: the graph-linear
methods. O((users x features)^2 / 2) a reward.
"""

from math import inf, log, sqrt
from typing import Any, Self

import numpy as np
from scipy.linalg import blas

from coterie.algebra import BlockWeights, JitterLog, PendingCovariance, cholesky, log_det_of_factor, solve_lower
from coterie.algebra.covariance import default_block_size
from coterie.algebra.gaps import gap_of_matrices
from coterie.contracts import Array, Index
from coterie.kernels.joint import JointKernel, PoolKernel
from coterie.models.agreement import gap_of_weights, observed_in
from coterie.models.conditioned import ConditionedModel
from coterie.models.engines.features import eigen_features
from coterie.models.engines.grid import merged
from coterie.models.requirements import require_memory, require_pool


class LinearModel(ConditionedModel):
    """f(u, x) = w_u . features of x, with cov(w_u, w_v) = user_cov[u, v] I: n d numbers instead of n m.

    The features are those of the pool's kernel matrix, as many as its rank d: with a linear kernel the dimension of the
    arms, so this is the form in which the graph-linear methods (GOB.Lin, GraphUCB) are written. A round costs
    (n d)^2 / 2 multiply-adds at matrix-matrix speed, by the same pending columns as `grid`, and d^2 for each candidate.
    Users who are one and the same to the kernel count once in n. Where the others share nothing (users alone, pooled
    users, clusters) each kind has a d x d block alone, and a round costs d^2.

    Examples:
        >>> model = LinearModel(PoolKernel(np.eye(2), np.ones((3, 3))), noise_var=1.0)
        >>> model.update(0, 1, 2.0)
        >>> model.predict(0)[0].round(6), model.n_weights
        (array([1., 1., 1.]), 2)
    """

    engine = "linear"
    kernel: PoolKernel

    def __init__(self, kernel: JointKernel, *, noise_var: float = 0.01, memory_limit: int | None = None) -> None:
        pool = require_pool(kernel, self.engine)
        super().__init__(pool, noise_var=noise_var)
        self._memory_limit = memory_limit
        self._features, self._arm_cov = np.zeros((0, 0)), np.zeros((0, 0))  # `_configure` makes what is needed
        self._configure(pool, self.noise_var)
        self._weights: SharedWeights | BlockWeights
        self._detach()
        self._reset()

    @property
    def n_weights(self) -> int:
        """Number of users, those who are one and the same counted once, times features."""
        return int(self._merged.n_users * self._features.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        return self._weights.nbytes

    def _belief(self) -> dict[str, Any]:
        return {"memory_limit": self._memory_limit, "features": self._features, "weights": self._weights.state()}

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        super()._restore(state, kernel)
        pool = require_pool(kernel, self.engine)
        self._memory_limit = state["memory_limit"]
        self._features, self._arm_cov = state["features"], pool.arm_cov
        self._kinds, self._merged = merged(pool)
        self._scale = pool.max_variance([])
        kind = BlockWeights if self._merged.shares_nothing else SharedWeights
        self._weights = kind.restored(state["weights"])

    def _mismatch(self) -> float:
        kernel, features = self._merged, self._features
        shape = kernel.n_users, features.shape[1]
        if self._weights.shape != shape:
            return inf
        of_weights = gap_of_weights(
            times=self._weights.times,
            mean=self._weights.mean,
            prior=lambda weights: kernel.user_cov @ weights,
            out=lambda weights: weights @ features.T,
            back=lambda pairs: pairs @ features,
            observed=observed_in(self.history, np.array(self._kinds), shape[0], kernel.n_arms, self.noise_var),
        )
        return max(of_weights, gap_of_matrices(features @ features.T, kernel.arm_cov))

    def _detach(self) -> None:
        self._weights = BlockWeights(np.zeros(0), 0)  # holds nothing; `_reset` makes what is needed

    def _reset(self) -> None:
        n_features = self._features.shape[1]
        if self._merged.shares_nothing:
            self._weights = BlockWeights(self._merged.user_cov.diagonal(), n_features)
            return
        if not (isinstance(self._weights, SharedWeights) and self._weights.size == self.n_weights):
            self._weights = SharedWeights(self._merged.n_users, n_features)
        self._weights.restart(self._merged.user_cov)

    def read(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std."""
        mean, variance = self._weights.read(self._kinds[user], self._features.take(arms, axis=0))
        np.maximum(variance, 0.0, out=variance)
        return mean, np.sqrt(variance, out=variance)

    def read_covariance(self, user: int, arms: Index) -> Array:
        """Returns the joint covariance."""
        rows = self._features.take(arms, axis=0)
        return np.asarray(rows @ self._weights.covariance(self._kinds[user]) @ rows.T)

    def _condition_one(self, user: int, arm: int, reward: float) -> tuple[float, float]:
        return self._weights.condition(self._kinds[user], self._features[arm], reward, self.noise_var)

    def _condition(self, users: Index, arms: Index, values: Array, noise: Array) -> tuple[float, float]:
        rows, kinds = self._features[arms], np.array(self._kinds)[users]
        if isinstance(self._weights, SharedWeights):
            return self._weights.condition_many(kinds, rows, values, noise, self.jitter, self._scale)
        together = zip(kinds.tolist(), rows, values.tolist(), noise.tolist(), strict=True)
        each = [self._weights.condition(*one) for one in together]
        return sum(log(variance) for variance, _ in each), sum(gap * gap / variance for variance, gap in each)

    def _move(self, user: int, arm: int, change: float) -> tuple[float, float]:
        return self._weights.move(self._kinds[user], self._features[arm], change)

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        pool = require_pool(kernel, self.engine)
        kinds, smaller = merged(pool)
        features = self._features if pool.arm_cov is self._arm_cov else _features_of(pool.arm_cov)
        if not smaller.shares_nothing:
            what = f"{smaller.n_users} users x {features.shape[1]} features"
            size = smaller.n_users * features.shape[1]
            needed = 8 * size * (size + default_block_size(size))
            require_memory(needed, self._memory_limit, what=what, remedy="Use engine 'exact'")
        super()._configure(pool, noise_var)
        self._kinds, self._merged = kinds, smaller
        self._features, self._arm_cov = features, pool.arm_cov
        self._scale = pool.max_variance([])


def _features_of(arm_cov: Array) -> Array:
    return np.ascontiguousarray(eigen_features(arm_cov, None, what="arm_rank")[0])


class SharedWeights:
    """A Gaussian belief over d weights of each user, all of them together: it answers as `BlockWeights` does."""

    __slots__ = ("_cov", "_mean", "_width", "size")

    def __init__(self, n_users: int, width: int) -> None:
        self.size = n_users * width
        self._width = width
        self._cov = PendingCovariance(np.empty((self.size, self.size), order="F"))
        self._mean = np.zeros(self.size)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._cov.nbytes + self._mean.nbytes

    def state(self) -> dict[str, Any]:
        """Returns what `restored` makes the same belief from, to the bit; nothing is copied."""
        return {"width": self._width, "cov": self._cov.state(), "mean": self._mean}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """Returns the belief of a state, whose arrays it takes over."""
        out = cls(0, state["width"])
        out._cov, out._mean, out.size = PendingCovariance.restored(state["cov"]), state["mean"], len(state["mean"])
        return out

    @property
    def shape(self) -> tuple[int, int]:
        """How many users and weights of each there are."""
        return self.size // self._width, self._width

    @property
    def mean(self) -> Array:
        """The mean of the weights, a row for each user."""
        return self._mean.reshape(-1, self._width)

    def times(self, weights: Array) -> Array:
        """Returns the covariance times weights, a row for each user."""
        return self._cov.times(weights.reshape(-1, 1)).reshape(weights.shape)

    def restart(self, user_cov: Array) -> None:
        """Goes back to mean 0 and covariance user_cov (x) I, in place."""
        PoolKernel(user_cov, np.eye(self._width)).fill(self._cov.restart())
        self._mean[:] = 0.0

    def read(self, user: int, rows: Array) -> tuple[Array, Array]:
        """Returns mean and variance of the rows' products with a user's weights."""
        start, end = user * self._width, (user + 1) * self._width
        variance = np.einsum("ij,ij->i", rows @ self._cov.run(start, end), rows)
        return rows @ self._mean[start:end], variance

    def covariance(self, user: int) -> Array:
        """Returns the covariance of a user's weights."""
        return self._cov.run(user * self._width, (user + 1) * self._width)

    def condition(self, user: int, row: Array, value: float, noise: float) -> tuple[float, float]:
        """Conditions on one value of a row's product; returns its predictive variance, and its surprise."""
        start, end = user * self._width, (user + 1) * self._width
        column = self._cov.next_combination(start, row)
        variance = max(float(row @ column[start:end]), 0.0) + noise
        surprise = value - float(row @ self._mean[start:end])
        root = sqrt(variance)
        column *= 1.0 / root
        self._mean += (surprise / root) * column
        self._cov.commit()
        return variance, surprise

    def move(self, user: int, row: Array, change: float) -> tuple[float, float]:
        """Moves the mean by its covariance with a row's product, times a number; returns what `read` did."""
        mean, variance = self.read(user, row[None, :])
        self._mean += change * self._cov.next_combination(user * self._width, row)
        return float(mean[0]), float(variance[0])

    def condition_many(
        self, users: Index, rows: Array, values: Array, noise: Array, jitter: JitterLog, scale: float
    ) -> tuple[float, float]:
        """Conditions on values of distinct products at once; returns log det S and r' S^-1 r, as engines do."""
        columns = np.empty((self.size, len(users)), order="F")
        for i, user in enumerate(users.tolist()):
            columns[:, i] = self._cov.next_combination(user * self._width, rows[i])
        own = users[:, None] * self._width + np.arange(self._width)
        inner = np.einsum("id,idj->ij", rows, columns[own])
        surprise = values - np.einsum("id,id->i", rows, self._mean[own])
        factor = cholesky(inner + np.diag(noise), jitter, scale=scale)
        whitened = solve_lower(factor, surprise)
        columns = blas.dtrsm(1.0, factor, columns, side=1, lower=1, trans_a=1, overwrite_b=1)
        self._cov.subtract_block(columns)
        self._mean += columns @ whitened
        return log_det_of_factor(factor), float(whitened @ whitened)
