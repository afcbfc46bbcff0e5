"""The contract of every model, and the bookkeeping they share.

A model holds one Gaussian belief over all (user, arm) pairs. An engine gives only the numerics: how to condition the
belief on a block of observations, and how to read it. Checking input, collapsing repeats, the running log-determinant
and evidence, and the exact rebuild live here, once.
"""

from abc import ABC, abstractmethod
from math import isfinite, log, log1p, pi, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.algebra import JitterLog, NumericalError
from coterie.contracts import Array, Drift
from coterie.errors import DimensionError, ParameterError, RewardError
from coterie.kernels.joint import JointKernel
from coterie.models.history import History

Index = NDArray[np.intp]

LOG_2PI = log(2 * pi)
CHUNK = 128
DRIFT_TOLERANCE = 1e-8
EPS = float(np.finfo(float).eps)


def checked_reward(reward: Any) -> float:
    """Returns the reward as a float, or raises if it is not a finite number."""
    try:
        value = float(reward)
    except (TypeError, ValueError):
        value = float("nan")
    if not isfinite(value):
        raise RewardError(f"reward is {reward!r}", "a reward is a finite number", "Drop or mend this observation")
    return value


def checked_noise_var(noise_var: Any) -> float:
    """Returns the noise variance as a float, or raises if it is not a finite number > 0."""
    if isinstance(noise_var, int | float | np.number) and isfinite(noise_var) and noise_var > 0:
        return float(noise_var)
    raise ParameterError(f"noise_var is {noise_var!r}", "it is a finite number > 0", "Choose, say, 0.01")


class Model(ABC):
    """A belief over users x arms: mean, variance and covariance of the reward function.

    Users are integers 0 to n_users - 1; arms are rows of the pool, or vectors where the kernel has no pool.
    """

    engine: ClassVar[str]

    def __init__(self, kernel: JointKernel, *, noise_var: float = 0.01) -> None:
        self.kernel = kernel
        self.history = History()
        self.jitter = JitterLog()
        self.reason = "asked for by name"
        self._noise_var = checked_noise_var(noise_var)
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

    @abstractmethod
    def read(self, user: int, arms: Any) -> tuple[Array, Array]:
        """Returns mean and std for a user and arms that were checked already; `predict` is the safe door."""

    @abstractmethod
    def _covariance(self, user: int, arms: Any) -> Array:
        """Returns the joint covariance for arms in checked form."""

    def _condition_one(self, user: int, arm: Any, reward: float) -> tuple[float, float]:
        """Conditions on one reward; returns its predictive variance, noise included, and its surprise."""
        users, arms = np.array([user]), np.array([arm])
        mean = self.read(user, arms)[0][0]
        log_det, _ = self._condition(users, arms, np.array([reward]), np.array([self._noise_var]))
        return float(np.exp(log_det)), reward - float(mean)

    def _needs_repair(self) -> bool:
        """Whether an exact rebuild is due after this update."""
        return False

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        """Takes other settings; the belief is rebuilt right after."""
        self.kernel = kernel
        self._noise_var = noise_var

    def _belief_at_rows(self) -> tuple[Array, Array]:
        """Returns mean and variance at the pairs of the history."""
        users, arms = self.history.user_array(), self.history.arm_array()
        mean, variance = np.empty(len(users)), np.empty(len(users))
        for user in np.unique(users):
            rows = np.flatnonzero(users == user)
            mean[rows], std = self.read(int(user), arms[rows])
            variance[rows] = std**2
        return mean, variance

    # What a caller sees

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.kernel.n_users

    @property
    def n_observations(self) -> int:
        """Rewards seen so far, repeats included."""
        return self.history.n_observations

    @property
    def noise_var(self) -> float:
        """The noise variance, the lambda of the paper."""
        return self._noise_var

    @property
    def info_gain(self) -> float:
        """log det(I + K/noise_var) over all observations, the gamma_t of the paper. O(1)."""
        return self._info_gain

    @property
    def effective_dim(self) -> float:
        """info_gain / log(1 + t K_max / noise_var), Definition 1 of the paper; 0 where nothing can be learned."""
        most = log1p(self.n_observations * self.max_variance / self._noise_var)
        return self.info_gain / most if most > 0 else 0.0

    @property
    def max_variance(self) -> float:
        """The largest prior variance, K_max in the paper; without a pool, over the arms observed so far."""
        return self.kernel.max_variance(self.history.arms)

    @property
    def log_marginal_likelihood(self) -> float:
        """log p(rewards) under the prior and Gaussian noise."""
        return self._log_likelihood

    def predict(self, user: int, arms: Any = None) -> tuple[Array, Array]:
        """Returns the posterior mean and std of the reward function, without noise; None means the whole pool."""
        return self.read(self._checked_user(user), self._checked_arms(arms))

    def covariance(self, user: int, arms: Any = None) -> Array:
        """Returns the joint posterior covariance of these arms for this user."""
        return self._covariance(self._checked_user(user), self._checked_arms(arms))

    def prior_std(self, user: int, arms: Any = None) -> Array:
        """Returns the std of these arms before any observation."""
        rows = self._checked_arms(arms)
        return np.sqrt(self.kernel.user_cov[self._checked_user(user), user] * self.kernel.arm_diag(rows))

    def update(self, user: int, arm: Any, reward: float) -> None:
        """Learns one reward; on an error nothing has changed."""
        self.learn(self._checked_user(user), self._checked_arm(arm), checked_reward(reward))

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
        batch = self._checked_batch(users, arms, rewards)
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
        mean_drift = float(np.max(np.abs(mean - exact_mean) / np.sqrt(prior), initial=0.0))
        variance_drift = float(np.max(np.abs(variance - exact_variance) / prior, initial=0.0))
        return Drift(mean_drift, variance_drift, tolerance, healed=max(mean_drift, variance_drift) > tolerance)

    def explain(self) -> str:
        """Returns in words which engine this is, why, and what it has done for numerical safety."""
        jitter = f"jitter used {self.jitter.count} times"
        if self.jitter.count:
            jitter += f", at most {self.jitter.largest:.0e} of the diagonal"
        return (
            f"engine {self.engine!r}: {self.reason}. {self.n_observations} observations of {len(self.history)} distinct "
            f"pairs; {self.nbytes / 2**20:.1f} MiB held; {jitter}."
        )

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        return 0

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

    def _reconfigure(self, kernel: JointKernel, noise_var: float) -> None:
        before = self.kernel, self._noise_var
        self._configure(kernel, noise_var)
        try:
            self.rebuild()
        except NumericalError:
            self._configure(*before)
            self.rebuild()
            raise

    def _prior_variance_at_rows(self) -> Array:
        return self.kernel.diag(self.history.user_array(), self.history.arm_array())

    def _checked_user(self, user: Any) -> int:
        if isinstance(user, int | np.integer) and 0 <= user < self.kernel.n_users:
            return int(user)
        raise DimensionError(
            f"user index {user!r} is out of range", f"users are 0 to {self.kernel.n_users - 1}", "Use a row of the graph"
        )

    def _checked_arm(self, arm: Any) -> Any:
        arm = self.kernel.checked_arm(arm)
        self._check_dimension(np.shape(arm))
        return arm

    def _checked_arms(self, arms: Any) -> Any:
        arms = self.kernel.checked_arms(arms)
        self._check_dimension(np.shape(arms)[1:])
        return arms

    def _check_dimension(self, shape: tuple[int, ...]) -> None:
        if shape and self.history.arms and shape != self.history.arms[0].shape:
            raise DimensionError(
                f"an arm has {shape[0]} features",
                f"the arms observed so far have {self.history.arms[0].shape[0]}",
                "Use the same features throughout",
            )

    def _checked_batch(self, users: Any, arms: Any, rewards: Any) -> History:
        users, arms, rewards = list(users), list(arms), list(rewards)
        if not len(users) == len(arms) == len(rewards):
            raise DimensionError(
                f"{len(users)} users, {len(arms)} arms and {len(rewards)} rewards",
                "there is one of each for an observation",
                "Pass lists of the same length",
            )
        batch = History()
        for user, arm, reward in zip(users, arms, rewards, strict=True):
            row, column, value = self._checked_user(user), self._checked_arm(arm), checked_reward(reward)
            if batch.arms and np.shape(column) != np.shape(batch.arms[0]):
                raise DimensionError(
                    f"arms of shape {np.shape(batch.arms[0])} and {np.shape(column)} in one batch",
                    "all arms have the same features",
                    "Use the same features throughout",
                )
            batch.add(self.kernel.key(row, column), row, column, value)
        return batch
