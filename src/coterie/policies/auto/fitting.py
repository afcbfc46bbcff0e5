"""Hyperparameters by evidence: weak priors that follow the rewards' own scale, and a climb from where it stood."""

from dataclasses import dataclass
from math import log
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from coterie.contracts import Array
from coterie.policies.auto.parts import Hyper, KernelParts

STEPS = 25
BOUND = 4.0  # standard deviations of the prior
CORNER_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent normal distributions on the scale that hyperparameters are learned on."""

    centre: Hyper
    spread: Hyper

    @classmethod
    def of(cls, parts: KernelParts, variance: float) -> "Prior":
        """Returns the prior for rewards of this variance about their mean."""
        third = log(variance / 3)
        ridge = log(first_ridge(parts.mean_degree))
        centre = Hyper(third, third, third, ridge, log(parts.median_distance), -1.0, log(0.1), log(0.1 * variance))
        return cls(centre, Hyper(3.0, 3.0, 3.0, 1.5, 0.7, 2.0, 2.0, 2.5))

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Returns the log density, up to a constant, and its gradient."""
        scaled = (point - np.array(self.centre)) / np.array(self.spread)
        return -0.5 * float(scaled @ scaled), -scaled / np.array(self.spread)

    def bounds(self) -> list[tuple[float, float]]:
        """Returns the box that hyperparameters stay in."""
        together = zip(self.centre, self.spread, strict=True)
        return [(centre - BOUND * spread, centre + BOUND * spread) for centre, spread in together]

    def corners(self) -> list[Hyper]:
        """Returns three starts: most of the users' variance on the graph, on their own part, and in common."""
        names = ("graph", "own", "common")
        total = sum(np.exp(getattr(self.centre, name)) for name in names)
        rest = log(total * (1 - CORNER_SHARE) / 2)
        low = dict.fromkeys(names, rest)
        return [self.centre._replace(**{**low, name: log(total * CORNER_SHARE)}) for name in names]


def first_ridge(mean_degree: float) -> float:
    """Returns the ridge that learning starts from."""
    return 0.03 * (mean_degree if mean_degree > 0 else 1.0)


class Explaining(Protocol):
    """Anything that says how well hyperparameters explain the rewards."""

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Returns the log evidence and its gradient."""
        ...


def fit(evidence: Explaining, prior: Prior, start: Hyper, *, corners: bool) -> tuple[Hyper, float]:
    """Returns the hyperparameters of the highest posterior density found, and its logarithm.

    Args:
        evidence: Of the rewards.
        prior: Of the hyperparameters.
        start: Where to climb from.
        corners: Whether to climb from three corners as well.
    """
    bounds = prior.bounds()
    low, high = np.array(bounds).T

    def loss(point: Array) -> tuple[float, Array]:
        value, gradient = evidence.value_and_gradient(point)
        weight, pull = prior.value_and_gradient(point)
        return (-(value + weight), -(gradient + pull)) if np.isfinite(value) else (1e300, np.zeros(len(point)))

    found, options = [], {"maxiter": STEPS}
    for begin in [start, *(prior.corners() if corners else [])]:
        result = minimize(loss, np.clip(begin, low, high), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        found.append((float(result.fun), Hyper(*result.x.tolist())))
    least, best = min(found)
    return best, -least
