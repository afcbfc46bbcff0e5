"""Counts in steps, and a pool in which every arm stands once for each step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie.contracts import Array
from coterie.errors import ParameterError
from coterie.errors.checks import is_whole
from coterie.kernels import ArmPool


@dataclass(frozen=True, slots=True)
class Levels:
    """Counts in steps that double: 0, 1, 2, 3 to 4, 5 to 8, and so on up to a last one without end.

    Models work on a fixed pool, so a count cannot be a number of its own; and log(1 + count), which is what matters,
    changes little within a step.

    Attributes:
        n_levels: How many steps there are; with 9 the last is 65 and more.

    Examples:
        >>> [Levels(5).of(count) for count in (0, 1, 2, 3, 4, 5, 8, 9, 1000)]
        [0, 1, 2, 3, 3, 4, 4, 4, 4]
        >>> Levels(9).least
        (0, 1, 2, 3, 5, 9, 17, 33, 65)
    """

    n_levels: int = 9

    def __post_init__(self) -> None:
        if not is_whole(self.n_levels, 2, 30):
            raise ParameterError(f"n_levels is {self.n_levels!r}", "it is a whole number from 2 to 30", "Choose 9")

    @property
    def least(self) -> tuple[int, ...]:
        """The least count of each level."""
        return (0, 1, *(2**power + 1 for power in range(self.n_levels - 2)))

    def of(self, count: int) -> int:
        """Returns the level of a count."""
        return min((count - 1).bit_length() + 1, self.n_levels - 1) if count > 0 else 0

    def column(self, length: float) -> Array:
        """Returns the feature of each level: log(1 + least count), the last one being of this length."""
        values = np.log1p(self.least)
        return np.asarray(values * (length / values[-1]))


def levelled_pool(arms: ArmPool, columns: Sequence[Levels]) -> ArmPool:
    """Returns the arms at every combination of levels, with a feature for each of these counts.

    Row and id of an arm at levels (i, j) is (i * n_j + j) * n_arms + the arm's row. The last level is as long as the
    arms' own features are (their root mean square length): then at the start a linear model takes what is very
    popular to be as telling as all that is known of an arm, and a kernel of distances keeps an arm's levels about as
    far apart as arms. With the spread of a single column instead, one among many, popularity would come last.

    Examples:
        >>> pool = levelled_pool(ArmPool([[3.0], [-1.0]], ids=["tea", "milk"]), [Levels(3)])
        >>> len(pool), pool.features[:, 1].round(2)
        (6, array([0.  , 0.  , 1.41, 1.41, 2.24, 2.24]))
    """
    length = float(np.sqrt(np.mean(np.sum(arms.features**2, axis=1)))) or 1.0
    grids = np.meshgrid(*(each.column(length) for each in columns), indexing="ij")
    counts = np.stack([grid.ravel() for grid in grids], axis=1)
    own = np.tile(arms.features, (len(counts), 1))
    return ArmPool(np.hstack([own, np.repeat(counts, len(arms), axis=0)]))
