"""Hyperparameters by evidence: weak priors that follow the rewards' own scale, and a climb from where it stood."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np
from scipy.optimize import minimize

from coterie.contracts import Array
from coterie.policies.auto.evidence import Explaining
from coterie.policies.auto.parts import Hyper, Scales

Loss = Callable[[Array], tuple[float, Array]]

STEPS = 25
CLIMBS = 2  # of that many starts, the best ones
SHARES = (0.3, 0.2, 0.5)  # of the rewards' variance, beforehand: graph, own, common
PARTS = ("graph", "own", "common")
NONE = -60.0  # the log variance of a part that is not there
CLEAR = 2.0  # of a log Bayes factor: from then on a part is better gone
BOUND = 4.0  # standard deviations of the prior
CORNER_SHARE = 0.8
MOSTLY, SURELY = 0.8, 0.25  # of rewards that are one of two values: the noise's share of their variance, and its spread


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent normal distributions on the scale that hyperparameters are learned on.

    Attributes:
        centre: Their means.
        spread: Their standard deviations.
    """

    centre: Hyper
    spread: Hyper

    @classmethod
    def of(cls, scales: Scales, variance: float, *, two_valued: bool = False) -> "Prior":
        """Returns the prior for rewards of this variance about their mean.

        A reward that is one of two values is noise for the most part: of a hit that comes with probability p a share
        p (1 - p) of the variance is left, however well p is known. Where pairs hardly repeat, nothing else would tell
        that from what users have of their own. And while hits are few, rewards hardly tell that there is anything to
        learn; the parts keep to variances with which it is learned.
        """
        ridge, lengthscale = log(first_ridge(scales.mean_degree)), log(scales.median_distance)
        graph, own, common = (log(share * variance) for share in SHARES)
        centre = Hyper(graph, own, common, ridge, lengthscale, -1.0, log(0.1), log(0.35 * variance))
        spread = Hyper(1.5, 2.0, 1.0, 1.5, 0.5, 2.0, 2.0, 0.8)
        if two_valued:
            graph, own, common = (log((1 - MOSTLY) * share * variance) for share in SHARES)
            centre = centre._replace(noise=log(MOSTLY * variance), graph=graph, own=own, common=common)
            spread = spread._replace(noise=SURELY)
        return cls(centre, spread)

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


def _parts(hyper: Hyper, prior: Prior) -> dict[str, tuple[float, float, float]]:
    """Returns value, centre and spread of the parts' log variances."""
    together = zip(Hyper._fields, hyper, prior.centre, prior.spread, strict=True)
    return {name: (value, centre, spread) for name, value, centre, spread in together if name in PARTS}


def _penalty(prior: Prior, hyper: Hyper) -> float:
    return -prior.value_and_gradient(np.array(hyper))[0]


def first_ridge(mean_degree: float) -> float:
    """Returns the ridge that learning starts from."""
    return 0.03 * (mean_degree if mean_degree > 0 else 1.0)


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

    back = Hyper(*(centre if value == NONE else value for value, centre in zip(start, prior.centre, strict=True)))
    starts = [np.clip(each, low, high) for each in (back, *(prior.corners() if corners else ()))]
    ranked = sorted(range(len(starts)), key=lambda which: loss(starts[which])[0])
    found, options = [], {"maxiter": STEPS}
    for which in ranked[:CLIMBS]:
        result = minimize(loss, starts[which], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        found.append((float(result.fun), Hyper(*result.x.tolist())))
    least, best = min(found)
    return _pruned(loss, prior, best, least)


def _pruned(loss: Loss, prior: Prior, best: Hyper, least: float) -> tuple[Hyper, float]:
    """Returns the hyperparameters without the parts that do better gone, and the log density that they had.

    With a part at its mode, z standard deviations of the prior below its centre, the rewards and that value are
    exp(gain - z^2 / 2) times as likely as the rewards without the part. The one that loses most by staying goes first.
    """
    gone = best
    while True:
        losses = {}
        for part, (value, centre, spread) in _parts(gone, prior).items():
            z = min((value - centre) / spread, 0.0)
            if value > NONE and 0.5 * z * z > CLEAR:
                without = gone._replace(**{part: NONE})
                gain = (
                    loss(np.array(without))[0]
                    - _penalty(prior, without)
                    - loss(np.array(gone))[0]
                    + _penalty(prior, gone)
                )
                losses[part] = 0.5 * z * z - gain
        worst = max(losses, key=lambda part: losses[part], default=None)
        if worst is None or losses[worst] <= CLEAR:
            return gone, -least
        gone = gone._replace(**{worst: NONE})
