"""Newcomers and heavier edges: the user covariance is that of the new graph, without its inverse."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.kernels.links import AddedEdges, GraphCovariance, Link, make_link
from coterie.policies.added_edges import added_edges
from strategies import Array, graphs

forms = st.builds(
    GraphCovariance,
    ridge=st.sampled_from([0.05, 0.1, 1.0]),
    scale=st.sampled_from([0.01, 1.0, 3.0]),
    own=st.sampled_from([0.0, 0.02, 1.0]),
    common=st.sampled_from([0.0, 0.5]),
)


def covariance(form: GraphCovariance, graph: ct.UserGraph) -> Array:
    inverse = np.linalg.inv(graph.laplacian().toarray() + form.ridge * np.eye(graph.n_users))
    inverse = (inverse + inverse.T) / 2
    return np.asarray(form.scale * inverse + form.own * np.eye(graph.n_users) + form.common)


def linked(form: GraphCovariance, before: ct.UserGraph, after: ct.UserGraph) -> Link:
    edges = added_edges(before, after)
    assert edges is not None
    laplacian = sp.csr_array(before.laplacian().copy())
    laplacian.resize((after.n_users, after.n_users))
    link = make_link(form, covariance(form, before), laplacian, edges, newcomers=after.n_users - before.n_users)
    assert link is not None
    return link


@given(forms, graphs(), st.lists(st.floats(0.01, 10.0), max_size=4), st.integers(0, 2))
def test_the_covariance_is_that_of_the_new_graph(
    form: GraphCovariance, graph: ct.UserGraph, weights: list[float], loners: int
) -> None:
    friends = dict(zip(graph.users, weights, strict=False))
    after = graph.add_users({"new": friends, **{f"loner-{i}": {"new": 0.5} if i else None for i in range(loners)}})[0]
    link, want = linked(form, graph, after), covariance(form, after)
    np.testing.assert_allclose(link.user_cov, want, atol=1e-11 * np.abs(want).max(), rtol=0)
    np.testing.assert_allclose(link.user_cov, link.user_cov.T, atol=1e-15 * np.abs(want).max(), rtol=0)


@given(forms, graphs(max_users=5), st.floats(0.01, 10.0))
def test_what_is_seen_explains_the_change(form: GraphCovariance, graph: ct.UserGraph, weight: float) -> None:
    """Conditioning the covariance on the combinations gives the one afterwards: that is what a belief relies on."""
    joined = graph.add_user("new", {graph.users[0]: weight})[0]
    before, link = covariance(form, graph.add_user("new")[0]), linked(form, graph, joined)
    crossed = before @ link.combinations
    np.testing.assert_allclose(link.combinations.T @ crossed, link.spread, atol=1e-10 * np.abs(before).max())
    after = before - crossed @ np.linalg.solve(link.spread + link.noise, crossed.T)
    np.testing.assert_allclose(after, link.user_cov, atol=1e-10 * np.abs(before).max())
    assert np.trace(before) - np.trace(after) == pytest.approx(link.lost, abs=1e-9 * np.trace(before))
    regressed = np.linalg.solve(before[:-1, :-1], before[:-1, -1])
    np.testing.assert_allclose(regressed, link.share, atol=1e-10)
    assert link.residual[0, 0] == pytest.approx(before[-1, -1] - before[-1, :-1] @ regressed)


@pytest.mark.parametrize(
    "kernel", [None, ct.Heat(), ct.Green(power=2.0), ct.Green(normalised=True), ct.Independent(), ct.AllOnes()]
)
def test_other_kernels_have_no_such_form(kernel: ct.UserKernel | None) -> None:
    assert GraphCovariance.of(kernel) is None


def test_edges_that_are_taken_away_have_no_link() -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo", 2.0), ("bo", "cy")])
    assert added_edges(graph, graph.remove_edge("ana", "bo")[0]) is None
    assert added_edges(graph, graph.set_edge("ana", "bo", 1.0)[0].add_user("dee", {"ana": 5.0})[0]) is None


@pytest.mark.parametrize("weight", [1e-310, 5e-324, 1e12, 1e100])
def test_edges_of_extreme_weight_have_no_link(weight: float) -> None:
    edges = AddedEdges(rows=np.array([0]), others=np.array([1]), weights=np.array([weight]))
    form = GraphCovariance(ridge=0.1)
    assert make_link(form, 10.0 * np.eye(2), sp.csr_array((2, 2)), edges, newcomers=0) is None
