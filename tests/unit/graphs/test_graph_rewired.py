"""Rewiring: other users are joined, everybody keeps as many neighbours, and weights travel with their edges."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import GraphError, ParameterError
from coterie.graphs import UserGraph, complete, erdos_renyi, make_graph
from strategies import graphs


def n_neighbours(graph: UserGraph) -> list[int]:
    return [len(graph.neighbours(user)) for user in graph.users]


def pairs(graph: UserGraph) -> set[frozenset[Any]]:
    return {frozenset((u, v)) for u, v, _ in graph.edges()}


@given(graph=graphs(), share=st.floats(0, 1), seed=st.integers(0, 100))
def test_users_numbers_of_neighbours_and_weights_stay(graph: UserGraph, share: float, seed: int) -> None:
    rewired = graph.rewired(share, seed)
    assert rewired.users == graph.users
    assert n_neighbours(rewired) == n_neighbours(graph)
    assert sorted(weight for *_, weight in rewired.edges()) == sorted(weight for *_, weight in graph.edges())
    moved = len(pairs(graph) - pairs(rewired))
    assert moved <= round(share * graph.n_edges)


def test_nearly_every_edge_that_should_move_moves() -> None:
    graph = erdos_renyi(60, edge_prob=0.1, seed=1)
    for share in (0.3, 1.0):
        moved = len(pairs(graph) - pairs(graph.rewired(share, 0)))
        # A moved edge may fall by chance on a pair that another left; one in ten pairs is joined at all.
        assert 0.8 * share * graph.n_edges < moved <= round(share * graph.n_edges)


def test_a_weight_stays_at_one_end_of_its_edge() -> None:
    graph = UserGraph.from_edges([("a", "b", 1.0), ("c", "d", 2.0), ("e", "f", 3.0), ("g", "h", 4.0)])
    old = {weight: {u, v} for u, v, weight in graph.edges()}
    for seed in range(10):  # two of the four edges exchange an end, the other two stay
        kept_ends = [len(old[weight] & {u, v}) for u, v, weight in graph.rewired(0.5, seed).edges()]
        assert sorted(kept_ends) == [1, 1, 2, 2]


def test_nothing_to_exchange_leaves_the_graph_as_it_is() -> None:
    for graph in (complete(6), make_graph("empty", 4), UserGraph.from_edges([("ana", "bo")])):
        assert graph.rewired(1.0, 0) == graph
    graph = erdos_renyi(20, seed=0)
    assert graph.rewired(0.0, 0) == graph


def test_the_seed_fixes_it() -> None:
    graph = erdos_renyi(20, seed=0)
    assert graph.rewired(0.5, 7) == graph.rewired(0.5, np.random.default_rng(7))
    assert graph.rewired(0.5, 7) != graph.rewired(0.5, 8)


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), "half"])
def test_a_share_that_is_none_is_refused(share: Any) -> None:
    with pytest.raises(ParameterError, match=r"share = .* is out of range; it lies between 0 and 1"):
        erdos_renyi(5, seed=0).rewired(share, 0)


def test_a_graph_too_dense_to_rewire_is_refused_where_a_part_must_move() -> None:
    assert complete(6).rewired(1.0, 0).n_edges == 15
    with pytest.raises(GraphError, match=r"only 0 of 15 edges .* Use permuted"):
        complete(6).rewired(1.0, 0, least=0.5)
    moved = erdos_renyi(20, seed=0).rewired(1.0, 0, least=0.5)
    assert moved.n_edges == erdos_renyi(20, seed=0).n_edges
