"""The belief from a Cholesky factor that grows with the observations; arms need not be known beforehand.

The factor grows in panels of 128 rows that are never copied, and the row of the arm that was just scored is the row it
grows by. O(candidates x k^2 / 2) a decision for k distinct pairs seen.
"""

from copy import copy
from math import inf, sqrt
from typing import Any

import numpy as np

from coterie.algebra import PanelCholesky, cholesky, log_det_of_factor, solve_lower
from coterie.algebra.gaps import gap, gap_of_matrices, gap_of_sums
from coterie.contracts import Array, Index
from coterie.errors import FactorisationError
from coterie.kernels.joint import JointKernel
from coterie.models.agreement import gap_of_rows
from coterie.models.conditioned import ConditionedModel
from coterie.models.history import GrowingArray, as_arms

SCORED = ("user", "arms", "solved", "mean", "variance")


class ExactModel(ConditionedModel):
    """Equation 4 of the paper, with the factor of K_t + noise grown by rows and never copied or inverted.

    Scoring q arms after k distinct pairs costs q k^2 / 2 multiply-adds; memory is about 4 k^2 bytes. A repeated pair
    is first added as a row of its own; when such rows exceed a quarter of the distinct pairs (and 64), the factor is
    recomputed from the collapsed history, so the cost stays bounded by the number of distinct pairs.

    Examples:
        >>> from coterie.kernels.arm import Linear
        >>> from coterie.kernels.joint import FreeKernel
        >>> model = ExactModel(FreeKernel(np.eye(1), Linear()), noise_var=1.0)
        >>> model.update(0, [1.0], 2.0)
        >>> model.predict(0, [[1.0], [2.0]])
        (array([1., 2.]), array([0.70710678, 1.41421356]))
    """

    engine = "exact"
    stages = False  # a factor keeps every row: two for each pair would cost four times as much, and gain nothing

    def __init__(self, kernel: JointKernel, *, noise_var: float = 0.01) -> None:
        super().__init__(kernel, noise_var=noise_var)
        self._reset()

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        return self._factor.nbytes

    def _reset(self) -> None:
        self._factor = PanelCholesky()
        self._users = GrowingArray(np.empty(0, dtype=np.intp))
        self._arms: GrowingArray | None = None
        self._ready = GrowingArray(np.empty(0))  # the same arms, prepared
        self._whitened = GrowingArray(np.empty(0))
        self._scored: tuple[int, Any, Array, Array, Array] | None = None

    def _belief(self) -> dict[str, Any]:
        return {
            "factor": self._factor.state(),
            "users": self._users.values,
            "arms": None if self._arms is None else self._arms.values,
            "whitened": self._whitened.values,
            # the next reward may be learned by it, and a recomputed row would differ in the last bit
            "scored": None if self._scored is None else dict(zip(SCORED, self._scored, strict=True)),
        }

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        super()._restore(state, kernel)
        self._factor = PanelCholesky.restored(state["factor"])
        self._users, self._whitened = GrowingArray(state["users"]), GrowingArray(state["whitened"])
        self._arms = None if state["arms"] is None else GrowingArray(state["arms"])
        self._ready = GrowingArray(np.empty(0) if state["arms"] is None else kernel.prepared(state["arms"]))
        scored = state["scored"]
        self._scored = None if scored is None else tuple(scored[name] for name in SCORED)

    def _mismatch(self) -> float:
        factor, users = self._factor, self._users.values
        arms = self.kernel.no_arms() if self._arms is None else self._arms.values
        sizes = {factor.size, len(users), len(arms), self._whitened.size}
        if len(sizes) > 1 or not factor.is_whole or not np.all(factor.pivots() > 0):
            return inf
        noise, log_det = factor.row_squares() - self.kernel.diag(users, arms), 2 * float(np.log(factor.pivots()).sum())
        if not np.all(noise > 0):
            return inf
        probe = np.random.default_rng(0).standard_normal(factor.size)
        prior = [np.zeros(0)]
        for start in range(0, factor.size, self.chunk):
            part = slice(start, start + self.chunk)
            prior.append(self.kernel.cross(users[part], arms[part], users, arms) @ probe)
        return max(
            gap(factor.times(factor.transposed_times(probe)), np.concatenate(prior) + noise * probe),
            gap_of_sums(factor.log_det, log_det),
            self._gap_of_rows(self.noise_var / noise),
            self._gap_of_scored(),
        )

    def _gap_of_rows(self, counts: Array) -> float:
        """Returns how far the rows, each of so many rewards, are from the history; a pair may have several."""
        history, pairs = self.history, zip(self._users.values.tolist(), self._arm_list(), strict=True)
        keys = [self.kernel.key(*pair) for pair in pairs]
        if set(keys) != set(history.rows):
            return inf
        place = np.array([history.rows[key] for key in keys], dtype=np.intp)
        wanted = {"counts": history.count_array(), "means": history.mean_array()}
        return gap_of_rows(place, counts, self._factor.times(self._whitened.values), wanted)

    def _gap_of_scored(self) -> float:
        if self._scored is None:
            return 0.0
        fresh = copy(self)
        fresh.read(self._scored[0], self._scored[1])
        if fresh._scored is None:
            return inf
        return max(gap_of_matrices(old, new) for old, new in zip(self._scored[2:], fresh._scored[2:], strict=True))

    def _arm_list(self) -> list[Any]:
        return [] if self._arms is None else as_arms(self._arms.values)

    def _surprise(self) -> float:
        """Returns that of the mean rewards: all that the rows have, less what rewards of one pair differ by."""
        history, whitened = self.history, self._whitened.values
        pairs = zip(self._users.values.tolist(), self._arm_list(), strict=True)
        place = [history.rows[self.kernel.key(*pair)] for pair in pairs]
        apart = self._factor.times(whitened) - history.mean_array()[place]
        arms = self.kernel.no_arms() if self._arms is None else self._arms.values
        noise = self._factor.row_squares() - self.kernel.diag(self._users.values, arms)
        return float(whitened @ whitened - np.sum(apart * apart / noise))

    def read(self, user: int, arms: Any) -> tuple[Array, Array]:
        """Returns mean and std."""
        ready = self.kernel.prepared(arms)
        prior = self.kernel.user_cov[user, user] * self.kernel.prepared_diag(ready)
        if self._arms is None:
            return np.zeros(len(arms)), np.sqrt(prior)
        solved = self._solved(user, ready)
        mean = solved @ self._whitened.values
        variance = np.maximum(prior - np.einsum("ij,ij->i", solved, solved), 0.0)
        # The arm that is chosen is learned next: its solved row is the row that the factor grows by.
        self._scored = user, np.array(arms), solved, mean.copy(), variance
        return mean, np.sqrt(variance)

    def peek(self, user: int, arms: Any) -> tuple[Array, Array]:
        """Returns mean and std, and keeps the row that was scored last."""
        scored = self._scored
        mean, std = self.read(user, arms)
        self._scored = scored
        return mean, std

    def read_covariance(self, user: int, arms: Any) -> Array:
        """Returns the joint covariance."""
        users = np.full(len(arms), user)
        prior = self.kernel.cross(users, arms, users, arms)
        if self._arms is None:
            return prior
        solved = self._solved(user, self.kernel.prepared(arms))
        return np.asarray(prior - solved @ solved.T)

    def _solved(self, user: int, ready: Any) -> Array:
        """Returns the covariances of a user's prepared arms with the rows, each times the inverse factor."""
        cross = self.kernel.prepared_cross(ready, self._ready.values)
        cross *= self.kernel.user_cov[user].take(self._users.values)
        return self._factor.solve(cross)

    def _condition_one(self, user: int, arm: Any, reward: float, noise_var: float | None = None) -> tuple[float, float]:
        position = self._position_in_scored(user, arm)
        if position is None:
            self._scored = None
            self.read(user, np.array([arm]))
            position = 0
        if self._scored is None:
            solved, mean = np.empty((1, 0)), 0.0
            variance = float(self.kernel.user_cov[user, user] * self.kernel.arm_diag(np.array([arm]))[0])
        else:
            _, _, rows, means, variances = self._scored
            solved, mean, variance = rows[position : position + 1], float(means[position]), float(variances[position])
        variance += self.noise_var if noise_var is None else noise_var
        surprise = reward - mean
        self._grow(np.array([user]), np.array([arm]), solved, np.array([[sqrt(variance)]]), np.array([surprise]))
        return variance, surprise

    def _condition(self, users: Index, arms: Any, values: Array, noise: Array) -> tuple[float, float]:
        inner = self.kernel.cross(users, arms, users, arms)
        prior = inner.diagonal().copy()
        inner[np.diag_indices_from(inner)] += noise
        solved = np.empty((len(users), 0))
        surprise = values
        if self._arms is not None:
            solved = self._factor.solve(self.kernel.cross(users, arms, self._users.values, self._arms.values))
            inner -= solved @ solved.T
            surprise = values - solved @ self._whitened.values
        corner = cholesky(inner, self.jitter, scale=float(prior.max()))
        self._grow(users, arms, solved, corner, surprise)
        whitened = self._whitened.values[-len(users) :]
        return log_det_of_factor(corner), float(whitened @ whitened)

    def _grow(self, users: Index, arms: Any, solved: Array, corner: Array, surprise: Array) -> None:
        if not np.isfinite(corner).all():
            raise FactorisationError(
                "a new row of the factor is not finite", "kernel values are finite", "Check the arm's features"
            )
        self._factor.append(solved, corner)
        self._users.extend(users)
        ready = self.kernel.prepared(arms)
        if self._arms is None:
            self._arms, self._ready = GrowingArray(arms), GrowingArray(ready)
        else:
            self._arms.extend(arms)
            self._ready.extend(ready)
        self._whitened.extend(solve_lower(corner, surprise))
        self._scored = None

    def _renewal_is_due(self) -> bool:
        distinct = len(self.history)
        return self._factor.size - distinct > max(64, distinct // 4)

    def _position_in_scored(self, user: int, arm: Any) -> int | None:
        if self._scored is None or self._scored[0] != user:
            return None
        same = np.equal(self._scored[1], arm)
        hits = np.flatnonzero(same if same.ndim == 1 else same.all(axis=1))
        return int(hits[0]) if len(hits) else None
