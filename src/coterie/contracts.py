"""The records that travel between the layers, the protocols they meet on, and the range of numbers. Read this first.

    a model believes      predict(user, arms) -> mean, std        update(user, arm, reward)
    a score orders        ucb, thompson, greedy: pure functions of a belief
    a policy chooses      select(user, candidates) -> Choice      update(user, arm, reward)
    a problem is the world, and only the runner may ask it for the truth, after the choice

Models speak integer indices (and rows of numbers where there is no pool); policies speak the caller's own ids.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

VERSION = "0.1.0"

Array = NDArray[np.float64]
Index = NDArray[np.intp]  # rows of users, of arms or of observations
UserId = Hashable
ArmId = Hashable

# What numbers may be, wherever they come in: squares, and fourth powers of rewards over propensities, are numbers too.
LARGEST_REWARD = LARGEST_FEATURE = LARGEST_WEIGHT = 1e50
LEAST_SPREAD = 1e-50  # of the feature in which arms differ most
LEAST_PROPENSITY = 1e-20
LEAST_WEIGHT = 1e-250  # of an edge that is one: sums of smaller ones have no digits left
REWARD_RULE = f"a reward is a finite number of at most {LARGEST_REWARD:g} in size"
FEATURE_RULE = f"a feature is a finite number of at most {LARGEST_FEATURE:g} in size"
SPREAD_RULE = f"some feature differs by at least {LEAST_SPREAD:g} from row to row, or none differs at all"
WEIGHT_RULE = f"a weight is 0, or a number from {LEAST_WEIGHT:g} to {LARGEST_WEIGHT:g}"
PROPENSITY_RULE = f"a propensity is a number from {LEAST_PROPENSITY:g} to 1"


def is_weight(values: Any) -> Any:
    """Returns whether each of these numbers can be the weight of an edge.

    Examples:
        >>> is_weight(np.array([0.0, 1e-300, 2.0, -1.0, np.nan]))
        array([ True, False,  True, False, False])
    """
    return (values == 0) | ((values >= LEAST_WEIGHT) & (values <= LARGEST_WEIGHT))


@dataclass(frozen=True, slots=True)
class Choice:
    """What a policy chose, and what it believed of it at that moment.

    Attributes:
        user: The user it was chosen for.
        arm: The id of the chosen arm; without a pool, the chosen vector.
        index: Its position among the candidates.
        mean: The believed reward.
        std: The uncertainty of the function there, without noise.
        score: What was maximised.
        number: The decision's number, from 0; with the seed it fixes the decision's randomness.
        certain: Whether the exact belief is proven to choose the same; None where nobody asked (`certified`).
    """

    user: UserId
    arm: Any
    index: int
    mean: float
    std: float
    score: float
    number: int
    certain: bool | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a belief had moved from an exact rebuild on the same history.

    Attributes:
        mean: Largest difference of the mean, in units of the prior std.
        variance: Largest difference of the variance, in units of the prior variance.
        tolerance: What was allowed for both.
        healed: Whether a difference exceeded the tolerance; the belief is the rebuilt one either way.
    """

    mean: float
    variance: float
    tolerance: float
    healed: bool


class Belief(Protocol):
    """What scores and widths may ask of a model."""

    @property
    def n_observations(self) -> int:
        """Rewards seen so far."""
        ...

    @property
    def info_gain(self) -> float:
        """Log det(I + K/noise_var), the gamma_t of the paper."""
        ...

    @property
    def noise_var(self) -> float:
        """The model's noise variance, the lambda of the paper."""
        ...

    def predict(self, user: int, arms: Any) -> tuple[Array, Array]:
        """Returns the posterior mean and std of these arms for this user."""
        ...

    def prior_std(self, user: int, arms: Any) -> Array:
        """Returns the std of these arms before any observation."""
        ...

    def covariance(self, user: int, arms: Any) -> Array:
        """Returns the joint posterior covariance of these arms for this user."""
        ...
