"""Laplacians, eigenvalues and what is made of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import MemoryLimitError, NumericalError, ParameterError
from coterie.graphs import UserGraph, barabasi_albert, complete, empty, erdos_renyi, grid, ring
from coterie.graphs import spectrum as module
from coterie.graphs.spectrum import Spectrum, SpectrumLimits

EDGES = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.floats(1e-2, 1e2)).filter(lambda edge: edge[0] < edge[1]),
    max_size=20,
    unique_by=lambda edge: edge[:2],
)


def disjoint(*graphs: UserGraph, isolated: int = 0) -> UserGraph:
    edges = [((part, u), (part, v), w) for part, graph in enumerate(graphs) for u, v, w in graph.edges()]
    users: list[Any] = [(part, user) for part, graph in enumerate(graphs) for user in graph.users]
    mixed = np.random.default_rng(0).permutation(len(users) + isolated)
    users += [("alone", i) for i in range(isolated)]
    return UserGraph.from_edges(edges, users=[users[i] for i in mixed])


def brute_ratio(graph: UserGraph) -> float:
    values = np.linalg.eigvalsh(graph.laplacian().toarray())
    positive = values[values > 1e-9 * values[-1]]
    return float(positive[0] / values[-1]) if graph.n_edges else 1.0


@given(edges=EDGES)
def test_the_laplacian_is_symmetric_positive_and_sums_to_zero(edges: list[tuple[int, int, float]]) -> None:
    graph = UserGraph.from_edges(edges, users=range(9))
    for normalised in (False, True):
        dense = graph.laplacian(normalised=normalised).toarray()
        assert np.array_equal(dense, dense.T)
        values = np.linalg.eigvalsh(dense)
        assert values[0] >= -1e-10 * max(1.0, values[-1])
        assert values[-1] <= (2 if normalised else 2 * graph.degrees.max()) + 1e-9
    assert np.allclose(graph.laplacian().sum(axis=1), 0, atol=1e-10)
    null = np.sqrt(graph.degrees)
    assert np.allclose(graph.laplacian(normalised=True) @ null, 0, atol=1e-10)


def test_the_quadratic_form_is_the_sum_over_edges() -> None:
    graph = erdos_renyi(15, edge_prob=0.3, seed=2)
    f = np.random.default_rng(0).standard_normal(15)
    by_edges = sum(weight * (f[u] - f[v]) ** 2 for u, v, weight in graph.edges())  # type: ignore[call-overload]
    assert f @ (graph.laplacian() @ f) == pytest.approx(by_edges)


def test_isolated_users_have_zero_rows() -> None:
    graph = UserGraph.from_edges([("a", "b", 4.0)], users=["x", "a", "b"])
    assert graph.laplacian(normalised=True).toarray().tolist() == [[0, 0, 0], [0, 1, -1], [0, -1, 1]]
    assert graph.laplacian().toarray().tolist() == [[0, 0, 0], [0, 4, -4], [0, -4, 4]]


@pytest.mark.parametrize("normalised", [False, True])
def test_the_ridge_is_added_to_every_user(normalised: bool) -> None:
    graph = UserGraph.from_edges([("a", "b", 4.0)], users=["x", "a", "b"])
    difference = graph.regularised_laplacian(0.25, normalised=normalised) - graph.laplacian(normalised=normalised)
    assert np.array_equal(difference.toarray(), 0.25 * np.eye(3))


@pytest.mark.parametrize("ridge", [0.0, -0.1, float("nan"), float("inf"), "0.1", None])
def test_a_ridge_that_cannot_work_is_refused(ridge: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        ring(4).regularised_laplacian(ridge)
    assert repr(ridge) in caught.value.problem


def test_closed_forms() -> None:
    assert np.allclose(complete(7).spectrum().values, [0] + [7] * 6)
    assert np.allclose(ring(9).spectrum().values, np.sort(2 - 2 * np.cos(2 * np.pi * np.arange(9) / 9)))
    path = 2 - 2 * np.cos(np.pi * np.arange(5) / 5)
    assert np.allclose(grid(1, 5).spectrum().values, path)
    assert np.allclose(grid(4, 5).spectrum().values, np.sort(np.add.outer(path, grid(1, 4).spectrum().values).ravel()))
    assert ring(6).algebraic_connectivity == pytest.approx(1.0)
    assert complete(6).spectral_ratio == pytest.approx(1.0)


@pytest.mark.parametrize("normalised", [False, True])
def test_the_full_spectrum_rebuilds_the_laplacian(normalised: bool) -> None:
    graph = disjoint(erdos_renyi(10, seed=1), ring(4), isolated=2)
    dense = graph.laplacian(normalised=normalised).toarray()
    found = graph.spectrum(normalised=normalised)
    assert np.allclose(found.vectors @ np.diag(found.values) @ found.vectors.T, dense, atol=1e-12)
    assert np.allclose(found.vectors.T @ found.vectors, np.eye(16), atol=1e-12)
    assert (found.values[: graph.n_components] == 0).all()
    assert (np.diff(found.values) >= 0).all()
    assert found.values[graph.n_components] > 1e-9
    assert not found.values.flags.writeable
    assert not found.vectors.flags.writeable


def test_k_takes_the_smallest() -> None:
    graph = erdos_renyi(12, seed=3)
    whole, some = graph.spectrum(), graph.spectrum(4)
    assert np.array_equal(some.values, whole.values[:4])
    assert np.array_equal(some.vectors, whole.vectors[:, :4])


@pytest.mark.parametrize("k", [0, -1, 6, 2.0, True])
def test_a_bad_k_is_named(k: Any) -> None:
    with pytest.raises(ParameterError, match=f"k = {k!r}"):
        ring(5).spectrum(k)


def test_a_full_spectrum_that_cannot_fit_is_refused() -> None:
    with pytest.raises(MemoryLimitError, match="20001 users") as caught:
        empty(20_001).spectrum()
    assert "k" in caught.value.remedy
    assert empty(20_001).spectrum(3).values.tolist() == [0, 0, 0]


# Repeated eigenvalues: a single Krylov space misses copies of them.
HYPERCUBE = UserGraph.from_edges([(i, i ^ (1 << bit)) for i in range(128) for bit in range(7)], users=range(128))
TREE = UserGraph.from_edges([(i, 3 * i + child) for i in range(40) for child in (1, 2, 3)])
BIG = {
    "ring": ring(120),
    "square grid": grid(11, 11),
    "complete": complete(60),
    "star": UserGraph.from_edges([("hub", i) for i in range(80)]),
    "sparse": erdos_renyi(200, edge_prob=0.012, seed=1),
    "dense": erdos_renyi(100, edge_prob=0.3, seed=1),
    "hubs": barabasi_albert(150, seed=2),
    "hypercube": HYPERCUBE,
    "tree": TREE,
    "parts": disjoint(ring(70), ring(70), complete(50), grid(3, 20), isolated=5),
    "weighted": UserGraph.from_features(np.random.default_rng(1).standard_normal((150, 3)), k=4, lengthscale=0.3),
}


def lanczos(graph: UserGraph, k: int, *, normalised: bool = False, **limits: int) -> Spectrum:
    """Returns the smallest eigenpairs as if 40 users were many."""
    sizes = SpectrumLimits(**{"dense": 40, **limits})
    return module.spectrum(graph.weights, graph.components(), k=k, normalised=normalised, limits=sizes)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("name", BIG)
def test_lanczos_agrees_with_the_dense_method(name: str, normalised: bool) -> None:
    graph = BIG[name]
    laplacian = graph.laplacian(normalised=normalised).toarray()
    exact = np.linalg.eigvalsh(laplacian)
    for k in (1, 3, 8, 24):
        found = lanczos(graph, k, normalised=normalised)
        assert np.allclose(found.values, exact[:k], atol=1e-9)
        assert np.allclose(laplacian @ found.vectors, found.vectors * found.values, atol=1e-6)
        assert np.allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-9)
        assert (found.values[: graph.n_components] == 0).all()


def test_lanczos_gives_the_same_answer_twice() -> None:
    first, second = lanczos(BIG["parts"], 15), lanczos(BIG["parts"], 15)
    assert np.array_equal(first.values, second.values)
    assert np.array_equal(first.vectors, second.vectors)


def test_nearly_all_eigenpairs_of_a_large_graph_are_computed_densely() -> None:
    graph = ring(60)
    exact = graph.spectrum().values
    assert np.allclose(lanczos(graph, 59).values, exact[:59])
    with pytest.raises(MemoryLimitError, match="60 users"):
        lanczos(graph, 59, full=50)


def test_plain_lanczos_falls_back_on_a_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = BIG["dense"]
    exact = graph.spectrum(5).values
    calls = []
    inverse = module._inverse

    def counted(matrix: Any) -> Any:
        calls.append(matrix.shape)
        return inverse(matrix)

    monkeypatch.setattr(module, "_inverse", counted)
    lanczos(graph, 5)
    assert not calls
    # Two restarts are not enough for the plain method and plenty for the inverse.
    assert np.allclose(lanczos(graph, 5, restarts=2).values, exact)
    assert calls


def test_no_convergence_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(NumericalError, match="400 users") as caught:
        lanczos(ring(400), 5, factor=0, restarts=1)
    assert "fewer" in caught.value.remedy


RATIOS = {
    "one edge": UserGraph.from_edges([("a", "b", 0.3)]),
    "two parts": disjoint(complete(5), ring(12)),
    "many parts": disjoint(ring(30), complete(4), erdos_renyi(15, seed=4, connected="retry"), isolated=3),
    "weak part": disjoint(UserGraph.from_edges([(0, 1, 1e-3)]), complete(6)),
    **BIG,
}


@pytest.mark.parametrize("limit", [2_000, 40])
@pytest.mark.parametrize("name", RATIOS)
def test_the_spectral_ratio_matches_brute_force(name: str, limit: int) -> None:
    graph = UserGraph.from_matrix(RATIOS[name].weights)
    low, high = module.extremes(graph.weights, graph.components(), SpectrumLimits(dense=limit))
    assert low / high == pytest.approx(brute_ratio(graph), rel=1e-8)
    assert graph.spectral_ratio == pytest.approx(brute_ratio(graph), rel=1e-8)


@given(edges=EDGES)
def test_the_spectral_ratio_matches_brute_force_on_any_graph(edges: list[tuple[int, int, float]]) -> None:
    graph = UserGraph.from_edges(edges, users=range(9))
    assert graph.spectral_ratio == pytest.approx(brute_ratio(graph), rel=1e-6)
    assert 0 < graph.spectral_ratio <= 1 + 1e-12


def test_edgeless_and_disconnected_graphs() -> None:
    assert empty(5).spectral_ratio == 1.0
    assert empty(1).algebraic_connectivity == 0.0
    assert empty(2).algebraic_connectivity == 0.0
    assert disjoint(ring(5), ring(5)).algebraic_connectivity == 0.0
    assert disjoint(ring(5), ring(5)).spectral_ratio == pytest.approx(ring(5).spectral_ratio)


def test_a_large_graph_takes_the_lanczos_path_by_itself() -> None:
    graph = grid(40, 60)
    low = 2 - 2 * np.cos(np.pi / 60)
    high = 4 - 2 * np.cos(np.pi * 39 / 40) - 2 * np.cos(np.pi * 59 / 60)
    assert graph.algebraic_connectivity == pytest.approx(low, rel=1e-8)
    assert graph.spectral_ratio == pytest.approx(low / high, rel=1e-8)
    assert np.allclose(graph.spectrum(2).values, [0, low])
