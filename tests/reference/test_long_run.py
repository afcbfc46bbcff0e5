"""After 100,000 updates every engine agrees with the collapsed history in extended precision."""

import numpy as np
import pytest
from numpy.typing import NDArray

import coterie as ct
from coterie.graphs import make_graph
from coterie.kernels import PoolKernel, pool_kernel
from coterie.models import ENGINES, Model

N_USERS, N_ARMS, UPDATES = 8, 8, 100_000
ENGINE_NAMES = sorted(set(ENGINES) - {"dense"})
Long = NDArray[np.longdouble]


def long_cholesky(matrix: Long) -> Long:
    factor = np.zeros_like(matrix)
    for j in range(len(matrix)):
        factor[j, j] = np.sqrt(matrix[j, j] - np.sum(factor[j, :j] ** 2))
        factor[j + 1 :, j] = (matrix[j + 1 :, j] - factor[j + 1 :, :j] @ factor[j, :j]) / factor[j, j]
    return factor


def long_solve(factor: Long, right: Long) -> Long:
    out = right.copy()
    for i in range(len(factor)):
        out[i] = (out[i] - factor[i, :i] @ out[:i]) / factor[i, i]
    return out


def reference(kernel: PoolKernel, noise_var: float, counts: Long, means: Long) -> tuple[Long, Long]:
    """Posterior mean and variance of all pairs from counts and means, in extended precision."""
    joint = np.kron(kernel.user_cov, kernel.arm_cov).astype(np.longdouble)
    seen = np.flatnonzero(counts)
    factor = long_cholesky(joint[np.ix_(seen, seen)] + np.diag(np.longdouble(noise_var) / counts[seen]))
    solved = long_solve(factor, joint[seen])
    mean = solved.T @ long_solve(factor, means[seen])
    return mean, joint.diagonal() - np.sum(solved**2, axis=0)


@pytest.fixture(scope="module")
def kernel() -> PoolKernel:
    graph = make_graph("erdos-renyi", N_USERS, edge_prob=0.4, seed=2)
    pool = ct.ArmPool(np.random.default_rng(0).normal(size=(N_ARMS, 4)))
    return pool_kernel(ct.Green(laplacian_ridge=0.1).matrix(graph), ct.SquaredExponential("median"), pool)


def feed(model: Model, updates: int, noise_std: float, start: int = 0) -> tuple[Long, Long]:
    """Feeds skewed random pairs and returns counts and means of all, summed in extended precision."""
    rng = np.random.default_rng(5)
    pairs = rng.integers(0, N_USERS * N_ARMS, UPDATES)
    pairs[rng.random(UPDATES) < 0.5] %= 5
    truth = rng.normal(size=N_USERS * N_ARMS) * 2
    rewards = truth[pairs] + noise_std * rng.normal(size=UPDATES)
    pairs, rewards = pairs[:updates], rewards[:updates]
    for pair, reward in zip(pairs[start:].tolist(), rewards[start:].tolist(), strict=True):
        model.learn(pair // N_ARMS, pair % N_ARMS, reward)
    counts = np.bincount(pairs, minlength=len(truth)).astype(np.longdouble)
    sums = np.zeros(len(truth), dtype=np.longdouble)
    np.add.at(sums, pairs, rewards.astype(np.longdouble))
    return counts, sums / np.maximum(counts, 1)


@pytest.mark.parametrize("noise_var", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_mean_and_variance_stay_exact(engine: str, noise_var: float, kernel: PoolKernel) -> None:
    """The rewards are up to a thousand times noisier than the model believes, the hardest case for rounding."""
    model = ENGINES[engine](kernel, noise_var=noise_var)
    prior = kernel.pair_variances()
    seen = 0
    for updates in (300, 3_000, 30_000, UPDATES):
        counts, means = feed(model, updates, noise_std=1.0, start=seen)
        seen = updates
        mean, variance = reference(kernel, noise_var, counts, means)
        got_mean = np.concatenate([model.predict(user)[0] for user in range(N_USERS)])
        got_std = np.concatenate([model.predict(user)[1] for user in range(N_USERS)])
        assert float(np.max(np.abs(got_mean - mean) / np.sqrt(prior))) < 1e-8
        assert float(np.max(np.abs(got_std**2 - variance) / prior)) < 1e-8
    assert model.n_observations == UPDATES
    drift = model.check()
    assert not drift.healed
    assert max(drift.mean, drift.variance) < 1e-8


def test_drift_is_measured_and_healed(kernel: PoolKernel) -> None:
    """A belief that was tampered with is found out by `check` and mended by it."""
    model, untouched = (ENGINES["grid"](kernel, noise_var=0.1) for _ in range(2))
    for each in (model, untouched):
        feed(each, 300, noise_std=0.5)
    model._mean += 1e-3  # type: ignore[attr-defined]
    drift = model.check()
    assert drift.healed
    assert 1e-5 < drift.mean < 1e-2
    np.testing.assert_allclose(model.predict(3)[0], untouched.predict(3)[0], atol=1e-12)
    assert not model.check().healed
