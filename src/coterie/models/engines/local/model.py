"""The belief from the rewards near a user, exactly, and from all others through a few features: bounded cost.

    f = trend + residual,   trend = F z with z ~ N(0, I),   residual ~ GP(0, K - F F')

(`trend.py` has the features F.) All rewards condition z; given z, rewards of different blocks are independent, a block
being some of a user's rows: a partially independent conditional. A decision takes the user's rows, then those of the
users around that covary most with its candidates, and conditions the residual on them exactly, given z:

    mean = F z + r' Q^-1 (y - F_near z),   variance = residual's + h' Cov(z) h,   h = F - F_near' Q^-1 r

with Q the residual's covariance of the near rows plus noise and r that with the candidates. So while there are no more
rows than are near, it is the exact posterior; beyond, given the trend, leaving rows out of the residual makes a belief
wider, never narrower. A decision costs near^3 / 3 + near^2 features + candidates features^2 multiply-adds and 4 near
candidates values of the arm kernel, a reward block^2 features + features^2: neither depends on how many users, arms or
rewards there are, but for the search for who is near.

The trend is chosen by the reward that makes more rows than are near, and by every rebuild: a fit of `auto-*` makes a
new model beside the decisions, so that its trend follows the rewards at no cost to a call.

Where arms have contexts, and there is a matrix over users, the first rows have no trend: engine `exact` grows their
factor, which costs less than conditioning on the near rows afresh for each decision, up to some thousand rows. Beyond
half as many a rebuild chooses a trend, so that a fit makes the change, beside the decisions, and no call waits for it.
"""

from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from math import inf, log
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from coterie.algebra import cholesky, log_det_of_factor, solve_lower
from coterie.algebra.gaps import gap, gap_of_matrices, gap_of_sums
from coterie.algebra.giving_way import rest
from coterie.algebra.ranking import places_of_largest
from coterie.contracts import Array, Index
from coterie.errors import FactorisationError, NumericalError
from coterie.kernels.inputs import OnInputs
from coterie.kernels.joint import JointKernel, OnPool
from coterie.models.base import Replica
from coterie.models.conditioned import LOG_2PI, ConditionedModel
from coterie.models.engines.exact import ExactModel
from coterie.models.engines.local.recent_rows import RecentRows
from coterie.models.engines.local.trend import LeftOut, Trend
from coterie.models.history import GrowingArray, History
from coterie.models.requirements import require_arms

NEAR = 64  # rows that a decision takes as they are
LOOKED_AT = 4  # times as many rows, of which those are taken that covary most with the candidates
EXACT_INPUTS = 1536  # rows up to which all are taken as they are where arms have contexts
NEAR_INPUTS = 128  # rows that a decision takes as they are where arms have contexts: hardly one comes twice
INPUTS_LOOKED_AT = 2048  # rows of which those are taken, where arms have contexts
FEATURES = 256  # of the trend, at most
INPUT_FEATURES = 512  # of the trend, at most, where arms have contexts
RECENT = 4096  # rows whose features are kept where arms have contexts
BLOCK = 64  # rows of a user that are conditioned on together
AT_ONCE = 32_768  # rows whose features are in memory together when all are conditioned on
MOST_JUDGED = 1024  # rows by which it is told what the features leave out


class _Near(NamedTuple):
    """What the rows near a user say of some arms, given the trend's weights.

    Attributes:
        mean: Of each arm.
        loadings: h, a row for each arm; nothing without a trend.
        residual: The residual's covariance of the arms, given the rows; or only its diagonal.
    """

    mean: Array
    loadings: Array
    residual: Array


class _Information(NamedTuple):
    """What the rows say of the trend's weights: their posterior is N(P^-1 m, P^-1).

    Attributes:
        precision: P, the prior's included.
        moment: m.
        log_det: Of the rows' covariance given the weights.
        quadratic: y' S^-1 y with that covariance S.
    """

    precision: Array
    moment: Array
    log_det: float
    quadratic: float


class LocalModel(ConditionedModel):
    """Exact for the rows nearest to a user, by a trend of a few features for all others.

    Args:
        kernel: On a pool of arms.
        noise_var: The noise variance of the rewards.
        near_rows: How many rows a decision takes as they are; by default 64, or 128 where arms have contexts.
        trend_features: How many features the trend has at most; by default 256, or 512 where arms have contexts.
        exact_rows: Where arms have contexts and there is a matrix over users, up to how many rows all are taken as they
            are, in a factor that grows.

    Examples:
        >>> from coterie.kernels.joint import PoolKernel
        >>> model = LocalModel(PoolKernel(np.eye(1), np.eye(2)), noise_var=1.0)
        >>> model.update(0, 1, 2.0)
        >>> model.predict(0)
        (array([0., 1.]), array([1.        , 0.70710678]))
    """

    engine = "local"
    mismatch_limit = 1e-3  # a file of it has no kernel: only the belief shows whether graph and features are its own
    stages = False
    most_recent: ClassVar[int] = RECENT
    most_at_once: ClassVar[int] = AT_ONCE
    kernel: OnPool | OnInputs

    def __init__(
        self,
        kernel: JointKernel,
        *,
        noise_var: float = 0.01,
        near_rows: int | None = None,
        trend_features: int | None = None,
        exact_rows: int = EXACT_INPUTS,
    ) -> None:
        super().__init__(require_arms(kernel, self.engine), noise_var=noise_var)
        near, features = (NEAR_INPUTS, INPUT_FEATURES) if kernel.has_inputs else (NEAR, FEATURES)
        self.near_rows = near if near_rows is None else near_rows
        self.trend_features = features if trend_features is None else trend_features
        self.exact_rows = exact_rows
        self._reset()

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        held = (self._users, self._arms, self._counts, self._means)
        trend = 0 if self._trend is None else self._trend.nbytes
        trend += 0 if self._recent is None else self._recent.nbytes
        trend += 0 if self._grown is None else self._grown.nbytes
        return int(sum(each.values.nbytes for each in held) + self._cov.nbytes + self._n_rows.nbytes + trend)

    def describe(self) -> str:
        """Returns in words which engine this is and why, and what it leaves out."""
        rows = len(self.history)
        if self._trend is None:
            return f"{super().describe()} Exact: all {rows} pairs are near enough."
        stated = f" {self.left_out().in_words()}" if self.kernel.has_inputs else ""
        return (
            f"{super().describe()} A decision takes {self._in_words(rows)} through {self._trend.size} features; what "
            f"it leaves out makes it less certain.{stated}"
        )

    def _in_words(self, rows: int) -> str:
        return f"the {min(self.near_rows, rows)} nearest of {rows} pairs as they are, and all of them"

    def left_out(self) -> LeftOut:
        """Returns what the features leave out of the prior variance of the pairs seen; of more than 1,024, of these."""
        if self._trend is None or not self._users.size:
            return LeftOut(0.0, 0.0)
        rows = np.unique(np.linspace(0, self._users.size - 1, MOST_JUDGED).astype(np.intp))
        known, places = np.unique(self._users.values[rows], return_inverse=True)
        of_users = np.array([self.kernel.user_block(np.array([user]))[0, 0] for user in known.tolist()])
        prior = of_users[places] * self.kernel.prepared_diag(self._arms.values[rows])
        kept = np.square(self._features_of(rows)).sum(axis=1)
        shares = np.clip(1 - np.divide(kept, prior, out=np.ones_like(prior), where=prior > 0), 0.0, 1.0)
        return LeftOut(float(shares.max()), float(shares.mean()))

    def replica(self) -> Replica:
        """Returns what makes a model of this engine with these options on another kernel."""
        return partial(_replica, type(self), self._sizes(), self.reason)

    def _sizes(self) -> dict[str, int]:
        return {"near_rows": self.near_rows, "trend_features": self.trend_features, "exact_rows": self.exact_rows}

    # The belief

    def _reset(self) -> None:
        self._trend: Trend | None = None
        self._chosen_for = np.zeros(0)  # the counts of the rows that the trend was chosen for
        self._cov, self._mean = np.zeros((0, 0)), np.zeros(0)
        self._users = GrowingArray(np.empty(0, dtype=np.intp))
        self._arms = GrowingArray(self.kernel.prepared(self.kernel.no_arms()))
        self._recent: RecentRows | None = None  # the trend's features of the latest rows, where they are dear
        self._counts, self._means = GrowingArray(np.empty(0)), GrowingArray(np.empty(0))
        self._rows_of: dict[int, array[int]] = {}
        self._n_rows = np.zeros(self.kernel.n_users, dtype=np.intp)
        few = self._takes_all(max(self.near_rows, self.exact_rows // 2))
        self._grown = self._adopted(ExactModel(self.kernel, noise_var=self.noise_var)) if few else None

    def _detach(self) -> None:
        self._reset()

    def rebuild(self) -> None:
        """Recomputes the belief from the collapsed history, with a trend chosen for it."""
        history = self.history
        self._reset()
        if self._grown is not None:
            self._info_gain = self._log_likelihood = 0.0
            self._absorb(history)
            return
        self._remember(history.user_array(), history.arm_array(), history.count_array(), history.mean_array())
        self._info_gain, self._log_likelihood = self._sums(
            *(self._choose_trend() if self._has_many_rows() else self._all_together())
        )

    def _takes_all(self, most: int) -> bool:
        """Returns whether one factor can have all rows, of at most so many."""
        return self.kernel.has_inputs and self.kernel.has_user_cov and len(self.history) <= most

    def _adopted(self, grown: ExactModel) -> ExactModel:
        """Returns the model that holds the belief while one factor has all rows; it shares the history."""
        grown.history, grown.jitter = self.history, self.jitter
        return grown

    def _has_many_rows(self) -> bool:
        """Returns whether there are more rows than are near, or of more users."""
        return self._users.size > self.near_rows or len(self._rows_of) > self.kernel.most_together

    def _sums(self, log_det: float, quadratic: float) -> tuple[float, float]:
        """Returns information gain and log evidence from those of the rows' means."""
        history, counts, noise = self.history, self._counts.values, self.noise_var
        gain = log_det - float(np.log(noise / counts).sum())
        within = (float(counts.sum()) - len(counts)) * (LOG_2PI + log(noise))
        within += float(np.log(counts).sum()) + float(np.sum(history.scatters)) / noise
        return gain, -0.5 * (quadratic + log_det + len(counts) * LOG_2PI + within)

    def _remember(self, users: Index, arms: Any, counts: Array, means: Array) -> None:
        """Adds rows, without conditioning on them."""
        if len(users) == 0:  # an empty history does not say how wide its arms are
            return
        first = self._users.size
        ready = self.kernel.prepared(arms)
        for held, rows in ((self._users, users), (self._arms, ready), (self._counts, counts), (self._means, means)):
            held.extend(rows)
        for row, user in enumerate(users.tolist(), start=first):
            self._rows_of.setdefault(user, array("q")).append(row)
        self._n_rows += np.bincount(users, minlength=len(self._n_rows))

    def _all_together(self) -> tuple[float, float]:
        """Returns the log determinant of all rows' covariance, noise included, and y' S^-1 y: one block of all rows."""
        if self._users.size == 0:
            return 0.0, 0.0
        users, arms = self.history.user_array(), self.history.arm_array()
        cov = self.kernel.cross(users, arms, users, arms)
        cov[np.diag_indices_from(cov)] += self.noise_var / self._counts.values
        factor = cholesky(cov, self.jitter)
        white = solve_lower(factor, self._means.values)
        return log_det_of_factor(factor), float(white @ white)

    def _choose_trend(self) -> tuple[float, float]:
        """Takes the trend that suits the rows there are, and conditions its weights on them; returns as above."""
        self._take_trend(self._counts.values.copy())
        known = self._information()
        rest()
        factor = cholesky(known.precision, self.jitter)
        self._cov = _inverse(factor)
        self._mean = self._cov @ known.moment
        log_det = known.log_det + log_det_of_factor(factor)
        return log_det, known.quadratic - float(known.moment @ self._mean)

    def _information(self) -> "_Information":
        """Returns what all rows say of the trend's weights, blocks being independent given these."""
        assert self._trend is not None
        size = self._trend.size
        precision, moment, log_det, quadratic = np.zeros((size, size)), np.zeros(size), 0.0, 0.0
        for blocks in self._groups_of_blocks():
            whitened = []
            for rows in blocks:
                rest()
                whitened.append(self._whitened(rows))
            features = np.concatenate([each for each, _, _ in whitened])
            values = np.concatenate([each for _, each, _ in whitened])
            precision += features.T @ features
            moment += features.T @ values
            log_det = sum((each for _, _, each in whitened), start=log_det)
            quadratic += float(values @ values)
        precision[np.diag_indices_from(precision)] += 1.0
        return _Information(precision, moment, log_det, quadratic)

    def _take_trend(self, counts: Array) -> None:
        """Takes the trend that suits the first rows, with these counts."""
        users, arms = self._users.values, self._arms.values
        first = slice(len(counts))
        self._trend = trend = Trend.chosen(self.kernel, users[first], arms[first], counts, self.trend_features)
        self._chosen_for = counts
        if self.kernel.has_inputs:
            self._recent = RecentRows(trend.size, self.most_recent)
            for start in range(0, len(counts), BLOCK):  # so many at a time, since a product's rounding goes by its size
                rows = slice(start, min(start + BLOCK, len(counts)))
                self._recent.extend(self._features(users[rows], arms[rows]))
            self._follow_rows()

    def _follow_rows(self) -> None:
        """Computes the trend's features of rows that have come since, one by one, as they do."""
        if self._recent is not None:
            for row in range(self._recent.n_rows, self._users.size):
                arm = self._arms.values[row : row + 1]
                self._recent.extend(self._features(int(self._users.values[row]), arm))

    def _features(self, users: Any, arms: Any) -> Array:
        """Returns the trend's features of pairs, a row for each; one user stands for all pairs; arms are prepared."""
        trend = self._trend
        assert trend is not None
        modes, kernel = trend.arm_modes, self.kernel
        of_arms = kernel.prepared_cross(arms, trend.inducing) @ trend.arm_map if modes is None else modes.take(arms, 0)
        out = of_arms.take(trend.arms, axis=1)
        out *= self._user_modes(trend, users).take(trend.users, axis=-1)
        return np.asarray(out)

    def _user_modes(self, trend: Trend, users: Any) -> Array:
        """Returns the modes of users, or of one."""
        if trend.user_modes is None:
            shared = self.kernel.shared_features(users)
            assert shared is not None
            assert trend.user_map is not None
            return np.asarray(shared @ trend.user_map)
        return np.asarray(trend.user_modes[0 if len(trend.user_modes) == 1 else users])

    def _features_of(self, rows: Index) -> Array:
        """Returns the trend's features of some rows."""
        recent = self._recent
        if recent is None:
            return self._features(self._users.values.take(rows), self._arms.values.take(rows, axis=0))
        old = rows < recent.first
        if not old.any():
            return recent.take(rows)
        out = np.empty((len(rows), recent.width))
        out[~old] = recent.take(rows[~old])
        out[old] = self._features(self._users.values.take(rows[old]), self._arms.values.take(rows[old], axis=0))
        return out

    def _blocks(self) -> list[Index]:
        """Returns the rows of each block: a user's rows in the order they came, so many at a time."""
        return [
            np.array(rows[start : start + BLOCK], dtype=np.intp)
            for rows in self._rows_of.values()
            for start in range(0, len(rows), BLOCK)
        ]

    def _groups_of_blocks(self) -> Iterator[list[Index]]:
        """Yields the blocks, so many rows together that their features fit in memory however many rows there are."""
        blocks, n_rows = list[Index](), 0
        for rows in self._blocks():
            blocks.append(rows)
            n_rows += len(rows)
            if n_rows >= self.most_at_once:
                yield blocks
                blocks, n_rows = [], 0
        if blocks:
            yield blocks

    def _whitened(self, rows: Index) -> tuple[Array, Array, float]:
        """Returns the features and values of a block, whitened by the residual and noise, and its log determinant."""
        at = self._features_of(rows)
        factor = self._residual_factor(int(self._users.values[rows[0]]), rows, at)
        both = solve_lower(factor, np.column_stack([at, self._means.values[rows]]))
        return both[:, :-1], both[:, -1], log_det_of_factor(factor)

    def _residual_factor(self, user: int, rows: Index, at: Array) -> Array:
        """Returns the factor of the residual's covariance of one user's rows, noise included."""
        arms = self._arms.values[rows]
        cov = self.kernel.prepared_cross(arms, arms)
        cov *= self.kernel.user_variance(user)
        cov -= at @ at.T
        scale = float(cov.diagonal().mean()) + self.noise_var
        cov[np.diag_indices_from(cov)] += self.noise_var / self._counts.values[rows]
        return cholesky(cov, self.jitter, scale=scale)

    # Learning

    def learn(self, user: int, arm: Any, reward: float) -> None:
        """Learns one reward from values that were checked already; `update` is the safe door."""
        self.learn_weighted(user, arm, reward, weight=1.0)

    def learn_weighted(self, user: int, arm: Any, reward: float, *, weight: float) -> None:
        """Learns one observation that counts as `weight` rewards do, from values that were checked already."""
        noise = self.noise_var / weight
        variance, innovation = self._condition_on(user, arm, reward, noise)
        self._info_gain += log(variance / noise)
        self._log_likelihood -= 0.5 * (innovation * innovation / variance + log(variance / noise))
        self._log_likelihood -= 0.5 * (log(self.noise_var) + LOG_2PI) * weight
        key = self.kernel.key(user, arm)
        known = self.history.rows.get(key)
        self.history.add(key, user, arm, reward, weight=weight)
        if self._grown is not None:
            if len(self.history) > self.exact_rows or self._grown._renewal_is_due():
                self._renew()
            return
        self._follow_history(user, arm, known)
        if self._trend is None and self._has_many_rows():
            self._take(self._fresh())  # or raises: a belief with a trend is another belief
        elif self._trend is None and not self.kernel.has_user_cov:  # a neighbourhood does not know all rows
            with suppress(NumericalError):
                self._info_gain, self._log_likelihood = self._sums(*self._all_together())

    def _follow_history(self, user: int, arm: Any, known: int | None) -> None:
        """Takes over the row that has just changed."""
        if known is not None:
            self._counts.values[known], self._means.values[known] = (
                self.history.counts[known],
                self.history.means[known],
            )
            return
        row = self._users.size
        self._arms.extend(self.kernel.prepared(np.array([arm])))
        for held, value in (
            (self._users, user),
            (self._counts, self.history.counts[-1]),
            (self._means, self.history.means[-1]),
        ):
            held.extend(np.array([value]))
        self._rows_of.setdefault(user, array("q")).append(row)
        self._n_rows[user] += 1
        self._follow_rows()

    def _condition_on(self, user: int, arm: Any, reward: float, noise: float) -> tuple[float, float]:
        """Conditions the trend on a reward; returns its predictive variance, noise included, and its innovation.

        The residual of the reward is predicted from the rows of its block, which the weights know already.
        """
        if self._grown is not None:
            return self._grown._condition_one(user, arm, reward, noise)
        one = np.array([arm])
        if self._trend is None:
            mean, std = self.peek(user, one)
            return float(std[0]) ** 2 + noise, reward - float(mean[0])
        kernel, one = self.kernel, self.kernel.prepared(one)
        at = self._features(user, one)[0]
        variance = kernel.user_variance(user) * float(kernel.prepared_diag(one)[0]) - float(at @ at)
        rows, innovation = self._block_of(user, arm), reward
        if len(rows):
            known = self._features_of(rows)
            cross = kernel.user_variance(user) * kernel.prepared_cross(self._arms.values[rows], one)[:, 0] - known @ at
            factor = self._residual_factor(user, rows, known)
            both = solve_lower(factor, np.column_stack([cross, self._means.values[rows]]))
            weights = solve_lower(factor, np.eye(len(rows))).T @ both[:, 0]
            variance -= float(both[:, 0] @ both[:, 0])
            innovation -= float(both[:, 0] @ both[:, 1])
            at = at - weights @ known
        variance = max(variance, 0.0) + noise
        moved = self._cov @ at
        total = variance + float(at @ moved)
        if not np.isfinite(total) or total <= 0:
            raise FactorisationError(
                "the variance of a reward is not a number", "kernel values are finite", "Check the arm's features"
            )
        innovation -= float(at @ self._mean)
        self._mean = self._mean + moved * (innovation / total)
        if len(at):  # there are none where nothing can be learned of the users seen
            self._cov = blas.dger(-1 / total, moved, moved, a=self._cov.T, overwrite_a=1).T  # symmetric: in place
        return total, innovation

    def _block_of(self, user: int, arm: Any) -> Index:
        """Returns the rows of the block that a pair belongs to: where it is already, or the user's last, with room."""
        rows, known = self._rows_of.get(user, array("q")), self.history.rows.get(self.kernel.key(user, arm))
        place = len(rows) if known is None else rows.index(known)
        first = place // BLOCK * BLOCK
        return np.array(rows[first : first + BLOCK], dtype=np.intp)

    def _learn_batch(self, batch: History) -> None:
        before, merged = self.history, History()
        merged.merge(before)
        merged.merge(batch)
        self.relearn(merged)

    # Reading

    def read(self, user: int, arms: Any) -> tuple[Array, Array]:
        """Returns mean and std."""
        if self._grown is not None:
            return self._grown.read(user, arms)
        near = self._near(user, arms, jointly=False)
        variance = near.residual
        if self._trend is not None:
            variance = variance + np.einsum("ij,ij->i", near.loadings @ self._cov, near.loadings)
        return near.mean, np.sqrt(np.maximum(variance, 0.0))

    def peek(self, user: int, arms: Any) -> tuple[Array, Array]:
        """Returns mean and std, and leaves no trace."""
        return self.read(user, arms) if self._grown is None else self._grown.peek(user, arms)

    def read_covariance(self, user: int, arms: Any) -> Array:
        """Returns the joint covariance."""
        if self._grown is not None:
            return self._grown.read_covariance(user, arms)
        near = self._near(user, arms, jointly=True)
        if self._trend is None:
            return near.residual
        return np.asarray(near.residual + near.loadings @ self._cov @ near.loadings.T)

    def _near(self, user: int, arms: Any, *, jointly: bool) -> _Near:
        """Returns what the rows near a user say of some of their arms, given the trend's weights."""
        ready = self.kernel.prepared(arms)
        rows, gram, cross, variance = self._nearest(user, ready)
        trend, n_rows = self._trend, len(rows)
        at = np.zeros((len(arms), 0)) if trend is None else self._features(user, ready)
        if jointly:
            residual = variance * self.kernel.prepared_cross(ready, ready) - at @ at.T
        else:
            residual = variance * self.kernel.prepared_diag(ready) - np.einsum("ij,ij->i", at, at)
        if n_rows == 0:
            return _Near(at @ self._mean, at, residual)
        values = self._means.values.take(rows)
        scale = float(gram.diagonal().mean()) + self.noise_var
        if trend is not None:
            known = self._features_of(rows)
            gram -= known @ known.T
            cross -= known @ at.T
            values = values - known @ self._mean
        gram[np.diag_indices(n_rows)] += self.noise_var / self._counts.values.take(rows)
        factor = cholesky(gram, self.jitter, scale=scale)
        half = solve_lower(factor, np.column_stack([cross, values]))
        half, white = half[:, :-1], half[:, -1]
        residual = residual - (half.T @ half if jointly else np.einsum("ij,ij->j", half, half))
        if trend is None:
            return _Near(white @ half, at, residual)
        return _Near(white @ half + at @ self._mean, at - _solve_upper(factor, half).T @ known, residual)

    def _nearest(self, user: int, arms: Any) -> tuple[Index, Array, Array, float]:
        """Returns the rows of a user, then of the users around, that covary most with some of the user's arms.

        With the rows come the prior covariance among them, that with the arms, which are prepared, and the user's
        variance.
        """
        kernel = self.kernel
        most = INPUTS_LOOKED_AT if kernel.has_inputs else LOOKED_AT * self.near_rows
        around = kernel.neighbourhood(user, self._n_rows, most, self._rows_of)
        rows, at = self._looked_at(around.users, most)
        cross = kernel.prepared_cross(self._arms_of(rows), arms)
        cross *= around.cov.take(at)[:, None]
        if len(rows) > self.near_rows:
            nearest = self._most_alike(np.abs(cross).max(axis=1), at)
            rows, at, cross = rows[nearest], at[nearest], cross[nearest]
        near_arms = self._arms.values.take(rows, axis=0)
        gram = kernel.prepared_cross(near_arms, near_arms)
        if len(around.users) == 1:
            gram *= around.cov[0]
        else:
            who, at = np.unique(at, return_inverse=True)
            gram *= around.among(who).take(at, axis=0).take(at, axis=1)
        return rows, gram, cross, float(around.cov[0])

    def _arms_of(self, rows: Index) -> Any:
        """Returns the arms of some rows; those of rows that follow one another are not copied."""
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and bool((np.diff(rows) == 1).all()):
            return self._arms.values[rows[0] : rows[-1] + 1]
        return self._arms.values.take(rows, axis=0)

    def _looked_at(self, users: Index, most: int) -> tuple[Index, Index]:
        """Returns the latest rows of some users, one user after another until there are enough, and whose they are."""
        kernel = self.kernel
        if kernel.has_inputs and kernel.has_user_cov and self._users.size <= most:  # all, in the order that they came
            places = np.full(kernel.n_users, -1)
            places[users] = np.arange(len(users))
            at = places.take(self._users.values)
            found = np.flatnonzero(at >= 0)
            return found, at[found]
        rows, lengths, left = array("q"), list[int](), most
        for user in users.tolist():
            latest = self._rows_of.get(user)
            taken = 0 if latest is None else min(len(latest), left)
            if latest is not None and taken:
                rows.extend(latest[-taken:])
            lengths.append(taken)
            left -= taken
        return np.array(rows, dtype=np.intp), np.repeat(np.arange(len(users)), lengths)

    def _most_alike(self, alike: Array, at: Index) -> Index:
        """Returns the places of the rows that are near, in their order; of a pool the user's own come first."""
        n_own = 0 if self.kernel.has_inputs else int(np.count_nonzero(at == 0))  # they are the first rows
        if n_own >= self.near_rows:
            return places_of_largest(alike[:n_own], self.near_rows)
        others = places_of_largest(alike[n_own:], self.near_rows - n_own) + n_own
        return np.concatenate([np.arange(n_own), others])

    # Saving

    def _belief(self) -> dict[str, Any]:
        out: dict[str, Any] = {"near_rows": self.near_rows, "trend_features": self.trend_features}
        out |= {"chosen_for": self._chosen_for, "mean": self._mean, "cov": self._cov}
        if self.kernel.has_inputs:
            out["exact_rows"] = self.exact_rows
        return out if self._grown is None else out | {"grown": self._grown._belief()}

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        super()._restore(state, kernel)
        self.near_rows, self.trend_features = state["near_rows"], state["trend_features"]
        self.exact_rows = state.get("exact_rows", EXACT_INPUTS)
        self._reset()
        self._grown = None
        if "grown" in state:
            self._grown = self._adopted(ExactModel.restored(state | state["grown"], kernel))
            return
        history = self.history
        self._remember(history.user_array(), history.arm_array(), history.count_array(), history.mean_array())
        if len(state["chosen_for"]):
            self._take_trend(state["chosen_for"])
            self._mean, self._cov = state["mean"], state["cov"]

    def mismatch(self) -> float:
        """Returns how far the weights of the trend and the sums are from what history and kernel give, relative."""
        if self._grown is not None:
            return super().mismatch()
        if self._trend is None:
            return inf if self._cov.size else self._gap_of_sums(*self._all_together())
        if {len(self._mean), *self._cov.shape} != {self._trend.size}:
            return inf
        known = self._information()
        log_det = known.log_det + log_det_of_factor(cholesky(known.precision, self.jitter))
        return max(
            gap_of_matrices(self._cov @ known.precision, np.eye(self._trend.size)),
            gap(self._cov @ known.moment, self._mean),
            self._gap_of_sums(log_det, known.quadratic - float(known.moment @ self._mean)),
        )

    def _gap_of_sums(self, log_det: float, quadratic: float) -> float:
        """Returns how far the running sums are from those of the rows' means."""
        gain, evidence = self._sums(log_det, quadratic)
        of_gain, of_evidence = gap_of_sums(self._info_gain, gain), gap_of_sums(self._log_likelihood, evidence, log_det)
        return max(of_gain, of_evidence)

    # While one factor has all rows

    def _condition(self, users: Index, arms: Any, values: Array, noise: Array) -> tuple[float, float]:
        assert self._grown is not None  # else it is rebuilt as a whole, and learned one by one
        return self._grown._condition(users, arms, values, noise)

    def _mismatch(self) -> float:
        return inf if self._grown is None else self._grown._mismatch()

    def _surprise(self) -> float:
        return super()._surprise() if self._grown is None else self._grown._surprise()


def _replica(
    kind: type[LocalModel], sizes: Mapping[str, int], reason: str, kernel: JointKernel, *, noise_var: float
) -> LocalModel:
    model = kind(kernel, noise_var=noise_var, **sizes)
    model.reason = reason
    return model


def _inverse(factor: Array) -> Array:
    if len(factor) == 0:
        return factor
    half = solve_lower(factor, np.eye(len(factor)))
    return np.asarray(half.T @ half)


def _solve_upper(factor: Array, right: Array) -> Array:
    """Returns factor'^-1 right for a lower triangular factor."""
    return np.asarray(lapack.dtrtrs(factor, right, lower=1, trans=1)[0])
