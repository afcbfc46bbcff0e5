"""Random and regular families."""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from coterie.errors import GraphError, ParameterError, UnknownNameError
from coterie.graphs import (
    FAMILIES,
    UserGraph,
    barabasi_albert,
    complete,
    empty,
    erdos_renyi,
    grid,
    make_graph,
    rbf,
    ring,
    stochastic_block_model,
    watts_strogatz,
)
from coterie.graphs.random_pairs import _pair_of, _successes, block_labels

RANDOM = ["erdos-renyi", "rbf", "sbm", "barabasi-albert", "watts-strogatz"]
REGULAR = ["grid", "ring", "complete", "empty"]


def test_every_family_is_registered_once() -> None:
    assert sorted(FAMILIES) == sorted(RANDOM + REGULAR)


@settings(max_examples=20)
@given(family=st.sampled_from(RANDOM + REGULAR), n_users=st.integers(5, 40), seed=st.integers(0, 10**6))
def test_families_are_simple_symmetric_and_reproducible(family: str, n_users: int, seed: int) -> None:
    graph = make_graph(family, n_users, seed=seed)
    dense = graph.weights.toarray()
    assert graph.users == tuple(range(n_users))
    assert np.array_equal(dense, dense.T)
    assert (dense.diagonal() == 0).all()
    assert dense.min() >= 0
    assert dense.max() <= 1
    assert graph == make_graph(family, n_users, seed=np.random.default_rng(seed))
    # The checks of the public constructor hold for what the families build without them.
    assert graph == UserGraph(users=graph.users, weights=graph.weights)


@pytest.mark.parametrize("family", RANDOM)
def test_seeds_differ_and_a_generator_moves_on(family: str) -> None:
    assert make_graph(family, 40, seed=1) != make_graph(family, 40, seed=2)
    rng = np.random.default_rng(3)
    assert make_graph(family, 40, seed=rng) != make_graph(family, 40, seed=rng)


def test_erdos_renyi_has_the_law_it_says() -> None:
    counts = np.array([erdos_renyi(30, edge_prob=0.3, seed=seed).n_edges for seed in range(300)])
    # Binomial(435, 0.3): mean 130.5, variance 91.35; the bounds are about 4.5 standard errors.
    assert abs(counts.mean() - 130.5) < 4.5 * np.sqrt(91.35 / 300)
    assert 0.6 < counts.var() / 91.35 < 1.45
    joined = sum(erdos_renyi(6, edge_prob=0.3, seed=seed).weights.toarray() for seed in range(1000))
    assert (np.abs(joined[np.triu_indices(6, 1)] - 300) < 5 * np.sqrt(210)).all()


@pytest.mark.parametrize(("edge_prob", "expected"), [(0, empty(9)), (1, complete(9)), (1e-300, empty(9))])
def test_erdos_renyi_at_its_ends(edge_prob: float, expected: UserGraph) -> None:
    assert erdos_renyi(9, edge_prob=edge_prob) == expected


def test_pair_numbers_are_decoded_exactly_even_when_large() -> None:
    rows, cols = _pair_of(np.arange(4950))
    assert len(set(zip(rows.tolist(), cols.tolist(), strict=True))) == 4950
    assert (rows < cols).all()
    assert cols.max() == 99
    j = np.random.default_rng(0).integers(10**4, 3 * 10**9, size=10_000)
    for i in (np.zeros_like(j), j // 2, j - 1):
        rows, cols = _pair_of(j * (j - 1) // 2 + i)
        assert np.array_equal(rows, i)
        assert np.array_equal(cols, j)


def test_successes_are_distinct_and_in_range() -> None:
    for prob in (1e-4, 0.3, 0.99, 1.0):
        found = _successes(5000, prob, np.random.default_rng(0))
        assert (np.diff(found) > 0).all()
        assert found.size == 0 or (found[0] >= 0 and found[-1] < 5000)
    assert _successes(5000, 1.0, np.random.default_rng(0)).size == 5000
    assert _successes(0, 0.5, np.random.default_rng(0)).size == 0


def test_rbf_matches_its_dense_definition() -> None:
    graph = rbf(60, latent_dim=3, scale=0.4, threshold=0.25, seed=5)
    points = np.random.default_rng(5).standard_normal((60, 3))
    dense = np.exp(-0.4 * squareform(pdist(points, "sqeuclidean")))
    np.fill_diagonal(dense, 0)
    dense[dense < 0.25] = 0
    assert np.allclose(graph.weights.toarray(), dense, rtol=1e-12)
    assert 0 < graph.n_edges < 60 * 59 / 2
    assert rbf(20, threshold=1.0).n_edges == 0


def test_blocks_are_contiguous_and_of_nearly_equal_size() -> None:
    labels = block_labels(11, 4)
    assert (np.diff(labels) >= 0).all()
    assert sorted(np.bincount(labels).tolist()) == [2, 3, 3, 3]


def test_the_block_model_is_dense_inside_and_sparse_across() -> None:
    dense = stochastic_block_model(400, n_blocks=4, inside=0.6, across=0.05, seed=1).weights.toarray()
    same = block_labels(400, 4)[:, None] == block_labels(400, 4)
    assert dense[same].mean() == pytest.approx(0.6 * 99 / 100, abs=0.02)
    assert dense[~same].mean() == pytest.approx(0.05, abs=0.005)
    assert stochastic_block_model(9, n_blocks=3, inside=1, across=1) == complete(9)
    assert stochastic_block_model(9, n_blocks=3, inside=0, across=0) == empty(9)
    only_across = stochastic_block_model(6, n_blocks=2, inside=0, across=1)
    assert only_across.neighbours(0) == {3: 1.0, 4: 1.0, 5: 1.0}


def test_barabasi_albert_grows_connected_with_hubs() -> None:
    graph = barabasi_albert(400, attach=3, seed=2)
    assert graph.n_edges == 3 * (400 - 3)
    assert graph.is_connected
    assert graph.degrees.min() >= 1
    assert graph.degrees.max() > 30
    assert graph.degrees[:20].mean() > 3 * graph.degrees[200:].mean()
    assert barabasi_albert(5, attach=4) == UserGraph.from_edges([(0, i) for i in range(1, 5)])


def test_watts_strogatz_moves_edges_without_losing_any() -> None:
    lattice = watts_strogatz(100, k=6, rewire=0.0)
    assert lattice.neighbours(0) == {1: 1.0, 2: 1.0, 3: 1.0, 97: 1.0, 98: 1.0, 99: 1.0}
    for rewire in (0.1, 1.0):
        graph = watts_strogatz(100, k=6, rewire=rewire, seed=1)
        assert graph.n_edges == 300
        kept = sum(lattice.has_edge(u, v) for u, v, _ in graph.edges())
        assert kept == pytest.approx(300 * (1 - rewire), abs=35)
    assert watts_strogatz(5, k=4, rewire=1.0) == complete(5)


def test_regular_families() -> None:
    assert grid(3, 4).n_edges == 3 * 3 + 2 * 4
    assert grid(1, 1) == empty(1)
    assert set(ring(6).degrees.tolist()) == {2.0}
    assert ring(2).n_edges == 1
    assert ring(1) == empty(1)
    assert ring(3) == complete(3)
    assert complete(1).n_edges == 0


@pytest.mark.parametrize(("n_users", "shape"), [(12, (3, 4)), (16, (4, 4)), (7, (1, 7)), (1, (1, 1)), (20, (4, 5))])
def test_a_grid_by_name_is_as_square_as_it_can_be(n_users: int, shape: tuple[int, int]) -> None:
    assert make_graph("grid", n_users) == grid(*shape)


def test_make_graph_passes_options_on() -> None:
    assert make_graph("erdos-renyi", 15, edge_prob=0.5, seed=4) == erdos_renyi(15, edge_prob=0.5, seed=4)
    assert make_graph("sbm", 15, n_blocks=3, seed=4) == stochastic_block_model(15, n_blocks=3, seed=4)


def sparse_seed(connected: bool) -> int:
    return next(s for s in range(200) if erdos_renyi(20, seed=s).is_connected is connected)


def test_keep_takes_the_first_draw_and_retry_the_first_connected_one() -> None:
    seed = sparse_seed(connected=False)
    assert not erdos_renyi(20, seed=seed, connected="keep").is_connected
    rng = np.random.default_rng(seed)
    draws = [erdos_renyi(20, seed=rng) for _ in range(100)]
    assert erdos_renyi(20, seed=seed, connected="retry") == next(graph for graph in draws if graph.is_connected)
    good = sparse_seed(connected=True)
    assert erdos_renyi(20, seed=good, connected="retry") == erdos_renyi(20, seed=good, connected="error")


def test_error_refuses_the_first_draw() -> None:
    seed = sparse_seed(connected=False)
    with pytest.raises(GraphError, match=r"n_users=20, edge_prob=0.2 has \d+ components after 1 draw"):
        erdos_renyi(20, seed=seed, connected="error")


def test_retry_gives_up_with_the_parameters_and_a_remedy() -> None:
    with pytest.raises(
        GraphError, match=r"n_users=5, n_blocks=2, inside=0.5, across=0 has .* after 1000 draws"
    ) as caught:
        stochastic_block_model(5, n_blocks=2, inside=0.5, across=0, connected="retry")
    assert "keep" in caught.value.remedy


def test_a_regular_graph_cannot_be_redrawn() -> None:
    assert make_graph("ring", 5, seed=9, connected="retry") == ring(5)
    with pytest.raises(GraphError, match="n_users=5 has 5 components"):
        make_graph("empty", 5, connected="retry")


@pytest.mark.parametrize(
    ("make", "arguments", "named"),
    [
        (erdos_renyi, {"n_users": 0}, "n_users = 0"),
        (erdos_renyi, {"n_users": 2.0}, "n_users = 2.0"),
        (erdos_renyi, {"n_users": True}, "n_users = True"),
        (erdos_renyi, {"n_users": 5, "edge_prob": 1.5}, "edge_prob = 1.5"),
        (erdos_renyi, {"n_users": 5, "edge_prob": float("nan")}, "edge_prob = nan"),
        (erdos_renyi, {"n_users": 5, "edge_prob": "0.5"}, "edge_prob = '0.5'"),
        (erdos_renyi, {"n_users": 5, "seed": -1}, "seed = -1"),
        (erdos_renyi, {"n_users": 5, "seed": None}, "seed = None"),
        (rbf, {"n_users": 5, "latent_dim": 0}, "latent_dim = 0"),
        (rbf, {"n_users": 5, "scale": 0.0}, "scale = 0.0"),
        (rbf, {"n_users": 5, "scale": float("inf")}, "scale = inf"),
        (rbf, {"n_users": 5, "threshold": 0}, "threshold = 0"),
        (rbf, {"n_users": 5, "threshold": 1.1}, "threshold = 1.1"),
        (stochastic_block_model, {"n_users": 3, "n_blocks": 4}, "n_blocks = 4"),
        (stochastic_block_model, {"n_users": 5, "inside": -0.1}, "inside = -0.1"),
        (stochastic_block_model, {"n_users": 5, "across": 2}, "across = 2"),
        (barabasi_albert, {"n_users": 1}, "n_users = 1"),
        (barabasi_albert, {"n_users": 4, "attach": 4}, "attach = 4"),
        (watts_strogatz, {"n_users": 2}, "n_users = 2"),
        (watts_strogatz, {"n_users": 5, "k": 3}, "k = 3"),
        (watts_strogatz, {"n_users": 5, "k": 6}, "k = 6"),
        (watts_strogatz, {"n_users": 5, "rewire": 1.01}, "rewire = 1.01"),
        (grid, {"n_rows": 0, "n_cols": 3}, "n_rows = 0"),
        (grid, {"n_rows": 3, "n_cols": -1}, "n_cols = -1"),
        (ring, {"n_users": 0}, "n_users = 0"),
        (complete, {"n_users": 0}, "n_users = 0"),
        (empty, {"n_users": 0}, "n_users = 0"),
        (make_graph, {"family": "grid", "n_users": 0}, "n_users = 0"),
        (make_graph, {"family": "ring", "n_users": 5, "edge_prob": 0.2}, "'edge_prob'"),
        (make_graph, {"family": "sbm", "n_users": 5, "blocks": 2}, "'blocks'"),
    ],
)
def test_bad_parameters_are_named(make: Callable[..., UserGraph], arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ParameterError) as caught:
        make(**arguments)
    assert named in caught.value.problem


def test_unknown_names_are_named() -> None:
    with pytest.raises(UnknownNameError, match="'small-world'") as caught:
        make_graph("small-world", 5)
    assert all(name in caught.value.rule for name in FAMILIES)
    for family in ("erdos-renyi", "ring"):
        with pytest.raises(UnknownNameError, match="'maybe'"):
            make_graph(family, 5, connected="maybe")  # type: ignore[arg-type]


def test_two_hundred_thousand_users_take_time_in_proportion_and_little_memory() -> None:
    def made(n_users: int) -> tuple[float, UserGraph]:
        began = time.process_time()
        graph = erdos_renyi(n_users, edge_prob=10 / n_users, seed=0)
        return time.process_time() - began, graph

    few, many = (min(made(n_users)[0] for _ in range(3)) for n_users in (20_000, 200_000))
    tracemalloc.start()
    _, graph = made(200_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert graph.n_edges == pytest.approx(1_000_000, rel=0.01)
    assert graph.degrees.mean() == pytest.approx(10, rel=0.01)
    assert many < 60 * few  # a look at every pair would take 100 times as long
    assert peak < 400e6
