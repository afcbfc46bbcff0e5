"""Cholesky factors: exact where they can be, with the least jitter and a note of it where they cannot."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coterie.algebra import CoterieError, FactorisationError, JitterLog, cholesky, log_det_of_factor, solve_lower

Array = NDArray[np.float64]
Order = Literal["C", "F"]


def positive_definite(size: int, seed: int) -> Array:
    root = np.random.default_rng(seed).normal(size=(size, size))
    return np.asarray(root @ root.T + np.eye(size))


def numpys(matrix: Array) -> Array:
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


@given(size=st.integers(1, 8), seed=st.integers(0, 10_000))
def test_a_positive_definite_matrix_gets_its_factor_and_no_jitter(size: int, seed: int) -> None:
    matrix, log = positive_definite(size, seed), JitterLog()
    factor = cholesky(matrix, log)
    np.testing.assert_allclose(factor, numpys(matrix), rtol=1e-12, atol=1e-12)
    assert factor.flags.f_contiguous
    assert log == JitterLog(count=0, largest=0.0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("matrix", [positive_definite(4, 0), np.ones((4, 4))], ids=["definite", "singular"])
def test_only_the_lower_triangle_is_read_and_nothing_is_written(matrix: Array, order: Order) -> None:
    given_matrix = (np.tril(matrix) + np.triu(np.full((4, 4), 77.0), 1)).copy(order=order)
    before = given_matrix.copy()
    np.testing.assert_array_equal(cholesky(given_matrix, JitterLog()), cholesky(matrix, JitterLog()))
    np.testing.assert_array_equal(given_matrix, before)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("defect", [1e-13, 1e-11, 1e-9, 1e-8])
def test_the_jitter_is_noted_with_its_size_and_is_no_more_than_needed(defect: float, scale: float) -> None:
    """The smallest eigenvalue is about -defect / 2, so a jitter of that much is needed and a decade more is enough."""
    matrix, log = scale * np.array([[1.0, 1.0], [1.0, 1.0 - defect]]), JitterLog()
    factor = cholesky(matrix, log)
    assert log.count == 1
    assert 0.4 * defect <= log.largest <= 10 * defect
    added = (factor @ factor.T - matrix) / scale
    np.testing.assert_allclose(added, log.largest * np.eye(2), atol=1e-15, rtol=0.01)


def test_the_log_counts_every_use_and_keeps_the_largest() -> None:
    log = JitterLog()
    for defect in (1e-9, 1e-12):
        cholesky(np.array([[1.0, 1.0], [1.0, 1.0 - defect]]), log)
    cholesky(np.eye(2), log)
    assert log.count == 2
    assert 0.4e-9 <= log.largest <= 1e-8


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.array([[1.0, 1.0], [1.0, 1.0 - 1e-6]]),
        -np.eye(3),
        np.zeros((2, 2)),
        np.array([[np.nan]]),
        np.array([[1.0, 0.0], [0.0, np.nan]]),
        np.array([[np.nan, 0.0], [0.0, 1.0]]),
    ],
    ids=["indefinite", "beyond-the-last-jitter", "negative", "zero", "nan", "nan-last", "nan-first"],
)
def test_a_hopeless_matrix_raises_and_notes_nothing(matrix: Array) -> None:
    log = JitterLog()
    with pytest.raises(FactorisationError, match=f"a {len(matrix)} x {len(matrix)} matrix .* has no Cholesky factor"):
        cholesky(matrix, log)
    assert log == JitterLog()


def test_a_failed_factorisation_can_be_caught_by_kind() -> None:
    for kind in (CoterieError, ArithmeticError):
        with pytest.raises(kind, match=r"raise noise_var\.$"):
            cholesky(-np.eye(2), JitterLog())


@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 3), (5, 0)])
def test_solve_lower_solves_vectors_and_matrices(shape: tuple[int, ...]) -> None:
    factor = numpys(positive_definite(5, 1))
    right = np.random.default_rng(0).normal(size=shape)
    solved = solve_lower(factor, right)
    assert solved.shape == shape
    np.testing.assert_allclose(factor @ solved, right, atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_solve_lower_reads_the_lower_triangle_and_changes_nothing(order: Order) -> None:
    factor = numpys(positive_definite(4, 2))
    right = np.random.default_rng(3).normal(size=(4, 2)).copy(order=order)
    before = right.copy()
    full = (factor + np.triu(np.full((4, 4), 77.0), 1)).copy(order=order)
    np.testing.assert_allclose(solve_lower(full, right), np.linalg.solve(factor, right), atol=1e-12)
    np.testing.assert_array_equal(right, before)


@given(size=st.integers(1, 8), seed=st.integers(0, 10_000))
def test_log_det_of_a_factor_is_that_of_the_matrix(size: int, seed: int) -> None:
    matrix = positive_definite(size, seed)
    want = np.linalg.slogdet(matrix)[1]
    assert log_det_of_factor(numpys(matrix)) == pytest.approx(want, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(("place", "value"), [((1, 0), np.nan), ((2, 1), np.nan), ((0, 0), np.inf), ((2, 2), np.nan)])
def test_what_lapack_does_not_notice_is_an_error_too(place: tuple[int, int], value: float) -> None:
    matrix = 2.0 * np.eye(3)
    matrix[place] = value
    log = JitterLog()
    with pytest.raises(FactorisationError):
        cholesky(matrix, log)
    assert log.count == 0
