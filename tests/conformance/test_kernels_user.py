"""What every user kernel must satisfy; kernels are found by themselves."""

import pickle

import numpy as np
import pytest
from hypothesis import given

import coterie as ct
from kernel_cases import GRAPH, USER_KERNELS, concrete
from strategies import graphs, scaled_gap

FOUND = [cls.__name__ for cls in concrete(ct.UserKernel)]


def test_every_user_kernel_is_found_and_can_be_made() -> None:
    assert {"AllOnes", "Green", "SpectralRBF"} <= set(FOUND)
    assert sorted(USER_KERNELS) == FOUND, "give each concrete UserKernel one line in USER_KERNELS"


@pytest.mark.parametrize("name", FOUND)
@given(graph=graphs())
def test_every_user_kernel_is_symmetric_and_positive_semi_definite(name: str, graph: ct.UserGraph) -> None:
    kernel = USER_KERNELS[name](graph)
    matrix = kernel.matrix(graph)
    assert matrix.shape == (graph.n_users, graph.n_users)
    assert matrix.dtype == np.float64
    assert np.isfinite(matrix).all()
    scale = float(np.abs(matrix).max())
    assert scaled_gap(matrix, matrix.T, scale) < 1e-14
    assert np.linalg.eigvalsh(matrix).min() >= -1e-12 * scale * len(matrix)


@pytest.mark.parametrize("name", FOUND)
def test_every_user_kernel_gives_a_fresh_matrix_and_the_same_each_time(name: str) -> None:
    kernel = USER_KERNELS[name](GRAPH)
    first = kernel.matrix(GRAPH)
    kept = first.copy()
    first[...] = 99.0
    np.testing.assert_array_equal(kernel.matrix(GRAPH), kept)


@pytest.mark.parametrize("name", FOUND)
def test_a_pickled_user_kernel_gives_the_same_matrix(name: str) -> None:
    kernel = USER_KERNELS[name](GRAPH)
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again.matrix(GRAPH), kernel.matrix(GRAPH))


@pytest.mark.parametrize("name", sorted(set(FOUND) - {"GivenMatrix"}))
def test_user_kernels_are_values(name: str) -> None:
    kernel, twin = USER_KERNELS[name](GRAPH), USER_KERNELS[name](GRAPH)
    assert kernel == twin
    assert hash(kernel) == hash(twin)
    assert eval(repr(kernel), vars(ct)) == kernel
