"""What the rewards are like, before anything is learned of them: centre, spread, and whether they have two values."""

import numpy as np

from coterie.contracts import LEAST_SPREAD
from coterie.models import History

LOGIT_SPREAD = 1.5  # of logits about that of the mean, beforehand


def centre_and_variance(history: History) -> tuple[float, float]:
    """Returns the mean of all rewards and their variance about it; 1 where they are as good as equal."""
    centre, variance = _moments(history)
    return centre, variance if variance > LEAST_SPREAD**2 else 1.0


def is_constant(history: History) -> bool:
    """Returns whether all rewards are as good as equal: nothing can be learned of kernels from them."""
    return _moments(history)[1] <= LEAST_SPREAD**2


def _moments(history: History) -> tuple[float, float]:
    counts, means = history.count_array(), history.mean_array()
    if not len(counts):
        return 0.0, 0.0
    centre = float(counts @ means / counts.sum())
    about = means - centre
    return centre, float((counts @ (about * about) + np.sum(history.scatters)) / counts.sum())


def is_two_valued(history: History) -> bool:
    """Returns whether every reward is one of two values, and both have come.

    Of values a and b, n rewards with mean m have the sum of squares n (m - a) (b - m) about it, and others less.

    Examples:
        >>> history = History()
        >>> for arm, reward in [(0, 1.0), (0, 0.0), (1, 0.0), (2, 1.0)]: history.add(arm, 0, arm, reward)
        >>> is_two_valued(history)
        True
        >>> history.add(3, 0, 3, 0.5)
        >>> is_two_valued(history)
        False
    """
    means, scatters = history.mean_array(), np.asarray(history.scatters)
    low, high = float(means.min()), float(means.max())
    about = history.count_array() * (means - low) * (high - means)
    return low < high and bool(np.all(np.abs(scatters - about) <= 1e-9 * history.count_array() * (high - low) ** 2))


def noise_share_of(history: History, variance: float) -> float | None:
    """Returns how much of the rewards' variance is noise, where they are one of two values; else None.

    Of a hit with probability p, p (1 - p) is left however well p is known. Where logits spread by 1.5 about that of the
    mean, what is left is about 1 / (1 + 1.5^2 v) of the variance v of rewards of 0 and 1.

    Examples:
        >>> history = History()
        >>> for arm, reward in [(0, 1.0), (1, 0.0)]: history.add(arm, 0, arm, reward)
        >>> noise_share_of(history, 0.25)
        0.64
    """
    if is_constant(history) or not is_two_valued(history):
        return None
    apart = float(np.ptp(history.mean_array()))
    return 1 / (1 + LOGIT_SPREAD**2 * variance / apart**2)
