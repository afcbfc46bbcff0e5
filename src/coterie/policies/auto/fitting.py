"""Hyperparameters by evidence: weak priors that follow the rewards' own scale, and a climb from where it stood."""

from dataclasses import dataclass
from math import exp, inf, log
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from coterie.contracts import Array
from coterie.policies.auto.parts import Hyper, KernelParts

STEPS = 25
CLIMBS = 2
BOUND = 4.0  # standard deviations of the prior
CORNER_SHARE = 0.8
NONE = -60.0  # the log variance of a part that is not there
STRONG = 3.0  # of a log evidence: what is called strong
FIRST = 1.0  # of their parts' variances, in which rare hits at first show nothing: how far the logarithms spread
MOSTLY, SURELY = 0.8, 0.25  # of rewards that are one of two values: the noise's share of their variance, and its spread


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent normal distributions on the scale that hyperparameters are learned on.

    Attributes:
        centre: Their means.
        spread: Their standard deviations.
        shortest: The log of the shortest length-scale.
        least_ridge: The log of the least ridge.
    """

    centre: Hyper
    spread: Hyper
    shortest: float = -inf
    least_ridge: float = -inf

    @classmethod
    def of(cls, parts: KernelParts, variance: float, *, two_valued: bool = False) -> "Prior":
        """Returns the prior for rewards of this variance about their mean.

        A reward that is one of two values is noise for the most part: of a hit that comes with probability p a share
        p (1 - p) of the variance is left, however well p is known. Where pairs hardly repeat, nothing else would tell
        that from what users have of their own. And while hits are few, rewards hardly tell that there is anything to
        learn; the parts keep to variances with which it is learned.
        """
        third = log(variance / 3)
        ridge = log(max(first_ridge(parts.mean_degree), parts.least_ridge))
        lengthscale = log(max(parts.median_distance, parts.shortest))
        centre = Hyper(third, third, third, ridge, lengthscale, -1.0, log(0.1), log(0.35 * variance))
        shortest, least_ridge = (log(least) if least > 0 else -inf for least in (parts.shortest, parts.least_ridge))
        spread = Hyper(2.0, 2.0, 2.0, 1.5, 0.5, 2.0, 2.0, 0.8)
        if two_valued:
            centre, spread = (
                centre._replace(noise=log(MOSTLY * variance)),
                spread._replace(noise=SURELY, graph=FIRST, own=FIRST, common=FIRST),
            )
        return cls(centre, spread, shortest, least_ridge)

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Returns the log density, up to a constant, and its gradient."""
        scaled = (point - np.array(self.centre)) / np.array(self.spread)
        return -0.5 * float(scaled @ scaled), -scaled / np.array(self.spread)

    def bounds(self) -> list[tuple[float, float]]:
        """Returns the box that hyperparameters stay in."""
        lowest = dict.fromkeys(Hyper._fields, -inf) | {"lengthscale": self.shortest, "ridge": self.least_ridge}
        together = zip(self.centre, self.spread, lowest.values(), strict=True)
        return [(max(centre - BOUND * spread, low), centre + BOUND * spread) for centre, spread, low in together]

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


def fit(evidence: Explaining, prior: Prior, start: Hyper, *, corners: bool = True) -> tuple[Hyper, float]:
    """Returns the hyperparameters of the highest posterior density found, and its logarithm.

    It climbs from the best two of the start and three corners, of which each has most of the variance in one part: a
    warm start alone would stay with whatever few rewards seemed to say.

    Args:
        evidence: Of the rewards.
        prior: Of the hyperparameters.
        start: A warm start.
        corners: Whether to look at the corners too.
    """
    bounds = prior.bounds()
    low, high = np.array(bounds).T

    def loss(point: Array) -> tuple[float, Array]:
        value, gradient = evidence.value_and_gradient(point)
        weight, pull = prior.value_and_gradient(point)
        return (-(value + weight), -(gradient + pull)) if np.isfinite(value) else (1e300, np.zeros(len(point)))

    begun = Hyper(*(centre if value == NONE else value for value, centre in zip(start, prior.centre, strict=True)))
    starts = [np.clip(each, low, high) for each in (begun, *(prior.corners() if corners else ()))]
    ranked = sorted(range(len(starts)), key=lambda which: loss(starts[which])[0])
    found, options = [], {"maxiter": STEPS}
    for which in ranked[:CLIMBS]:
        result = minimize(loss, starts[which], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        found.append((float(result.fun), Hyper(*result.x.tolist())))
    least, best = min(found)
    return best, -least


class Weighing(Explaining, Protocol):
    """Anything that also says how well they explain the rewards if what is each user's own were noise."""

    def value(self, hyper: Hyper, *, as_noise: str | None = None) -> float:
        """Returns the log evidence."""
        ...


def without_idle_parts(evidence: Weighing, hyper: Hyper, *, reaches_all: bool) -> Hyper:
    """Returns the hyperparameters without the parts that nothing speaks for: rewards must be 20 times likelier with it.

    The prior keeps such a part at a thousandth of the variance rather than at none; over thousands of rewards so much
    is learned of it that choices go by it. Users always learn from others in some way: the common part stays unless the
    graph stays and reaches all but a few; the graph stays where it has more than half of the variance and nothing
    speaks for another part.

    What is a user's own, or follows the graph, must tie rewards together. Its variance differs from arm to arm, as that
    of rewards of two values does, so it may explain rewards that nothing ties: it is weighed against noise of this
    variance, and turns into noise if that does as well. The graph must tie users to each other besides: it joins their
    own parts if these do as well.
    """
    found = hyper if _ties(evidence, hyper, "own") else _as_noise(hyper, "own")
    bare = found._replace(common=NONE)
    idle = evidence.value(bare) >= evidence.value(found) - STRONG
    left = bare if idle and reaches_all else found
    if idle and left.own == NONE and left.shares()["graph"] > 0.5:
        return left
    if not _ties(evidence, left, "graph"):
        return _as_noise(found, "graph")
    return left if evidence.value(_as_own(left)) < evidence.value(left) - STRONG else _as_own(found)


def _ties(evidence: Weighing, hyper: Hyper, part: str) -> bool:
    return evidence.value(hyper, as_noise=part) < evidence.value(hyper) - STRONG


def _as_own(hyper: Hyper) -> Hyper:
    return hyper._replace(own=log(exp(hyper.own) + exp(hyper.graph)), graph=NONE)


def _as_noise(hyper: Hyper, part: str) -> Hyper:
    noise = hyper.noise_var + exp(getattr(hyper, part)) * (1 + exp(hyper.offset))
    return hyper._replace(**{part: NONE, "noise": log(noise)})
