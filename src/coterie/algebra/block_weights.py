"""Gaussian weights in independent blocks: what a belief becomes when users share nothing."""

from math import sqrt
from typing import Any, Self

import numpy as np
from scipy.linalg import blas

from coterie.algebra.factor import Array


class BlockWeights:
    """A Gaussian belief over blocks of d weights, independent of each other, each with covariance scale[i] I at first.

    A block is one table, d rows of covariance and the mean as the last: one product with a row of features gives all
    that is to be known of it, and one rank-one update conditions both on a value.

    Examples:
        >>> weights = BlockWeights(np.array([1.0, 4.0]), 2)
        >>> weights.condition(1, np.array([1.0, 0.0]), 3.0, 4.0)
        (8.0, 3.0)
        >>> weights.read(1, np.eye(2))
        (array([1.5, 0. ]), array([2., 4.]))
    """

    __slots__ = ("_ones", "_tables", "_width")

    def __init__(self, scale: Array, width: int) -> None:
        self._width = width
        self._ones = np.ones(width)
        self._tables = np.zeros((len(scale), width + 1, width))
        self._tables[:, :width] = scale[:, None, None] * np.eye(width)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._tables.nbytes

    def state(self) -> dict[str, Any]:
        """Returns what `restored` makes the same belief from, to the bit; nothing is copied."""
        return {"tables": self._tables}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """Returns the belief of a state, whose array it takes over."""
        out = cls(np.zeros(0), state["tables"].shape[2])
        out._tables = state["tables"]
        return out

    @property
    def shape(self) -> tuple[int, int]:
        """How many blocks and weights of each there are."""
        return self._tables.shape[0], self._tables.shape[2]

    @property
    def mean(self) -> Array:
        """The mean of the weights, a row for each block."""
        return np.asarray(self._tables[:, self._width])

    def times(self, weights: Array) -> Array:
        """Returns the covariance times weights, a row for each block."""
        return np.asarray(np.einsum("bij,bj->bi", self._tables[:, : self._width], weights))

    def read(self, block: int, rows: Array) -> tuple[Array, Array]:
        """Returns mean and variance of the rows' products with a block's weights. O(d^2) for each row."""
        table = self._tables[block]
        products = np.dot(rows, table[: self._width])
        products *= rows
        return np.dot(rows, table[self._width]), np.dot(products, self._ones)

    def covariance(self, block: int) -> Array:
        """Returns the covariance of a block's weights, to be read only."""
        return np.asarray(self._tables[block, : self._width])

    def move(self, block: int, row: Array, change: float) -> tuple[float, float]:
        """Moves a block's mean by its covariance with a row's product, times a number; returns what `read` did."""
        mean, variance = self.read(block, row[None, :])
        table = self._tables[block]
        table[self._width] += change * np.dot(table[: self._width], row)
        return float(mean[0]), float(variance[0])

    def condition(self, block: int, row: Array, value: float, noise: float) -> tuple[float, float]:
        """Conditions on one value of a row's product; returns its predictive variance, and its surprise. O(d^2)."""
        table = self._tables[block]
        step = np.dot(table, row)
        column = step[: self._width]
        variance = max(blas.ddot(row, column), 0.0) + noise
        surprise = value - step.item(self._width)
        step[self._width] = -surprise
        step *= 1.0 / sqrt(variance)
        # in place, because the transpose is float64 in Fortran order; v v' keeps the covariance exactly symmetric
        blas.dger(-1.0, column, step, a=table.T, overwrite_a=1)
        return variance, surprise
