"""The shortest length-scale that a limited number of features can hold.

Evidence knows arms by their distances, the model by some 64 features. Where arms are many and hardly ever come again, a
length-scale so short that every arm is its own explains rewards as well as noise does, and the features then hold
nothing of it. So a length-scale is no shorter than what they can hold.
"""

from math import exp, log

import numpy as np

from coterie.contracts import Array
from coterie.kernels import SquaredExponential

MOST_MISSED = 0.1
ENOUGH_ARMS = 600
STEPS = 10
FAR = 64.0  # times the median distance, where a kernel is all but constant


def shortest_lengthscale(features: Array, median: float, most: int) -> float:
    """Returns the shortest length-scale of which so many features miss a tenth of the variance at most, or 0 for any.

    It goes by some of the arms where they are many, evenly spaced.

    Examples:
        >>> shortest_lengthscale(np.arange(10.0)[:, None], 3.0, 64)
        0.0
        >>> shortest = shortest_lengthscale(np.random.default_rng(0).standard_normal((300, 10)), 4.4, 64)
        >>> 2 < shortest < 10
        True
    """
    if len(features) <= most:
        return 0.0
    rows = features[np.linspace(0, len(features) - 1, min(len(features), ENOUGH_ARMS)).astype(np.intp)]
    low, high = log(median / FAR), log(median * FAR)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if missed_share(rows, exp(middle), most) <= MOST_MISSED else (middle, high)
    return exp(high)


def missed_share(features: Array, lengthscale: float, most: int) -> float:
    """Returns what the best features miss of the variance of all arms together, as a share of it.

    Examples:
        >>> round(missed_share(np.array([[0.0], [9.0]]), 0.1, 1), 3)
        0.5
    """
    values = np.linalg.eigvalsh(SquaredExponential(lengthscale).gram(features))
    return float(1 - values[-most:].sum() / len(features))
