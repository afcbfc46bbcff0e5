"""What a policy would have earned on another's log: each estimator is a mean, or a ratio of two, over decisions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.errors import DimensionError, ParameterError
from coterie.product.evaluation.logged import Logged


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """What estimators may look at.

    Attributes:
        log: The decisions.
        target: The target's probability of every candidate, as `log.candidates`.
        predicted: The reward model's prediction of every candidate; none where there is no model.
        threshold: The largest weight that SWITCH does not leave to the model; by default sqrt(n): cutting larger ones
            gains more variance than it costs bias (Ionides, 2008).
        seed: Of the coins of replay.
    """

    log: Logged
    target: Array
    predicted: Array | None = None
    threshold: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for values in (self.target, self.predicted):
            if values is not None and np.shape(values) != self.log.candidates.shape:
                problem = f"there are {len(self.log.candidates)} candidates and values of shape {np.shape(values)}"
                raise DimensionError(problem, "there is one for each candidate", "Pass them as `log.candidates`")

    @property
    def largest_weight(self) -> float:
        """The weight above which SWITCH uses the model."""
        return sqrt(len(self.log)) if self.threshold is None else float(self.threshold)

    @property
    def weights(self) -> Array:
        """How much more probable the target would have chosen what was chosen."""
        return np.asarray(self.target[self.log.places] / self.log.propensities)

    @property
    def model(self) -> Array:
        """The reward model's predictions, or an error if there is none."""
        if self.predicted is None:
            rule = "dm, dr and switch compare rewards with predictions"
            raise ParameterError("there is no reward model", rule, "Pass predictions, or ask for ips and snips only")
        return self.predicted

    @property
    def modelled(self) -> Array:
        """What the model expects of the target in each decision."""
        return self.summed(self.target * self.model)

    @property
    def residual(self) -> Array:
        """Each reward minus the model's prediction of it."""
        return np.asarray(self.log.rewards - self.model[self.log.places])

    def summed(self, values: Array) -> Array:
        """Returns the sum over the candidates of each decision."""
        return np.asarray(np.add.reduceat(values, self.log.starts[:-1]))


class Terms(NamedTuple):
    """An estimate before it is summed: sum(above) / sum(below), a term of each for a decision.

    `effective` is the effective sample size: how many decisions of weight 1 it is as good as.
    """

    above: Array
    below: Array
    effective: float


def by_slate(terms: Terms, log: Logged) -> Terms:
    """Returns the terms of whole slates, the places of which are no independent decisions; as they are without slates.

    Examples:
        >>> log = Logged.of([0] * 3, [[0, 1]] * 3, [0, 1, 0], [1.0, 0.0, 2.0], [0.5] * 3, slates=[7, 7, 8])
        >>> by_slate(Terms(log.rewards, np.ones(3), 3.0), log)
        Terms(above=array([1., 2.]), below=array([2., 1.]), effective=2.0)
    """
    if log.slates is None:
        return terms
    starts = log.slate_starts
    above, below = (np.asarray(np.add.reduceat(each, starts)) for each in terms[:2])
    return Terms(above, below, terms.effective * len(starts) / len(log))


Estimator = Callable[[Sample], Terms]


def ips(sample: Sample) -> Terms:
    """Returns mean(weight * reward): no bias where propensities are right and all that is chosen had a chance."""
    weights = sample.weights
    return _mean(weights * sample.log.rewards, effective_size(weights))


def snips(sample: Sample) -> Terms:
    """Returns sum(weight * reward) / sum(weight): a bias of order 1/n for less variance."""
    weights = sample.weights
    return Terms(weights * sample.log.rewards, weights, effective_size(weights))


def direct(sample: Sample) -> Terms:
    """Returns what the model expects of the target: as good as the model, whatever the interval says."""
    return _mean(sample.modelled, float(len(sample.log)))


def doubly_robust(sample: Sample) -> Terms:
    """Returns mean(modelled + weight * residual): no bias where propensities or model are right."""
    weights = sample.weights
    return _mean(sample.modelled + weights * sample.residual, effective_size(weights))


def switch(sample: Sample) -> Terms:
    """Returns the doubly robust estimate without the correction of weights above the threshold (SWITCH-DR).

    It needs the propensity of the chosen arm only. Threshold 0 is the direct method, infinity is doubly robust.
    """
    kept = np.where(sample.weights <= sample.largest_weight, sample.weights, 0.0)
    return _mean(sample.modelled + kept * sample.residual, effective_size(kept))


def switch_ips(sample: Sample) -> Terms:
    """Returns IPS for the arms of weight up to the threshold, and the direct method for the others (SWITCH).

    It needs the logger's propensity of every candidate. Threshold 0 is the direct method, infinity is IPS.
    """
    chances = sample.log.chances
    if chances is None:
        rule = "switch-ips needs the logger's probability of every candidate"
        raise ParameterError("the log has no `chances`", rule, "Use switch, which needs that of the chosen arm only")
    never = np.where(sample.target > 0, np.inf, 0.0)
    ratios = np.divide(sample.target, chances, out=never, where=chances > 0)
    believed = sample.summed(np.where(ratios > sample.largest_weight, sample.target * sample.model, 0.0))
    kept = np.where(ratios[sample.log.places] <= sample.largest_weight, sample.weights, 0.0)
    return _mean(kept * sample.log.rewards + believed, effective_size(kept))


def replay(sample: Sample) -> Terms:
    """Returns the mean reward of decisions accepted with probability weight / largest weight.

    What is accepted is as if the target had chosen it. A uniform logger and a target without randomness make it the
    decisions on which they agree; a target that is the logger accepts all.
    """
    weights = sample.weights
    highest = float(weights.max())
    coins = np.random.default_rng([sample.seed, 1]).random(len(weights))
    return accepted(sample.log, coins * highest < weights)


def accepted(log: Logged, which: NDArray[np.bool_]) -> Terms:
    """Returns the mean reward of some decisions."""
    return Terms(np.where(which, log.rewards, 0.0), which.astype(np.float64), float(which.sum()))


def effective_size(weights: Array) -> float:
    """Returns Kish's (sum w)^2 / sum w^2, 0 where all weights are.

    Examples:
        >>> effective_size(np.array([2.0, 2.0, 0.0]))
        2.0
    """
    highest = float(weights.max(initial=0.0))
    if not highest:
        return 0.0
    scaled = weights / highest  # squares of large weights would overflow
    return float(scaled.sum() ** 2 / (scaled @ scaled))


def _mean(above: Array, effective: float) -> Terms:
    return Terms(above, np.ones(len(above)), effective)


ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(
    {
        "replay": replay,
        "ips": ips,
        "snips": snips,
        "dm": direct,
        "dr": doubly_robust,
        "switch": switch,
        "switch-ips": switch_ips,
    }
)
NEED_A_MODEL = frozenset({"dm", "dr", "switch", "switch-ips"})
