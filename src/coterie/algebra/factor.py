"""Cholesky factors with jitter that is used only when needed, and always counted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from coterie.algebra.failures import FactorisationError

Array = NDArray[np.float64]

FIRST_JITTER = 1e-14
LAST_JITTER = 1e-8
MIRRORED = 256  # rows that are mirrored at a time


@dataclass(slots=True)
class JitterLog:
    """How often jitter was needed, and the largest amount, relative to the scale of the matrix."""

    count: int = 0
    largest: float = 0.0

    def note(self, relative: float) -> None:
        """Counts one use of jitter of this relative size."""
        self.count += 1
        self.largest = max(self.largest, relative)


def cholesky(matrix: Array, log: JitterLog, *, scale: float | None = None) -> Array:
    """Returns the lower factor of a symmetric matrix, in Fortran order. O(n^3).

    Only the lower triangle is read. If the matrix is not numerically positive definite, growing multiples of `scale`
    are added to the diagonal, and the multiple is noted in `log`. The scale is that of the numbers the matrix was
    computed from, since that is the scale of its rounding; default the mean diagonal.

    Raises:
        FactorisationError: No jitter up to 1e-8 of the scale helps.

    Examples:
        >>> cholesky(np.array([[4.0, 0.0], [2.0, 5.0]]), JitterLog())
        array([[2., 0.],
               [1., 2.]])
    """
    factor = _factor(matrix)
    if factor is not None:
        return factor
    if scale is None:
        scale = float(np.mean(np.diag(matrix)))
    relative = FIRST_JITTER
    while relative <= LAST_JITTER and np.isfinite(scale) and scale > 0:
        factor = _factor(matrix + relative * scale * np.eye(len(matrix)))
        if factor is not None:
            log.note(relative)
            return factor
        relative *= 10
    raise FactorisationError(
        f"a {len(matrix)} x {len(matrix)} matrix of scale {scale:.3g} has no Cholesky factor",
        f"it must be positive definite, if need be with a jitter of {LAST_JITTER:g}",
        "Check that the kernels are positive semi-definite, or raise noise_var",
    )


def _factor(matrix: Array) -> Array | None:
    factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
    # LAPACK does not notice NaN off the diagonal, nor infinity: both reach the factor's diagonal.
    return np.asarray(factor) if info == 0 and np.isfinite(factor.diagonal()).all() else None


def mirror(matrix: Array) -> Array:
    """Returns the matrix with its lower triangle copied onto the upper one, in its place: no second one is made.

    Examples:
        >>> mirror(np.array([[1.0, 9.0], [2.0, 3.0]]))
        array([[1., 2.],
               [2., 3.]])
    """
    for start in range(0, len(matrix), MIRRORED):
        end = start + MIRRORED
        square = matrix[start:end, start:end]
        square[...] = np.tril(square) + np.tril(square, -1).T
        matrix[start:end, end:] = matrix[end:, start:end].T
    return matrix


def solve_lower(factor: Array, right: Array) -> Array:
    """Returns factor^-1 right for a lower triangular factor. O(n^2) for each column.

    Examples:
        >>> solve_lower(np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([2.0, 5.0]))
        array([1., 2.])
    """
    # LAPACK itself: SciPy's solve_triangular spends more on checks than a small solve takes.
    return np.asarray(lapack.dtrtrs(factor, right, lower=1)[0])


def log_det_of_factor(factor: Array) -> float:
    """Returns log det(factor factor').

    Examples:
        >>> round(log_det_of_factor(np.diag([1.0, np.e])), 12)
        2.0
    """
    return 2.0 * float(np.log(np.diag(factor)).sum())
