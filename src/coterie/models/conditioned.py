"""What the models that keep their belief up to date share.

An engine gives only the numerics: how to condition its belief on a block of observations, and how to read it. The
collapsed history, the running log-determinant and evidence, and the exact rebuild live here, once.
"""

from abc import abstractmethod
from contextlib import suppress
from copy import copy
from math import exp, inf, log, pi, sqrt
from typing import Any, ClassVar, Self

import numpy as np

from coterie.algebra import CoterieError, JitterLog, NumericalError
from coterie.algebra.gaps import gap_of_sums
from coterie.contracts import Array, Drift, Index
from coterie.errors import FAILURES
from coterie.kernels.joint import JointKernel
from coterie.kernels.links import Link
from coterie.models.base import DRIFT_TOLERANCE, Model
from coterie.models.history import History

LOG_2PI = log(2 * pi)
FIRST_SHARE = 1e-3
LONGEST_MOVE = 1e4


class ConditionedModel(Model):
    """A model that conditions its belief on each observation as it comes.

    Attributes:
        stages: Whether very precise observations are taken in two parts.
        staged_ratio: Observations are very precise if their precision times the prior variance exceeds it.
        chunk: How many observations of a batch are conditioned on at once.
    """

    stages: ClassVar[bool] = True
    staged_ratio: ClassVar[float] = 1e5
    chunk: ClassVar[int] = 128

    def __init__(self, kernel: JointKernel, *, noise_var: float = 0.01) -> None:
        super().__init__(kernel, noise_var=noise_var)
        self.jitter = JitterLog()
        self._info_gain = 0.0
        self._log_likelihood = 0.0

    def state(self) -> dict[str, Any]:
        """Returns all that the belief is made of beside the kernel, the running sums included."""
        jitter = {"count": self.jitter.count, "largest": self.jitter.largest}
        running = {"info_gain": self._info_gain, "log_likelihood": self._log_likelihood, "jitter": jitter}
        return super().state() | running

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        super()._restore(state, kernel)
        self.jitter = JitterLog(**state["jitter"])
        self._info_gain, self._log_likelihood = state["info_gain"], state["log_likelihood"]

    def mismatch(self) -> float:
        """Returns how far the belief is from the one that history and kernel give, relative; 0 up to rounding."""
        of_engine = self._mismatch()
        if of_engine == inf:
            return inf
        scatter = float(np.sum(self.history.scatters)) / self.noise_var
        level = float(self.history.count_array().sum()) * log(2 * pi * self.noise_var)
        terms = self._surprise(), scatter, level, self._info_gain  # -2 log p(rewards) is their sum
        return max(of_engine, gap_of_sums(self._log_likelihood, -0.5 * sum(terms), *terms))

    def _surprise(self) -> float:
        """Returns y' S^-1 y for y the mean rewards and S their covariance, noise included."""
        return self._surprise_of(self._belief_at_rows()[0])

    def _surprise_of(self, means: Array) -> float:
        """Returns the same from the believed means, for S^-1 y = (y - mean) / noise."""
        values = self.history.mean_array()
        return float(np.sum(values * (values - means) * self.history.count_array()) / self.noise_var)

    # What an engine gives

    def _mismatch(self) -> float:
        """Returns how far the engine's own arrays are from what history and kernel give; or it has a `mismatch`."""
        raise NotImplementedError(self.engine)

    @abstractmethod
    def _reset(self) -> None:
        """Puts the belief back to the prior."""

    @abstractmethod
    def _condition(self, users: Index, arms: Any, values: Array, noise: Array) -> tuple[float, float]:
        """Conditions on distinct pairs observed with independent noise; raises before any change.

        Returns:
            log det S and r' S^-1 r, with S the predictive covariance of the values (noise included) and r their
            difference from the predicted mean.
        """

    def _condition_one(self, user: int, arm: Any, reward: float) -> tuple[float, float]:
        """Conditions on one reward; returns its predictive variance, noise included, and the size of its surprise."""
        noise = np.array([self.noise_var])
        log_det, fit = self._condition(np.array([user]), np.array([arm]), np.array([reward]), noise)
        return exp(log_det), sqrt(fit * exp(log_det))

    def _detach(self) -> None:
        """Takes room of its own for the belief, so that a copy of a model shares none with it."""

    def _renewal_is_due(self) -> bool:
        """Whether the belief would be cheaper to keep if it were recomputed from the collapsed history."""
        return False

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        """Takes other settings; the belief is rebuilt right after."""
        self.kernel = kernel
        self.noise_var = noise_var

    def _relink(self, link: Link) -> tuple[float, float] | None:  # noqa: ARG002 - an engine that can says so
        """Takes a change of the user covariance, if it can; otherwise, and on an error, nothing has changed.

        Returns:
            How much more log det S is given the observations than before them, and m' S^-1 m, with S the covariance of
            what is seen to be zero (noise included) and m its mean.
        """
        return None

    def _move(self, user: int, arm: Any, change: float) -> tuple[float, float] | None:  # noqa: ARG002 - as above
        """Moves the mean by its covariance with a pair, times a number, if it can.

        Returns:
            Mean and variance of the pair before.
        """
        return None

    # What a caller sees

    @property
    def info_gain(self) -> float:
        """Log det(I + K/noise_var) over all observations, the gamma_t of the paper. O(1)."""
        return self._info_gain

    @property
    def log_marginal_likelihood(self) -> float:
        """Log p(rewards) under the prior and Gaussian noise. O(1)."""
        return self._log_likelihood

    def learn(self, user: int, arm: Any, reward: float) -> None:
        """Learns one reward from values that were checked already; `update` is the safe door."""
        variance, surprise = self._condition_one(user, arm, reward)
        self._info_gain += log(variance / self.noise_var)
        self._log_likelihood -= 0.5 * (surprise * surprise / variance + log(variance) + LOG_2PI)
        self.history.add(self.kernel.key(user, arm), user, arm, reward)
        if self._renewal_is_due():
            self._renew()

    def update_many(self, users: Any, arms: Any, rewards: Any) -> None:
        """Learns many rewards at once, in BLAS-3 blocks; the same belief as one by one."""
        batch = self.checked_batch(users, arms, rewards)
        if len(batch):
            self._learn_batch(batch)

    def learn_weighted(self, user: int, arm: Any, reward: float, *, weight: float) -> None:
        """Learns one observation that counts as `weight` rewards do, from values that were checked already."""
        batch = History()
        batch.add(self.kernel.key(user, arm), user, arm, reward, weight=weight)
        self._learn_batch(batch)

    def _learn_batch(self, batch: History) -> None:
        try:
            self._absorb(batch)
        except FAILURES:
            self.rebuild()
            raise
        self.history.merge(batch)
        if self._renewal_is_due():
            self._renew()

    def relearn(self, history: History) -> None:
        """Forgets its observations and learns this history instead; on an error nothing has changed."""
        history.rekey(self.kernel.key)
        before, self.history = self.history, history
        try:
            self.rebuild()
        except FAILURES:
            self.history = before
            self.rebuild()
            raise

    def revise(self, user: int, arm: Any, before: float, after: float) -> bool:
        """Puts a reward in the place of one it has learned, cheaper than by a rebuild; returns whether it could.

        The mean moves by cov(., pair) (after - before) / noise_var and no variance changes. The evidence follows from
        M^-1 = (I - cov / noise_var) / noise_var, with M the covariance of the rewards. Where observations are very
        precise beside the prior, or the two rewards far apart (a slip of the decimal point), this would lose digits:
        it is left to a rebuild.
        """
        row = self.history.rows.get(self.kernel.key(user, arm))
        largest = self.max_variance
        if (
            row is None
            or largest > self.staged_ratio * self.noise_var
            or abs(after - before) > LONGEST_MOVE * sqrt(largest)
        ):
            return False
        change = (after - before) / self.noise_var
        found = self._move(user, arm, change)
        if found is None:
            return False
        mean, variance = found
        gap = 2 * (before - mean) + (after - before) * (1 - variance / self.noise_var)
        self._log_likelihood -= 0.5 * change * gap
        self.history.revise(row, before, after)
        return True

    def relink(self, link: Link) -> bool:
        """Takes a change of the user covariance at less than the cost of a rebuild; returns whether it could.

        For z = 0 is what the change says and y the rewards, p(y | z) = p(y) p(z | y) / p(z).
        """
        try:
            found = self._relink(link)
        except CoterieError:
            return False
        if found is None:
            return False
        log_det, fit = found
        self._info_gain += log_det
        self._log_likelihood -= 0.5 * (fit + log_det)
        return True

    def rebuild(self) -> None:
        """Recomputes the belief, in place, from the collapsed history."""
        self._reset()
        self._info_gain = 0.0
        self._log_likelihood = 0.0
        self._absorb(self.history)

    def check(self, tolerance: float = DRIFT_TOLERANCE) -> Drift:
        """Returns how far the belief is from a recomputed one, and takes that one if it is beyond the tolerance.

        Needs room for a second belief while it runs.
        """
        fresh = self._fresh()
        mean, variance = self._belief_at_rows()
        exact_mean, exact_variance = fresh._belief_at_rows()
        prior = self._prior_variance_at_rows()
        scale = np.where(prior > 0, prior, 1.0)
        mean_drift = float(np.max(np.abs(mean - exact_mean) / np.sqrt(scale), initial=0.0))
        variance_drift = float(np.max(np.abs(variance - exact_variance) / scale, initial=0.0))
        sound = max(mean_drift, variance_drift) <= tolerance  # false for NaN as well
        if not sound:
            self._take(fresh)
        return Drift(mean_drift, variance_drift, tolerance, healed=not sound)

    def describe(self) -> str:
        """Returns in words which engine this is, why, and what it has done for numerical safety."""
        text = f"{super().describe()} Jitter used {self.jitter.count} times"
        return text + (f", at most {self.jitter.largest:.0e} of the prior variance." if self.jitter.count else ".")

    # Bookkeeping

    def _absorb(self, batch: History) -> None:
        """Conditions on a collapsed history, block by block, and keeps log-determinant and evidence."""
        noise_var = self.noise_var
        self._observe(batch.user_array(), batch.arm_array(), batch.mean_array(), batch.count_array() / noise_var)
        # What the collapsed mean of c rewards leaves out: c - 1 contrasts with variance noise_var, and their scatter.
        extra = float(batch.count_array().sum()) - len(batch)
        self._log_likelihood -= 0.5 * (
            extra * (LOG_2PI + log(noise_var))
            + float(np.log(batch.count_array()).sum())
            + float(np.sum(batch.scatters)) / noise_var
        )

    def _observe(self, users: Index, arms: Any, values: Array, precision: Array) -> None:
        """Conditions on distinct pairs, block by block, and keeps log-determinant and evidence of the values.

        Where the observations are very precise beside the prior, each is taken in two parts with the same value and
        FIRST_SHARE and the rest of its precision. In one step the covariance would go from the prior's size to a tiny
        one, and keep rounding errors of the prior's size; in two it is small already when it matters.
        """
        if len(users) == 0:
            return
        shares: tuple[float, ...] = (1.0,)
        if self.stages and self.max_variance * float(precision.max()) > self.staged_ratio:
            shares = (FIRST_SHARE, 1 - FIRST_SHARE)
            # The value twice is the value once, and a difference of zero between the two parts.
            gap_variance = 1 / (FIRST_SHARE * (1 - FIRST_SHARE) * precision)
            self._log_likelihood += 0.5 * float(np.sum(LOG_2PI + np.log(gap_variance)))
        for share in shares:
            for start in range(0, len(users), self.chunk):
                part = slice(start, start + self.chunk)
                noise = 1 / (share * precision[part])
                log_det, fit = self._condition(users[part], arms[part], values[part], noise)
                self._info_gain += log_det - float(np.log(noise).sum())
                self._log_likelihood -= 0.5 * (fit + log_det + len(noise) * LOG_2PI)

    def _fresh(self) -> Self:
        """Returns a model with the same settings and history whose belief is recomputed; this one is untouched."""
        other = copy(self)
        other._detach()
        other.rebuild()
        return other

    def _take(self, other: Self) -> None:
        """Takes over everything another model holds."""
        self.__dict__.update(other.__dict__)

    def _renew(self) -> None:
        """Recomputes the belief if that works; if not, the one at hand is as right, only costlier to keep."""
        with suppress(NumericalError, MemoryError):
            self._take(self._fresh())

    def _reconfigure(self, kernel: JointKernel, noise_var: float) -> None:
        before = self.kernel, self.noise_var
        try:
            self._configure(kernel, noise_var)
            self.rebuild()
        except FAILURES:
            self._configure(*before)
            self.rebuild()
            raise

    def _belief_at_rows(self) -> tuple[Array, Array]:
        """Returns mean and variance at the pairs of the history."""
        users, arms = self.history.user_array(), self.history.arm_array()
        mean, variance = np.empty(len(users)), np.empty(len(users))
        for user in np.unique(users):
            rows = np.flatnonzero(users == user)
            mean[rows], std = self.read(int(user), arms[rows])
            variance[rows] = std**2
        return mean, variance

    def _prior_variance_at_rows(self) -> Array:
        arms = self.history.arm_array() if len(self.history) else self.kernel.no_arms()
        return self.kernel.diag(self.history.user_array(), arms)
