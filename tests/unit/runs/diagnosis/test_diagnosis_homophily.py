"""Linked users against rewired ones: degrees stay, planted likeness is found, and chance is not."""

import numpy as np
import pytest
import scipy.sparse as sp

from coterie.errors import InputError
from coterie.graphs import UserGraph, make_graph
from coterie.graphs.random_pairs import rewirings
from coterie.logs import Events, Log, load_filmtrust
from coterie.runs.diagnosis.homophily import Alike, affordable, homophily
from coterie.runs.diagnosis.outcomes import outcomes_of
from originals import real
from planted import planted_log, with_users_permuted


def ends(graph: UserGraph) -> tuple[np.ndarray, np.ndarray]:
    upper = sp.triu(graph.weights, k=1).tocoo()
    return upper.row.astype(np.int64), upper.col.astype(np.int64)


def test_rewirings_keep_degrees_and_are_simple_and_move_nearly_all_edges() -> None:
    graph = make_graph("barabasi-albert", 200, seed=0, attach=3)
    rows, cols = ends(graph)
    before = set(zip(rows.tolist(), cols.tolist(), strict=True))
    seen = []
    for left, right in rewirings(rows, cols, 200, count=3, seed=1):
        pairs = {(min(pair), max(pair)) for pair in zip(left.tolist(), right.tolist(), strict=True)}
        assert len(pairs) == len(rows)
        assert all(a != b for a, b in pairs)
        degrees = np.bincount(left, minlength=200) + np.bincount(right, minlength=200)
        assert (degrees == np.diff(graph.weights.indptr)).all()
        assert len(pairs & before) < 0.2 * len(before)
        seen.append(frozenset(pairs))
    assert len(set(seen)) == 3


def test_shared_positives_and_opinions_are_those_counted_by_hand() -> None:
    graph = UserGraph.from_edges([("a", "b"), ("b", "c"), ("d", "e")])
    rewards = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 1, 0]], dtype=float)
    user, arm = np.indices(rewards.shape).reshape(2, -1)
    events = Events(user=np.tile(user, 2), arm=np.tile(arm, 2), reward=np.tile(rewards.ravel(), 2))
    outcomes = outcomes_of(Log(graph=graph, arms=("x", "y", "z"), events=events))
    found = {each.name: each for each in homophily(graph, outcomes, count=5, seed=0)}
    assert found["shared"].observed == pytest.approx((2 + 1 + 0) / 3)
    popular = rewards.sum(axis=0)
    by_chance = popular @ popular / popular.sum() ** 2
    assert found["lift"].observed == pytest.approx(3 / (by_chance * (2 * 2 + 2 * 2 + 2 * 1)))
    left = rewards - rewards.mean(axis=0)
    left -= left.mean(axis=1, keepdims=True)
    here, there = left[[0, 1, 3]].ravel(), left[[1, 2, 4]].ravel()
    likeness = here @ there / np.sqrt((here @ here) * (there @ there))
    assert found["opinions"].observed == pytest.approx(likeness)


def test_p_value_counts_the_rewirings_that_are_as_alike() -> None:
    found = Alike(name="shared", observed=2.0, rewired=np.array([1.0, 2.0, 3.0, 1.0]))
    assert found.p_value == (1 + 2) / (1 + 4)
    assert found.ratio == pytest.approx(2.0 / 1.75)
    assert Alike(name="opinions", observed=0.2, rewired=np.array([0.1])).ratio is None


def test_planted_homophily_is_found_and_permuted_users_are_not_alike() -> None:
    log = planted_log()
    for each in homophily(log.graph, outcomes_of(log), count=39, seed=0):
        assert each.p_value == 1 / 40, each.name
    dealt = [with_users_permuted(log, seed) for seed in range(1, 7)]
    found = [homophily(each.graph, outcomes_of(each), count=19, seed=0) for each in dealt]
    for alike in zip(*found, strict=True):
        assert np.mean([each.p_value for each in alike]) > 0.2, alike[0].name


def test_a_log_of_one_kind_has_no_opinions() -> None:
    log = planted_log(one_class=True)
    outcomes = outcomes_of(log)
    assert outcomes.kind == "one-class"
    assert [each.name for each in homophily(log.graph, outcomes, count=2, seed=0)] == ["shared", "lift"]


def test_no_edges_no_homophily() -> None:
    log = planted_log()
    assert homophily(make_graph("empty", log.graph.n_users), outcomes_of(log), count=2, seed=0) == []


def test_too_few_events_and_rewards_that_are_all_zero_are_errors_that_say_so() -> None:
    graph = UserGraph.from_edges([("a", "b")])
    few = Events(user=np.array([0, 1]), arm=np.array([0, 0]), reward=np.array([1.0, 0.0]))
    with pytest.raises(InputError, match=r"the log has 2 events; a diagnosis needs at least 20"):
        outcomes_of(Log(graph=graph, arms=("x",), events=few))
    none = Events(user=np.zeros(30, dtype=int), arm=np.zeros(30, dtype=int), reward=np.zeros(30))
    with pytest.raises(InputError, match=r"every reward is 0; .* Check the column reward"):
        outcomes_of(Log(graph=graph, arms=("x",), events=none))


def test_repeats_of_a_pair_are_one_outcome() -> None:
    graph = UserGraph.from_edges([("a", "b")])
    reward = np.r_[np.zeros(15), np.ones(5), np.full(10, 2.0)]
    events = Events(user=np.repeat([0, 1], [20, 10]), arm=np.zeros(30, dtype=int), reward=reward)
    found = outcomes_of(Log(graph=graph, arms=("x",), events=events))
    assert found.kind == "real"
    assert found.reward.tolist() == [0.25, 2.0]
    assert found.count.tolist() == [20.0, 10.0]
    assert found.scatter == pytest.approx([20 * 0.25 * 0.75, 0.0])
    assert found.positive.tolist() == [False, True]  # the mean of all is 5 / 6


def test_large_graphs_get_fewer_rewirings() -> None:
    assert affordable(1_000) == 99
    assert affordable(10**9) == 19


def test_trust_on_filmtrust_goes_with_what_is_rated_and_hardly_with_how() -> None:
    log = load_filmtrust(real("filmtrust")).log(reward="rating")
    found = {each.name: each for each in homophily(log.graph, outcomes_of(log), count=39, seed=0)}
    assert found["shared"].p_value == found["lift"].p_value == 1 / 40
    assert 1.1 < (found["lift"].ratio or 0.0) < (found["shared"].ratio or 0.0) < 1.4
    assert abs(found["opinions"].observed) < 0.1
