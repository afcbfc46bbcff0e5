"""Versions of a graph share what they have in common, and none ever sees what came after it."""

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.graphs import UserGraph, storage

FIRST = UserGraph.from_edges([(0, 1), (1, 2, 2.5)])
Edges = dict[tuple[int, int], float]

steps = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 4)), max_size=14)


def edited(graph: UserGraph, edges: Edges, i: int, j: int, weight: int) -> tuple[UserGraph, Edges]:
    """The graph after one edit, and the same by a plain table."""
    n, ends = graph.n_users, (i % graph.n_users, j % graph.n_users)
    pair = min(ends), max(ends)
    if weight == 0 and pair in edges:
        return graph.remove_edge(*pair)[0], {key: value for key, value in edges.items() if key != pair}
    if pair[0] == pair[1]:
        return graph.add_user(n, {pair[0]: weight + 1.0})[0], {**edges, (pair[0], n): weight + 1.0}
    if weight == 4:
        friends: Any = {n: {n + 1: 2.0}, n + 1: {pair[0]: 3.0}}
        return graph.add_users(friends)[0], {**edges, (n, n + 1): 2.0, (pair[0], n + 1): 3.0}
    return graph.set_edge(*pair, weight + 0.5)[0], {**edges, pair: weight + 0.5}


def dense(n_users: int, edges: Edges) -> Any:
    out = np.zeros((n_users, n_users))
    for (i, j), weight in edges.items():
        out[i, j] = out[j, i] = weight
    return out


def assert_is(graph: UserGraph, edges: Edges) -> None:
    want = dense(graph.n_users, edges)
    assert graph.n_edges == len(edges)
    assert list(graph.index) == [graph.user_at(row) for row in range(graph.n_users)] == list(range(graph.n_users))
    for user in range(graph.n_users):
        assert graph.neighbours(user) == {int(i): want[user, i] for i in np.flatnonzero(want[user])}
        assert [graph.weight(user, other) for other in range(graph.n_users)] == want[user].tolist()
    assert graph.n_users not in graph
    assert np.array_equal(graph.weights.toarray(), want)
    assert graph == UserGraph.from_matrix(want)


@settings(max_examples=60)
@given(steps=steps, limit=st.sampled_from([0, 3, 1000]), looked=st.integers(0, 9))
def test_every_version_is_as_if_it_were_alone(steps: Any, limit: int, looked: int) -> None:
    versions: list[tuple[UserGraph, Edges]] = [(FIRST, {(0, 1): 1.0, (1, 2): 2.5})]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "MOST_EDITS", limit)
        for number, (which, i, j, weight) in enumerate(steps):
            graph, edges = versions[which % len(versions)]
            versions.append(edited(graph, edges, i, j, weight))
            if number == looked:
                assert versions[-1][0].weights.nnz == 2 * len(versions[-1][1])
    for before, old in versions:
        for after, new in versions:
            assert_difference(before, old, after, new)
    for graph, edges in versions:
        assert_is(graph, edges)


def assert_difference(before: UserGraph, old: Edges, after: UserGraph, new: Edges) -> None:
    found = after.changes_since(before)
    if after.n_users < before.n_users:
        assert found is None
        return
    assert found is not None
    assert found.newcomers == after.n_users - before.n_users
    changed = {pair: (old.get(pair, 0.0), new.get(pair, 0.0)) for pair in old.keys() | new.keys()}
    want = {pair: both for pair, both in changed.items() if both[0] != both[1]}
    assert {(edit.row, edit.other): (edit.old, edit.new) for edit in found.edges} == want


def test_an_edit_goes_through_no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError

    for name in ("merged", "difference"):
        monkeypatch.setattr(storage, name, refuse)
    graph = FIRST.add_user(3, {0: 1.0})[0].set_edge(3, 1, 2.0)[0].remove_edge(0, 1)[0].add_users({4: {3: 1.0}})[0]
    difference = graph.changes_since(FIRST)
    assert graph.n_edges == 4
    assert difference is not None
    assert len(difference.edges) == 4


def test_a_graph_whose_users_moved_has_no_difference() -> None:
    assert FIRST.remove_user(0)[0].changes_since(FIRST) is None
    assert UserGraph.from_edges([(1, 0), (1, 2)]).changes_since(FIRST) is None


def test_a_copied_index_stays_with_its_version() -> None:
    later = FIRST.add_user("x")[0]
    assert pickle.loads(pickle.dumps(FIRST.index)) == deepcopy(FIRST.index) == {0: 0, 1: 1, 2: 2}
    assert deepcopy(later).users == (0, 1, 2, "x")
