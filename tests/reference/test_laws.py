"""Laws that tie one model to another: no edges = alone, all ones = pooled, recursion = batch."""

import numpy as np
import pytest
from hypothesis import given

import coterie as ct
from coterie.graphs import make_graph
from coterie.kernels import PoolKernel
from coterie.models import ENGINES, GridModel
from strategies import Case, cases, scaled_gap

ENGINE_NAMES = sorted(ENGINES)


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@given(case=cases(max_history=15))
def test_no_edges_are_independent_learners(engine: str, case: Case) -> None:
    """One model on a graph without edges equals a model for each user alone with prior variance 1/rho."""
    n_users, rho = case.kernel.n_users, 0.5
    user_cov = ct.Green(laplacian_ridge=rho).matrix(make_graph("empty", n_users))
    together = ENGINES[engine](PoolKernel(user_cov, case.kernel.arm_cov), noise_var=case.noise_var)
    alone = [
        ENGINES[engine](PoolKernel(np.array([[1 / rho]]), case.kernel.arm_cov), noise_var=case.noise_var)
        for _ in range(n_users)
    ]
    for user, arm, reward in case.history:
        together.update(user, arm, reward)
        alone[user].update(0, arm, reward)
    for user in range(n_users):
        scale = float(together.prior_std(user).max())
        assert scaled_gap(together.predict(user)[0], alone[user].predict(0)[0], scale) < 1e-7
        assert scaled_gap(together.covariance(user), alone[user].covariance(0), scale**2) < 1e-7
    assert together.info_gain == pytest.approx(sum(model.info_gain for model in alone), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@given(case=cases(max_history=15))
def test_all_ones_are_one_pooled_learner(engine: str, case: Case) -> None:
    n_users = case.kernel.n_users
    together = ENGINES[engine](PoolKernel(np.ones((n_users, n_users)), case.kernel.arm_cov), noise_var=case.noise_var)
    pooled = ENGINES[engine](PoolKernel(np.eye(1), case.kernel.arm_cov), noise_var=case.noise_var)
    for user, arm, reward in case.history:
        together.update(user, arm, reward)
        pooled.update(0, arm, reward)
    for user in range(n_users):
        scale = float(pooled.prior_std(0).max())
        assert scaled_gap(together.predict(user)[0], pooled.predict(0)[0], scale) < 1e-7
        assert scaled_gap(together.covariance(user), pooled.covariance(0), scale**2) < 1e-7


@given(case=cases())
def test_recursion_equals_batch(case: Case) -> None:
    """The paper's recursion, one reward at a time, equals conditioning on everything at once."""
    recursion, batch = (GridModel(case.kernel, noise_var=case.noise_var) for _ in range(2))
    for row in case.history:
        recursion.update(*row)
    batch.update_many(*([row[i] for row in case.history] for i in range(3)))
    for user in range(case.kernel.n_users):
        scale = float(batch.prior_std(user).max())
        assert scaled_gap(recursion.predict(user)[0], batch.predict(user)[0], scale) < 1e-8
        assert scaled_gap(recursion.covariance(user), batch.covariance(user), scale**2) < 1e-8


def test_the_recursion_is_the_papers() -> None:
    """Equation 5 written out, against the blocked engine, across several flushes of its pending columns."""
    rng = np.random.default_rng(3)
    graph = make_graph("erdos-renyi", 5, edge_prob=0.5, seed=0)
    features = rng.normal(size=(4, 2))
    arm_cov = ct.SquaredExponential(1.0).gram(features)
    kernel = PoolKernel(ct.Green(laplacian_ridge=0.1).matrix(graph), arm_cov)
    model = GridModel(kernel, noise_var=0.1, block_size=3)
    q, mu = np.kron(kernel.user_cov, arm_cov), np.zeros(20)
    for _ in range(50):
        user, arm, reward = int(rng.integers(5)), int(rng.integers(4)), float(rng.normal())
        p = user * 4 + arm
        column, scale = q[:, p].copy(), 0.1 + q[p, p]
        mu += column / scale * (reward - mu[p])
        q -= np.outer(column, column) / scale
        model.update(user, arm, reward)
        for each in range(5):
            mean, std = model.predict(each)
            np.testing.assert_allclose(mean, mu[each * 4 : each * 4 + 4], atol=1e-11)
            np.testing.assert_allclose(std**2, q.diagonal()[each * 4 : each * 4 + 4], atol=1e-11)
            np.testing.assert_allclose(
                model.covariance(each), q[each * 4 : each * 4 + 4, each * 4 : each * 4 + 4], atol=1e-11
            )
