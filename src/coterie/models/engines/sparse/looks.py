"""When the common weights are looked at: a look goes through all users, so it must be worth it."""

from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph import GraphKernel

LOOK_GROWTH = 1.125
USERS_A_REWARD = 1000  # a look at so many users costs about as much as a reward
DUE = 0.3  # of eps: by so much the common weights may have to follow before they do


class Looks:
    """Counts rewards, and about how far the common weights have to follow them.

    Args:
        kernel: The graph, and the prior stds of its users.
        eps: How far means may be off, in units of these.

    Attributes:
        count: The rewards so far.
        typical: The prior std of half of the users, as it was when they were last looked at.
    """

    def __init__(self, kernel: GraphKernel, eps: float) -> None:
        self._eps, self.count, self._next = eps, 0, 1.0
        self.typical, self._owed = typical_std(kernel), np.zeros(kernel.features.shape[1])

    def owe(self, covariance: Array, row: Array, gap: float, variance: float) -> None:
        """Adds about how far the common weights have to follow a reward: its surprise times their gain.

        Args:
            covariance: Of the common weights, or one above it.
            row: Features of the arm.
            gap: How far the reward was from what was expected.
            variance: Of the reward, if the common weights were known.
        """
        gain = covariance @ row
        self._owed = self._owed + gain * (gap / (variance + float(row @ gain)))

    def are_due(self, *, closely: bool) -> bool:
        """Returns whether to look by now: so many rewards later, or (`closely`) once the weights have far to go."""
        far = closely and float(np.linalg.norm(self._owed)) > DUE * self._eps * self.typical
        return far or self.count >= self._next

    def looked(self, kernel: GraphKernel) -> None:
        """Notes a look: the next comes soon at first, and never too late. O(users)."""
        self._next = min(self.count * LOOK_GROWTH, self.count + kernel.n_users / USERS_A_REWARD)
        self.typical, self._owed = typical_std(kernel), np.zeros_like(self._owed)

    def state(self) -> dict[str, Any]:
        """Returns what `take` makes the same from, to the bit."""
        return {"count": self.count, "next_look": self._next, "owed": self._owed, "typical": self.typical}

    def take(self, state: dict[str, Any]) -> None:
        """Takes a state; one of before owes nothing."""
        self.count, self._next = state["count"], state["next_look"]
        self._owed, self.typical = state.get("owed", self._owed), state.get("typical", self.typical)


def typical_std(kernel: GraphKernel) -> float:
    """Returns the prior std that half of the users exceed. O(users)."""
    return float(np.sqrt(np.median(kernel.user_variances())))
