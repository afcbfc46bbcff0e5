"""Features measured from another origin, or in another unit, give the same belief on every engine."""

from dataclasses import replace

import numpy as np
import pytest

import coterie as ct
from coterie.contracts import Array
from coterie.kernels import FreeKernel
from coterie.kernels.arithmetic import squared_distances
from coterie.kernels.arm import Stationary
from coterie.kernels.graph_kernel import graph_kernel
from coterie.kernels.group_kernel import group_kernel
from coterie.kernels.joint import JointKernel, pool_kernel
from coterie.models import ENGINES, make_model
from coterie.models.choose import ALL_ENGINES

# Multiples of 1/64 stay exact with any of the offsets added.
RNG = np.random.default_rng(0)
FEATURES = np.round(64 * RNG.normal(size=(15, 3))) / 64
GRAPH = ct.make_graph("ring", 20)
REWARDS = [(int(RNG.integers(20)), int(RNG.integers(15)), float(RNG.normal())) for _ in range(60)]
OFFSETS = [1e3, 1e7, 1e8]
KERNELS = [
    ct.SquaredExponential(),
    ct.Matern12(),
    ct.Matern32(1.5),
    ct.Matern52((1.0, 2.0, 0.5)),
    ct.RationalQuadratic(),
]
stationary = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)


def joint(engine: str, arm_kernel: ct.ArmKernel, features: Array) -> JointKernel:
    pool = ct.ArmPool(features)
    if engine == "sparse":
        return graph_kernel(GRAPH, arm_kernel, pool)
    if engine == "groups":
        return group_kernel(np.arange(20) // 4, arm_kernel, pool)
    return pool_kernel(ct.Green().matrix(GRAPH), arm_kernel, pool)


def belief(engine: str, arm_kernel: ct.ArmKernel, features: Array) -> Array:
    """Mean and std of every pair after the rewards."""
    model = make_model(joint(engine, arm_kernel, features), engine=engine)
    for user, arm, reward in REWARDS:
        model.update(user, arm, reward)
    return np.array([model.predict(user) for user in range(20)])


@pytest.mark.parametrize("engine", sorted(ALL_ENGINES))
@stationary
def test_an_offset_of_the_features_changes_nothing(engine: str, kernel: ct.ArmKernel) -> None:
    if engine == "sparse":
        pytest.importorskip("numba")
    plain = belief(engine, kernel, FEATURES)
    for offset in OFFSETS:
        np.testing.assert_allclose(belief(engine, kernel, FEATURES + offset), plain, atol=1e-9, rtol=0)


@pytest.mark.parametrize("engine", ["dense", "exact"])
@stationary
def test_vectors_without_a_pool_agree_with_the_pool_at_any_offset(engine: str, kernel: ct.ArmKernel) -> None:
    plain = belief(engine, kernel, FEATURES)
    for offset in OFFSETS:
        shifted = FEATURES + offset
        free = ENGINES[engine](FreeKernel(ct.Green().matrix(GRAPH), kernel.resolve(shifted)))
        for user, arm, reward in REWARDS:
            free.update(user, shifted[arm], reward)
        found = np.array([free.predict(user, shifted) for user in range(20)])
        np.testing.assert_allclose(found, plain, atol=1e-9, rtol=0)


@pytest.mark.parametrize("scale", [1e-49, 1e-30, 1e30, 1e49])
@stationary
def test_features_in_another_unit_give_the_same_belief_with_a_median_lengthscale(
    kernel: Stationary, scale: float
) -> None:
    median = replace(kernel, lengthscale="median")
    np.testing.assert_allclose(
        belief("exact", median, scale * FEATURES), belief("exact", median, FEATURES), atol=1e-9, rtol=0
    )


def learned(features: Array, engine: str = "auto") -> Array:
    """Mean and std of every pair after the rewards, by a policy that fits its own kernel."""
    policy = ct.make_policy("auto-ucb", graph=GRAPH, arms=ct.ArmPool(features), engine=engine)
    for user, arm, reward in REWARDS:
        policy.update(user, arm, reward)
    return np.array([policy.predict(user) for user in range(20)])


@pytest.mark.parametrize("engine", ["auto", "exact"])
def test_a_learned_kernel_keeps_its_distances_however_far_the_features_lie(engine: str) -> None:
    """Features at 1e12 are themselves rounded to 1e-4."""
    near, *far = (learned(FEATURES + offset, engine) for offset in (1e7, 1e8, 1e12))
    assert near[:, 1].min() > 0.01
    for each in far:
        np.testing.assert_allclose(each, near, atol=1e-4, rtol=0)


@pytest.mark.parametrize("scale", [1e-49, 1e49])
def test_a_learned_kernel_takes_features_in_any_unit(scale: float) -> None:
    np.testing.assert_allclose(learned(scale * FEATURES), learned(FEATURES), atol=1e-6, rtol=0)


@pytest.mark.parametrize("offset", OFFSETS)
def test_distances_of_a_learned_kernel_are_exact_at_any_offset(offset: float) -> None:
    np.testing.assert_array_equal(squared_distances(FEATURES + offset), squared_distances(FEATURES))
