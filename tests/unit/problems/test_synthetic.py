"""The paper's worlds against their formulas."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import coterie as ct
from coterie.errors import ParameterError
from coterie.problems import LEVELS, Round, World, gp_world, linear_gob_world, representer_world, sphere_pool

Array = NDArray[np.float64]

GRAPH = ct.make_graph("erdos-renyi", 5, edge_prob=0.6, seed=0)
ARMS = sphere_pool(6, 3, seed=1)
KERNELS: dict[str, Any] = {
    "user_kernel": ct.Green(laplacian_ridge=0.1, power=0.5),
    "arm_kernel": ct.SquaredExponential(1.0),
    "noise_std": 0.1,
}


def truth_of(world: World) -> Array:
    ids = world.arms.ids
    return np.array([[world.reward(Round(user, ids, 0.0), arm) for arm in ids] for user in world.graph.users])


def test_levels_are_the_papers() -> None:
    assert [(level.n_arms, level.n_candidates, level.dimension, level.horizon) for level in LEVELS.values()] == [
        (10, 5, 5, 1000),
        (20, 5, 10, 3000),
        (50, 5, 20, 5000),
    ]


def test_linear_rewards_are_smoothed_along_the_graph() -> None:
    start = np.random.default_rng(3).standard_normal((5, 3))
    for homophily in (0.0, 1.0, 7.0):
        world = linear_gob_world(graph=GRAPH, arms=ARMS, homophily=homophily, noise_std=0.1, seed=3)
        weights = np.linalg.inv(np.eye(5) + homophily * GRAPH.laplacian().toarray()) @ start
        np.testing.assert_allclose(truth_of(world), weights @ ARMS.features.T, atol=1e-12)
    with pytest.raises(ParameterError, match=r"-1\.0"):
        linear_gob_world(graph=GRAPH, arms=ARMS, homophily=-1.0, noise_std=0.1, seed=3)


def test_a_representer_draw_is_the_kernel_times_coefficients() -> None:
    world = representer_world(graph=GRAPH, arms=ARMS, seed=4, **KERNELS)
    users = KERNELS["user_kernel"].matrix(GRAPH)
    arms = KERNELS["arm_kernel"].gram(ARMS.features)
    coefficients = np.random.default_rng(4).standard_normal((5, 6))
    expected = np.kron(users, arms) @ coefficients.ravel()
    np.testing.assert_allclose(truth_of(world).ravel(), expected, atol=1e-12)


def test_gp_draws_have_the_joint_covariance() -> None:
    draws = np.array([truth_of(gp_world(graph=GRAPH, arms=ARMS, seed=seed, **KERNELS)).ravel() for seed in range(1500)])
    users = KERNELS["user_kernel"].matrix(GRAPH)
    arms = KERNELS["arm_kernel"].gram(ARMS.features)
    expected = np.kron(users, arms)
    assert np.abs(np.cov(draws.T) - expected).max() < 0.15 * expected.max()


def test_unit_spread_scales_and_nothing_else() -> None:
    raw, scaled = (
        truth_of(gp_world(graph=GRAPH, arms=ARMS, seed=2, unit_spread=unit, **KERNELS)) for unit in (False, True)
    )
    assert scaled.std() == pytest.approx(1.0)
    np.testing.assert_allclose(scaled, raw / raw.std())
