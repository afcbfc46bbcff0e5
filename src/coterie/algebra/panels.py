"""A Cholesky factor that grows by rows, in place, and solves at matrix-matrix speed."""

from typing import Any, Self

import numpy as np
from scipy.linalg import blas

from coterie.algebra.factor import Array

PANEL = 128


class PanelCholesky:
    """The lower factor of a growing matrix, kept as panels of `PANEL` rows.

    A panel holds its rows left of the diagonal block, and the diagonal block apart. Growing never copies what is
    there, so the peak memory is that of the triangle, about 4 t^2 bytes. Rows of the last panel that are not filled
    yet are rows of the identity, so that every solve works on whole contiguous blocks.

    Examples:
        >>> factor = PanelCholesky()
        >>> factor.append(np.empty((1, 0)), np.array([[2.0]]))
        >>> factor.append(np.array([[1.0]]), np.array([[2.0]]))     # of [[4, 2], [2, 5]]
        >>> factor.solve(np.array([[2.0, 5.0]]))
        array([[1., 2.]])
    """

    __slots__ = ("_diagonal", "_left", "log_det", "size")

    def __init__(self) -> None:
        self.size = 0
        self.log_det = 0.0
        self._left: list[Array] = []
        self._diagonal: list[Array] = []

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for part in self._left) + sum(part.nbytes for part in self._diagonal)

    def state(self) -> dict[str, Any]:
        """Returns what `restored` makes the same factor from, to the bit; nothing is copied."""
        return {"size": self.size, "log_det": self.log_det, "left": self._left, "diagonal": self._diagonal}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """Returns the factor of a state, whose arrays it takes over."""
        out = cls()
        out.size, out.log_det = state["size"], state["log_det"]
        out._left, out._diagonal = list(state["left"]), list(state["diagonal"])
        return out

    def solve(self, right: Array) -> Array:
        """Returns the rows of `right` (q x size), each multiplied by the inverse factor. O(q size^2 / 2)."""
        size = self.size
        out = np.zeros((len(right), PANEL * len(self._left)))
        out[:, :size] = right
        for p, (left, diagonal) in enumerate(zip(self._left, self._diagonal, strict=True)):
            start = p * PANEL
            part = np.ascontiguousarray(out[:, start : start + PANEL])
            if p:
                part -= out[:, :start] @ left.T
            # Row-major factor and right-hand sides are upper triangular and column-major to BLAS: no copy is made.
            blas.dtrsm(1.0, diagonal.T, part.T, lower=0, trans_a=1, overwrite_b=1)
            out[:, start : start + PANEL] = part
        return out[:, :size]

    @property
    def is_whole(self) -> bool:
        """Whether the panels have the shapes that so many rows need."""
        wanted = [(PANEL, p * PANEL) for p in range(-(-self.size // PANEL))]
        squares = [each.shape for each in self._diagonal]
        return [each.shape for each in self._left] == wanted and squares == [(PANEL, PANEL)] * len(wanted)

    def pivots(self) -> Array:
        """Returns the diagonal of the factor."""
        return np.concatenate([np.zeros(0), *(each.diagonal() for each in self._diagonal)])[: self.size]

    def row_squares(self) -> Array:
        """Returns the squared length of each row, the diagonal of the matrix itself."""
        both = zip(self._left, self._diagonal, strict=True)
        sums = [(left**2).sum(axis=1) + (np.tril(square) ** 2).sum(axis=1) for left, square in both]
        return np.concatenate([np.zeros(0), *sums])[: self.size]

    def times(self, right: Array) -> Array:
        """Returns the factor times a vector. O(size^2 / 2)."""
        padded = np.zeros(PANEL * len(self._left))
        padded[: self.size] = right
        both = enumerate(zip(self._left, self._diagonal, strict=True))
        parts = [left @ padded[: p * PANEL] + np.tril(sq) @ padded[p * PANEL :][:PANEL] for p, (left, sq) in both]
        return np.concatenate([np.zeros(0), *parts])[: self.size]

    def transposed_times(self, right: Array) -> Array:
        """Returns the transposed factor times a vector. O(size^2 / 2)."""
        padded = np.zeros(PANEL * len(self._left))
        padded[: self.size] = right
        out = np.zeros_like(padded)
        for p, (left, square) in enumerate(zip(self._left, self._diagonal, strict=True)):
            part = padded[p * PANEL :][:PANEL]
            out[: p * PANEL] += part @ left
            out[p * PANEL :][:PANEL] += part @ np.tril(square)
        return out[: self.size]

    def append(self, solved: Array, corner: Array) -> None:
        """Adds b rows: `solved` (b x size) left of the diagonal and the lower factor `corner` (b x b) on it.

        `solved` is `solve` of the new cross-covariances and `corner` the factor of what they leave. O(b size).
        """
        for i in range(len(corner)):
            self._append_row(solved[i], corner[i, :i], float(corner[i, i]))

    def _append_row(self, solved: Array, rest: Array, pivot: float) -> None:
        p, r = divmod(self.size, PANEL)
        if r == 0:
            self._left.append(np.zeros((PANEL, p * PANEL)))
            self._diagonal.append(np.eye(PANEL))
        row = np.concatenate([solved, rest])
        self._left[p][r] = row[: p * PANEL]
        self._diagonal[p][r, :r] = row[p * PANEL :]
        self._diagonal[p][r, r] = pivot
        self.size += 1
        self.log_det += 2.0 * float(np.log(pivot))
