"""Reading edge lists and matrices."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import (
    CoterieError,
    DimensionError,
    DuplicateIdError,
    GraphError,
    ParameterError,
    UnknownNameError,
    UnknownUserError,
)
from coterie.graphs import UserGraph


def test_users_come_in_order_of_appearance_and_weights_default_to_one() -> None:
    graph = UserGraph.from_edges([("bo", "ana"), ("cy", "bo", 2.5), ["ana", "cy", 0.5]])
    assert graph.users == ("bo", "ana", "cy")
    assert list(graph.edges()) == [("bo", "ana", 1.0), ("bo", "cy", 2.5), ("ana", "cy", 0.5)]


def test_named_users_set_the_order_and_may_be_isolated() -> None:
    graph = UserGraph.from_edges([("a", "b")], users=["z", "b", "a"])
    assert graph.users == ("z", "b", "a")
    assert graph.neighbours("z") == {}
    assert graph.n_edges == 1


def test_zero_weight_is_no_edge_but_the_users_stay() -> None:
    graph = UserGraph.from_edges([("a", "b", 0), ("b", "c", 1)])
    assert graph.users == ("a", "b", "c")
    assert graph.n_edges == 1
    assert graph.weights.nnz == 2


def test_a_pair_may_be_repeated_with_the_same_weight() -> None:
    graph = UserGraph.from_edges([("a", "b", 2), ("b", "a", 2.0), ("a", "b", 2)])
    assert graph.weight("a", "b") == 2.0


def test_edges_may_come_from_a_generator_and_from_array_rows() -> None:
    rows = np.array([[0, 1], [1, 2]])
    graph = UserGraph.from_edges(row for row in rows)
    assert graph.users == (0, 1, 2)
    assert all(type(user) is int for user in graph.users)


@pytest.mark.parametrize(("how", "both", "single"), [("max", 4.0, 6.0), ("mean", 3.0, 3.0), ("min", 2.0, 0.0)])
def test_symmetrise_joins_two_directions_and_counts_an_absent_one_as_zero(how: Any, both: float, single: float) -> None:
    graph = UserGraph.from_edges([("a", "b", 4), ("b", "a", 2), ("b", "c", 6)], symmetrise=how)
    assert graph.weight("a", "b") == graph.weight("b", "a") == both
    assert graph.weight("b", "c") == graph.weight("c", "b") == single
    assert graph.users == ("a", "b", "c")


@pytest.mark.parametrize(
    ("edges", "options", "error", "named"),
    [
        ([("a", "b", 1), ("b", "a", 2.5)], {}, GraphError, "2.5"),
        ([("a", "b", 0), ("b", "a", 2.5)], {}, GraphError, "2.5"),
        ([("a", "b", 1), ("a", "b", 2.5)], {"symmetrise": "max"}, GraphError, "2.5"),
        ([("a", "b"), ("c", "c", 3)], {}, GraphError, "('c', 'c', 3)"),
        ([("a", "b", -0.25)], {}, GraphError, "-0.25"),
        ([("a", "b", float("nan"))], {}, GraphError, "nan"),
        ([("a", "b", float("inf"))], {}, GraphError, "inf"),
        ([("a", "b", 10**400)], {}, GraphError, "('a', 'b', 1000"),
        ([("a", "b", "heavy")], {}, GraphError, "heavy"),
        ([("a", "b", "1.0")], {}, GraphError, "'1.0'"),
        ([("a", "b", None)], {}, GraphError, "None"),
        ([("a", "b", 1 + 2j)], {}, GraphError, "(1+2j)"),
        ([("a",)], {}, GraphError, "('a',)"),
        ([("a", "b", 1, "x")], {}, GraphError, "('a', 'b', 1, 'x')"),
        (["ab"], {}, GraphError, "'ab'"),
        ([17], {}, GraphError, "17"),
        (17, {}, GraphError, "17"),
        ([(["list"], "b")], {}, GraphError, "['list']"),
        ([(None, "b")], {}, GraphError, "None"),
        ([(float("nan"), "b")], {}, GraphError, "nan"),
        ([("a", "b")], {"users": ["a", "c"]}, UnknownUserError, "'b'"),
        ([("a", "b")], {"users": ["a", "b", "b"]}, DuplicateIdError, "'b'"),
        ([("a", "b")], {"users": 12}, ParameterError, "12"),
        ([("a", "b")], {"symmetrise": "median"}, UnknownNameError, "'median'"),
    ],
)
def test_bad_edges_are_named(edges: Any, options: Any, error: type[CoterieError], named: str) -> None:
    with pytest.raises(error) as caught:
        UserGraph.from_edges(edges, **options)
    assert named in caught.value.problem
    assert caught.value.rule
    assert caught.value.remedy


WEIGHTS = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_matrix, sp.csc_array, np.ndarray.tolist])
def test_a_matrix_may_be_dense_or_sparse(form: Any) -> None:
    graph = UserGraph.from_matrix(form(WEIGHTS))
    assert graph.users == (0, 1, 2)
    assert np.array_equal(graph.weights.toarray(), WEIGHTS)


def test_the_constructor_checks_like_from_matrix() -> None:
    assert UserGraph(users="abc", weights=WEIGHTS) == UserGraph.from_matrix(WEIGHTS, users="abc")
    with pytest.raises(GraphError):
        UserGraph(users="abc", weights=np.triu(WEIGHTS))


def test_booleans_and_integers_are_weights() -> None:
    assert UserGraph.from_matrix(WEIGHTS > 0).weights.dtype == np.float64
    assert UserGraph.from_matrix(WEIGHTS.astype(int)) == UserGraph.from_matrix(WEIGHTS)


def test_the_callers_matrix_is_left_alone() -> None:
    matrix = sp.csr_array(WEIGHTS)
    graph = UserGraph.from_matrix(matrix)
    matrix.data[:] = 9.0
    assert np.array_equal(graph.weights.toarray(), WEIGHTS)


def test_stored_zeros_vanish_and_indices_are_sorted() -> None:
    data, cols, ends = [1.0, 0.0, 3.0, 3.0, 1.0], [2, 1, 2, 1, 0], [0, 2, 3, 5]
    graph = UserGraph.from_matrix(sp.csr_array((data, cols, ends), shape=(3, 3)))
    assert graph.weights.nnz == 4
    assert graph.weights.indices.tolist() == [2, 2, 0, 1]


def test_rounding_is_not_asymmetry_and_the_result_is_exactly_symmetric() -> None:
    matrix = WEIGHTS.copy()
    matrix[0, 1] *= 1 + 1e-15
    weights = UserGraph.from_matrix(matrix).weights.toarray()
    assert np.array_equal(weights, weights.T)


@pytest.mark.parametrize(("how", "expected"), [("max", 4.0), ("mean", 3.0), ("min", 2.0)])
def test_a_matrix_can_be_symmetrised(how: Any, expected: float) -> None:
    assert UserGraph.from_matrix([[0, 4], [2, 0]], symmetrise=how).weight(0, 1) == expected


@pytest.mark.parametrize(
    ("matrix", "options", "error", "named"),
    [
        ([[0, 4], [2.5, 0]], {"users": "ab"}, GraphError, "('a', 'b') has weight 4.0 and ('b', 'a') has 2.5"),
        ([[0, 4], [0, 0]], {}, GraphError, "(0, 1) has weight 4.0 and (1, 0) has 0.0"),
        ([[3, 1], [1, 0]], {}, GraphError, "(0, 0, 3.0)"),
        ([[3, 1], [1, 0]], {"symmetrise": "max"}, GraphError, "(0, 0, 3.0)"),
        ([[0, -1.5], [-1.5, 0]], {}, GraphError, "-1.5"),
        ([[0, np.nan], [np.nan, 0]], {}, GraphError, "nan"),
        ([[0, np.inf], [np.inf, 0]], {}, GraphError, "inf"),
        ([["x", "y"], ["y", "x"]], {}, GraphError, "U1"),
        ([[0, 1j], [1j, 0]], {}, GraphError, "complex"),
        (np.zeros((2, 3)), {}, DimensionError, "(2, 3)"),
        (np.zeros(4), {}, DimensionError, "(4,)"),
        (sp.csr_array((2, 3)), {}, DimensionError, "(2, 3)"),
        (np.zeros((2, 2)), {"users": "abc"}, DimensionError, "3 users"),
        (np.zeros((2, 2)), {"users": "aa"}, DuplicateIdError, "'a'"),
        (np.zeros((2, 2)), {"symmetrise": "sum"}, UnknownNameError, "'sum'"),
    ],
)
def test_bad_matrices_are_named(matrix: Any, options: Any, error: type[CoterieError], named: str) -> None:
    with pytest.raises(error) as caught:
        UserGraph.from_matrix(matrix, **options)
    assert named in str(caught.value)


EDGES = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: pair[0] < pair[1]),
    st.floats(1e-3, 1e3),
    max_size=15,
)


@given(edges=EDGES, data=st.data())
def test_the_order_and_direction_of_edges_do_not_matter(
    edges: dict[tuple[int, int], float], data: st.DataObject
) -> None:
    listed = [(u, v, weight) for (u, v), weight in edges.items()]
    shuffled = data.draw(st.permutations(listed))
    turned = [(v, u, weight) if data.draw(st.booleans()) else (u, v, weight) for u, v, weight in shuffled]
    graph = UserGraph.from_edges(listed, users=range(7))
    assert graph == UserGraph.from_edges(turned, users=range(7))
    assert {(u, v): weight for u, v, weight in graph.edges()} == edges


@given(edges=EDGES)
def test_a_matrix_and_an_edge_list_give_the_same_graph(edges: dict[tuple[int, int], float]) -> None:
    matrix = np.zeros((7, 7))
    for (u, v), weight in edges.items():
        matrix[u, v] = matrix[v, u] = weight
    graph = UserGraph.from_edges([(u, v, weight) for (u, v), weight in edges.items()], users=range(7))
    assert graph == UserGraph.from_matrix(matrix)
