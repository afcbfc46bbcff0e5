"""A Gaussian belief about logits from successes and failures: the one nearest to the exact posterior.

    reward of pair p ~ Bernoulli(sigmoid(level + f_p)),   f ~ GP

Of all Gaussians q the one of least Kullback-Leibler divergence from the posterior is what a Gaussian model believes
after one pseudo-observation of each pair, its site: with n trials and s successes, and E the expectation under q,

    precision = n E[sigmoid'(level + f)],   precision * value = precision * E[f] + s - n E[sigmoid(level + f)]

q depends on its sites and the sites on q: they are found by passes. Values are less the level.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit

from coterie.algebra import JitterLog, cholesky
from coterie.contracts import Array

TOLERANCE = 1e-3
MOST_PASSES = 200
LEAST_SLOPE = 1e-8
SHORTEST_STEP = 0.3
ROUNDING = 1e-12

_NODES = np.linspace(-8.0, 8.0, 65)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()


class Sites(NamedTuple):
    """A pseudo-observation of each pair.

    Attributes:
        precision: Its inverse noise variance.
        pull: The precision times its value.
    """

    precision: Array
    pull: Array

    @property
    def values(self) -> Array:
        """The values observed."""
        return self.pull / self.precision


class LogitBelief(NamedTuple):
    """Mean and variance of f at each pair, and log det(I + K precision)."""

    mean: Array
    variance: Array
    log_det: float


class Trials(NamedTuple):
    """What was observed of each pair, and where logits are measured from.

    Attributes:
        counts: How many trials, any number > 0.
        successes: How many of them.
        level: The logit at which f is 0.
    """

    counts: Array
    successes: Array
    level: float


def probabilities(mean: Array, std: Array) -> tuple[Array, Array]:
    """Returns mean and std of sigmoid(f) for a normal f: within 1e-6 for a std of up to 5, within 1e-3 up to 12.

    The trapezoidal rule on 65 points: the integrand is analytic, so its error falls exponentially with their number.

    Examples:
        >>> mean, std = probabilities(np.array([0.0, 2.0]), np.array([1.0, 0.0]))
        >>> mean.round(4), std.round(4)
        (array([0.5   , 0.8808]), array([0.2083, 0.    ]))
    """
    values = expit(_at_nodes(mean, std))
    expected = values @ _WEIGHTS
    return expected, np.sqrt(np.maximum((values - expected[:, None]) ** 2 @ _WEIGHTS, 0.0))


def settled(
    gram: Array,
    trials: Trials,
    start: Sites | None = None,
    *,
    tolerance: float = TOLERANCE,
    most_passes: int = MOST_PASSES,
) -> tuple[Sites, LogitBelief]:
    """Returns the sites, and the belief they give. O(k^3) a pass for k pairs.

    A pass goes from the sites towards those that the belief calls for. It goes back half of the way while the bound
    would fall, so that each pass raises the bound, and goes only part of the way where the last change was not halved:
    full steps may go to and fro for ever where the prior variance is ten and more. It ends when a full step would move
    no logit by more than about 1e-3 of its std, and no variance by more than about 1e-3 of itself, or after 200
    passes. Probabilities would not do: near 0 and 1 they stand still while logits have far to go.

    Args:
        gram: Prior covariance of the pairs.
        trials: What was observed of them.
        start: Where to begin; none given, or one that is far off, means from what each pair says by itself.
        tolerance: How much a full step may move a logit, in stds, and the logarithm of a variance in the end.
        most_passes: After so many it ends in any case.
    """
    sites = start or _by_itself(trials)
    belief = believed(gram, sites)
    best, step, before = bound(belief, sites, trials), 1.0, np.inf
    goal = _called_for(belief, trials)
    for n_passes in range(most_passes):
        tried = _towards(sites, goal, step)
        moved = believed(gram, tried)
        value = bound(moved, tried, trials)
        if not value >= best - ROUNDING * abs(best):
            if n_passes == 0 and start is not None and _is_far(gram, trials, best):
                return settled(gram, trials, tolerance=tolerance, most_passes=most_passes)
            step /= 2
            continue
        change = _change(belief, moved)
        sites, belief, best = tried, moved, value
        goal = _called_for(belief, trials)
        if change <= tolerance * step:
            break
        step = max(0.75 * step, min(step, SHORTEST_STEP)) if change > before / 2 else min(1.3 * step, 1.0)
        before = change
    return sites, belief


def believed(gram: Array, sites: Sites) -> LogitBelief:
    """Returns the belief at the pairs, given the sites."""
    root = np.sqrt(sites.precision)
    inner = root[:, None] * gram * root
    inner[np.diag_indices_from(inner)] += 1.0
    factor = cholesky(inner, JitterLog(), scale=1.0)  # all eigenvalues are at least 1
    solved = solve_triangular(factor, root[:, None] * gram, lower=True, check_finite=False)
    mean = gram @ sites.pull - solved.T @ (solved @ sites.pull)
    variance = np.maximum(gram.diagonal() - np.einsum("ij,ij->j", solved, solved), 0.0)
    return LogitBelief(mean, variance, 2.0 * float(np.log(factor.diagonal()).sum()))


def bound(belief: LogitBelief, sites: Sites, trials: Trials) -> float:
    """Returns E[log p(rewards | f)] - KL(belief, prior), which the log evidence of the trials exceeds by little.

    At settled sites its slope in the hyperparameters is that of the sites' Gaussian evidence with the sites held.
    """
    mean, variance, log_det = belief
    logits = _at_nodes(mean + trials.level, np.sqrt(variance))
    likely = trials.successes @ (mean + trials.level) - trials.counts @ (np.logaddexp(0.0, logits) @ _WEIGHTS)
    divergence = log_det - sites.precision @ variance + mean @ (sites.pull - sites.precision * mean)
    return float(likely - 0.5 * divergence)


def _is_far(gram: Array, trials: Trials, best: float) -> bool:
    """Returns whether what each pair says by itself has a higher bound than this one."""
    sites = _by_itself(trials)
    return bound(believed(gram, sites), sites, trials) > best


def _by_itself(trials: Trials) -> Sites:
    """Returns sites at each pair's own share of successes, with half a success and half a failure more."""
    share = (trials.successes + 0.5) / (trials.counts + 1.0)
    precision = trials.counts * share * (1.0 - share)
    return Sites(precision, precision * (np.log(share / (1.0 - share)) - trials.level))


def _called_for(belief: LogitBelief, trials: Trials) -> Sites:
    """Returns the sites that a belief calls for."""
    values = expit(_at_nodes(belief.mean + trials.level, np.sqrt(belief.variance)))
    expected, slope = values @ _WEIGHTS, (values * (1.0 - values)) @ _WEIGHTS
    precision = trials.counts * np.maximum(slope, LEAST_SLOPE)
    return Sites(precision, precision * belief.mean + trials.successes - trials.counts * expected)


def _change(before: LogitBelief, after: LogitBelief) -> float:
    """Returns the largest change of a logit's mean, in stds, or of the logarithm of its variance."""
    least = np.finfo(np.float64).tiny
    old, new = np.maximum(before.variance, least), np.maximum(after.variance, least)
    return float(max(np.max(np.abs(after.mean - before.mean) / np.sqrt(new)), np.max(np.abs(np.log(new / old)))))


def _towards(sites: Sites, goal: Sites, step: float) -> Sites:
    return Sites(*(old + step * (new - old) for old, new in zip(sites, goal, strict=True)))


def _at_nodes(mean: Array, std: Array) -> Array:
    return np.asarray(mean[:, None] + std[:, None] * _NODES)
