"""The textbook formula, rebuilt every time: slow, obviously right, and the reference for ever."""

from math import inf, log, pi
from typing import Any

import numpy as np

from coterie.contracts import Array, Drift
from coterie.kernels.joint import JointKernel
from coterie.models.agreement import gap_of_rows
from coterie.models.base import DRIFT_TOLERANCE, Model
from coterie.models.history import History, as_arms


class DenseModel(Model):
    """Equation 4 of the paper on all t observations, repeats and all, with a fresh solve for each question. O(t^3).

    Examples:
        >>> from coterie.kernels.joint import PoolKernel
        >>> model = DenseModel(PoolKernel(np.eye(1), np.eye(1)), noise_var=1.0)
        >>> model.update(0, 0, 2.0)
        >>> model.predict(0)
        (array([1.]), array([0.70710678]))
    """

    engine = "dense"

    def __init__(self, kernel: JointKernel, *, noise_var: float = 0.01) -> None:
        super().__init__(kernel, noise_var=noise_var)
        self._users: list[int] = []
        self._arms: list[Any] = []
        self._rewards: list[float] = []
        self._weights: list[float] = []
        self._scatters: list[float] = []  # about each row, which may be the mean of several rewards

    def _belief(self) -> dict[str, Any]:
        rows = {"users": self._users, "arms": self._arms, "rewards": self._rewards}
        rows |= {"weights": self._weights, "scatters": self._scatters}
        return {name: np.array(values) for name, values in rows.items()}

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        super()._restore(state, kernel)
        self._users, self._arms = state["users"].tolist(), as_arms(state["arms"])
        self._rewards, self._weights = state["rewards"].tolist(), state["weights"].tolist()
        self._scatters = state["scatters"].tolist() if "scatters" in state else [0.0] * len(self._rewards)

    def mismatch(self) -> float:
        """Returns how far the rows that are remembered are from the history."""
        rows = self.history.rows
        keys = [self.kernel.key(*pair) for pair in zip(self._users, self._arms, strict=True)]
        if set(keys) != set(rows):
            return inf
        place, values = np.array([rows[key] for key in keys], dtype=np.intp), np.array(self._rewards)
        return gap_of_rows(place, np.array(self._weights), values, self.history.state(), np.array(self._scatters))

    @property
    def info_gain(self) -> float:
        """Log det(I + K_t/noise_var), computed at each call."""
        if not self._users:
            return 0.0
        scale = np.sqrt(np.array(self._weights) / self.noise_var)
        return float(np.linalg.slogdet(scale[:, None] * self._gram() * scale + np.eye(len(scale)))[1])

    @property
    def log_marginal_likelihood(self) -> float:
        """Log N(y; 0, K_t + noise_var I), computed at each call.

        A row of weight w is the mean of w rewards: log N(rewards) = log N(mean) + log N(rewards | mean).
        """
        if not self._users:
            return 0.0
        rewards, weights = np.array(self._rewards), np.array(self._weights)
        noisy = self._noisy_gram()
        fit = float(rewards @ np.linalg.solve(noisy, rewards))
        means = fit + float(np.linalg.slogdet(noisy)[1]) + len(rewards) * log(2 * pi)
        within = float(np.sum((weights - 1) * log(2 * pi * self.noise_var) + np.log(weights)))
        return -0.5 * (means + within + sum(self._scatters) / self.noise_var)

    def read(self, user: int, arms: Any) -> tuple[Array, Array]:
        """Returns mean and std."""
        prior = self.kernel.user_cov[user, user] * self.kernel.arm_diag(arms)
        if not self._users:
            return np.zeros(len(arms)), np.sqrt(prior)
        cross = self._cross(user, arms)
        weights = np.linalg.solve(self._noisy_gram(), cross.T)
        mean = weights.T @ np.array(self._rewards)
        return mean, np.sqrt(np.maximum(prior - np.sum(cross.T * weights, axis=0), 0.0))

    def read_covariance(self, user: int, arms: Any) -> Array:
        """Returns the joint covariance."""
        users = np.full(len(arms), user)
        prior = self.kernel.cross(users, arms, users, arms)
        if not self._users:
            return prior
        cross = self._cross(user, arms)
        return np.asarray(prior - cross @ np.linalg.solve(self._noisy_gram(), cross.T))

    def learn(self, user: int, arm: Any, reward: float) -> None:
        """Remembers one reward."""
        self.learn_weighted(user, arm, reward, weight=1.0)

    def learn_weighted(self, user: int, arm: Any, reward: float, *, weight: float) -> None:
        """Remembers one observation of this weight."""
        self._users.append(user)
        self._arms.append(arm)
        self._rewards.append(reward)
        self._weights.append(weight)
        self._scatters.append(0.0)
        self.history.add(self.kernel.key(user, arm), user, arm, reward, weight=weight)

    def update_many(self, users: Any, arms: Any, rewards: Any) -> None:
        """Remembers many rewards."""
        users, arms, rewards = list(users), list(arms), list(rewards)
        self.checked_batch(users, arms, rewards)
        for user, arm, reward in zip(users, arms, rewards, strict=True):
            self.update(user, arm, reward)

    def relearn(self, history: History) -> None:
        """Forgets its observations and remembers the rows of this history, each with its weight."""
        history.rekey(self.kernel.key)
        self.history = history
        self._users, self._arms = list(history.users), list(history.arms)
        self._rewards, self._weights = list(history.means), [float(count) for count in history.counts]
        self._scatters = list(history.scatters)

    def _reconfigure(self, kernel: JointKernel, noise_var: float) -> None:
        self.kernel, self.noise_var = kernel, noise_var

    def _shift(self, amount: float) -> None:
        super()._shift(amount)
        self._rewards = [reward + amount for reward in self._rewards]

    def check(self, tolerance: float = DRIFT_TOLERANCE) -> Drift:
        """Returns no drift: every answer is computed from scratch."""
        return Drift(0.0, 0.0, tolerance, healed=False)

    def _gram(self) -> Array:
        users, arms = np.array(self._users), np.array(self._arms)
        return self.kernel.cross(users, arms, users, arms)

    def _noisy_gram(self) -> Array:
        return self._gram() + np.diag(self.noise_var / np.array(self._weights))

    def _cross(self, user: int, arms: Any) -> Array:
        return self.kernel.cross_of_user(user, arms, np.array(self._users), np.array(self._arms))
