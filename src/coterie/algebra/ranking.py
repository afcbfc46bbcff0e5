"""Orders of numbers in which those that differ by rounding alone count as equal: then other processors find the same.

On a regular graph, or for arms that are alike, many covariances are equal but for their last bits. Where a few of them
are taken, those bits must not decide which.
"""

import numpy as np
from numpy.typing import NDArray

from coterie.algebra.covariance import Index
from coterie.algebra.factor import Array


def falling_order(values: Array) -> Index:
    """Returns the places of numbers from the largest down; of equal ones the first comes first.

    Examples:
        >>> falling_order(np.array([0.3, 0.1 + 0.2, 0.1, 0.5]))
        array([3, 0, 1, 2])
    """
    return np.argsort(-_coarse(values), kind="stable")


def places_of_largest(values: Array, n: int) -> Index:
    """Returns the places of the n largest of at least n numbers, in rising order; of equal ones the first are taken.

    Examples:
        >>> places_of_largest(np.array([0.3, 0.1 + 0.2, 0.1, 0.5]), 2)
        array([0, 3])
    """
    coarse = _coarse(values)
    least = np.partition(coarse, len(coarse) - n)[len(coarse) - n]
    above, equal = np.flatnonzero(coarse > least), np.flatnonzero(coarse == least)
    return np.sort(np.concatenate([above, equal[: n - len(above)]]))


def _coarse(values: Array) -> NDArray[np.float32]:
    """Returns numbers to seven digits of the largest."""
    largest = float(np.abs(values).max(initial=0.0))
    return np.asarray((values / largest if largest > 0 else values).astype(np.float32))
