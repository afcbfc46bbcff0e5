"""Hyperparameters by evidence: weak priors that follow the rewards' own scale, and a climb from where it stood."""

from dataclasses import dataclass
from math import log

import numpy as np
from scipy.optimize import minimize

from coterie.contracts import Array
from coterie.policies.auto.evidence import Explaining
from coterie.policies.auto.parts import Hyper, Scales

STEPS = 8
CLIMBS = 2  # of that many starts, the best ones
SHARES = (0.3, 0.2, 0.5)  # of the signal's variance, beforehand: graph, own, common
SPARSE_SHARES = (0.6, 0.2, 0.2)  # the same where own and common are to be spoken for: what a fit starts from
BOUND = 4.0  # standard deviations of the prior
CORNER_SHARE = 0.8
NOISE_SHARE = 0.35  # of the rewards' variance, beforehand
SURELY = 0.3  # the spread of the noise of rewards of two values
RIDGE_STEP = 0.25  # of the logarithm
SPARSITY = 3.0  # the signal's standard deviation over the mean of a sparse part's
LEAST_PART, MOST_PART = -8.0, 2.0  # logarithms: the variance of a sparse part, over the signal's


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent distributions of the hyperparameters: normal on the scale that they are learned on, some exponential.

    The parts in `sparse` have an exponential distribution of their standard deviation (a penalised complexity prior).
    It is highest at none, so that a part that rewards do not speak for goes.

    Attributes:
        centre: The means of the normal ones; where fits start.
        spread: Their standard deviations.
        signal: Log variance of what can be learned, beforehand: the square of the exponential ones' mean.
        sparse: The names of the exponential ones.
    """

    centre: Hyper
    spread: Hyper
    signal: float
    sparse: tuple[str, ...] = ()

    @classmethod
    def of(cls, scales: Scales, variance: float, *, noise_share: float | None = None) -> "Prior":
        """Returns the prior for rewards of this variance about their mean.

        Where noise is known to be most of it, a part that is not there costs more than it can bring: own and common
        are sparse then. Without edges nothing but the common part ties users, and it stays.

        Args:
            scales: Of graph and arms.
            variance: Of the rewards.
            noise_share: How much of it is noise, where that is known beforehand (`noise_share_of`).
        """
        ridge, lengthscale = log(first_ridge(scales.mean_degree)), log(scales.median_distance)
        if noise_share is None:
            shares, signal, of_noise, sure = SHARES, log(variance), NOISE_SHARE, 0.8
        else:
            shares = SPARSE_SHARES if scales.has_edges else SHARES
            signal, of_noise, sure = log((1 - noise_share) * variance), noise_share, SURELY
        sparse = () if noise_share is None else ("own", "common") if scales.has_edges else ("own",)
        graph, own, common = (signal + log(share) for share in shares)
        centre = Hyper(graph, own, common, ridge, lengthscale, -1.0, log(0.1), log(of_noise * variance))
        return cls(centre, Hyper(1.5, 2.0, 1.0, 1.5, 0.5, 2.0, 2.0, sure), signal, sparse)

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Returns the log density, up to a constant, and its gradient."""
        sparse, spread = self._is_sparse(), np.array(self.spread)
        scaled = np.where(sparse, 0.0, (point - np.array(self.centre)) / spread)
        stds = SPARSITY * np.exp(np.where(sparse, (point - self.signal) / 2, -np.inf))
        return -0.5 * float(scaled @ scaled) - float(stds.sum()), -scaled / spread - stds / 2

    def bounds(self) -> list[tuple[float, float]]:
        """Returns the box that hyperparameters stay in."""
        together = zip(self._is_sparse(), self.centre, self.spread, strict=True)
        return [
            (self.signal + LEAST_PART, self.signal + MOST_PART)
            if sparse
            else (centre - BOUND * spread, centre + BOUND * spread)
            for sparse, centre, spread in together
        ]

    def corners(self) -> list[Hyper]:
        """Returns three starts: most of the users' variance on the graph, on their own part, and in common."""
        names = ("graph", "own", "common")
        total = sum(np.exp(getattr(self.centre, name)) for name in names)
        rest = log(total * (1 - CORNER_SHARE) / 2)
        low = dict.fromkeys(names, rest)
        return [self.centre._replace(**{**low, name: log(total * CORNER_SHARE)}) for name in names]

    def _is_sparse(self) -> list[bool]:
        return [name in self.sparse for name in Hyper._fields]


def first_ridge(mean_degree: float) -> float:
    """Returns the ridge that learning starts from."""
    return 0.03 * (mean_degree if mean_degree > 0 else 1.0)


def rounded_ridge(ridge: float, start: float) -> float:
    """Returns the nearest log ridge of a grid around another: one for several fits, since (L + ridge I)^-1 is dear.

    Examples:
        >>> rounded_ridge(-0.8, 0.0), rounded_ridge(0.1, 0.2)
        (-0.75, 0.2)
    """
    return start + RIDGE_STEP * round((ridge - start) / RIDGE_STEP)


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

    starts = [np.clip(each, low, high) for each in (start, *(prior.corners() if corners else ()))]
    ranked = sorted(range(len(starts)), key=lambda which: loss(starts[which])[0])
    found, options = [], {"maxiter": STEPS}
    for which in ranked[:CLIMBS]:
        result = minimize(loss, starts[which], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        found.append((float(result.fun), Hyper(*result.x.tolist())))
    least, best = min(found)
    return best._replace(ridge=rounded_ridge(best.ridge, prior.centre.ridge)), -least
