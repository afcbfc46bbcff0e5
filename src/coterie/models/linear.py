"""The belief over the weights of each user's features, in the graph's own basis."""

from math import log, sqrt

import numpy as np
from scipy.linalg import blas

from coterie.algebra import BlockCovariance, PendingCovariance, cholesky, log_det_of_factor, solve_lower
from coterie.algebra.covariance import default_block_size
from coterie.contracts import Array
from coterie.kernels.joint import JointKernel, PoolKernel
from coterie.models.base import Index
from coterie.models.conditioned import ConditionedModel
from coterie.models.features import eigen_features
from coterie.models.memory import require_memory
from coterie.models.need import require_pool


class LinearModel(ConditionedModel):
    """f(u, x) = w_u . features of x, with cov(w_u, w_v) = user_cov[u, v] I: n d numbers instead of n m.

    The features are those of the pool's kernel matrix, as many as its rank d: with a linear kernel the dimension of the
    arms, so this is the form in which the graph-linear methods (GOB.Lin, GraphUCB) are written. A round costs
    (n d)^2 / 2 multiply-adds at matrix-matrix speed, by the same pending columns as `grid`, and d^2 for each candidate.
    Where users share nothing (a diagonal user covariance) each has a d x d block alone, and a round costs d^2.

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
        self._features = eigen_features(pool.arm_cov, None, what="arm_rank")[0]
        self._scale = pool.max_variance([])
        size = self.n_weights
        what = f"{pool.n_users} users x {self._features.shape[1]} features"
        if not pool.shares_nothing:
            needed = 8 * size * (size + default_block_size(size))
            require_memory(needed, memory_limit, what=what, remedy="Use engine 'exact'")
        self._cov: PendingCovariance | BlockCovariance
        self._detach()
        self._reset()

    @property
    def n_weights(self) -> int:
        """Number of users times features."""
        return int(self.kernel.n_users * self._features.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        return self._cov.nbytes + self._weights.nbytes

    def _detach(self) -> None:
        self._cov = BlockCovariance(np.zeros(0), 0)  # holds nothing; `_reset` makes what is needed

    def _reset(self) -> None:
        n_features, user_cov = self._features.shape[1], self.kernel.user_cov
        if self.kernel.shares_nothing:
            self._cov = BlockCovariance(user_cov.diagonal(), n_features)
        else:
            if not isinstance(self._cov, PendingCovariance):
                self._cov = PendingCovariance(np.empty((self.n_weights, self.n_weights), order="F"))
            PoolKernel(user_cov, np.eye(n_features)).fill(self._cov.restart())
        self._weights = np.zeros(self.n_weights)

    def read(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std."""
        rows, start, end = self._place(user, arms)
        variance = np.einsum("ij,ij->i", rows @ self._cov.run(start, end), rows)
        return rows @ self._weights[start:end], np.sqrt(np.maximum(variance, 0.0))

    def read_covariance(self, user: int, arms: Index) -> Array:
        """Returns the joint covariance."""
        rows, start, end = self._place(user, arms)
        return np.asarray(rows @ self._cov.run(start, end) @ rows.T)

    def _place(self, user: int, arms: Index) -> tuple[Array, int, int]:
        """Returns the features of the arms, and where the user's weights begin and end."""
        n_features = self._features.shape[1]
        return self._features[arms], user * n_features, (user + 1) * n_features

    def _condition_one(self, user: int, arm: int, reward: float) -> tuple[float, float]:
        return self._condition_on(user, self._features[arm], reward, self._noise_var)

    def _condition_on(self, user: int, row: Array, value: float, noise: float) -> tuple[float, float]:
        """Conditions on one value with this noise variance; returns its predictive variance and its surprise."""
        start = user * len(row)
        end = start + len(row)
        where, column = self._cov.next_combination(start, row)
        variance = max(float(row @ column[start - where.start : end - where.start]), 0.0) + noise
        surprise = value - float(row @ self._weights[start:end])
        root = sqrt(variance)
        column *= 1.0 / root
        self._weights[where] += (surprise / root) * column
        self._cov.commit()
        return variance, surprise

    def _condition(self, users: Index, arms: Index, values: Array, noise: Array) -> tuple[float, float]:
        rows = self._features[arms]
        if isinstance(self._cov, BlockCovariance):
            each = [
                self._condition_on(*one)
                for one in zip(users.tolist(), rows, values.tolist(), noise.tolist(), strict=True)
            ]
            return sum(log(variance) for variance, _ in each), sum(gap * gap / variance for variance, gap in each)
        n_features = rows.shape[1]
        columns = np.empty((self.n_weights, len(users)), order="F")
        for i, user in enumerate(users.tolist()):
            columns[:, i] = self._cov.next_combination(user * n_features, rows[i])[1]
        own = users[:, None] * n_features + np.arange(n_features)
        inner = np.einsum("id,idj->ij", rows, columns[own])
        surprise = values - np.einsum("id,id->i", rows, self._weights[own])
        factor = cholesky(inner + np.diag(noise), self.jitter, scale=self._scale)
        whitened = solve_lower(factor, surprise)
        columns = blas.dtrsm(1.0, factor, columns, side=1, lower=1, trans_a=1, overwrite_b=1)
        self._cov.subtract_block(columns)
        self._weights += columns @ whitened
        return log_det_of_factor(factor), float(whitened @ whitened)

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        super()._configure(require_pool(kernel, self.engine), noise_var)
        self._scale = self.kernel.max_variance([])
