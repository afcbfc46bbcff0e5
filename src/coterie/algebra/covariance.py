"""A symmetric matrix that loses low-rank terms, with the heavy work put off and done in blocks.

Taking off one rank-one term from an N x N matrix is bound by memory: every entry is read and written for two
operations. So the columns to take off are kept as `pending`, every read allows for them, and when the block is full
one `dsyrk` takes them all off at the speed of matrix-matrix multiplication. It touches one triangle only, half of what
the full update costs. Callers never see the difference.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from coterie.algebra.factor import Array, mirror

Index = NDArray[np.intp]

STRIP = 256


class PendingCovariance:
    """The matrix `start - sum of v v'` over all columns v subtracted so far.

    Memory: one N x N matrix, of which the lower triangle is used, plus N x block_size pending columns.

    Examples:
        >>> cov = PendingCovariance(np.eye(2), block_size=4)
        >>> cov.subtract(np.array([0.5, 0.5]))
        >>> cov.column(0)
        array([ 0.75, -0.25])
    """

    __slots__ = ("_matrix", "_n_pending", "_pending", "block_size", "size")

    def __init__(self, start: Array, *, block_size: int | None = None) -> None:
        """Takes over `start`; it is copied only if it is not a writeable float64 array in Fortran order."""
        self.size = len(start)
        self.block_size = block_size or default_block_size(self.size)
        self._matrix = np.require(start, np.float64, ["F", "W"])
        self._pending = np.zeros((self.size, self.block_size), order="F")
        self._n_pending = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self._matrix.nbytes + self._pending.nbytes)

    def state(self) -> dict[str, Any]:
        """Returns what `restored` makes the same matrix from, to the bit and with the same work pending; no copies."""
        pending = self._pending[:, : self._n_pending]
        return {"matrix": self._matrix, "pending": pending, "block_size": self.block_size}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """Returns the matrix of a state, whose array it takes over."""
        out, pending = cls(state["matrix"], block_size=state["block_size"]), state["pending"]
        out._n_pending = pending.shape[1]
        out._pending[:, : out._n_pending] = pending
        return out

    def column(self, j: int) -> Array:
        """Returns column j as a new array. O(N block_size)."""
        return self.next_column(j).copy()

    def next_column(self, j: int) -> Array:
        """Returns column j, laid out where the next pending column goes; `commit` takes it off as it is by then."""
        matrix, pending, k = self._matrix, self._pending, self._n_pending
        out = pending[:, k]
        out[:j] = matrix[j, :j]
        out[j:] = matrix[j:, j]
        if k:
            blas.dgemv(-1.0, pending[:, :k], pending[j, :k], beta=1.0, y=out, overwrite_y=1)
        return out

    def next_combination(self, start: int, weights: Array) -> Array:
        """Returns the sum of weights[i] times column start + i. O(N (d + block_size)).

        It is laid out as by `next_column`.
        """
        matrix, pending, k = self._matrix, self._pending, self._n_pending
        end = start + len(weights)
        out = pending[:, k]
        np.dot(matrix[start:end, :start].T, weights, out=out[:start])
        np.dot(matrix[end:, start:end], weights, out=out[end:])
        out[start:end] = self._stored_block(start, end) @ weights
        if k:
            rows = pending[start:end, :k]
            blas.dgemv(-1.0, pending[:, :k], rows.T @ weights, beta=1.0, y=out, overwrite_y=1)
        return out

    def run(self, start: int, end: int) -> Array:
        """Returns the square sub-matrix of the indices from start to end. O(d^2 block_size)."""
        out = self._stored_block(start, end)
        if self._n_pending:
            rows = self._pending[start:end, : self._n_pending]
            out -= rows @ rows.T
        return out

    def _stored_block(self, start: int, end: int) -> Array:
        return mirror(self._matrix[start:end, start:end].copy())

    def commit(self) -> None:
        """Takes off `v v'` for v what the array from `next_column` holds now. O(N^2 / 2) amortised."""
        self._n_pending += 1
        if self._n_pending == self.block_size:
            self.flush()

    def columns(self, indices: Index) -> Array:
        """Returns the columns at `indices` as a new N x b array in Fortran order."""
        out = np.empty((self.size, len(indices)), order="F")
        for i, j in enumerate(indices):
            out[:j, i] = self._matrix[j, :j]
            out[j:, i] = self._matrix[j:, j]
        pending = self._pending[:, : self._n_pending]
        if self._n_pending:
            out -= pending @ pending[indices].T
        return out

    def block(self, indices: Index) -> Array:
        """Returns the square sub-matrix at `indices` as a new array. O(q^2 block_size)."""
        low = np.minimum.outer(indices, indices)
        high = np.maximum.outer(indices, indices)
        out = self._matrix[high, low]
        if self._n_pending:
            rows = self._pending[indices, : self._n_pending]
            out -= rows @ rows.T
        return np.asarray(out)

    def diagonal(self) -> Array:
        """Returns the diagonal as a new array. O(N block_size)."""
        pending = self._pending[:, : self._n_pending]
        return np.asarray(self._matrix.diagonal() - np.einsum("ij,ij->i", pending, pending))

    def times(self, right: Array) -> Array:
        """Returns this matrix times the columns of `right` (N x b). O(N^2 b)."""
        out = blas.dsymm(1.0, self._matrix, right, lower=1)
        if self._n_pending:
            pending = self._pending[:, : self._n_pending]
            out -= pending @ (pending.T @ right)
        return np.asarray(out)

    def subtract(self, column: Array) -> None:
        """Takes off `column column'`. O(N) now, O(N^2 / 2) amortised."""
        self._pending[:, self._n_pending] = column
        self.commit()

    def subtract_block(self, columns: Array) -> None:
        """Takes off `columns columns'`, for columns in Fortran order, with one BLAS-3 call."""
        self.flush()
        self._take_off(columns)

    def flush(self) -> None:
        """Does the pending work; nothing a caller can see changes."""
        if self._n_pending:
            self._take_off(self._pending[:, : self._n_pending])
            self._n_pending = 0

    def restart(self) -> Array:
        """Drops the pending columns and returns the matrix itself, to be filled again in place."""
        self._n_pending = 0
        return self._matrix

    def grown(self, cross: Array, corner: Array) -> "PendingCovariance":
        """Returns this matrix with more rows at its end: `cross` (N x p) with those there, `corner` (p x p). O(N^2).

        Examples:
            >>> PendingCovariance(np.eye(1)).grown(np.array([[0.5]]), np.array([[2.0]])).column(0)
            array([1. , 0.5])
        """
        size = self.size + len(corner)
        matrix = np.zeros((size, size), order="F")  # the upper triangle is saved too, and must not be somebody's memory
        for start in range(0, self.size, STRIP):  # the lower triangle is enough
            strip = slice(start, min(start + STRIP, self.size))
            matrix[start : self.size, strip] = self._matrix[start:, strip]
        matrix[self.size :, : self.size] = cross.T
        matrix[self.size :, self.size :] = corner
        out = PendingCovariance(matrix, block_size=self.block_size)
        # a pending column takes nothing off the new rows: it is zero there
        out._pending[: self.size, : self._n_pending] = self._pending[:, : self._n_pending]
        out._n_pending = self._n_pending
        return out

    def _take_off(self, columns: Array) -> None:
        # overwrite_c works in place because the matrix is float64 in Fortran order; the upper triangle is left alone
        blas.dsyrk(-1.0, columns, beta=1.0, c=self._matrix, lower=1, overwrite_c=1)


def default_block_size(size: int) -> int:
    """Returns how many columns to keep pending: enough for BLAS-3 speed, few enough to keep reads cheap."""
    return 32 if size < 1500 else 64
