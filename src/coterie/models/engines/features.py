"""The belief in a fixed number of features: graph frequencies times eigen-features of the pool.

Bayesian linear regression on products of both, O(features^2 x candidates) a round. Truncated (`user_rank`, `arm_rank`),
it reports the true error of its estimates.
"""

from copy import copy
from math import inf, log
from typing import Any

import numpy as np
from scipy.linalg import blas

from coterie.algebra import PendingCovariance, cholesky, log_det_of_factor, solve_lower
from coterie.algebra.gaps import gap, gap_of_matrices
from coterie.contracts import Array, Index
from coterie.errors import ParameterError
from coterie.errors.checks import is_whole
from coterie.kernels.joint import JointKernel, PoolKernel
from coterie.models.agreement import Observed, gap_of_weights, observed_in
from coterie.models.conditioned import LOG_2PI, ConditionedModel
from coterie.models.history import History
from coterie.models.requirements import require_memory, require_pool

ARRAYS = ("user_features", "arm_features", "own", "weights", "observed", "count")
PLAIN = ("user_rank", "arm_rank", "correction", "prior_error", "prior_error_norm")
EPS = float(np.finfo(float).eps)


def eigen_features(covariance: Array, rank: int | None, *, what: str) -> tuple[Array, float, float]:
    """Returns features F with F F' the best approximation of this rank, the first and the first lost eigenvalue."""
    if rank is not None and not is_whole(rank, 1, len(covariance)):
        raise ParameterError(
            f"{what} is {rank!r}", f"it is a whole number from 1 to {len(covariance)}", "Leave it out for all"
        )
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    kept = rank or max(1, int(np.sum(values > len(values) * np.finfo(float).eps * values[0])))
    lost = float(values[kept]) if kept < len(values) else 0.0
    return vectors[:, :kept] * np.sqrt(values[:kept]), float(values[0]), lost


def gap_of_features(covariance: Array, features: Array, fresh: Array) -> float:
    """Returns how far features are from being eigen-features of a covariance, as large ones as fresh ones are.

    Where eigenvalues are equal there are many such, and another machine may find others.
    """
    if features.shape != fresh.shape:
        return inf
    sizes = np.sum(features**2, axis=0)
    together = features.T @ features
    return max(
        gap_of_matrices(covariance @ features, features * sizes),
        gap_of_matrices(together, np.diag(sizes)),
        gap_of_matrices(sizes, np.sum(fresh**2, axis=0)),
    )


class FeaturesModel(ConditionedModel):
    """f(u, x) = w . (features of u (x) features of x), w standard normal: memory does not grow with time.

    The features of users are the `user_rank` largest eigenpairs of the user covariance (for the paper's kernel, the
    smallest eigenvalues of the Laplacian), those of arms the `arm_rank` largest of the pool's kernel matrix. With full
    ranks, the default, the belief equals that of the other engines. Truncated, `prior_error` is the largest error of
    an entry of the prior covariance and `prior_error_norm` its spectral norm. The `correction` (on by default) then

    - gives each pair an independent part with the prior variance it lost, and
    - reports as variance the expected squared error of the estimate under the full prior, which is never below the
      variance of the exact model: no more certainty is claimed than there is.

    Without it the truncated prior is taken at its word, and the variance is too small.

    Cost of a round with P = user_rank * arm_rank features: about P^2 multiply-adds for each candidate, and with the
    correction n m (n + m) more.

    Examples:
        >>> model = FeaturesModel(PoolKernel(np.eye(2), np.eye(2)), noise_var=1.0)
        >>> model.update(0, 1, 2.0)
        >>> model.predict(0)[0].round(6), model.prior_error
        (array([0., 1.]), 0.0)
    """

    engine = "features"
    kernel: PoolKernel

    def __init__(
        self,
        kernel: JointKernel,
        *,
        noise_var: float = 0.01,
        user_rank: int | None = None,
        arm_rank: int | None = None,
        correction: bool = True,
        memory_limit: int | None = None,
    ) -> None:
        pool = require_pool(kernel, self.engine)
        super().__init__(pool, noise_var=noise_var)
        if not isinstance(correction, bool):
            raise ParameterError(f"correction is {correction!r}", "it is True or False", "Leave it out for True")
        self.user_rank, self.arm_rank, self.correction = user_rank, arm_rank, correction
        self._memory_limit = memory_limit
        self._configure(pool, self.noise_var)
        self._detach()
        self._reset()

    def _belief(self) -> dict[str, Any]:
        kept = {name: getattr(self, f"_{name}") for name in ARRAYS}
        kept |= {"scale": self._scale, "memory_limit": self._memory_limit, "cov": self._cov.state()}
        return kept | {name: getattr(self, name) for name in PLAIN}

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        super()._restore(state, kernel)
        for name in (*ARRAYS, "scale", "memory_limit"):
            setattr(self, f"_{name}", state[name])
        for name in PLAIN:
            setattr(self, name, state[name])
        self._cov = PendingCovariance.restored(state["cov"])
        self._has_own = self.correction and self.prior_error > 0

    @property
    def n_features(self) -> int:
        """Number of features of a pair."""
        return int(self._user_features.shape[1] * self._arm_features.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        return self._cov.nbytes

    def describe(self) -> str:
        """Returns in words which engine this is, why, and what truncation costs."""
        return (
            f"{super().describe()} {self._user_features.shape[1]} user x {self._arm_features.shape[1]} arm features; "
            f"largest error of the prior covariance {self.prior_error:.3g}, spectral norm {self.prior_error_norm:.3g}, "
            f"correction {'on' if self.correction else 'off'}."
        )

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        pool = require_pool(kernel, self.engine)
        users, first_user, lost_user = eigen_features(pool.user_cov, self.user_rank, what="user_rank")
        arms, first_arm, lost_arm = eigen_features(pool.arm_cov, self.arm_rank, what="arm_rank")
        size = users.shape[1] * arms.shape[1]
        what = f"{users.shape[1]} user x {arms.shape[1]} arm features"
        require_memory(8 * size * (size + 64), self._memory_limit, what=what, remedy="Lower user_rank or arm_rank")
        super()._configure(pool, noise_var)
        self._user_features, self._arm_features = users, arms
        kept = np.multiply.outer(np.sum(users**2, axis=1), np.sum(arms**2, axis=1)).ravel()
        prior = pool.pair_variances()
        self._scale = float(prior.max())
        lost = prior - kept
        lost[(lost < 1e-12 * prior) | (lost < 8 * EPS * self._scale)] = 0.0
        # What was lost is positive semi-definite: its largest entry is on the diagonal, and its eigenvalues are the
        # products of which one factor at least was dropped.
        self.prior_error = float(lost.max())
        norm = max(lost_user * first_arm, lost_arm * first_user)
        self.prior_error_norm = norm if self.prior_error > 0 else 0.0
        self._has_own = self.correction and self.prior_error > 0
        self._own = lost if self._has_own else np.zeros(len(lost))

    def _detach(self) -> None:
        self._cov = PendingCovariance(np.empty((self.n_features, self.n_features), order="F"))

    def _reset(self) -> None:
        if self._cov.size != self.n_features:
            self._detach()
        matrix = self._cov.restart()
        matrix[...] = 0.0
        np.fill_diagonal(matrix, 1.0)
        self._weights = np.zeros(self.n_features)
        self._observed = np.zeros(len(self._own))
        self._count = np.zeros(len(self._own))

    def _mismatch(self) -> float:
        kernel, users, arms = self.kernel, self._user_features, self._arm_features
        fresh = copy(self)
        fresh._configure(kernel, self.noise_var)
        observed = observed_in(self.history, np.arange(kernel.n_users), kernel.n_users, kernel.n_arms, self.noise_var)
        own = self._own.reshape(observed.precision.shape)
        of_weights = gap_of_weights(
            times=lambda probe: self._cov.times(probe.reshape(-1, 1)).reshape(probe.shape),
            mean=self._weights.reshape(users.shape[1], arms.shape[1]),
            prior=np.asarray,
            out=lambda weights: users @ weights @ arms.T,
            back=lambda pairs: users.T @ pairs @ arms,
            observed=observed._replace(precision=observed.precision / (1 + own * observed.precision)),
        )
        kept = observed if self._has_own else Observed(np.zeros_like(own), np.zeros_like(own))
        return max(
            of_weights,
            gap_of_features(kernel.user_cov, users, fresh._user_features),
            gap_of_features(kernel.arm_cov, arms, fresh._arm_features),
            gap_of_matrices(self._own, fresh._own),
            gap(self._count * (1 / self.noise_var), kept.precision.ravel()),
            gap(self._observed, kept.means.ravel()),
            *(gap(getattr(self, name), getattr(fresh, name)) for name in ("_scale", "prior_error", "prior_error_norm")),
        )

    def _rows(self, users: Index, arms: Index) -> Array:
        """Returns the features of pairs, one a row."""
        rows = self._user_features[users][:, :, None] * self._arm_features[arms][:, None, :]
        return rows.reshape(len(users), -1)

    def prior_cross(self, users: Index, arms: Index, others: Index, other_arms: Index) -> Array:
        """Returns the covariance that features give, and with the correction what a pair has of its own."""
        pairs, other_pairs = users * self.kernel.n_arms + arms, others * self.kernel.n_arms + other_arms
        own = np.where(pairs[:, None] == other_pairs, self._own[pairs, None], 0.0)
        return np.asarray(self._rows(users, arms) @ self._rows(others, other_arms).T + own)

    def read(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std."""
        mean, covariance = self._read_both(user, arms)
        return mean, np.sqrt(np.maximum(covariance.diagonal(), 0.0))

    def read_covariance(self, user: int, arms: Index) -> Array:
        """Returns the joint covariance."""
        return self._read_both(user, arms)[1]

    def _read_both(self, user: int, arms: Index) -> tuple[Array, Array]:
        rows = self._rows(np.full(len(arms), user), arms)
        solved = self._cov.times(rows.T)
        pairs = arms + user * self.kernel.n_arms
        if not self._has_own:
            return rows @ self._weights, rows @ solved
        open_share = self.noise_var / (self.noise_var + self._own[pairs] * self._count[pairs])
        mean = open_share * (rows @ self._weights) + (1 - open_share) * self._observed[pairs]
        return mean, self._error_covariance(user, arms, solved, open_share)

    def _error_covariance(self, user: int, arms: Index, solved: Array, open_share: Array) -> Array:
        """Returns the covariance of the estimates' errors under the full prior. O(q n m (n + m)).

        `open_share` is what a pair's own rewards leave open of it.
        Each estimate is a sum of the pairs' mean rewards with weights a, a table over users x arms. Whatever the
        weights, the squared error is k(p, p) - 2 a'k + a'(K + noise) a, and no weights do better than the exact ones.
        """
        n_users, n_arms = self.kernel.n_users, self.kernel.n_arms
        per_feature = solved.T.reshape(len(arms), self._user_features.shape[1], -1)
        weights = self._user_features @ per_feature @ self._arm_features.T
        weights *= (self._count / (self._own * self._count + self.noise_var)).reshape(n_users, n_arms)
        weights *= open_share[:, None, None]
        weights[np.arange(len(arms)), user, arms] += 1 - open_share
        shared = self.kernel.user_cov @ weights @ self.kernel.arm_cov
        cross = shared[:, user, arms]
        noise = self.noise_var / np.maximum(self._count, 1.0)
        flat, flat_shared = weights.reshape(len(arms), -1), shared.reshape(len(arms), -1)
        prior = self.kernel.user_cov[user, user] * self.kernel.arm_cross(arms, arms)
        return np.asarray(prior - cross - cross.T + flat @ (flat_shared + flat * noise).T)

    def learn(self, user: int, arm: int, reward: float) -> None:
        """Learns one reward from values that were checked already."""
        if not self._has_own:
            super().learn(user, arm, reward)
            return
        batch = History()
        batch.add(self.kernel.key(user, arm), user, arm, reward)
        self._absorb(batch)
        self.history.merge(batch)

    def _absorb(self, batch: History) -> None:
        """Conditions on a collapsed history.

        A pair's own part makes its rewards depend on each other, so a further reward of a pair is put as an
        observation of the shared part alone: its precision is what the pair's precision 1 / (own + noise_var / count)
        gains, and its value what moves the pair's mean where it belongs.
        """
        if not self._has_own:
            super()._absorb(batch)
            return
        noise_var = self.noise_var
        users, arms = batch.user_array(), batch.arm_array()
        pairs = users * self.kernel.n_arms + arms
        own, old_count, old_mean = self._own[pairs], self._count[pairs], self._observed[pairs]
        added, batch_mean = batch.count_array(), batch.mean_array()
        count = old_count + added
        mean = old_mean + (batch_mean - old_mean) * added / count
        old = old_count / (own * old_count + noise_var)
        new = count / (own * count + noise_var)
        gained = noise_var * added / ((own * old_count + noise_var) * (own * count + noise_var))
        values = mean + old * (mean - old_mean) / gained
        self._observe(users, arms, values, gained)
        self._observed[pairs], self._count[pairs] = mean, count
        self._info_gain += float(np.sum(np.log1p(own * count / noise_var) - np.log1p(own * old_count / noise_var)))
        self._log_likelihood += self._evidence_of_contrasts(batch, old_count, old_mean, mean, old, new, gained)

    def _evidence_of_contrasts(
        self, batch: History, old_count: Array, old_mean: Array, mean: Array, old: Array, new: Array, gained: Array
    ) -> float:
        """Returns the log-density of the rewards given the shared part, over that of the values put in their place.

        Both are Gaussian in the shared part with the same shape, so the ratio does not depend on it; it is taken
        where the shared part equals the pair's mean.
        """
        noise_var = self.noise_var
        added = batch.count_array()
        count = old_count + added
        first = old_count == 0
        scatter = float(np.sum(batch.scatters)) + float(
            np.sum((batch.mean_array() - old_mean) ** 2 * old_count * added / count)
        )
        n_contrasts = float(np.sum(added) - np.sum(first))
        before = np.where(first, 0.0, np.log(np.where(first, 1.0, old)))
        normaliser = np.sum(np.log(new) - before - np.log(gained)) + np.sum(~first) * LOG_2PI
        moved = np.sum(old * (mean - old_mean) ** 2 * (1 + old / gained))
        counts = np.sum(np.log(count) - np.log(np.where(first, 1.0, old_count)))
        return 0.5 * float(normaliser + moved - counts - n_contrasts * (LOG_2PI + log(noise_var)) - scatter / noise_var)

    def _move(self, user: int, arm: int, change: float) -> tuple[float, float] | None:
        if self._has_own:
            return None
        row = self._rows(np.array([user]), np.array([arm]))
        column = self._cov.times(row.T)[:, 0]
        before = float(row[0] @ self._weights), float(row[0] @ column)
        self._weights += change * column
        return before

    def _condition(self, users: Index, arms: Any, values: Array, noise: Array) -> tuple[float, float]:
        rows = self._rows(users, arms)
        columns = np.asfortranarray(self._cov.times(rows.T))
        inner = rows @ columns
        if len(users) == 1:
            np.maximum(inner, 0.0, out=inner)  # a variance; rounding may put it below zero
        factor = cholesky(inner + np.diag(noise), self.jitter, scale=self._scale)
        surprise = solve_lower(factor, values - rows @ self._weights)
        columns = blas.dtrsm(1.0, factor, columns, side=1, lower=1, trans_a=1, overwrite_b=1)
        if len(users) == 1:
            self._cov.subtract(columns[:, 0])
        else:
            self._cov.subtract_block(columns)
        self._weights += columns @ surprise
        log_det, fit = log_det_of_factor(factor), float(surprise @ surprise)
        return log_det, fit
