"""How far what only some users have in common is worth exploring: as far as they come again.

UCB adds a width times the posterior std. That pays where what is found out is used again. What all users have in common
is used in every round to come; what is one user's own only when that user comes again, which may be never. So of the
posterior variance the prior variance of a part is left out in proportion to 1 - visits / (visits + `ENOUGH`), visits
being how often those who share the part are expected to come.
"""

from typing import NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.policies.auto.parts import Density

AHEAD = 1_000  # rounds to come, at least; otherwise as many as have been
UNSEEN = 100  # pairs that the users who never came count as, at least; otherwise as many as have been seen
ENOUGH = 80  # visits to come that make half of a part worth exploring
TINY = 1e-300


class UserVariances(NamedTuple):
    """The prior variance of what only some users have in common.

    Attributes:
        own: Of what is a user's own.
        graph: Of what follows the graph, for each user.
    """

    own: float
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


def explored_share(std: Array, arm_variance: Array, variances: UserVariances, visits: Array, around: Array) -> Array:
    """Returns which share of the posterior std is worth exploring.

    Args:
        std: Of each arm, a row for each user.
        arm_variance: Of each arm, in units of the users' variances.
        variances: Of the users' parts.
        visits: How often each user is expected to come.
        around: How often those who share the user's graph part are.
    """
    idle, idle_around = (ENOUGH / (each + ENOUGH) for each in (visits, around))
    left_out = np.multiply.outer(variances.own * idle + variances.graph * idle_around, arm_variance)
    left_out /= np.maximum(std * std, TINY)
    return np.asarray(np.sqrt(1 - np.minimum(left_out, np.asarray(idle)[..., None])))
