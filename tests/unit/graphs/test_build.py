"""Reading networkx graphs, tables and features."""

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

from coterie.errors import (
    CoterieError,
    DimensionError,
    DuplicateIdError,
    GraphError,
    InputError,
    ParameterError,
    UnknownNameError,
)
from coterie.graphs import UserGraph
from coterie.graphs.build import EDGE_PAIRS

COLUMNS: dict[str, list[Any]] = {"from": ["a", "b"], "to": ["b", "c"], "weight": [1.0, 2.5]}
EXPECTED = UserGraph.from_edges([("a", "b", 1.0), ("b", "c", 2.5)])


class ArrowColumn:
    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def to_pylist(self) -> list[Any]:
        return self.values


class ArrowTable:
    """Looks like pyarrow.Table: `columns` holds values there, and only `column_names` the names."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.column_names = list(columns)
        self.columns = [ArrowColumn(values) for values in columns.values()]

    def __getitem__(self, name: str) -> ArrowColumn:
        return self.columns[self.column_names.index(name)]


def arrays(columns: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: np.array(values) for name, values in columns.items()}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, ArrowTable, dict, arrays])
def test_any_table_gives_the_same_graph(make: Any) -> None:
    assert UserGraph.from_table(make(COLUMNS)) == EXPECTED
    two = {name: COLUMNS[name] for name in ("from", "to")}
    assert UserGraph.from_table(make(two)).weight("b", "c") == 1.0


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, arrays])
def test_integer_ids_of_a_table_are_plain_integers(make: Any) -> None:
    graph = UserGraph.from_table(make({"u": [1, 2], "v": [2, 3]}))
    assert graph.users == (1, 2, 3)
    assert all(type(user) is int for user in graph.users)


def test_a_table_takes_users_and_symmetrise() -> None:
    table = {"u": ["a", "b"], "v": ["b", "a"], "weight": [4, 2]}
    graph = UserGraph.from_table(table, users=["z", "b", "a"], symmetrise="mean")
    assert graph.users == ("z", "b", "a")
    assert graph.weight("a", "b") == 3.0


@pytest.mark.parametrize(
    ("table", "error", "named"),
    [
        ({"u": ["a"]}, GraphError, "1 columns ('u')"),
        (pd.DataFrame(np.zeros((2, 4))), GraphError, "4 columns"),
        ({"u": ["a"], "v": ["b", "c"]}, DimensionError, "[1, 2]"),
        ({"u": "ab", "v": "bc"}, GraphError, "'u'"),
        ([("a", "b")], GraphError, "list"),
        (pd.DataFrame({"u": ["a"], "v": ["b"], "weight": [np.nan]}), GraphError, "('a', 'b', nan)"),
        ({"user": ["a"], "friend": ["b"], "since": [1_700_000_000]}, GraphError, "('user', 'friend', 'since')"),
        ({"u": ["a"], "v": ["b"], "w": [1.0]}, GraphError, "3 columns"),
        (pd.DataFrame({"u": ["a", None], "v": ["b", "c"]}), GraphError, "missing"),
        (pd.DataFrame({"u": pd.array([1, None], dtype="Int64"), "v": [2, 3]}), GraphError, "missing"),
        (pl.DataFrame({"u": ["a", None], "v": ["b", "c"]}), GraphError, "None"),
    ],
)
def test_bad_tables_are_named(table: Any, error: type[CoterieError], named: str) -> None:
    with pytest.raises(error) as caught:
        UserGraph.from_table(table)
    assert named in caught.value.problem


def test_a_networkx_graph_keeps_nodes_order_and_weights() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["z", "b", "a"])
    graph.add_edge("a", "b", weight=2.5, cost=7)
    graph.add_edge("z", "a")
    read = UserGraph.from_networkx(graph)
    assert read.users == ("z", "b", "a")
    assert (read.weight("a", "b"), read.weight("z", "a")) == (2.5, 1.0)
    assert UserGraph.from_networkx(graph, weight="cost").weight("a", "b") == 7.0
    assert UserGraph.from_networkx(graph, weight=None).weight("a", "b") == 1.0


def test_isolated_nodes_are_kept_and_the_laplacian_agrees_with_networkx() -> None:
    graph = nx.gnp_random_graph(12, 0.2, seed=3)
    graph.add_node(99)
    read = UserGraph.from_networkx(graph)
    assert 99 in read
    assert np.array_equal(read.laplacian().toarray(), nx.laplacian_matrix(graph).toarray())


def test_an_undirected_networkx_graph_loses_nothing_to_symmetrise() -> None:
    graph = nx.path_graph(4)
    assert UserGraph.from_networkx(graph, symmetrise="min") == UserGraph.from_networkx(graph)


def test_a_directed_networkx_graph_is_joined_by_the_rule() -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", 4.0), ("b", "a", 2.0), ("b", "c", 6.0)])
    assert UserGraph.from_networkx(graph, symmetrise="mean").neighbours("b") == {"a": 3.0, "c": 3.0}


@pytest.mark.parametrize(
    ("graph", "named"),
    [
        (nx.DiGraph([(0, 1)]), "DiGraph"),
        (nx.MultiGraph([(0, 1)]), "MultiGraph"),
        (nx.Graph([(0, 0)]), "(0, 0, 1.0)"),
        ([(0, 1)], "list"),
    ],
)
def test_other_networkx_graphs_are_refused(graph: Any, named: str) -> None:
    with pytest.raises(GraphError) as caught:
        UserGraph.from_networkx(graph)
    assert named in caught.value.problem


def nearest_pairs(points: Any, k: int) -> set[tuple[int, int]]:
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    return {(i, int(j)) for i, row in enumerate(distances) for j in np.argsort(row)[:k]}


@pytest.mark.parametrize("mutual", [False, True])
def test_nearest_neighbours_match_brute_force(mutual: bool) -> None:
    points = np.random.default_rng(4).standard_normal((30, 3))
    directed = nearest_pairs(points, 4)
    back = {(j, i) for i, j in directed}
    wanted = directed & back if mutual else directed | back
    graph = UserGraph.from_features(points, k=4, mutual=mutual, lengthscale=1.5)
    assert {(u, v) for u, v, _ in graph.edges()} == {(i, j) for i, j in wanted if i < j}
    for u, v, weight in graph.edges():
        distance = np.linalg.norm(points[u] - points[v])  # type: ignore[call-overload]
        assert weight == pytest.approx(np.exp(-(distance**2) / (2 * 1.5**2)))


def test_the_median_lengthscale_is_that_of_the_neighbour_distances() -> None:
    graph = UserGraph.from_features([[0.0], [1.0], [4.0]], users="abc", k=1)
    # Neighbour distances are 1, 1 and 3: the median is 1.
    assert graph.weight("a", "b") == pytest.approx(np.exp(-0.5))
    assert graph.weight("b", "c") == pytest.approx(np.exp(-4.5))


def test_equal_points_are_neighbours_with_weight_one_and_no_self_loop() -> None:
    graph = UserGraph.from_features(np.zeros((6, 2)), k=2)
    assert set(graph.weights.data.tolist()) == {1.0}
    assert (graph.weights.diagonal() == 0).all()
    assert np.diff(graph.weights.indptr).min() >= 2


def test_binary_weights_are_one() -> None:
    graph = UserGraph.from_features(np.random.default_rng(0).random((9, 2)), k=3, weights="binary")
    assert set(graph.weights.data.tolist()) == {1.0}


@pytest.mark.parametrize(
    ("features", "options", "error", "named"),
    [
        (np.zeros((4, 2)), {"k": 4}, ParameterError, "k = 4"),
        (np.zeros((4, 2)), {"k": 0}, ParameterError, "k = 0"),
        (np.zeros((4, 2)), {"k": 1.5}, ParameterError, "k = 1.5"),
        (np.zeros((4, 2)), {"k": True}, ParameterError, "k = True"),
        (np.zeros((4, 2)), {}, ParameterError, "k = 10"),
        (np.zeros((4, 2)), {"k": 1, "weights": "cosine"}, UnknownNameError, "'cosine'"),
        (np.zeros((4, 2)), {"k": 1, "lengthscale": 0.0}, ParameterError, "0.0"),
        (np.zeros((4, 2)), {"k": 1, "lengthscale": "mean"}, ParameterError, "'mean'"),
        (np.zeros((4, 2)), {"k": 1, "lengthscale": float("nan")}, ParameterError, "nan"),
        (np.zeros((4, 2)), {"k": 1, "users": "abc"}, DimensionError, "3 users"),
        (np.zeros((4, 2)), {"k": 1, "users": "abca"}, DuplicateIdError, "'a'"),
        (np.zeros(4), {"k": 1}, DimensionError, "(4,)"),
        ([[0.0, 1.0], [np.nan, 2.0], [1.0, 1.0]], {"k": 1}, GraphError, "feature 0 of row 1 is nan"),
        ([[0.0, 1.0], [-1e200, 2.0], [1.0, 1.0]], {"k": 1}, GraphError, "feature 0 of row 1 is -1e+200"),
        ([[1.0, 1e-200], [1.0, 2e-200]], {"k": 1}, GraphError, "no feature differs by more than 1e-200"),
        ([["x"], ["y"]], {"k": 1}, GraphError, "'x'"),
    ],
)
def test_bad_features_and_options_are_named(features: Any, options: Any, error: type[CoterieError], named: str) -> None:
    with pytest.raises(error) as caught:
        UserGraph.from_features(features, **options)
    assert named in caught.value.problem


def test_columns_go_by_name_where_they_have_the_usual_ones() -> None:
    columns = {"since": [1, 2], "weight": [2.0, 0.5], "friend": ["b", "c"], "user": ["a", "b"]}
    graph = UserGraph.from_table(columns)
    assert graph.users == ("a", "b", "c")
    assert (graph.weight("a", "b"), graph.weight("b", "c")) == (2.0, 0.5)
    assert UserGraph.from_table({"w": [2.0], "target": ["b"], "source": ["a"]}, weight="w").weight("a", "b") == 2.0
    assert UserGraph.from_table({"weight": [2.0], "u": ["a"], "v": ["b"]}).weight("a", "b") == 2.0


@pytest.mark.parametrize("pair", EDGE_PAIRS)
def test_the_two_users_go_by_any_of_the_usual_names(pair: tuple[str, str]) -> None:
    table = {"weight": [2.0], pair[1]: ["b"], pair[0]: ["a"]}
    assert UserGraph.from_table(table).users == ("a", "b")


def test_a_column_is_a_weight_by_its_name_alone() -> None:
    table = {"user": ["a", "b"], "friend": ["b", "c"], "since": [1_700_000_000, 1_700_000_001]}
    with pytest.raises(GraphError, match=r"a weight in a column 'weight' only\. Call the column of weights 'weight'"):
        UserGraph.from_table(table)
    assert UserGraph.from_table(table, weight="since").weight("b", "c") == 1_700_000_001
    with pytest.raises(GraphError, match="no column 'strength' of weights"):
        UserGraph.from_table(table, weight="strength")


@pytest.mark.parametrize("users", [None, ["a", "b"]])
def test_an_error_says_what_the_columns_were_taken_as(users: list[str] | None) -> None:
    with pytest.raises(InputError, match=r"\(the table's columns: 'w' as user, 'u' as other, 'v' as weight\)"):
        UserGraph.from_table({"w": [2.0], "u": ["a"], "v": ["b"]}, weight="v", users=users)


@pytest.mark.parametrize("table", [pd.DataFrame({"u": ["a"], "v": ["b"]}), {"u": ["a"], "v": ["b"]}])
def test_a_table_given_as_edges_is_pointed_to_from_table(table: Any) -> None:
    with pytest.raises(GraphError, match=r"Use UserGraph\.from_table"):
        UserGraph.from_edges(table)
