"""Theorem 2 of the paper: the confidence bound covers the truth, and needs its 1/lambda."""

from collections.abc import Callable
from math import log, sqrt

import numpy as np
import pytest

import coterie as ct
from coterie.contracts import Belief
from coterie.graphs import make_graph
from coterie.kernels import PoolKernel, pool_kernel
from coterie.models import GridModel

RUNS, ROUNDS, FAILURE_PROB = 120, 60, 0.1
Width = Callable[[int, Belief], float]


@pytest.fixture(scope="module")
def setting() -> tuple[ct.UserGraph, ct.ArmPool, PoolKernel]:
    graph = make_graph("erdos-renyi", 6, edge_prob=0.5, seed=1)
    pool = ct.ArmPool(np.random.default_rng(0).normal(size=(5, 2)))
    return graph, pool, pool_kernel(ct.Green(laplacian_ridge=0.5).matrix(graph), ct.SquaredExponential(1.0), pool)


def coverage(
    setting: tuple[ct.UserGraph, ct.ArmPool, PoolKernel],
    noise_var: float,
    noise_std: float,
    width: type[ct.TheoryWidth],
) -> float:
    """Share of runs in which the truth is within the bound at every round, for every pair."""
    graph, pool, kernel = setting
    covered = 0
    for run in range(RUNS):
        rng = np.random.default_rng([run, 7])
        weights = rng.normal(size=(kernel.n_users, kernel.n_arms)) * 0.3
        truth = weights @ kernel.arm_cov
        bound = sqrt(
            ct.joint_penalty(
                weights, graph=graph, arms=pool, arm_kernel=ct.SquaredExponential(1.0), laplacian_ridge=0.5
            )
        )
        beta = width(norm_bound=bound, noise_std=noise_std, failure_prob=FAILURE_PROB)
        model = GridModel(kernel, noise_var=noise_var)
        covered += all_covered(model, truth, beta, noise_std, rng)
    return covered / RUNS


def all_covered(model: GridModel, truth: np.ndarray, beta: Width, noise_std: float, rng: np.random.Generator) -> bool:
    for t in range(1, ROUNDS + 1):
        user = int(rng.integers(model.n_users))
        mean, std = model.predict(user)
        arm = int(np.argmax(mean + beta(t, model) * std))
        model.update(user, arm, float(truth[user, arm] + noise_std * rng.normal()))
        for each in range(model.n_users):
            mean, std = model.predict(each)
            if np.any(np.abs(mean - truth[each]) > beta(t, model) * std + 1e-9):
                return False
    return True


class WithoutOneOverLambda(ct.TheoryWidth):
    """A mutant: the same width with the 1/lambda in front of the noise term forgotten."""

    def __call__(self, t: int, model: Belief) -> float:  # noqa: ARG002 - the signature of a width
        scale = self.noise_std**2
        return self.norm_bound + sqrt(scale * (2 * log(1 / self.failure_prob) + model.info_gain))


@pytest.mark.parametrize(("noise_var", "noise_std"), [(0.005, 0.5), (0.25, 0.5), (2.0, 0.5)])
def test_the_bound_covers(
    setting: tuple[ct.UserGraph, ct.ArmPool, PoolKernel], noise_var: float, noise_std: float
) -> None:
    assert coverage(setting, noise_var, noise_std, ct.TheoryWidth) >= 1 - FAILURE_PROB


def test_a_mutant_without_the_one_over_lambda_does_not(setting: tuple[ct.UserGraph, ct.ArmPool, PoolKernel]) -> None:
    assert coverage(setting, 0.005, 0.5, WithoutOneOverLambda) < 1 - FAILURE_PROB
