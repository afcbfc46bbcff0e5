"""Preconditioned conjugate gradients: the solution, a warm start, and a limit to the steps."""

from typing import Any

import numpy as np
import pytest

from coterie.algebra.iterative import pcg

SIZE, WIDTH = 12, 3


def case(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(SIZE, SIZE))
    return root @ root.T + np.eye(SIZE), rng.normal(size=(SIZE, WIDTH))


def solve(
    matrix: Any, right: Any, start: Any, most_steps: int = 1000, tolerance: float = 1e-10
) -> tuple[Any, Any, int]:
    solution, residual = start.copy(), right - matrix @ start
    steps = pcg(
        lambda v, out: np.matmul(matrix, v, out=out),
        lambda v, out: np.divide(v, matrix.diagonal()[:, None], out=out),
        residual,
        solution,
        is_small=lambda _, left: bool(np.abs(left).max() <= tolerance),
        most_steps=most_steps,
    )
    return solution, residual, steps


@pytest.mark.parametrize("seed", range(3))
def test_it_solves_from_anywhere_and_keeps_the_residual(seed: int) -> None:
    matrix, right = case(seed)
    exact = np.linalg.solve(matrix, right)
    for start in (np.zeros((SIZE, WIDTH)), np.ones((SIZE, WIDTH))):
        solution, residual, steps = solve(matrix, right, start)
        assert steps > 0
        np.testing.assert_allclose(solution, exact, atol=1e-8)
        np.testing.assert_allclose(residual, right - matrix @ solution, atol=1e-8)


def test_a_warm_start_at_the_solution_needs_no_step() -> None:
    matrix, right = case(0)
    exact = np.linalg.solve(matrix, right)
    solution, _, steps = solve(matrix, right, exact, tolerance=1e-8)
    assert steps == 0
    np.testing.assert_array_equal(solution, exact)


def test_it_stops_at_the_most_steps() -> None:
    matrix, right = case(0)
    assert solve(matrix, right, np.zeros((SIZE, WIDTH)), most_steps=2, tolerance=0.0)[2] == 2
