"""Reasons to mistrust an estimate, in words: no overlap, tiny propensities, few decisions, a drifting log."""

from collections.abc import Iterator, Mapping
from math import sqrt

import numpy as np

from coterie.contracts import Array
from coterie.errors import counted
from coterie.product.evaluation.estimators import Sample, Terms, effective_size
from coterie.product.evaluation.intervals import Bootstrapped
from coterie.product.evaluation.logged import Logged
from coterie.product.evaluation.report import TRUSTED

TINY = 1e-3  # a propensity below it
FEW = 100.0  # effective decisions, or accepted ones
DOMINATES = 0.05  # of the total weight, in one decision
OUT_OF_REACH = 1e-3  # of the target's probability, where the logger had none
LEAST_DOF = 10.0  # degrees of freedom of an estimate's error
SURE = 3.0  # standard errors; by chance once in 370 logs


def cautions(sample: Sample) -> Iterator[str]:
    """Yields what a frozen target's estimates suffer from."""
    yield from _overlap(sample)
    yield from tiny_propensities(sample.log)
    yield from _dominated(sample.weights)
    yield from few("The weights are as good as", effective_size(sample.weights))


def few(what: str, effective: float) -> Iterator[str]:
    """Yields a warning where fewer than 100 effective decisions are left."""
    if effective < FEW:
        left = counted(f"{effective:.0f}", "decision")
        yield f"{what} {left}, fewer than {FEW:.0f}: the intervals are likely too narrow."


def unreliable(terms: Mapping[str, Terms], rewards: Array) -> Iterator[str]:
    """Yields a warning if the error of the estimate that answers is little known, or if no rewards average to it."""
    name = next((name for name in TRUSTED if name in terms and terms[name].effective > 0), None)
    if name is None:
        return
    known = Bootstrapped.of(terms[name], np.zeros(0))
    if known.influence.any() and known.dof < LEAST_DOF:
        yield (
            f"What is known of the error of {name} rests on some {counted(f'{known.dof:.2g}', 'decision')}: rare and "
            "heavy ones may be missing from the log, and its interval may be far off."
        )
    slack = 1e-9 * float(np.abs(rewards).max())
    if not rewards.min() - slack <= known.value <= rewards.max() + slack:
        yield (
            f"{name} says {known.value:.4g}, and the rewards of the log lie between {rewards.min():.4g} and "
            f"{rewards.max():.4g}: what it corrects by weights is larger than what it knows."
        )


def tiny_propensities(log: Logged) -> Iterator[str]:
    """Yields a warning where propensities are below 0.001."""
    tiny = int((log.propensities < TINY).sum())
    if tiny:
        yield (
            f"{tiny} of {len(log)} decisions have a propensity below {TINY:g}, the smallest "
            f"{log.propensities.min():.2g}: if the target makes them too, a few rewards decide the estimate."
        )


def drifts(log: Logged) -> Iterator[str]:
    """Yields a warning where rewards or propensities change over time.

    The test: means of the first and of the second half of the log in order of time, apart by more than 3 standard
    errors of their difference (Welch). Of propensities the logarithm of propensity x candidates is compared, which is
    0 for a uniform logger however many candidates there are.
    """
    log = log.in_order()
    beside_chance = np.log(log.propensities * log.sizes)
    for what, values in (("reward", log.rewards), ("log of propensity times candidates", beside_chance)):
        first, second = np.array_split(values, 2)
        if apart(first, second):
            yield (
                f"The log drifts: the mean {what} is {first.mean():.4g} in its first half and {second.mean():.4g} in "
                "its second; what held then need not hold now."
            )


def apart(first: Array, second: Array) -> bool:
    """Returns whether two means differ by more than 3 standard errors.

    Examples:
        >>> apart(np.array([0.0, 0.1, 0.2]), np.array([5.0, 5.1, 5.2])), apart(np.zeros(2), np.array([0.0, 1.0]))
        (True, False)
    """
    if min(len(first), len(second)) < 2:
        return False
    error = sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    gap = abs(float(first.mean() - second.mean()))
    return gap > SURE * error and gap > 1e-9 * max(1e-300, float(np.abs(first).max()), float(np.abs(second).max()))


def _overlap(sample: Sample) -> Iterator[str]:
    """Yields what the target would choose and the logger never did.

    It is known from the propensities of all candidates, if there are any; else from the weights, whose mean is 1 where
    everything had a chance, and less by the probability that the target puts elsewhere.
    """
    weights, chances = sample.weights, sample.log.chances
    if not weights.any():
        yield (
            "No overlap: the target gives no probability to anything the log chose. Replay, IPS and SNIPS say nothing, "
            "and the others only what the reward model believes."
        )
        return
    if chances is not None:
        lost = float(sample.summed(np.where(chances > 0, 0.0, sample.target)).mean())
        if lost > OUT_OF_REACH:
            yield _out_of_reach(lost, "the logger gave no probability to")
            return
    mean, error = float(weights.mean()), float(weights.std()) / sqrt(len(weights))
    if 1 - mean > max(SURE * error, OUT_OF_REACH):
        yield _out_of_reach(1 - mean, f"the log never chose, for the weights average {mean:.3g} and not 1")
    if mean - 1 > max(SURE * error, OUT_OF_REACH):
        yield (
            f"The weights average {mean:.3g} where they should average 1: the propensities in the log are too small, "
            "or those of other candidates."
        )


def _out_of_reach(share: float, why: str) -> str:
    return (
        f"No overlap: about {share:.1%} of what the target would choose, {why}. IPS counts it as reward 0, replay and "
        "SNIPS leave it out, dm and dr believe the model there."
    )


def _dominated(weights: Array) -> Iterator[str]:
    total = float(weights.sum())
    if total and weights.max() > DOMINATES * total:
        yield f"A single decision carries {weights.max() / total:.0%} of all weight."
