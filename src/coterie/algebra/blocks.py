"""A block-diagonal matrix that loses rank-one terms: what a covariance becomes when users share nothing."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class BlockCovariance:
    """scale[i] times the identity of size d in block i, minus `v v'` for every column subtracted inside a block.

    It answers as `PendingCovariance` does to a combination of columns of one block, with that block's rows only.

    Examples:
        >>> cov = BlockCovariance(np.array([1.0, 4.0]), 2)
        >>> where, column = cov.next_combination(2, np.array([1.0, 0.0]))
        >>> where, column
        (slice(2, 4, None), array([4., 0.]))
        >>> column *= 0.25
        >>> cov.commit()
        >>> cov.run(2, 4)
        array([[3., 0.],
               [0., 4.]])
    """

    __slots__ = ("_block", "_blocks", "_column", "_width")

    def __init__(self, scale: Array, width: int) -> None:
        self._width = width
        self._blocks = scale[:, None, None] * np.eye(width)
        self._block = 0
        self._column = np.zeros(width)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._blocks.nbytes

    def run(self, start: int, end: int) -> Array:  # noqa: ARG002 - the block that begins here ends there
        """Returns the block of the indices from start to end, to be read only."""
        return np.asarray(self._blocks[start // self._width])

    def next_combination(self, start: int, weights: Array) -> tuple[slice, Array]:
        """Returns where the block lies, and its columns combined by the weights; `commit` takes that off. O(d^2)."""
        self._block = start // self._width
        self._column = self._blocks[self._block] @ weights
        return slice(start, start + self._width), self._column

    def commit(self) -> None:
        """Takes off `v v'` for v what the array from `next_combination` holds now. O(d^2)."""
        column = self._column
        self._blocks[self._block] -= column[:, None] * column
