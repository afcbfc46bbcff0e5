"""How far a posterior std is worth exploring: as far as what is found out is of use again.

UCB adds a width times the posterior std. That pays where what is found out is used again: for what all users have in
common whenever the arm is shown, for a user's own taste only when that user comes again, which may be never. So the
width goes by the rounds in which it is of use: its square is log(1 + rounds / `ENOUGH`), which grows with the horizon
as an optimal index of one arm does. The posterior variance is not known part by part: all of it is explored as what is
common is, less the prior variance of the rest as far as that is worth less. What a user shares with neighbours counts
as the user's own.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.models import Model

LEAST_HORIZON = 1_000  # rounds to come, at least; otherwise as many as have been
UNSEEN = 100  # prior pairs spread over all users, or as many as have been seen if these are more; at most one a user
ENOUGH = 80  # rounds of use that give a width of sqrt(log 2)
TINY = 1e-300


@dataclass(frozen=True, slots=True)
class RoundsOfUse:
    """What the width is multiplied by: each part of the posterior is explored as far as it is of use again.

    Attributes:
        n_arms: How many arms there are; those shown say how likely an arm is to be shown again.
        common_share: Of the users' prior variance, what is common to all of them.
    """

    n_arms: int
    common_share: float

    def __call__(self, model: Model, rows: Any, arms: Any, std: Array) -> Array:
        """Returns a factor for each std, of these arms for a user's row or more."""
        kernel, history, users = model.kernel, model.history, np.atleast_1d(rows).tolist()
        shown = std.shape[-1] / self.n_arms
        pairs = np.array([history.pairs_of[user] for user in users], dtype=np.float64)
        n_rewards = history.n_observations
        visits = shown * expected_visits(pairs, len(history.rows), model.kernel.n_users, n_rewards)
        variances = np.array([kernel.user_variance(user) for user in users]) - self.common_share
        not_common = np.multiply.outer(variances, kernel.arm_diag(arms)).reshape(std.shape)
        horizon = shown * rounds_to_come(n_rewards)
        return explored_widths(std, not_common, horizon, visits.reshape(std.shape[:-1]))


def rounds_to_come(n_rewards: int) -> int:
    """Returns how many rounds are expected to come after so many."""
    return max(n_rewards, LEAST_HORIZON)


def expected_visits(pairs: Array, n_pairs: int, n_users: int, n_rewards: int) -> Array:
    """Returns how often users are expected to come in the rounds to come, from the pairs of theirs that were seen.

    Each user starts with the same share of a pair, so that those who never came are expected too.

    Examples:
        >>> expected_visits(np.array([9.0, 0.0]), n_pairs=80, n_users=20, n_rewards=100)
        array([100.,  10.])
    """
    prior = min(n_users, max(n_pairs, UNSEEN))
    return np.asarray(rounds_to_come(n_rewards) * (pairs + prior / n_users) / (n_pairs + prior))


def worth(rounds: float | Array) -> Array:
    """Returns the square of the width for what is of use in so many rounds.

    Examples:
        >>> np.sqrt(worth(np.array([8.0, 80.0, 1000.0, 100_000.0]))).round(2)
        array([0.31, 0.83, 1.61, 2.67])
    """
    return np.asarray(np.log1p(np.asarray(rounds) / ENOUGH))


def explored_widths(std: Array, not_common: Array, horizon: float, visits: Array) -> Array:
    """Returns the widths that posterior stds are worth.

    Args:
        std: Of each arm, a row for each user.
        not_common: The prior variance of what is not common to all users, likewise.
        horizon: Rounds to come in which an arm is shown.
        visits: Those of each user.
    """
    most = worth(horizon)
    idle = np.maximum(1 - worth(visits) / most, 0.0)[..., None]
    variance = np.maximum(std * std, TINY)
    left_out = idle * (np.minimum(not_common, variance) / variance)  # at most 1, however small the variance
    return np.asarray(np.sqrt(most * (1 - left_out)))
