"""How far a posterior std is worth exploring: as far as what is found out is of use again.

UCB adds a width times the posterior std. That pays where what is found out is used again: for what all users have in
common whenever the arm is shown, for what is one user's own only when that user comes again, which may be never. So the
width of each part goes by the rounds in which it is of use: its square is log(1 + rounds / `ENOUGH`), which grows with
the horizon as an optimal index of one arm does. The posterior variance is not known part by part: all of it is explored
as what is common is, less the prior variance of the other parts as far as they are worth less.
"""

from typing import NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.policies.auto.parts import Density

AHEAD = 1_000  # rounds to come, at least; otherwise as many as have been
UNSEEN = 100  # pairs that the users who never came count as, at least; otherwise as many as have been seen
ENOUGH = 80  # rounds of use that give a width of sqrt(log 2)
TINY = 1e-300


class UserVariances(NamedTuple):
    """The prior variance of what only some users have in common.

    Attributes:
        own: Of what is a user's own.
        graph: Of what follows the graph, for each user.
    """

    own: float
    graph: Array


class RoundsOfUse(NamedTuple):
    """In how many rounds to come what is found out of an arm is of use.

    Attributes:
        common: If all users have it in common.
        own: If it is a user's own, for each user.
        graph: If the users around have it in common, for each user.
    """

    common: float
    own: Array
    graph: Array


def rounds_ahead(n_rewards: int) -> int:
    """Returns how many rounds are expected to come after so many."""
    return max(n_rewards, AHEAD)


def expected_visits(pairs: Array, n_pairs: int, n_users: int, n_rewards: int) -> Array:
    """Returns how often users are expected to come in the rounds ahead, from the pairs of theirs that were seen.

    Each user begins with the same share of a pair, so that those who never came are expected too.

    Examples:
        >>> expected_visits(np.array([9.0, 0.0]), n_pairs=80, n_users=20, n_rewards=100)
        array([100.,  10.])
    """
    prior = min(n_users, max(n_pairs, UNSEEN))
    return np.asarray(rounds_ahead(n_rewards) * (pairs + prior / n_users) / (n_pairs + prior))


def reach(density: Density, ridge: float) -> float:
    """Returns with how many users a user shares the graph part: the mean sum of squared correlations.

    Examples:
        >>> reach(Density(np.array([0.0, 3.0]), np.array([0.5, 0.5])), ridge=1.0)
        1.36
    """
    gains = ridge / (density.nodes + ridge)  # at most 1, whatever the unit of edges
    return float(density.weights @ (gains * gains)) / float(density.weights @ gains) ** 2


def worth(rounds: float | Array) -> Array:
    """Returns the square of the width for what is of use in so many rounds.

    Examples:
        >>> np.sqrt(worth(np.array([8.0, 80.0, 1000.0, 100_000.0]))).round(2)
        array([0.31, 0.83, 1.61, 2.67])
    """
    return np.asarray(np.log1p(np.asarray(rounds) / ENOUGH))


def explored_widths(std: Array, arm_variance: Array, variances: UserVariances, use: RoundsOfUse) -> Array:
    """Returns the widths that posterior stds are worth.

    Args:
        std: Of each arm, a row for each user.
        arm_variance: Of each arm, in units of the users' variances.
        variances: Of the users' parts.
        use: Of the parts.
    """
    most = worth(use.common)
    idle, idle_around = (np.maximum(1 - worth(each) / most, 0.0) for each in (use.own, use.graph))
    left_out = np.multiply.outer(variances.own * idle + variances.graph * idle_around, arm_variance)
    left_out /= np.maximum(std * std, TINY)
    return np.asarray(np.sqrt(most * (1 - np.minimum(left_out, idle[..., None]))))
