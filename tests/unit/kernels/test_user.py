"""User kernels against numpy on the Laplacian, and their closed forms."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.spatial.distance import cdist, pdist

import coterie as ct
from coterie.errors import DimensionError, FactorisationError, KernelError
from coterie.graphs import make_graph
from coterie.kernels.user import SpectralKernel
from strategies import graphs, scaled_gap

Array = NDArray[np.float64]
Transfer = Callable[[Array], Array]

SPECTRAL: dict[str, tuple[SpectralKernel, Transfer]] = {
    "green": (ct.Green(laplacian_ridge=0.3), lambda x: 1 / (x + 0.3)),
    "green-normalised": (ct.Green(laplacian_ridge=0.3, normalised=True), lambda x: 1 / (x + 0.3)),
    "green-half": (ct.Green(laplacian_ridge=0.3, power=0.5), lambda x: (x + 0.3) ** -0.5),
    "green-square": (ct.Green(laplacian_ridge=0.3, power=2.0, normalised=True), lambda x: (x + 0.3) ** -2.0),
    "heat": (ct.Heat(time=0.7), lambda x: np.exp(-0.7 * x)),
    "heat-normalised": (ct.Heat(time=0.7, normalised=True), lambda x: np.exp(-0.7 * x)),
    "random-walk": (ct.RandomWalk(steps=3), lambda x: (2 - x) ** 3),
    "random-walk-far": (ct.RandomWalk(steps=2, reach=100.0, normalised=False), lambda x: (100 - x) ** 2),
    "band-pass": (ct.BandPass(centre=1.0, bandwidth=0.5), lambda x: np.exp(-2 * (x - 1.0) ** 2)),
    "band-pass-normalised": (
        ct.BandPass(centre=0.5, bandwidth=1.0, normalised=True),
        lambda x: np.exp(-0.5 * (x - 0.5) ** 2),
    ),
    "high-pass": (ct.HighPass(cutoff=0.4), lambda x: x / (x + 0.4)),
    "high-pass-normalised": (ct.HighPass(cutoff=0.4, normalised=True), lambda x: x / (x + 0.4)),
}


def of_laplacian(graph: ct.UserGraph, transfer: Transfer, *, normalised: bool) -> Array:
    """sum_i r(eigenvalue_i) q_i q_i', written out."""
    values, vectors = np.linalg.eigh(graph.laplacian(normalised=normalised).toarray())
    gains = transfer(values)
    pairs = zip(gains, vectors.T, strict=True)
    return np.asarray(sum((gain * np.outer(q, q) for gain, q in pairs), np.zeros((graph.n_users, graph.n_users))))


def with_isolated_users() -> ct.UserGraph:
    return ct.UserGraph.from_edges([("ana", "bo", 2.0), ("bo", "cy", 0.5)], users=["dee", "ana", "bo", "cy", "eve"])


def random_graph() -> ct.UserGraph:
    """Returns a connected graph with random weights, so that no eigenvalue is repeated."""
    weights = np.random.default_rng(4).uniform(0.2, 2.0, size=(9, 9))
    return ct.UserGraph.from_matrix(np.triu(weights, 1) + np.triu(weights, 1).T)


@pytest.mark.parametrize("name", sorted(SPECTRAL))
@given(graph=graphs())
def test_spectral_kernels_are_functions_of_the_laplacian(name: str, graph: ct.UserGraph) -> None:
    kernel, transfer = SPECTRAL[name]
    want = of_laplacian(graph, transfer, normalised=kernel.normalised)
    assert scaled_gap(kernel.matrix(graph), want, np.abs(want).max()) < 1e-10


@pytest.mark.parametrize("name", sorted(SPECTRAL))
def test_transfer_is_the_formula(name: str) -> None:
    kernel, transfer = SPECTRAL[name]
    values = np.linspace(0.0, 2.0, 9)
    np.testing.assert_allclose(kernel.transfer(values), transfer(values), rtol=1e-14)


@pytest.mark.parametrize("normalised", [False, True])
@given(graph=graphs(), ridge=st.floats(0.05, 3.0))
def test_green_is_the_inverse_of_the_regularised_laplacian(normalised: bool, graph: ct.UserGraph, ridge: float) -> None:
    matrix = ct.Green(laplacian_ridge=ridge, normalised=normalised).matrix(graph)
    precision = graph.laplacian(normalised=normalised).toarray() + ridge * np.eye(graph.n_users)
    np.testing.assert_allclose(matrix @ precision, np.eye(graph.n_users), atol=1e-10)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_green_leaves_isolated_users_at_the_prior(power: float, normalised: bool) -> None:
    graph = with_isolated_users()
    matrix = ct.Green(laplacian_ridge=0.25, power=power, normalised=normalised).matrix(graph)
    for user in ("dee", "eve"):
        row = graph.index_of(user)
        want = np.zeros(5)
        want[row] = 4.0**power  # 1 / ridge, to the power
        np.testing.assert_allclose(matrix[row], want, atol=1e-12)


@pytest.mark.parametrize("normalised", [False, True])
@given(graph=graphs(), ridge=st.floats(0.05, 3.0))
def test_green_of_power_half_squared_is_green(normalised: bool, graph: ct.UserGraph, ridge: float) -> None:
    whole = ct.Green(laplacian_ridge=ridge, normalised=normalised).matrix(graph)
    half = ct.Green(laplacian_ridge=ridge, power=0.5, normalised=normalised).matrix(graph)
    assert scaled_gap(half @ half, whole, np.abs(whole).max()) < 1e-11


@pytest.mark.parametrize("normalised", [False, True])
@given(graph=graphs(), time=st.floats(0.01, 5.0))
def test_heat_is_the_matrix_exponential(normalised: bool, graph: ct.UserGraph, time: float) -> None:
    want = expm(-time * graph.laplacian(normalised=normalised).toarray())
    np.testing.assert_allclose(ct.Heat(time=time, normalised=normalised).matrix(graph), want, atol=1e-10)


@pytest.mark.parametrize("steps", [1, 2, 5])
@given(graph=graphs())
def test_random_walk_is_a_power_of_one_step(steps: int, graph: ct.UserGraph) -> None:
    step = 2 * np.eye(graph.n_users) - graph.laplacian(normalised=True).toarray()
    want = np.linalg.matrix_power(step, steps)
    np.testing.assert_allclose(ct.RandomWalk(steps=steps).matrix(graph), want, atol=1e-9)


def test_random_walk_reaches_no_further_than_its_steps() -> None:
    ring = make_graph("ring", 9)
    matrix = ct.RandomWalk(steps=2).matrix(ring)
    assert matrix[0, 2] > 0.01
    np.testing.assert_allclose(matrix[0, 3:7], 0.0, atol=1e-12)


def test_random_walk_refuses_a_reach_below_the_largest_eigenvalue() -> None:
    pair = ct.UserGraph.from_edges([("ana", "bo", 3.0)])  # eigenvalues 0 and 6
    with pytest.raises(KernelError, match=r"reach is 5.9, and the Laplacian has the eigenvalue 6"):
        ct.RandomWalk(reach=5.9, normalised=False).matrix(pair)
    matrix = ct.RandomWalk(steps=1, reach=6.0, normalised=False).matrix(pair)
    np.testing.assert_allclose(matrix, [[3.0, 3.0], [3.0, 3.0]], atol=1e-12)


@given(graph=graphs())
def test_high_pass_does_not_see_what_is_constant_on_a_component(graph: ct.UserGraph) -> None:
    matrix = ct.HighPass().matrix(graph)
    for component in range(graph.n_components):
        members = (graph.component_labels == component).astype(float)
        np.testing.assert_allclose(matrix @ members, 0.0, atol=1e-11)


def test_high_pass_sets_neighbours_apart() -> None:
    graph = random_graph()
    matrix = ct.HighPass(cutoff=2.0).matrix(graph)
    np.testing.assert_allclose(matrix @ np.ones(9), 0.0, atol=1e-12)
    assert np.linalg.matrix_rank(matrix, tol=1e-6) == 8
    pair = ct.HighPass(cutoff=2.0).matrix(ct.UserGraph.from_edges([("ana", "bo")]))
    np.testing.assert_allclose(pair, [[0.25, -0.25], [-0.25, 0.25]], atol=1e-14)


def test_independent_users_share_nothing_and_all_ones_share_all() -> None:
    graph = with_isolated_users()
    np.testing.assert_array_equal(ct.Independent().matrix(graph), np.eye(5))
    np.testing.assert_array_equal(ct.AllOnes().matrix(graph), np.ones((5, 5)))


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_spectral_rbf_is_a_squared_exponential_of_the_eigenvectors(k: int, normalised: bool) -> None:
    graph = random_graph()
    embedded = np.linalg.eigh(graph.laplacian(normalised=normalised).toarray())[1][:, 1 : 1 + k]
    distances = cdist(embedded, embedded)
    for bandwidth, width in ((0.4, 0.4), ("median", np.median(pdist(embedded)))):
        matrix = ct.SpectralRBF(k=k, bandwidth=bandwidth, normalised=normalised).matrix(graph)
        np.testing.assert_allclose(matrix, np.exp(-((distances / width) ** 2) / 2), atol=1e-10)
        np.testing.assert_array_equal(matrix.diagonal(), np.ones(9))


@pytest.mark.parametrize("k", [8, 9, 50])
def test_spectral_rbf_uses_at_most_all_eigenvectors(k: int) -> None:
    """With all but the constant one, every two users are sqrt(2) apart."""
    matrix = ct.SpectralRBF(k=k, bandwidth=2.0).matrix(random_graph())
    want = np.full((9, 9), np.exp(-0.25))
    np.fill_diagonal(want, 1.0)
    np.testing.assert_allclose(matrix, want, atol=1e-12)


@given(graph=graphs(), k=st.integers(1, 9), bandwidth=st.one_of(st.floats(0.1, 3.0), st.just("median")))
def test_spectral_rbf_has_a_unit_diagonal_and_no_negative_eigenvalue(
    graph: ct.UserGraph, k: int, bandwidth: float | str
) -> None:
    matrix = ct.SpectralRBF(k=k, bandwidth=bandwidth).matrix(graph)
    np.testing.assert_array_equal(matrix.diagonal(), np.ones(graph.n_users))
    assert matrix.min() >= 0.0
    assert matrix.max() <= 1.0
    assert np.linalg.eigvalsh(matrix).min() > -1e-12


@pytest.mark.parametrize("bandwidth", [0.5, "median"])
def test_spectral_rbf_of_one_user_is_one(bandwidth: float | str) -> None:
    matrix = ct.SpectralRBF(bandwidth=bandwidth).matrix(make_graph("empty", 1))
    np.testing.assert_array_equal(matrix, [[1.0]])


def test_given_matrix_is_kept_as_it_was_given() -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo")])
    values = np.array([[2.0, 1.0], [1.0, 3.0]])
    kernel = ct.GivenMatrix(values)
    values[0, 0] = 99.0
    np.testing.assert_array_equal(kernel.matrix(graph), [[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_array_equal(ct.GivenMatrix([[1, 1], [1, 1]]).matrix(graph), np.ones((2, 2)))  # singular is fine


@pytest.mark.parametrize(
    ("values", "error", "named"),
    [
        ([[1.0, 2.0]], DimensionError, "(1, 2)"),
        ([1.0, 2.0], DimensionError, "(2,)"),
        ([[1.0, 0.5], [0.4, 1.0]], KernelError, "asymmetric by 0.1"),
        ([[1.0, 2.0], [2.0, 1.0]], KernelError, "negative eigenvalue -1"),
        ([[1.0, np.nan], [np.nan, 1.0]], KernelError, "NaN"),
        ([[np.inf]], KernelError, "infinite"),
    ],
)
def test_given_matrix_refuses_what_is_no_covariance(values: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=re.escape(named)):
        ct.GivenMatrix(values)


def test_given_matrix_must_fit_the_graph() -> None:
    with pytest.raises(DimensionError, match=re.escape("shape (2, 2); it must be (5, 5)")):
        ct.GivenMatrix(np.eye(2)).matrix(with_isolated_users())


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: ct.Green(laplacian_ridge=0.0), "laplacian_ridge is 0.0"),
        (lambda: ct.Green(laplacian_ridge=-0.1), "laplacian_ridge is -0.1"),
        (lambda: ct.Green(laplacian_ridge=np.inf), "laplacian_ridge is inf"),
        (lambda: ct.Green(power=0.0), "power is 0.0"),
        (lambda: ct.Heat(time=-1.0), "time is -1.0"),
        (lambda: ct.Heat(time=np.nan), "time is nan"),
        (lambda: ct.RandomWalk(steps=0), "steps is 0"),
        (lambda: ct.RandomWalk(steps=1.5), "steps is 1.5"),  # type: ignore[arg-type]
        (lambda: ct.RandomWalk(reach=0.0), "reach is 0.0"),
        (lambda: ct.BandPass(centre=-1.0, bandwidth=1.0), "centre is -1.0"),
        (lambda: ct.BandPass(centre=1.0, bandwidth=0.0), "bandwidth is 0.0"),
        (lambda: ct.HighPass(cutoff=0.0), "cutoff is 0.0"),
        (lambda: ct.SpectralRBF(k=0), "k is 0"),
        (lambda: ct.SpectralRBF(bandwidth=-2.0), "bandwidth is -2.0"),
        (lambda: ct.SpectralRBF(bandwidth="mean"), "bandwidth is 'mean'"),
    ],
)
def test_bad_parameters_are_named(make: Callable[[], Any], named: str) -> None:
    with pytest.raises(KernelError, match=f"^{re.escape(named)}"):
        make()


def test_spectral_rbf_sets_components_apart_whatever_the_eigenvectors() -> None:
    strangers = ct.SpectralRBF(k=2).matrix(make_graph("empty", 5))
    off = strangers[~np.eye(5, dtype=bool)]
    np.testing.assert_allclose(off, off[0])
    assert off[0] < 0.7
    pairs = ct.UserGraph.from_edges([("a", "b"), ("c", "d")])
    matrix = ct.SpectralRBF(k=3).matrix(pairs)
    assert matrix[0, 2] == pytest.approx(matrix[0, 3])
    assert matrix[0, 2] == pytest.approx(matrix[1, 2])


def test_a_ridge_that_vanishes_beside_the_degrees_is_a_typed_error() -> None:
    with pytest.raises(FactorisationError, match="1e-20"):
        ct.Green(laplacian_ridge=1e-20).matrix(make_graph("complete", 6))


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_an_edge_that_is_too_heavy_beside_the_ridge_is_a_typed_error(power: float) -> None:
    kernel = ct.Green(laplacian_ridge=0.5, power=power)
    heavy = ct.UserGraph.from_edges([("ana", "bo", 1e9), ("bo", "cy", 1.0)])
    assert np.isfinite(kernel.matrix(heavy)).all()
    for weight in (1e10, 1e15, 1e50):
        with pytest.raises(FactorisationError, match=r"degree 1e\+\d+, and the ridge is 0.5.*Make the heaviest edges"):
            kernel.matrix(ct.UserGraph.from_edges([("ana", "bo", weight), ("bo", "cy", 1.0)]))
    assert ct.Green(normalised=True).matrix(heavy).max() < 10.1
