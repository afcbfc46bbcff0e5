"""Truths without a matrix over users: their law is that of the matrices; and what large worlds cannot do."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import coterie as ct
from coterie.errors import NumericalError, ParameterError, SettingError
from coterie.problems import (
    Round,
    World,
    WorldSettings,
    draw_rounds,
    draw_truth,
    draw_world,
    gp_world,
    sphere_pool,
)
from coterie.problems.large import TOLERANCE, fractions_of, root_of, smooth_draw, smoothed, solved
from coterie.problems.synthetic import large_truth

Array = NDArray[np.float64]

GRAPH = ct.make_graph("rbf", 40, scale=0.5, threshold=0.3, seed=4)  # weights of all sizes, and users without edges
SEED = np.random.SeedSequence(3)


def whitened(draws: Array, covariance: Array) -> Array:
    """Returns the eigenvalues of the draws' covariance beside the expected one: all 1 if they are the same."""
    values, vectors = np.linalg.eigh(covariance)
    turned = (vectors / np.sqrt(values)).T @ draws
    return np.asarray(np.linalg.eigvalsh(turned @ turned.T / draws.shape[1]))


@pytest.mark.parametrize(
    ("power", "normalised"),
    [(0.5, False), (1.0, False), (1.5, False), (2.0, False), (2.7, False), (0.3, True), (1.0, True)],
)
def test_draws_have_the_covariance_of_the_kernel(power: float, normalised: bool) -> None:
    kernel = ct.Green(laplacian_ridge=0.05, power=power, normalised=normalised)
    draws = smooth_draw(GRAPH, kernel, 6_000, np.random.default_rng(1))
    # 40 users and 6,000 draws: by the law of Marchenko and Pastur the eigenvalues lie in (1 -+ sqrt(40 / 6,000))^2.
    found = whitened(draws, kernel.matrix(GRAPH))
    assert 0.81 < found.min() < 0.88
    assert 1.13 < found.max() < 1.21
    wrong = whitened(draws, ct.Green(laplacian_ridge=0.05, power=power + 0.1, normalised=normalised).matrix(GRAPH))
    assert wrong.min() < 0.81 or wrong.max() > 1.21


def test_the_root_is_one_of_the_laplacian() -> None:
    for normalised in (False, True):
        kernel = ct.Green(laplacian_ridge=0.2, normalised=normalised)
        root = root_of(GRAPH, kernel).toarray()
        expected = GRAPH.regularised_laplacian(0.2, normalised=normalised).toarray()
        np.testing.assert_allclose(root @ root.T, expected, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(power=st.floats(0.02, 0.98), lowest=st.floats(1e-4, 1.0), spread=st.floats(1.0, 1e8))
def test_fractions_are_within_the_tolerance_between_the_points_they_were_fitted_at(
    power: float, lowest: float, spread: float
) -> None:
    parts = fractions_of(power, lowest, lowest * spread)
    assert parts.rest >= 0
    assert np.all(parts.weights >= 0)
    assert np.all(parts.shifts >= 0)
    points = np.geomspace(lowest, lowest * spread, 777)
    found = np.sum(parts.weights / (points[:, None] + parts.shifts), axis=1) + parts.rest
    np.testing.assert_allclose(found, points**-power, rtol=1.2 * TOLERANCE)


def test_solves_are_right_columns_of_zeros_included() -> None:
    matrix = GRAPH.regularised_laplacian(0.01)
    right = np.random.default_rng(0).standard_normal((40, 3))
    right[:, 1] = 0.0
    for shift in (0.0, 2.0):
        expected = np.linalg.solve(matrix.toarray() + shift * np.eye(40), right)
        np.testing.assert_allclose(solved(matrix, right, shift=shift), expected, atol=1e-8)


def test_a_solve_that_does_not_end_is_an_error() -> None:
    with pytest.raises(NumericalError, match="has not ended after 2 steps"):
        solved(GRAPH.regularised_laplacian(0.01), np.eye(40), most_steps=2)


def test_linear_rewards_are_those_of_the_inverse() -> None:
    start = np.random.default_rng(2).standard_normal((40, 3))
    expected = np.linalg.solve(np.eye(40) + 3.0 * GRAPH.laplacian().toarray(), start)
    np.testing.assert_allclose(smoothed(GRAPH, 3.0, start), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("kind", "power"), [("gp-draw", 0.5), ("gp-draw", 1.0), ("representer", 0.5), ("linear-gob", 1.0)]
)
def test_large_truths_have_the_joint_covariance(kind: Any, power: float) -> None:
    """A graph of many equal parts that share nothing: each is a draw of its own."""
    small, arms = ct.make_graph("erdos-renyi", 5, edge_prob=0.6, seed=0), sphere_pool(4, 3, seed=1)
    graph = ct.UserGraph.from_matrix(sp.csr_array(sp.kron(sp.eye_array(2_000), small.weights)))
    chosen = WorldSettings(kind=kind, power=power, laplacian_ridge=0.1, homophily=2.0)
    draws = draw_truth(chosen, graph, arms, np.random.default_rng(0)).reshape(2_000, 20)
    users = ct.Green(laplacian_ridge=0.1, power=power).matrix(small)
    similar = ct.SquaredExponential(1.0).gram(arms.features)
    if kind == "representer":
        users, similar = users @ users, similar @ similar
    if kind == "linear-gob":
        smooth = np.linalg.inv(np.eye(5) + 2.0 * small.laplacian().toarray())
        users, similar = smooth @ smooth, arms.features @ arms.features.T
    expected = np.kron(users, similar)
    assert np.abs(np.cov(draws.T) - expected).max() < 0.12 * expected.max()


def many(**changes: Any) -> WorldSettings:
    given: dict[str, Any] = {"n_users": 2_001, "n_arms": 6, "dimension": 3, "horizon": 40}
    return WorldSettings(**(given | {"graph": "watts-strogatz", "laplacian_ridge": 0.5} | changes))


@pytest.mark.parametrize("kind", ["linear-gob", "gp-draw", "representer"])
def test_beyond_two_thousand_users_no_spectrum_is_asked_for(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ct.UserGraph, "spectrum", lambda *_, **__: pytest.fail("a matrix over users"))
    chosen = many(kind=kind, drift=1.0, rewards="binary")
    world = draw_world(chosen, SEED)
    for shown in draw_rounds(chosen, world, SEED):
        reward, regret = world.judge(shown, shown.candidates[0])
        assert reward in (0.0, 1.0)
        assert 0 <= regret < 1
        assert world.judge(shown, world.best(shown))[1] == 0.0


def test_a_large_table_answers_as_a_small_one() -> None:
    graph, truth = ct.make_graph("ring", 2_001), np.arange(2_001 * 2.0).reshape(-1, 2)
    world = World(graph=graph, arms=ct.ArmPool(np.eye(2), ids=["tea", "milk"]), truth=truth, noise_std=0.0)
    shown = Round(t=0, user=1_500, candidates=("milk", "tea"), noise=0.25)
    assert world.judge(shown, "tea") == (3000.25, 1.0)
    assert world.best(shown) == "milk"


def test_large_worlds_of_your_own_have_a_green_kernel() -> None:
    given: dict[str, Any] = {"graph": ct.make_graph("ring", 2_001), "arms": sphere_pool(3, 2, seed=0), "noise_std": 0.1}
    given |= {"arm_kernel": ct.SquaredExponential(1.0), "seed": 0}
    assert gp_world(user_kernel=ct.Green(), **given).graph.n_users == 2_001
    with pytest.raises(ParameterError, match=r"Heat.*beyond 2000 users it is a Green"):
        gp_world(user_kernel=ct.Heat(), **given)


def test_heterophily_is_for_two_thousand_users_at_most() -> None:
    assert many(n_users=2_000, heterophily=True).heterophily
    with pytest.raises(SettingError, match="n_users is 2001"):
        many(heterophily=True)
    with pytest.raises(SettingError, match="n_users is 2001"):
        large_truth(
            WorldSettings(heterophily=True),
            ct.make_graph("ring", 2_001),
            sphere_pool(3, 2, seed=0),
            np.random.default_rng(0),
        )


def test_a_graph_without_edges_is_drawn_alone() -> None:
    draws = smooth_draw(
        ct.make_graph("empty", 3), ct.Green(laplacian_ridge=4.0, power=0.5), 20_000, np.random.default_rng(0)
    )
    np.testing.assert_allclose(np.cov(draws), 0.5 * np.eye(3), atol=0.02)
    assert sp.issparse(root_of(ct.make_graph("empty", 3), ct.Green()))
