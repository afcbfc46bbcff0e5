"""Hyperparameters by evidence: weak priors that follow the rewards' own scale, and a climb from where it stood."""

from dataclasses import dataclass
from math import log
from typing import Generic, TypeVar

import numpy as np
from scipy.optimize import minimize

from coterie.contracts import Array
from coterie.policies.auto.evidence import Explaining
from coterie.policies.auto.hyper import Hyper, InputHyper
from coterie.policies.auto.parts import Scales

H = TypeVar("H", Hyper, InputHyper)
STEPS = 8  # of a fit beside decisions, which goes on from the last one
THOROUGH = 25  # of one that stands alone
SHARES = (0.3, 0.2, 0.5)  # of the signal's variance, beforehand: graph, own, common
BOUND = 4.0  # standard deviations of the prior
CORNER_SHARE = 0.8
NOISE_SHARE = 0.35  # of the rewards' variance, beforehand
SURELY = 0.3  # the spread of the noise of rewards of two values
RIDGE_STEP = 0.5  # of the logarithm


@dataclass(frozen=True, slots=True)
class Prior(Generic[H]):
    """Independent normal distributions on the scale that hyperparameters are learned on.

    Attributes:
        centre: Their means.
        spread: Their standard deviations.
    """

    centre: H
    spread: H

    @classmethod
    def of(cls, scales: Scales, variance: float, *, noise_share: float | None = None) -> "Prior[Hyper]":
        """Returns the prior for rewards of this variance about their mean.

        Args:
            scales: Of graph and arms.
            variance: Of the rewards.
            noise_share: How much of it is noise, where that is known beforehand (`noise_share_of`).
        """
        ridge, lengthscale = log(first_ridge(scales.mean_degree)), log(scales.median_distance)
        of_noise = NOISE_SHARE if noise_share is None else noise_share
        left = 1.0 if noise_share is None else 1 - noise_share
        graph, own, common = (log(share * left * variance) for share in SHARES)
        centre = Hyper(graph, own, common, ridge, lengthscale, -1.0, log(0.1), log(of_noise * variance))
        spread = Hyper(1.5, 2.0, 1.0, 1.5, 0.5, 2.0, 2.0, 0.8 if noise_share is None else SURELY)
        return Prior(centre, spread)

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Returns the log density, up to a constant, and its gradient."""
        scaled = (point - np.array(self.centre)) / np.array(self.spread)
        return -0.5 * float(scaled @ scaled), -scaled / np.array(self.spread)

    def bounds(self) -> list[tuple[float, float]]:
        """Returns the box that hyperparameters stay in."""
        together = zip(self.centre, self.spread, strict=True)
        return [(centre - BOUND * spread, centre + BOUND * spread) for centre, spread in together]

    def corners(self) -> list[H]:
        """Returns three starts: most of the users' variance on the graph, on their own part, and in common."""
        names = ("graph", "own", "common")
        total = sum(np.exp(getattr(self.centre, name)) for name in names)
        rest = log(total * (1 - CORNER_SHARE) / 2)
        low = dict.fromkeys(names, rest)
        return [self.centre._replace(**{**low, name: log(total * CORNER_SHARE)}) for name in names]


def first_ridge(mean_degree: float) -> float:
    """Returns the ridge that learning starts from."""
    return 0.1 * (mean_degree if mean_degree > 0 else 1.0)


def rounded_ridge(ridge: float, start: float) -> float:
    """Returns the nearest log ridge of a grid around another: one for several fits, since (L + ridge I)^-1 is dear.

    Examples:
        >>> rounded_ridge(-0.8, 0.0), rounded_ridge(0.1, 0.2)
        (-1.0, 0.2)
    """
    return start + RIDGE_STEP * round((ridge - start) / RIDGE_STEP)


def fit(
    evidence: Explaining,
    prior: Prior[H],
    start: H,
    *,
    corners: bool = True,
    steps: int = STEPS,
    whitened: bool = False,
) -> tuple[H, float]:
    """Returns the hyperparameters of the highest posterior density found, and its logarithm.

    It climbs from the best of the warm start and three corners, of which each has most of the variance in one part: a
    warm start alone would stay with whatever few rewards seemed to say.

    Args:
        evidence: Of the rewards.
        prior: Of the hyperparameters.
        start: A warm start.
        corners: Whether to look at the corners too.
        steps: Of the climb, at most.
        whitened: Whether hyperparameters are measured in spreads of the prior, which takes fewer steps where these are
            many and differ.
    """
    bounds = prior.bounds()
    low, high = np.array(bounds).T
    units = np.array(prior.spread) if whitened else np.ones(len(low))

    def loss(point: Array) -> tuple[float, Array]:
        value, gradient = evidence.value_and_gradient(point)
        weight, pull = prior.value_and_gradient(point)
        return (-(value + weight), -(gradient + pull)) if np.isfinite(value) else (1e300, np.zeros(len(point)))

    starts = [np.clip(each, low, high) for each in (start, *(prior.corners() if corners else ()))]
    first = min(starts, key=lambda each: loss(each)[0])

    def loss_in_units(point: Array) -> tuple[float, Array]:
        value, gradient = loss(point * units)
        return value, gradient * units

    box, options = list(zip(low / units, high / units, strict=True)), {"maxiter": steps}
    found = minimize(loss_in_units, first / units, jac=True, method="L-BFGS-B", bounds=box, options=options)
    best = type(start)(*(found.x * units).tolist())
    return best._replace(ridge=rounded_ridge(best.ridge, prior.centre.ridge)), -float(found.fun)
