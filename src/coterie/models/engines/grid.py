"""The belief on a finite pool, by the paper's recursion in rank-k blocks.

The covariance of all pairs is one matrix, and the columns to subtract are pending: a full block of them goes off in
one `dsyrk`, half the work of the full update. Every read allows for what is pending. O((users x arms)^2 / 2) a reward.
Users who join and edges that grow heavier need no rebuild: an edge is a pseudo-observation that two users are alike,
for all arms at once (`kernels/links.py`; `Model.relink` conditions on it, or says that it cannot).
"""

from math import inf, sqrt
from typing import Any

import numpy as np
from scipy.linalg import blas

from coterie.algebra import PendingCovariance, cholesky, log_det_of_factor, solve_lower
from coterie.algebra.covariance import default_block_size
from coterie.algebra.gaps import gap
from coterie.contracts import Array, Index
from coterie.errors.checks import check_ratio
from coterie.kernels.joint import JointKernel, PoolKernel
from coterie.kernels.links import Link
from coterie.models.agreement import gap_of_weights, observed_in
from coterie.models.conditioned import ConditionedModel
from coterie.models.requirements import require_memory, require_pool

RANK = 1e-12  # of the largest eigenvalue of K_x; below it a direction is not there
SMALLEST = 1e-5  # of it, that a direction may have
STEEPEST = 1e5
FEW = 64


class GridModel(ConditionedModel):
    """Mean, variance and covariance over all n x m pairs (equation 5 of the paper).

    A round costs n^2 m^2 / 2 multiply-adds at matrix-matrix speed; memory is one (n m)^2 matrix and a block of columns.
    Users who are one and the same to the kernel count once in n: pooled users cost what one does.

    Examples:
        >>> model = GridModel(PoolKernel(np.eye(1), np.eye(2)), noise_var=1.0)
        >>> model.update(0, 1, 2.0)
        >>> model.predict(0)
        (array([0., 1.]), array([1.        , 0.70710678]))
    """

    engine = "grid"
    kernel: PoolKernel
    _merged: PoolKernel
    _cov: PendingCovariance

    def __init__(
        self,
        kernel: JointKernel,
        *,
        noise_var: float = 0.01,
        block_size: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        pool = require_pool(kernel, self.engine)
        super().__init__(pool, noise_var=noise_var)
        self._block_size, self._memory_limit = block_size, memory_limit
        self._configure(pool, self.noise_var)
        self._detach()
        self._reset()

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        return self._cov.nbytes + self._mean.nbytes + self._variance.nbytes

    def _reset(self) -> None:
        if self._cov.size != self._merged.n_pairs:
            self._detach()
        self._merged.fill(self._cov.restart())
        self._mean = np.zeros(self._merged.n_pairs)
        self._variance = self._merged.pair_variances()
        self._scale = float(self._variance.max())

    def read(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std."""
        pairs = arms + self._starts[user]
        variance = self._variance.take(pairs)
        np.maximum(variance, 0.0, out=variance)
        return self._mean.take(pairs), np.sqrt(variance, out=variance)

    def read_many(self, users: Index, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std for several users."""
        pairs = np.array(self._starts)[users][:, None] + arms
        variance = self._variance.take(pairs)
        np.maximum(variance, 0.0, out=variance)
        return self._mean.take(pairs), np.sqrt(variance, out=variance)

    def read_covariance(self, user: int, arms: Index) -> Array:
        """Returns the joint covariance."""
        return self._cov.block(arms + self._starts[user])

    def _condition_one(self, user: int, arm: int, reward: float) -> tuple[float, float]:
        pair = self._starts[user] + arm
        column = self._cov.next_column(pair)
        variance = max(float(column[pair]), 0.0) + self.noise_var
        surprise = reward - float(self._mean[pair])
        root = sqrt(variance)
        column *= 1.0 / root
        self._mean += (surprise / root) * column
        self._variance -= column * column
        self._cov.commit()
        return variance, surprise

    def _condition(self, users: Index, arms: Index, values: Array, noise: Array) -> tuple[float, float]:
        pairs = np.array(self._starts)[users] + arms
        columns = self._cov.columns(pairs)
        factor = cholesky(columns[pairs] + np.diag(noise), self.jitter, scale=self._scale)
        surprise = solve_lower(factor, values - self._mean[pairs])
        columns = blas.dtrsm(1.0, factor, columns, side=1, lower=1, trans_a=1, overwrite_b=1)
        self._cov.subtract_block(columns)
        self._mean += columns @ surprise
        self._variance -= np.einsum("ij,ij->i", columns, columns)
        return log_det_of_factor(factor), float(surprise @ surprise)

    def _move(self, user: int, arm: int, change: float) -> tuple[float, float]:
        pair = self._starts[user] + arm
        before = float(self._mean[pair]), float(self._variance[pair])
        self._mean = self._mean + change * self._cov.column(pair)
        return before

    def _relink(self, link: Link) -> tuple[float, float] | None:
        whitener = arm_whitener(self.kernel.arm_cov)
        if whitener is None or self._merged is not self.kernel or not is_gentle(link, whitener, self._cov.size):
            return None
        kernel = PoolKernel(link.user_cov, self.kernel.arm_cov)
        check_ratio(kernel.max_variance([]), self.noise_var)
        require_grid_memory(kernel, self._memory_limit)
        cov, mean, variance = self._with_newcomers(link)
        columns, factor = self._seen_to_be_zero(cov, link, whitener)
        fit = solve_lower(factor, np.kron(link.combinations, whitener).T @ mean) if len(factor) else np.zeros(0)
        for column in columns.T:
            cov.subtract(column)
        self._cov, self._mean = cov, mean - columns @ fit
        self._variance = variance - np.einsum("ij,ij->i", columns, columns)
        self.kernel = self._merged = kernel
        self._starts = [user * kernel.n_arms for user in range(kernel.n_users)]
        self._scale = float(kernel.pair_variances().max())
        before = cholesky(link.noise + link.spread, self.jitter) if len(factor) else factor
        return log_det_of_factor(factor) - whitener.shape[1] * log_det_of_factor(before), float(fit @ fit)

    def _with_newcomers(self, link: Link) -> tuple[PendingCovariance, Array, Array]:
        """Returns covariance, mean and variance with newcomers who are joined to nobody yet."""
        if not link.newcomers:
            return self._cov, self._mean, self._variance
        n_users, n_arms = self.kernel.n_users, self.kernel.n_arms
        cross, mean = np.zeros((self._cov.size, n_arms)), np.zeros(n_arms)
        if link.share:
            cross = link.share * self._cov.times(np.tile(np.eye(n_arms), (n_users, 1)))
            mean = link.share * self._mean.reshape(n_users, n_arms).sum(axis=0)
        among = link.share * cross.reshape(n_users, n_arms, n_arms).sum(axis=0)
        corner = np.kron(link.residual, self.kernel.arm_cov) + np.tile(among, (link.newcomers, link.newcomers))
        return (
            self._cov.grown(np.tile(cross, (1, link.newcomers)), corner),
            np.concatenate([self._mean, np.tile(mean, link.newcomers)]),
            np.concatenate([self._variance, corner.diagonal()]),
        )

    def _seen_to_be_zero(self, cov: PendingCovariance, link: Link, whitener: Array) -> tuple[Array, Array]:
        """Returns the columns to take off for a link's combinations, and the factor of their covariance with noise."""
        weights: Array = np.kron(link.combinations, whitener).astype(np.float64, copy=False)
        pairs = np.flatnonzero(weights.any(axis=1))
        few = 4 * len(pairs) < cov.size
        columns = np.asfortranarray(cov.columns(pairs) @ weights[pairs] if few else cov.times(weights))
        if not columns.shape[1]:
            return columns, np.zeros((0, 0))
        inner = weights.T @ columns + np.kron(link.noise, np.eye(whitener.shape[1]))
        factor = cholesky(inner, self.jitter)
        return blas.dtrsm(1.0, factor, columns, side=1, lower=1, trans_a=1, overwrite_b=1), factor

    def _detach(self) -> None:
        size = self._merged.n_pairs
        self._cov = PendingCovariance(np.empty((size, size), order="F"), block_size=self._block_size)

    def _belief_at_rows(self) -> tuple[Array, Array]:
        return self._mean.copy(), np.maximum(self._variance, 0.0)

    def _surprise(self) -> float:
        pairs = np.array(self._starts)[self.history.user_array()] + self.history.arm_array()
        return self._surprise_of(self._mean[pairs])

    def _prior_variance_at_rows(self) -> Array:
        return self._merged.pair_variances()

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        pool = require_pool(kernel, self.engine)
        require_grid_memory(merged(pool)[1], self._memory_limit)
        super()._configure(pool, noise_var)
        self._merge(pool)

    def _merge(self, pool: PoolKernel) -> None:
        kinds, self._merged = merged(pool)
        self._starts = [kind * pool.n_arms for kind in kinds]

    def _mismatch(self) -> float:
        kernel, shape = self._merged, (self._merged.n_users, self._merged.n_arms)
        if self._mean.size != kernel.n_pairs:
            return inf
        observed = observed_in(self.history, np.array(self._starts) // shape[1], *shape, self.noise_var)
        of_mean_and_cov = gap_of_weights(
            times=lambda probe: self._cov.times(probe.reshape(-1, 1)).reshape(shape),
            mean=self._mean.reshape(shape),
            prior=lambda pairs: kernel.user_cov @ pairs @ kernel.arm_cov,
            out=np.asarray,
            back=np.asarray,
            observed=observed,
        )
        of_scale = gap(self._scale, float(kernel.pair_variances().max()))
        return max(of_mean_and_cov, gap(self._variance, self._cov.diagonal()), of_scale)

    def _belief(self) -> dict[str, Any]:
        return {
            "block_size": self._block_size,
            "memory_limit": self._memory_limit,
            "cov": self._cov.state(),
            "mean": self._mean,
            "variance": self._variance,
            "scale": self._scale,
        }

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        super()._restore(state, kernel)
        self._block_size, self._memory_limit = state["block_size"], state["memory_limit"]
        self._merge(require_pool(kernel, self.engine))  # memory need not be asked for: the arrays are there
        self._cov = PendingCovariance.restored(state["cov"])
        self._mean, self._variance, self._scale = state["mean"], state["variance"], state["scale"]


def grid_bytes(n_pairs: int) -> int:
    """Returns the bytes `grid` holds: the matrix, its pending block and two vectors."""
    return 8 * n_pairs * (n_pairs + default_block_size(n_pairs) + 2)


def require_grid_memory(kernel: PoolKernel, limit: int | None) -> None:
    """Raises MemoryLimitError if the grid of this kernel, its users merged, would not fit."""
    size = kernel.n_pairs
    what = f"the grid of {kernel.n_users} users x {kernel.n_arms} arms = {size} pairs"
    require_memory(grid_bytes(size), limit, what=what, remedy="Use engine 'exact'")


def merged(kernel: PoolKernel) -> tuple[list[int], PoolKernel]:
    """Returns the kind of each user, and the kernel with one user of each kind. O(n^2).

    Users whose rows of the covariance are equal are perfectly correlated. Pooled users are all of one kind, clustered
    ones of one kind for each cluster; mostly each user is a kind alone, and the kernel is the one given.

    Examples:
        >>> kinds, smaller = merged(PoolKernel(np.ones((3, 3)), np.eye(2)))
        >>> kinds, smaller.n_pairs
        ([0, 0, 0], 2)
    """
    firsts: dict[bytes, int] = {}
    heads: list[int] = []
    kinds: list[int] = []
    for user, row in enumerate(kernel.user_cov + 0.0):  # -0.0 and 0.0 are the same number and not the same bytes
        kind = firsts.setdefault(row.tobytes(), len(heads))
        kinds.append(kind)
        if kind == len(heads):
            heads.append(user)
    if len(heads) == kernel.n_users:
        return kinds, kernel
    return kinds, PoolKernel(kernel.user_cov[np.ix_(heads, heads)], kernel.arm_cov)


def arm_whitener(arm_cov: Array) -> Array | None:
    """Returns P with P'K_x P = I on what K_x spans; none if K_x is so close to singular that P would lose digits.

    Twin arms, or more arms than features, are no trouble: the directions that K_x does not have are left out.

    Examples:
        >>> np.abs(arm_whitener(np.array([[4.0, 4.0], [4.0, 4.0]]))).round(3)
        array([[0.25],
               [0.25]])
    """
    values, vectors = np.linalg.eigh(arm_cov)
    kept = values > RANK * values[-1]
    if not kept.any() or values[kept][0] < SMALLEST * values[-1]:
        return None
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def is_gentle(link: Link, whitener: Array, n_pairs: int) -> bool:
    """Whether conditioning on the link is cheaper than a rebuild and loses no digits to very heavy edges."""
    if link.combinations.shape[1] * whitener.shape[1] > max(FEW, n_pairs // 8):
        return False
    ratio = link.spread.diagonal() / link.noise.diagonal()
    return bool((ratio <= STEEPEST).all())
