"""Preconditioned conjugate gradients, on a row for each user; compiled where numba is there."""

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.algebra.push import compiled

Map = Callable[[Any, Any], Any]


@compiled
def add_scaled(amount: float, vectors: Any, out: Any) -> None:
    """Adds amount * vectors; without an array in between."""
    for user in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[user, k] += amount * vectors[user, k]


@compiled
def scale_and_add(scale: float, vectors: Any, out: Any) -> None:
    """Makes `out` scale * out + vectors."""
    for user in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[user, k] = scale * out[user, k] + vectors[user, k]


def pcg(
    times: Map,
    precondition: Map,
    residual: Any,
    solution: Any,
    *,
    is_small: Callable[[int, Any], bool],
    most_steps: int,
) -> int:
    """Solves A x = b for a symmetric positive definite A, in place, and returns how many steps were made.

    Args:
        times: Writes A v of its first argument into its second, and returns it.
        precondition: Likewise for about A^-1 v.
        residual: b - A x for the x to begin with; in the end that of the solution.
        solution: The x to begin with; in the end the solution.
        is_small: Asked before each step, by its number and the residual, whether that will do.
        most_steps: How many steps are made at most.

    Examples:
        >>> matrix, solution = np.array([[2.0, 1.0], [1.0, 3.0]]), np.zeros((2, 1))
        >>> pcg(
        ...     lambda v, out: np.matmul(matrix, v, out=out),
        ...     lambda v, out: np.divide(v, matrix.diagonal()[:, None], out=out),
        ...     np.array([[3.0], [4.0]]),
        ...     solution,
        ...     is_small=lambda _, residual: bool(np.abs(residual).max() < 1e-12),
        ...     most_steps=10,
        ... )
        2
        >>> solution.round(9)
        array([[1.],
               [1.]])
    """
    ready, image = np.empty_like(residual), np.empty_like(residual)
    direction = precondition(residual, ready).copy()
    size = float(np.vdot(residual, ready))
    for step in range(most_steps):
        if is_small(step, residual):
            return step
        length = size / float(np.vdot(direction, times(direction, image)))
        add_scaled(length, direction, solution)
        add_scaled(-length, image, residual)
        before, size = size, float(np.vdot(residual, precondition(residual, ready)))
        scale_and_add(size / before, ready, direction)
    return most_steps
