"""Theorem 1 of the paper: the penalty is the squared norm of one RKHS, with kernel [L_rho^-1] K_x."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.kernels import pool_kernel
from coterie.models import GridModel
from strategies import Array, arm_kernels, graphs, pools

RIDGES = st.floats(0.05, 3.0)
SEEDS = st.integers(0, 1000)


@given(graph=graphs(), pool=pools(), arm_kernel=arm_kernels(), rho=RIDGES, seed=SEEDS)
def test_penalty_is_graph_roughness_plus_ridge(
    graph: ct.UserGraph, pool: ct.ArmPool, arm_kernel: ct.ArmKernel, rho: float, seed: int
) -> None:
    weights = np.random.default_rng(seed).normal(size=(graph.n_users, len(pool)))
    gram = arm_kernel.resolve(pool.features).gram(pool.features)
    index = graph.index

    def norm(f: Array) -> float:
        """The squared norm of sum_a f_a K_x(., x_a)."""
        return float(f @ gram @ f)

    rough = sum((w * norm(weights[index[u]] - weights[index[v]]) for u, v, w in graph.edges()), 0.0)
    ridge = rho * sum((norm(row) for row in weights), 0.0)
    got = ct.joint_penalty(weights, graph=graph, arms=pool, arm_kernel=arm_kernel, laplacian_ridge=rho)
    assert got == pytest.approx(rough + ridge, rel=1e-9, abs=1e-9)


@given(graph=graphs(), pool=pools(), arm_kernel=arm_kernels(), rho=RIDGES, seed=SEEDS)
def test_penalty_is_the_squared_norm_of_the_joint_rkhs(
    graph: ct.UserGraph, pool: ct.ArmPool, arm_kernel: ct.ArmKernel, rho: float, seed: int
) -> None:
    """f = sum_p b_p K(., p) has norm b'Kb, and its user functions have the coefficients L_rho^-1 B."""
    lifted = np.random.default_rng(seed).normal(size=(graph.n_users, len(pool)))
    kernel = pool_kernel(ct.Green(laplacian_ridge=rho).matrix(graph), arm_kernel, pool)
    joint = np.kron(kernel.user_cov, kernel.arm_cov)
    norm = float(lifted.ravel() @ joint @ lifted.ravel())
    penalty = ct.joint_penalty(
        kernel.user_cov @ lifted, graph=graph, arms=pool, arm_kernel=arm_kernel, laplacian_ridge=rho
    )
    assert penalty == pytest.approx(norm, rel=1e-8, abs=1e-8)


@given(graph=graphs(), pool=pools(), arm_kernel=arm_kernels(), rho=RIDGES, seed=SEEDS)
def test_reproducing_property(
    graph: ct.UserGraph, pool: ct.ArmPool, arm_kernel: ct.ArmKernel, rho: float, seed: int
) -> None:
    """<f, K(., (x, u))> = f(x, u), with <f, g> = sum_ij [L_rho]_ij <f_i, g_j>."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(graph.n_users, len(pool)))
    kernel = pool_kernel(ct.Green(laplacian_ridge=rho).matrix(graph), arm_kernel, pool)
    user, arm = int(rng.integers(graph.n_users)), int(rng.integers(len(pool)))
    section = np.outer(kernel.user_cov[:, user], np.eye(len(pool))[arm])  # K(., (x, u)), user by user
    precision = graph.regularised_laplacian(rho).toarray()
    inner = float(np.sum((precision @ weights) * (section @ kernel.arm_cov)))
    value = float(weights[user] @ kernel.arm_cov[:, arm])
    assert inner == pytest.approx(value, rel=1e-8, abs=1e-8)


@given(graph=graphs(), pool=pools(), rho=RIDGES, seed=SEEDS, noise_var=st.sampled_from([0.01, 0.3, 1.0]))
def test_posterior_mean_minimises_the_regularised_regression(
    graph: ct.UserGraph, pool: ct.ArmPool, rho: float, seed: int, noise_var: float
) -> None:
    """KLRR (equation 3): no change of the coefficients lowers squared error + noise_var * PEN."""
    rng = np.random.default_rng(seed)
    arm_kernel = ct.Matern32(1.0)
    kernel = pool_kernel(ct.Green(laplacian_ridge=rho).matrix(graph), arm_kernel, pool)
    model = GridModel(kernel, noise_var=noise_var)
    history = [(int(rng.integers(graph.n_users)), int(rng.integers(len(pool))), float(rng.normal())) for _ in range(9)]
    for row in history:
        model.update(*row)
    mean = np.array([model.predict(user)[0] for user in range(graph.n_users)])
    weights = np.linalg.solve(kernel.arm_cov, mean.T).T

    def objective(coefficients: Array) -> float:
        values = coefficients @ kernel.arm_cov
        error = sum((values[user, arm] - reward) ** 2 for user, arm, reward in history)
        penalty = ct.joint_penalty(coefficients, graph=graph, arms=pool, arm_kernel=arm_kernel, laplacian_ridge=rho)
        return float(error + noise_var * penalty)

    least = objective(weights)
    for _ in range(5):
        step = rng.normal(size=weights.shape)
        for size in (1e-3, 1e-1, -1e-3, -1e-1):
            assert objective(weights + size * step) > least
