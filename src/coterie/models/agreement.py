"""Whether a belief is the one that its history and kernel give, at the cost of reading it once.

A covariance S is the posterior's if and only if S = P - P O'GO S, with P the prior, O the map from weights to observed
pairs and G their precision. Both sides times one random vector tell a wrong S from the right one, unless it is wrong by
no more than rounding (Freivalds' check): one product with S, where computing S again takes as many as it has rows.
"""

from collections.abc import Callable, Mapping
from math import inf
from typing import NamedTuple

import numpy as np

from coterie.algebra.gaps import gap_of_matrices
from coterie.contracts import Array, Index
from coterie.models.history import History

Map = Callable[[Array], Array]

SCATTERS = 1e-5  # a slip that was replaced has cost the mean of its pair some digits, and the scatter twice as many
LEAST = 1e-100  # rewards that are all below this are as good as 0


class Observed(NamedTuple):
    """What was observed, a row for each kind of user and a column for each arm: how precisely, and with what mean."""

    precision: Array
    means: Array


def observed_in(history: History, kinds: Index, n_kinds: int, n_arms: int, noise_var: float) -> Observed:
    """Returns the observations of a history as tables; users of one kind count together.

    Examples:
        >>> history = History()
        >>> history.add("pair", 1, 0, 3.0)
        >>> observed_in(history, np.array([0, 0]), 1, 2, 0.5)
        Observed(precision=array([[2., 0.]]), means=array([[3., 0.]]))
    """
    place = kinds[history.user_array()], history.arm_array()
    precision, sums = np.zeros((n_kinds, n_arms)), np.zeros((n_kinds, n_arms))
    counts = history.count_array()
    np.add.at(precision, place, counts)
    np.add.at(sums, place, counts * history.mean_array())
    means = np.divide(sums, precision, out=np.zeros_like(sums), where=precision > 0)
    return Observed(precision / noise_var, means)


def gap_of_rows(
    place: Index,
    counts: Array,
    values: Array,
    wanted: Mapping[str, Array],
    scatters: Array | None = None,
    *,
    level: float = 0.0,
) -> float:
    """Returns how far rewards are from the counts, means and scatters of the pairs that they belong to.

    Means are compared in units of the largest value, or of the level that they were measured from.

    Args:
        place: The row of each reward's pair.
        counts: How much each reward counts, or how many it is the mean of.
        values: The rewards.
        wanted: The "counts", "means" and "scatters" of the pairs; without scatters these are not compared.
        scatters: The scatter about each value, where it is a mean.
        level: What means were measured from: beside it, digits of small values are lost.

    Examples:
        >>> pairs = {"counts": np.array([2.0]), "means": np.array([3.0]), "scatters": np.array([2.0])}
        >>> gap_of_rows(np.array([0, 0]), np.ones(2), np.array([2.0, 4.0]), pairs)
        0.0
    """
    size, scale = len(wanted["counts"]), max(float(np.abs(values).max(initial=0.0)), abs(level), LEAST)
    with np.errstate(all="ignore"):
        total = np.bincount(place, counts, size)
        means = np.bincount(place, counts * values, size) / total
        found = [total / wanted["counts"] - 1, (means - wanted["means"]) / scale]
        if "scatters" in wanted:
            apart = counts * (values - means[place]) ** 2 + (0.0 if scatters is None else scatters)
            found.append(SCATTERS * (np.bincount(place, apart, size) - wanted["scatters"]) / total / scale / scale)
        largest = float(np.abs(found).max(initial=0.0))
    return largest if largest < inf else inf


def gap_of_weights(times: Map, mean: Array, prior: Map, out: Map, back: Map, observed: Observed) -> float:
    """Returns how far mean and covariance of weights are from the posterior's.

    Args:
        times: The covariance times weights.
        mean: Of the weights.
        prior: The prior covariance times weights.
        out: From weights to the pairs of `observed`.
        back: From pairs to weights, the transpose of `out`.
        observed: The observations.
    """
    probe = np.random.default_rng(0).standard_normal(mean.shape)
    with np.errstate(all="ignore"):
        solved = times(probe)
        again = prior(probe - back(observed.precision * out(solved)))
        moved = prior(back(observed.precision * (observed.means - out(mean))))
        # Beside the prior: what is well known is off by little more than rounding of it.
        of_spread = gap_of_matrices(solved, again, float(np.abs(prior(probe)).max(initial=0.0)))
        largest = max(float(np.abs(each).max(initial=0.0)) for each in (mean, back(observed.means)))
        return max(of_spread, gap_of_matrices(mean, moved, largest))
