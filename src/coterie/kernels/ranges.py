"""What features may be: finite numbers, large and far enough apart that squares neither overflow nor vanish."""

from collections.abc import Callable, Sequence
from math import isfinite

import numpy as np

from coterie.contracts import FEATURE_RULE, LARGEST_FEATURE, LEAST_SPREAD, SPREAD_RULE, Array
from coterie.errors import ArmError

RESCALE = "Measure it from another origin or in another unit"


def check_range(
    features: Array, *, whose: Callable[[int], str] = "row {}".format, names: Sequence[str] | None = None
) -> None:
    """Raises at the first feature that is no finite number or too large.

    Args:
        features: A row for each arm.
        whose: Tells whose features a row are.
        names: Those of the features, if they have names.

    Examples:
        >>> check_range(np.array([[1e-300, 1e200]]), names=["hot", "sweet"])
        Traceback (most recent call last):
        coterie.errors.ArmError: feature 'sweet' of row 0 is 1e+200; a feature is a finite number of at most 1e+50 in
        size. Measure it from another origin or in another unit.
    """
    if features.max(initial=0.0) <= LARGEST_FEATURE and features.min(initial=0.0) >= -LARGEST_FEATURE:
        return
    row, column = np.argwhere(~(np.abs(features) <= LARGEST_FEATURE))[0].tolist()
    value = float(features[row, column])
    remedy = RESCALE if isfinite(value) else "Fill it in, or drop that arm"
    raise ArmError(f"feature {_named(column, names)} of {whose(row)} is {value}", FEATURE_RULE, remedy)


def check_spread(features: Array, *, names: Sequence[str] | None = None) -> None:
    """Raises if arms differ by so little that their squared distances vanish.

    Examples:
        >>> check_spread(np.array([[1.0, 1e-160], [1.0, 3e-160]]))
        Traceback (most recent call last):
        coterie.errors.ArmError: feature 1 differs by 2e-160, and no other by more; some feature differs by at least
        1e-50 from row to row, or none differs at all. Measure the features in another unit.
    """
    spreads = np.ptp(features, axis=0)
    widest = int(np.argmax(spreads))
    if 0 < spreads[widest] < LEAST_SPREAD:
        what = f"feature {_named(widest, names)} differs by {spreads[widest]:g}, and no other by more"
        raise ArmError(what, SPREAD_RULE, "Measure the features in another unit")


def _named(column: int, names: Sequence[str] | None) -> str:
    return repr(column if names is None else names[column])
