"""How far apart two arrays are that should be the same."""

from math import inf

import numpy as np

from coterie.algebra.factor import Array

FLOOR = 1e-6  # of the largest: what numbers far below it are off by is rounding
NOTHING = 1e-250  # numbers of this size have no digits to compare once they are multiplied


def gap(one: Array | float, two: Array | float) -> float:
    """Returns the largest difference of two arrays relative to the numbers themselves; infinity if one is not finite.

    Examples:
        >>> round(gap(np.array([1.0, 2.0]), np.array([1.0, 2.2])), 3)
        0.048
        >>> gap(np.zeros(2), np.zeros(3))
        inf
    """
    one, two = np.asarray(one, dtype=np.float64), np.asarray(two, dtype=np.float64)
    if one.shape != two.shape:
        return inf
    with np.errstate(all="ignore"):
        sizes = np.abs(one) + np.abs(two)
        scale = sizes + FLOOR * sizes.max(initial=0.0) + NOTHING
        found = float(np.max(np.abs(one - two) / scale, initial=0.0))
    return found if found < inf else inf  # NaN is no number to compare


def gap_of_matrices(one: Array, two: Array, scale: float | None = None) -> float:
    """Returns the largest difference of two arrays relative to a scale, by default the largest number in the second.

    Examples:
        >>> gap_of_matrices(np.array([[1.0, 0.0]]), np.array([[1.0, 0.5]]))
        0.5
    """
    if one.shape != two.shape:
        return inf
    with np.errstate(all="ignore"):
        scale = float(np.abs(two).max(initial=0.0)) if scale is None else scale
        found = float(np.abs(one - two).max(initial=0.0) / (scale + NOTHING))
    return found if found < inf else inf


def gap_of_sums(one: float, two: float, *terms: float) -> float:
    """Returns the difference of two sums relative to the terms they were made of, and to 1.

    Examples:
        >>> gap_of_sums(10.0, 10.5, 4.0, -5.0)
        0.05
    """
    found = abs(one - two) / (1.0 + sum(map(abs, terms)))
    return found if found < inf else inf
