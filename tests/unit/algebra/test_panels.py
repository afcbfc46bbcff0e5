"""The factor that grows by rows equals numpy's, on both sides of every panel border, and holds little more than it."""

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from coterie.algebra import PanelCholesky
from coterie.algebra.panels import PANEL

Array = NDArray[np.float64]

SIZES = (1, PANEL - 1, PANEL, PANEL + 1, 300)


def positive_definite(size: int) -> Array:
    root = np.random.default_rng(size).normal(size=(size, size))
    return np.asarray(root @ root.T / size + 0.5 * np.eye(size))


def grown(matrix: Array, step: int) -> PanelCholesky:
    """Returns the factor of a matrix, built by appending `step` rows at a time."""
    factor = PanelCholesky()
    for start in range(0, len(matrix), step):
        rows = slice(start, min(start + step, len(matrix)))
        solved = factor.solve(matrix[rows, :start])
        corner = np.linalg.cholesky(matrix[rows, rows] - solved @ solved.T)
        factor.append(solved, np.asarray(corner, dtype=np.float64))
    return factor


def identity(size: int) -> PanelCholesky:
    factor = PanelCholesky()
    for t in range(size):
        factor.append(np.zeros((1, t)), np.eye(1))
    return factor


@pytest.mark.parametrize("step", [1, 50, 200])
@pytest.mark.parametrize("size", SIZES)
def test_solve_and_log_det_equal_numpys(size: int, step: int) -> None:
    matrix = positive_definite(size)
    factor = grown(matrix, step)
    right = np.random.default_rng(0).normal(size=(3, size))
    want = solve_triangular(np.linalg.cholesky(matrix), right.T, lower=True).T
    assert factor.size == size
    np.testing.assert_allclose(factor.solve(right), want, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(factor.solve(right[:1]), want[:1], rtol=1e-9, atol=1e-11)
    assert factor.log_det == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("size", SIZES)
def test_solved_rows_rebuild_the_inverse(size: int) -> None:
    """Row i is L^-1 e_i, and the inner products of these rows are the entries of (L L')^-1."""
    matrix = positive_definite(size)
    solved = grown(matrix, 64).solve(np.eye(size))
    np.testing.assert_allclose(solved @ solved.T, np.linalg.inv(matrix), atol=1e-10)


@pytest.mark.parametrize("size", SIZES)
def test_solve_changes_neither_its_input_nor_the_factor(size: int) -> None:
    factor = grown(positive_definite(size), 100)
    right = np.random.default_rng(1).normal(size=(2, size))
    for given in (right.copy(), np.asfortranarray(right)):
        first = factor.solve(given)
        np.testing.assert_array_equal(given, right)
        kept = first.copy()
        first[...] = 99.0
        np.testing.assert_array_equal(factor.solve(given), kept)


def test_an_empty_factor_solves_nothing_and_no_right_hand_sides_give_none() -> None:
    assert PanelCholesky().solve(np.empty((3, 0))).shape == (3, 0)
    assert PanelCholesky().log_det == 0.0
    assert PanelCholesky().nbytes == 0
    assert grown(positive_definite(130), 130).solve(np.empty((0, 130))).shape == (0, 130)


def test_nbytes_stay_below_the_full_square() -> None:
    factor = identity(299)
    for t in range(299, 1100):
        factor.append(np.zeros((1, t)), np.eye(1))
        assert factor.nbytes <= 1.25 * 8 * factor.size**2


def test_a_large_factor_takes_little_more_than_its_triangle_even_while_growing() -> None:
    tracemalloc.start()
    try:
        factor = identity(2000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 4 * 2000**2 <= factor.nbytes <= 1.15 * 4 * 2000**2
    assert peak <= 1.05 * factor.nbytes
