"""Edits: each returns a new graph and the record of the change."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import CoterieError, DuplicateIdError, GraphError, UnknownUserError
from coterie.graphs import GraphChange, UserGraph, erdos_renyi

GRAPH = UserGraph.from_edges([("a", "b"), ("b", "c", 2.5)])


def test_a_new_user_comes_last_with_friends() -> None:
    graph, change = GRAPH.add_user("d", {"c": 2, "a": 0.5})
    assert graph.users == ("a", "b", "c", "d")
    assert graph.neighbours("d") == {"a": 0.5, "c": 2.0}
    assert change == GraphChange(kind="add-user", users=("d",), edges=(("d", "c", 0.0, 2.0), ("d", "a", 0.0, 0.5)))
    assert np.array_equal(graph.weights.toarray()[:3, :3], GRAPH.weights.toarray())


def test_a_new_user_may_stand_alone() -> None:
    graph, change = GRAPH.add_user(np.int64(7))
    assert graph.neighbours(7) == {}
    assert change == GraphChange(kind="add-user", users=(7,))


def test_a_cohort_is_as_its_users_one_by_one() -> None:
    graph, change = GRAPH.add_users({"d": {"e": 2.0, "a": 0.5}, "e": {"d": 2.0}, "f": None})
    slow = GRAPH.add_user("d", {"a": 0.5})[0].add_user("e", {"d": 2.0})[0].add_user("f")[0]
    assert graph == slow
    assert change.users == ("d", "e", "f")
    assert change.edges == (("d", "e", 0.0, 2.0), ("d", "a", 0.0, 0.5))


@pytest.mark.parametrize(
    ("users", "error", "named"),
    [
        ({"d": {}, "a": {}}, DuplicateIdError, "'a'"),
        ({"d": {"z": 1.0}}, UnknownUserError, "'z'"),
        ({"d": {"e": 1.0}, "e": {"d": 2.0}}, GraphError, "one weight"),
        ({"d": "a"}, GraphError, "neither"),
        (["d"], GraphError, "mapping"),
        ({"d": {"d": 1.0}}, GraphError, "'d'"),
        ({"d": {"a": -1.0}}, GraphError, "-1.0"),
    ],
)
def test_a_bad_cohort_is_told(users: Any, error: type[CoterieError], named: str) -> None:
    with pytest.raises(error, match=re.escape(named)):
        GRAPH.add_users(users)


def test_removing_a_user_moves_the_later_ones_up() -> None:
    graph, change = GRAPH.remove_user("b")
    assert graph.users == ("a", "c")
    assert graph.index_of("c") == 1
    assert graph.n_edges == 0
    assert change == GraphChange(kind="remove-user", users=("b",), edges=(("b", "a", 1.0, 0.0), ("b", "c", 2.5, 0.0)))


def test_set_edge_adds_or_reweights() -> None:
    graph, change = GRAPH.set_edge("c", "a", 4)
    assert graph.weight("a", "c") == 4.0
    assert graph.n_edges == 3
    assert change == GraphChange(kind="set-edge", edges=(("c", "a", 0.0, 4.0),))
    graph, change = GRAPH.set_edge("c", "b", 4)
    assert graph.n_edges == 2
    assert change.edges == (("c", "b", 2.5, 4.0),)


def test_remove_edge() -> None:
    graph, change = GRAPH.remove_edge("c", "b")
    assert graph == UserGraph.from_edges([("a", "b")], users="abc")
    assert change == GraphChange(kind="remove-edge", edges=(("c", "b", 2.5, 0.0),))


@pytest.mark.parametrize(
    ("edit", "arguments", "error", "named"),
    [
        ("add_user", ("a",), DuplicateIdError, "'a'"),
        ("add_user", (["d"],), GraphError, "['d']"),
        ("add_user", (None,), GraphError, "None"),
        ("add_user", ("d", {"z": 1.0}), UnknownUserError, "'z'"),
        ("add_user", ("d", {"d": 1.0}), GraphError, "('d', 'd')"),
        ("add_user", ("d", {"a": -1.5}), GraphError, "-1.5"),
        ("add_user", ("d", {"a": 0}), GraphError, "('d', 'a')"),
        ("add_user", ("d", "a"), GraphError, "neither"),
        ("remove_user", ("z",), UnknownUserError, "'z'"),
        ("set_edge", ("a", "z", 1.0), UnknownUserError, "'z'"),
        ("set_edge", ("a", "a", 1.0), GraphError, "('a', 'a')"),
        ("set_edge", ("a", "b", 0.0), GraphError, "0.0"),
        ("set_edge", ("a", "b", -2.0), GraphError, "-2.0"),
        ("set_edge", ("a", "b", float("nan")), GraphError, "nan"),
        ("set_edge", ("a", "b", "heavy"), GraphError, "'heavy'"),
        ("remove_edge", ("a", "c"), GraphError, "'a' and 'c'"),
        ("remove_edge", ("a", "z"), UnknownUserError, "'z'"),
    ],
)
def test_a_bad_edit_is_named_and_changes_nothing(
    edit: str, arguments: tuple[Any, ...], error: type[CoterieError], named: str
) -> None:
    before = GRAPH.weights.toarray()
    with pytest.raises(error) as caught:
        getattr(GRAPH, edit)(*arguments)
    assert named in caught.value.problem
    assert GRAPH.users == ("a", "b", "c")
    assert np.array_equal(GRAPH.weights.toarray(), before)


@given(seed=st.integers(0, 50), u=st.integers(0, 7), v=st.integers(0, 7), weight=st.floats(1e-3, 1e3))
def test_an_edit_and_its_inverse_give_the_graph_back(seed: int, u: int, v: int, weight: float) -> None:
    graph = erdos_renyi(8, edge_prob=0.4, seed=seed)
    friends = dict.fromkeys({u, v}, weight)
    assert graph.add_user("new", friends)[0].remove_user("new")[0] == graph
    if u == v:
        return
    edited, change = graph.set_edge(u, v, weight)
    old = change.edges[0][2]
    back = edited.set_edge(u, v, old) if old else edited.remove_edge(u, v)
    assert back[0] == graph


@given(seed=st.integers(0, 50), weight=st.floats(1e-3, 1e3))
def test_removing_and_adding_the_last_user_gives_the_graph_back(seed: int, weight: float) -> None:
    graph = erdos_renyi(8, edge_prob=0.4, seed=seed).set_edge(0, 7, weight)[0]
    fewer, change = graph.remove_user(7)
    friends = {friend: old for _, friend, old, _ in change.edges}
    assert fewer.add_user(7, friends)[0] == graph
