"""When the graph pays off: simulated rounds, and the first from which it stays ahead."""

import numpy as np
import pytest

from coterie.kernels import PoolKernel
from coterie.runs.diagnosis.payoff import Payoff, exchangeable, simulate


def played(gaps: list[list[float]]) -> Payoff:
    without = np.zeros(np.shape(gaps))
    return Payoff(n_users=2, n_arms=3, n_candidates=2, with_graph=np.array(gaps), without=without)


def test_it_pays_from_the_first_round_that_it_stays_ahead_by_two_standard_errors() -> None:
    low, high = [1.0, -1.0, 1.0, 2.0, 4.0], [1.2, 3.0, 3.0, 2.4, 4.2]
    found = played([low, high])
    gap = np.array([low, high])
    assert found.ahead == pytest.approx(gap.mean(axis=0))
    assert found.std_err == pytest.approx(abs(gap[0] - gap[1]) / 2)
    assert found.pays_from == 4  # ahead in round 1 too, but not in 2 and 3
    assert played([[1.0, 1.0], [1.1, 1.1]]).pays_from == 1
    assert played([[1.0, -1.0], [1.1, 1.1]]).pays_from is None


def test_one_of_five_twins_is_worth_knowing_and_a_stranger_is_not() -> None:
    twins = np.kron(np.eye(4), np.ones((5, 5))).astype(np.float64)
    arms = np.eye(30)
    settings = {"rounds": 150, "n_candidates": 8, "n_truths": 10, "seed": 0}
    found = simulate(PoolKernel(twins, arms), 0.01, **settings)
    assert found.pays_from is not None
    assert (found.n_users, found.n_arms, found.rounds, found.n_truths) == (20, 30, 150, 10)
    strangers = simulate(PoolKernel(np.eye(20), arms), 0.01, **settings)
    assert (strangers.with_graph == strangers.without).all()
    assert strangers.pays_from is None


def test_drawn_rewards_may_exceed_the_largest_that_a_log_may_hold() -> None:
    settings = {"rounds": 30, "n_candidates": 4, "n_truths": 2, "seed": 0}
    plain, large = (simulate(PoolKernel(size * np.eye(4), np.eye(6)), 0.01 * size, **settings) for size in (1.0, 1e100))
    assert np.abs(large.with_graph).max() > 1e50
    np.testing.assert_allclose(large.with_graph / 1e50, plain.with_graph)


def test_exchangeable_keeps_variances_and_stays_a_covariance() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 3)) + 2.0
    root[0] *= 0.05  # hardly varies, and cannot share more than that
    out = exchangeable(root @ root.T)
    assert out.diagonal() == pytest.approx((root**2).sum(axis=1))
    assert np.linalg.eigvalsh(out).min() > -1e-12
