"""A covariance with pending work reads like a plain matrix, whatever was subtracted and whenever it was flushed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coterie.algebra import PendingCovariance

Array = NDArray[np.float64]

WRITES = ("subtract", "subtract_block", "flush")
READS = ("column", "columns", "block", "times")


def random_covariance(rng: np.random.Generator, size: int) -> Array:
    root = rng.normal(size=(size, size))
    return np.asarray(root @ root.T)


def write(step: str, cov: PendingCovariance, dense: Array, rng: np.random.Generator) -> None:
    """Does one step to both; the dense matrix is changed in place."""
    if step == "subtract":
        column = rng.uniform(-1, 1, size=cov.size)
        cov.subtract(column)
        dense -= np.outer(column, column)
    elif step == "subtract_block":
        columns = np.asfortranarray(rng.uniform(-1, 1, size=(cov.size, int(rng.integers(1, 4)))))
        cov.subtract_block(columns)
        dense -= columns @ columns.T
    else:
        cov.flush()


def assert_reads_alike(step: str, cov: PendingCovariance, dense: Array, rng: np.random.Generator) -> None:
    indices = rng.integers(cov.size, size=int(rng.integers(1, 5)))
    if step == "column":
        got, want = cov.column(int(indices[0])), dense[:, indices[0]]
    elif step == "columns":
        got, want = cov.columns(indices), dense[:, indices]
    elif step == "block":
        got, want = cov.block(indices), dense[np.ix_(indices, indices)]
    else:
        right = rng.normal(size=(cov.size, len(indices)))
        got, want = cov.times(right), dense @ right
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


@given(
    size=st.integers(1, 7),
    block_size=st.integers(1, 8),
    steps=st.lists(st.sampled_from(WRITES + READS), max_size=40),
    seed=st.integers(0, 10_000),
)
def test_equals_a_dense_matrix_under_any_sequence(size: int, block_size: int, steps: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = random_covariance(rng, size)
    cov = PendingCovariance(dense.copy(order="F"), block_size=block_size)
    for step in steps:
        if step in WRITES:
            write(step, cov, dense, rng)
        else:
            assert_reads_alike(step, cov, dense, rng)
    for step in READS:
        assert_reads_alike(step, cov, dense, rng)


@pytest.mark.parametrize("read", READS)
def test_reads_are_new_arrays(read: str) -> None:
    """Writing into an answer changes no later answer, with and without pending columns."""
    dense = random_covariance(np.random.default_rng(0), 4)
    cov = PendingCovariance(dense.copy(order="F"), block_size=3)
    for _ in range(2):
        indices = np.arange(4)
        answer = {
            "column": lambda: cov.column(1),
            "columns": lambda: cov.columns(indices),  # noqa: B023 - called at once
            "block": lambda: cov.block(indices),  # noqa: B023 - called at once
            "times": lambda: cov.times(np.eye(4)),
        }[read]()
        answer[...] = 99.0
        np.testing.assert_allclose(cov.columns(indices), dense, rtol=1e-12)
        cov.subtract(np.ones(4))
        dense -= 1.0


def test_only_the_lower_triangle_is_used() -> None:
    rng = np.random.default_rng(1)
    dense = random_covariance(rng, 5)
    start = np.asfortranarray(dense + np.triu(np.full((5, 5), np.nan), 1))
    cov = PendingCovariance(start, block_size=2)
    for step in ("subtract", "subtract", "subtract", "subtract_block", "subtract"):
        write(step, cov, dense, rng)
        for read in READS:
            assert_reads_alike(read, cov, dense, rng)


def test_a_start_in_fortran_order_is_taken_over_and_any_other_is_copied() -> None:
    ours, theirs = np.asfortranarray(np.eye(3) + 1.0), np.ascontiguousarray(np.eye(3) + 1.0)
    taken, copied = PendingCovariance(ours, block_size=1), PendingCovariance(theirs, block_size=1)
    for cov in (taken, copied):
        cov.subtract(np.array([1.0, 0.0, 1.0]))  # a block of one column is flushed at once
    assert np.shares_memory(taken.restart(), ours)
    assert not np.shares_memory(copied.restart(), theirs)
    np.testing.assert_array_equal(np.tril(ours), [[1.0, 0.0, 0.0], [1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    np.testing.assert_array_equal(theirs, np.eye(3) + 1.0)


def test_nothing_is_written_before_the_block_is_full() -> None:
    start = np.asfortranarray(np.eye(2))
    cov = PendingCovariance(start, block_size=3)
    for _ in range(2):
        cov.subtract(np.array([0.5, 0.5]))
    np.testing.assert_array_equal(start, np.eye(2))
    np.testing.assert_array_equal(cov.column(0), [0.5, -0.5])
    cov.subtract(np.array([0.5, 0.5]))
    np.testing.assert_array_equal(np.tril(start), [[0.25, 0.0], [-0.75, 0.25]])
    np.testing.assert_array_equal(cov.column(0), [0.25, -0.75])


@pytest.mark.parametrize(("size", "block_size"), [(1, 1), (10, 4), (300, 7)])
def test_nbytes_are_the_matrix_and_the_pending_columns(size: int, block_size: int) -> None:
    cov = PendingCovariance(np.asfortranarray(np.eye(size)), block_size=block_size)
    assert cov.nbytes == 8 * size * (size + block_size)
    cov.subtract(np.zeros(size))
    cov.flush()
    assert cov.nbytes == 8 * size * (size + block_size)


def test_restart_forgets_the_pending_columns() -> None:
    cov = PendingCovariance(np.asfortranarray(np.eye(2)), block_size=4)
    cov.subtract(np.array([0.5, 0.5]))
    cov.restart()[...] = [[3.0, 1.0], [1.0, 3.0]]
    np.testing.assert_array_equal(cov.columns(np.arange(2)), [[3.0, 1.0], [1.0, 3.0]])
