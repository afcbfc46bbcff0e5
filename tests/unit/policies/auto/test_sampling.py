"""Fits on graphs of any size: the same as on the whole where that is looked at, near it where it is sampled."""

from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.models import History
from coterie.policies.auto.evidence import Evidence, Together
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.hyper import Hyper
from coterie.policies.auto.parts import lanczos_density
from coterie.policies.auto.sampling import (
    BLOCK_PAIRS,
    BLOCKS,
    LEAST_AROUND,
    draw_samples,
    neighbourhood_laplacian,
    surroundings,
)

GRAPH = ct.make_graph("sbm", 60, seed=3)
ARMS = ct.ArmPool(np.random.default_rng(1).normal(size=(30, 3)))
HYPER = Hyper(-1.0, -2.0, -1.5, -0.5, 0.3, 0.2, -2.0, -2.0)


def history(graph: ct.UserGraph, size: int, seed: int = 0) -> History:
    rng, out = np.random.default_rng(seed), History()
    for _ in range(size):
        user, arm = int(rng.integers(graph.n_users)), int(rng.integers(len(ARMS)))
        out.add((user, arm), user, arm, float(rng.normal()))
    return out


def test_a_small_graph_is_looked_at_as_a_whole() -> None:
    observed = history(GRAPH, BLOCK_PAIRS)  # or fewer: pairs repeat
    exact = Evidence(FitContext(GRAPH, ARMS).parts, observed).value_and_gradient(np.array(HYPER))
    found = Together(FitContext(GRAPH, ARMS).evidences(observed, BLOCK_PAIRS)).value_and_gradient(np.array(HYPER))
    assert found[0] == pytest.approx(exact[0], rel=1e-9)
    np.testing.assert_allclose(found[1], exact[1], rtol=1e-6, atol=1e-8)


def test_a_number_can_be_taken_off_the_rewards() -> None:
    observed, moved = history(GRAPH, 100), history(GRAPH, 100)
    moved.shift(5.0)
    context, point = FitContext(GRAPH, ARMS), np.array(HYPER)
    plain = Together(context.evidences(observed, 100)).value_and_gradient(point)[0]
    shifted = Together(context.evidences(moved, 100, shift=5.0))
    assert shifted.value_and_gradient(point)[0] == pytest.approx(plain, rel=1e-9)


def test_the_users_around_a_sample_come_ring_by_ring() -> None:
    graph, users = ct.make_graph("ring", 3_000), np.array([10, 11])
    around = surroundings(graph, users, 400)
    assert around is not None
    assert around[:2].tolist() == [10, 11]
    assert sorted(around.tolist()) == [*range(0, 211), *range(2811, 3000)]  # 199 on either side
    few = surroundings(graph, users, 0)
    assert few is not None
    assert len(few) == LEAST_AROUND
    assert surroundings(GRAPH, users, 0) is None  # everybody


def test_a_graph_cut_off_farther_away_ties_users_as_the_whole_does() -> None:
    graph, users, ridge = ct.make_graph("watts-strogatz", 2_500, k=6, seed=0), np.arange(40), 0.02
    whole = np.linalg.inv(graph.laplacian().toarray() + ridge * np.eye(2_500))[np.ix_(users, users)]
    apart = ~np.eye(40, dtype=bool)
    missed = []
    for around in (users, surroundings(graph, users, 10_000)):
        assert around is not None
        near = np.linalg.inv(neighbourhood_laplacian(graph, around) + ridge * np.eye(len(around)))[:40, :40]
        missed.append(np.abs(near - whole)[apart].mean())
    assert missed[1] < 0.7 * missed[0]


@pytest.mark.parametrize("family", ["sbm", "barabasi-albert", "erdos-renyi"])
def test_the_density_gives_the_mean_gain(family: str) -> None:
    graph = ct.make_graph(family, 700, seed=1)
    values = np.linalg.eigvalsh(graph.laplacian().toarray())
    density = lanczos_density(graph.laplacian(), seed=0)
    assert density.weights.sum() == pytest.approx(1.0)
    for ridge in (0.01, 0.1, 1.0, 10.0):
        assert density.gain(ridge)[0] == pytest.approx(float((1 / (values + ridge)).mean()), rel=0.03)
        up, down = (density.gain(ridge * exp(step))[0] for step in (1e-5, -1e-5))
        assert density.gain(ridge)[1] == pytest.approx((up - down) / 2e-5, rel=1e-4)


def test_the_density_of_no_edges_is_at_zero() -> None:
    density = lanczos_density(ct.make_graph("empty", 50).laplacian(), seed=0)
    assert density.gain(2.0) == (0.5, -0.5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 59))
def test_the_laplacian_of_some_users_is_a_covariance_that_knows_less(seed: int, size: int) -> None:
    """What lies beyond is held at zero, so no variance exceeds that of the whole graph, and all is well defined."""
    users = np.random.default_rng(seed).permutation(60)[:size]
    small = neighbourhood_laplacian(GRAPH, users)
    assert np.linalg.eigvalsh(small).min() >= -1e-9
    whole = np.linalg.inv(GRAPH.laplacian().toarray() + 0.5 * np.eye(60))
    assert (np.linalg.inv(small + 0.5 * np.eye(size)).diagonal() <= whole.diagonal()[users] * 1.25).all()


def test_all_users_give_the_whole_laplacian() -> None:
    np.testing.assert_allclose(neighbourhood_laplacian(GRAPH, np.arange(60)), GRAPH.laplacian().toarray())


def test_samples_keep_neighbours_together_and_all_their_pairs() -> None:
    graph = ct.make_graph("sbm", 3000, seed=0, inside=0.05, across=0.0, n_blocks=30)
    observed = history(graph, 6000)
    samples = draw_samples(graph, observed, np.random.default_rng(0))
    users, of_all = observed.user_array(), np.bincount(observed.user_array(), minlength=3000)
    assert [len(each.rows) for each in samples] == [BLOCK_PAIRS] * BLOCKS
    assert len(set(np.concatenate([each.users for each in samples]).tolist())) == sum(len(s.users) for s in samples)
    for sample in samples:
        np.testing.assert_array_equal(sample.users[sample.places], users[sample.rows])
        taken = np.bincount(users[sample.rows], minlength=3000)
        cut = [user for user in sample.users if taken[user] != of_all[user]]
        assert len(cut) <= 1  # the last one, where the pairs were enough
        inside = graph.weights[sample.users][:, sample.users].sum(axis=1)
        assert np.mean(inside > 0) > 0.8


def test_few_pairs_are_one_sample_and_samples_go_on_where_nobody_near_has_rewards() -> None:
    graph = ct.make_graph("empty", 500)
    few = history(graph, BLOCK_PAIRS // 2)
    (only,) = draw_samples(graph, few, np.random.default_rng(0))
    assert len(only.rows) == len(few)
    many = draw_samples(graph, history(graph, 900), np.random.default_rng(0))
    assert [len(each.rows) for each in many] == [BLOCK_PAIRS] * 3  # as many as the pairs are worth
