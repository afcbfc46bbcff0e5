"""What the models that keep their belief up to date share.

An engine gives only the numerics: how to condition its belief on a block of observations, and how to read it. The
collapsed history, the running log-determinant and evidence, and the exact rebuild live here, once.
"""

from abc import abstractmethod
from math import exp, log, pi, sqrt
from typing import Any

import numpy as np

from coterie.algebra import JitterLog, NumericalError
from coterie.contracts import Array, Drift
from coterie.kernels.joint import JointKernel
from coterie.models.base import DRIFT_TOLERANCE, Index, Model, checked_noise_var
from coterie.models.history import History

LOG_2PI = log(2 * pi)
CHUNK = 128
EPS = float(np.finfo(float).eps)


class ConditionedModel(Model):
    """A model that conditions its belief on each observation as it comes."""

    def __init__(self, kernel: JointKernel, *, noise_var: float = 0.01) -> None:
        super().__init__(kernel, noise_var=noise_var)
        self.jitter = JitterLog()
        self._info_gain = 0.0
        self._log_likelihood = 0.0
        self._squared_gain = 0.0
        self._since_rebuild = 0

    # What an engine gives

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
        noise = np.array([self._noise_var])
        log_det, fit = self._condition(np.array([user]), np.array([arm]), np.array([reward]), noise)
        return exp(log_det), sqrt(fit * exp(log_det))

    def _needs_repair(self) -> bool:
        """Whether an exact rebuild is due after this update."""
        return False

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        """Takes other settings; the belief is rebuilt right after."""
        self.kernel = kernel
        self._noise_var = noise_var

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
        self._info_gain += log(variance / self._noise_var)
        self._log_likelihood -= 0.5 * (surprise * surprise / variance + log(variance) + LOG_2PI)
        self.history.add(self.kernel.key(user, arm), user, arm, reward)
        if self._needs_repair():
            self.rebuild()

    def update_many(self, users: Any, arms: Any, rewards: Any) -> None:
        """Learns many rewards at once, in BLAS-3 blocks; the same belief as one by one."""
        batch = self.checked_batch(users, arms, rewards)
        if not len(batch):
            return
        try:
            self._absorb(batch)
        except NumericalError:
            self.rebuild()
            raise
        self.history.merge(batch)
        if self._needs_repair():
            self.rebuild()

    def set_noise_var(self, noise_var: float) -> None:
        """Changes the noise variance and rebuilds the belief on the same observations."""
        self._reconfigure(self.kernel, checked_noise_var(noise_var))

    def set_user_cov(self, user_cov: Any) -> None:
        """Changes the user covariance and rebuilds the belief on the same observations."""
        self._reconfigure(self.kernel.with_user_cov(user_cov), self._noise_var)

    def rebuild(self) -> None:
        """Computes the belief anew from the collapsed history, with no recursion error."""
        self._reset()
        self._info_gain = 0.0
        self._log_likelihood = 0.0
        self._absorb(self.history)
        self._settle()

    def check(self, tolerance: float = DRIFT_TOLERANCE) -> Drift:
        """Rebuilds the belief exactly and returns how far it had drifted from that."""
        mean, variance = self._belief_at_rows()
        self.rebuild()
        exact_mean, exact_variance = self._belief_at_rows()
        prior = self._prior_variance_at_rows()
        scale = np.where(prior > 0, prior, 1.0)
        mean_drift = float(np.max(np.abs(mean - exact_mean) / np.sqrt(scale), initial=0.0))
        variance_drift = float(np.max(np.abs(variance - exact_variance) / scale, initial=0.0))
        return Drift(mean_drift, variance_drift, tolerance, healed=max(mean_drift, variance_drift) > tolerance)

    def explain(self) -> str:
        """Returns in words which engine this is, why, and what it has done for numerical safety."""
        text = f"{super().explain()} Jitter used {self.jitter.count} times"
        return text + (f", at most {self.jitter.largest:.0e} of the diagonal." if self.jitter.count else ".")

    # Bookkeeping

    def _absorb(self, batch: History) -> None:
        """Conditions on a collapsed history, block by block, and keeps log-determinant and evidence."""
        noise_var = self._noise_var
        users, arms = batch.user_array(), batch.arm_array()
        means, noise = batch.mean_array(), noise_var / batch.count_array()
        for start in range(0, len(users), CHUNK):
            part = slice(start, start + CHUNK)
            log_det, fit = self._condition(users[part], arms[part], means[part], noise[part])
            self._info_gain += log_det - float(np.log(noise[part]).sum())
            self._log_likelihood -= 0.5 * (fit + log_det + len(users[part]) * LOG_2PI)
        # What the collapsed mean of c rewards leaves out: c - 1 contrasts with variance noise_var, and their scatter.
        extra = batch.n_observations - len(batch)
        self._log_likelihood -= 0.5 * (
            extra * (LOG_2PI + log(noise_var))
            + float(np.log(batch.count_array()).sum())
            + float(np.sum(batch.scatters)) / noise_var
        )

    def _reconfigure(self, kernel: JointKernel, noise_var: float) -> None:
        before = self.kernel, self._noise_var
        try:
            self._configure(kernel, noise_var)
            self.rebuild()
        except NumericalError:
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
        return self.kernel.diag(self.history.user_array(), self.history.arm_array())

    # Drift of a recursion

    def _note_gain(self, squared: float) -> None:
        """Notes (surprise / predictive variance)^2 of one recursive update."""
        self._squared_gain += squared
        self._since_rebuild += 1

    def _settle(self) -> None:
        """Notes that there is no drift now."""
        self._squared_gain = 0.0
        self._since_rebuild = 0

    def _drifted(self, size: int) -> bool:
        """Whether a recursion on `size` numbers may have drifted beyond the tolerance since the last rebuild. O(1).

        Each update rounds the mean by about eps * prior variance * surprise / predictive variance, in directions that
        do not agree. Measured errors were up to three times this estimate, so a tenth of the tolerance calls for a
        rebuild. That costs as much as `size` updates at most, so it waits for as many; with a noise variance that
        suits the rewards it never comes.
        """
        if self._since_rebuild < size or self._since_rebuild % 64:
            return False
        return EPS * sqrt(self.max_variance * self._squared_gain) > DRIFT_TOLERANCE / 10
