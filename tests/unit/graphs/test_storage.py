"""Looking things up, immutability, equality and pickling."""

import pickle
from typing import Any

import numpy as np
import pytest

import coterie.graphs
from coterie.errors import UnknownUserError
from coterie.graphs import UserGraph, complete, empty, ring

GRAPH = UserGraph.from_edges([("a", "b"), ("b", "c", 2.5)], users=["a", "b", "c", ("d", 4)])


def test_the_public_names_exist_and_are_sorted_out() -> None:
    names = coterie.graphs.__all__
    assert len(set(names)) == len(names)
    assert all(hasattr(coterie.graphs, name) for name in names)
    assert {"UserGraph", "GraphChange", "Spectrum", "Components", "FAMILIES", "make_graph"} <= set(names)


def test_sizes_and_rows() -> None:
    assert (GRAPH.n_users, len(GRAPH), GRAPH.n_edges) == (4, 4, 2)
    assert dict(GRAPH.index) == {"a": 0, "b": 1, "c": 2, ("d", 4): 3}
    assert GRAPH.index_of(("d", 4)) == 3
    assert GRAPH.degrees.tolist() == [1.0, 3.5, 2.5, 0.0]
    assert repr(GRAPH) == "UserGraph(n_users=4, n_edges=2)"


def test_membership_and_weights() -> None:
    assert "a" in GRAPH
    assert "x" not in GRAPH
    assert ["a"] not in GRAPH
    assert GRAPH.neighbours("b") == {"a": 1.0, "c": 2.5}
    assert GRAPH.has_edge("c", "b")
    assert not GRAPH.has_edge("a", "c")
    assert not GRAPH.has_edge("a", "a")
    assert (GRAPH.weight("c", "b"), GRAPH.weight("a", "c"), GRAPH.weight(("d", 4), "a")) == (2.5, 0.0, 0.0)


def test_weight_agrees_with_the_matrix_everywhere() -> None:
    dense = GRAPH.weights.toarray()
    for i, u in enumerate(GRAPH.users):
        for j, v in enumerate(GRAPH.users):
            assert GRAPH.weight(u, v) == dense[i, j]


@pytest.mark.parametrize("user", ["zoe", 4, None, ["a"]])
def test_an_unknown_user_is_named_with_some_known_ones(user: Any) -> None:
    for look in (GRAPH.index_of, GRAPH.neighbours, lambda u: GRAPH.weight("a", u), lambda u: GRAPH.has_edge(u, "a")):
        with pytest.raises(UnknownUserError) as caught:
            look(user)
        assert repr(user) in caught.value.problem
        assert "'a', 'b', 'c'" in caught.value.rule


def test_nothing_that_is_handed_out_can_change_the_graph() -> None:
    graph = UserGraph.from_edges([("a", "b"), ("b", "c", 2.5)])
    before = graph.weights.toarray()
    weights = graph.weights
    with pytest.raises(ValueError, match="read-only"):
        weights.data[0] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        weights[0, 1] = 9.0
    weights.data = np.full(4, 9.0)
    with pytest.raises(ValueError, match="read-only"):
        graph.degrees[0] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        graph.component_labels[0] = 9
    with pytest.raises(TypeError):
        graph.index["z"] = 9  # type: ignore[index]
    graph.neighbours("a")["c"] = 9.0
    graph.laplacian().data[:] = 9.0
    assert np.array_equal(graph.weights.toarray(), before)


def test_equality_looks_at_users_their_order_and_weights() -> None:
    graph = UserGraph.from_edges([("a", "b"), ("b", "c", 2.5)])
    assert graph == UserGraph.from_edges([("c", "b", 2.5), ("b", "a")], users="abc")
    assert hash(graph) == hash(UserGraph.from_edges([("c", "b", 2.5), ("b", "a")], users="abc"))
    assert graph != UserGraph.from_edges([("a", "b"), ("b", "c", 2.5)], users="cba")
    assert graph != UserGraph.from_edges([("a", "b"), ("b", "c", 2.0)])
    assert graph != UserGraph.from_edges([("a", "b"), ("a", "c", 2.5)], users="abc")
    assert graph != UserGraph.from_edges([("x", "b"), ("b", "c", 2.5)])
    assert graph != "graph"


def test_a_pickled_graph_is_equal_and_still_read_only() -> None:
    copy = pickle.loads(pickle.dumps(GRAPH))
    assert copy == GRAPH
    assert copy.index_of("c") == 2
    assert not copy.weights.data.flags.writeable


def test_components() -> None:
    parts = UserGraph.from_edges([("a", "c"), ("b", "e")], users="abcde").components()
    assert parts.count == 3
    assert parts.labels.tolist() == [0, 1, 0, 2, 1]
    assert not GRAPH.is_connected
    assert GRAPH.n_components == 2
    assert ring(5).is_connected


def test_a_graph_without_users_is_a_place_to_start() -> None:
    nobody = UserGraph.from_edges([])
    assert (len(nobody), nobody.n_edges, nobody.n_components) == (0, 0, 0)
    assert nobody.spectral_ratio == 1.0
    assert nobody.spectrum().vectors.shape == (0, 0)
    assert nobody.laplacian(normalised=True).shape == (0, 0)
    assert nobody.add_user("a")[0].users == ("a",)


def test_permuted_keeps_users_and_spectrum_and_moves_edges() -> None:
    graph = UserGraph.from_edges([("a", "b", 1.0), ("b", "c", 2.0), ("c", "d", 3.0)], users="abcdef")
    moved = graph.permuted(np.random.default_rng(1))
    assert moved.users == graph.users
    assert moved != graph
    assert moved == graph.permuted(np.random.default_rng(1))
    assert sorted(weight for _, _, weight in moved.edges()) == [1.0, 2.0, 3.0]
    assert np.allclose(moved.spectrum().values, graph.spectrum().values)
    assert complete(4).permuted(np.random.default_rng(0)) == complete(4)
    assert empty(3).permuted(np.random.default_rng(0)) == empty(3)
