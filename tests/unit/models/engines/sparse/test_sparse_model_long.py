"""`sparse` after a million rewards: what it keeps is still what a computation from scratch gives."""

import numpy as np
import pytest

import coterie as ct
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models import SparseModel

pytest.importorskip("numba")

N_USERS, N_ARMS, WIDTH, N_REWARDS = 10_000, 1_000, 32, 1_000_000


@pytest.mark.slow
def test_the_kept_residual_is_right_after_a_million_rewards() -> None:
    rng = np.random.default_rng(0)
    graph = ct.make_graph("sbm", N_USERS, n_blocks=100, inside=0.09, across=1e-4, seed=0)
    kernel = GraphKernel(graph, rng.normal(size=(N_ARMS, WIDTH)) / np.sqrt(WIDTH), laplacian_ridge=1.0)
    model = SparseModel(kernel, noise_var=0.1, eps=1.0)
    for _ in range(N_REWARDS):
        model.learn(int(rng.integers(N_USERS)), int(rng.integers(N_ARMS)), float(rng.normal()))
    kept = model._posterior.residual
    fresh = model._posterior.fresh_residual(model._data)
    gap, scale = float(np.abs(fresh - kept).max()), float(np.abs(kept).max())
    assert gap <= 1e-6 * scale
