"""Why the bandit believes what it believes: which users, arms and rewards moved an estimate, and by how much."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from coterie.contracts import ArmId, Array, UserId
from coterie.kernels.joint import JointKernel
from coterie.models import Model
from coterie.models.base import Index
from coterie.product.events import Events


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """An estimate taken apart: `level` and the contributions add up to `mean`.

    Attributes:
        user: Whose estimate.
        arm: Of which arm.
        mean: The estimate.
        std: Its uncertainty, without noise.
        level: The level of all rewards, from which the model measures.
        by_user: What the rewards of each user added, the largest first.
        by_arm: What the rewards of each arm added, the largest first.
        by_event: What each reward added: its number, user, arm, reward and contribution, the largest first.
        alone: The estimate if the users shared nothing: from this user's own rewards alone.
    """

    user: UserId
    arm: ArmId
    mean: float
    std: float
    level: float
    by_user: dict[UserId, float]
    by_arm: dict[ArmId, float]
    by_event: list[tuple[int, UserId, ArmId, float, float]]
    alone: float

    def __str__(self) -> str:
        users = ", ".join(f"{user!r} {share:+.3g}" for user, share in list(self.by_user.items())[:5])
        arms = ", ".join(f"{arm!r} {share:+.3g}" for arm, share in list(self.by_arm.items())[:5])
        return (
            f"{self.arm!r} for {self.user!r}: {self.mean:.3g} ± {self.std:.2g}, from a level of {self.level:.3g}. "
            f"By users: {users or 'nobody'}. By arms: {arms or 'none'}. From own rewards alone: {self.alone:.3g}."
        )


def contributions(
    model: Model, events: Events, weights: Array, *, user: int, arm: int, level: float
) -> tuple[Array, float]:
    """Returns what each reward adds to the mean of a pair, and the mean that the user's own rewards alone would give.

    The posterior mean is k' (K + N)^-1 (y - level), a weighted sum of rewards; a pair's weight is shared by its rewards
    in proportion to their own weights. O(k^3) for k distinct pairs.
    """
    users, arms = np.array(events.users, dtype=np.intp), np.array(events.arms, dtype=np.intp)
    size = int(arms.max(initial=0)) + 1
    pairs, rows = np.unique(users * size + arms, return_inverse=True)
    counts = np.asarray(np.bincount(rows, weights=weights, minlength=len(pairs)), dtype=np.float64)
    shares = np.divide(weights, counts[rows], out=np.zeros_like(weights), where=counts[rows] > 0)
    values = np.array(events.rewards) - level
    means = np.bincount(rows, weights=shares * values, minlength=len(pairs))
    pair_weights = _weights(model.kernel, model.noise_var, pairs // size, pairs % size, counts, user, arm)
    alone = model.kernel.with_user_cov(np.diag(model.kernel.user_cov.diagonal()))
    own = _weights(alone, model.noise_var, pairs // size, pairs % size, counts, user, arm)
    return pair_weights[rows] * shares * values, float(own @ means)


def _weights(
    kernel: JointKernel, noise_var: float, users: Index, arms: Index, counts: Array, user: int, arm: int
) -> Array:
    """Returns the weight of each pair's mean reward in the posterior mean of one pair; 0 where nothing counts."""
    out = np.zeros(len(counts))
    kept = counts > 0
    if kept.any():
        gram = kernel.cross(users[kept], arms[kept], users[kept], arms[kept]) + np.diag(noise_var / counts[kept])
        cross = kernel.cross_of_user(user, np.array([arm]), users[kept], arms[kept])[0]
        out[kept] = cho_solve(cho_factor(gram, lower=True), cross)
    return out


def totals(names: list[UserId], shares: Array) -> dict[UserId, float]:
    """Returns the sum for each name, the largest first; names that add nothing are left out."""
    summed: dict[UserId, float] = {}
    for name, share in zip(names, shares.tolist(), strict=True):
        summed[name] = summed.get(name, 0.0) + share
    ranked = sorted(summed.items(), key=lambda item: -abs(item[1]))
    return {name: share for name, share in ranked if share != 0.0}
