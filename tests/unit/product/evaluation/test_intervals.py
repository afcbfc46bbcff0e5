"""Intervals: the bootstrap, wider where few decisions tell of the error, and where all rewards are the same."""

import numpy as np
import pytest
from scipy.stats import beta, t

from coterie.contracts import Array
from coterie.product.evaluation.estimators import Terms
from coterie.product.evaluation.intervals import Bootstrapped, bootstrap


def mean_of(values: Array, *, n_draws: int = 2000, seed: int = 0, **how: int) -> Bootstrapped:
    terms = Terms(values, np.ones(len(values)), float(len(values)))
    return bootstrap({"": terms}, n_draws=n_draws, seed=seed, **how)[""]


def test_bootstrap_is_that_of_a_loop() -> None:
    rng = np.random.default_rng(5)
    terms = Terms(rng.normal(size=30), rng.random(30), 30.0)
    again = np.random.default_rng([7, 2]).integers(30, size=(20, 30))
    slow = [terms.above[rows].sum() / terms.below[rows].sum() for rows in again]
    np.testing.assert_allclose(bootstrap({"snips": terms}, n_draws=20, seed=7)["snips"].draws, slow)


def test_bootstrap_in_blocks_has_the_spread_of_the_mean() -> None:
    values = np.random.default_rng(6).normal(size=400)
    found = mean_of(values, n_draws=1001, block=1000)
    assert found.draws.std() == pytest.approx(values.std() / 20, rel=0.15)
    low, high = found.interval(0.95, -9.0, 9.0)
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.15)


def test_draws_without_a_number_are_left_out() -> None:
    moved = np.array([-1.0, 1.0] * 500)
    low, high = Bootstrapped(1.0, np.array([np.nan, 0.0, 2.0]), moved, 3.0).interval(0.9, -9.0, 9.0)
    assert (low, high) == pytest.approx((0.1, 1.9), abs=0.01)
    assert all(np.isnan(Bootstrapped(1.0, np.array([np.nan]), moved, 3.0).interval(0.9, 0.0, 1.0)))
    assert all(np.isnan(Bootstrapped(np.nan, np.array([1.0]), moved, 3.0).interval(0.9, 0.0, 1.0)))


def test_how_many_decisions_tell_of_the_error() -> None:
    assert mean_of(np.array([1.0, -1.0] * 50)).dof == pytest.approx(100.0)
    clicks = np.zeros(10_000)
    clicks[:7] = 1.0
    assert mean_of(clicks, n_draws=10).dof == pytest.approx(7.0, rel=0.01)
    assert mean_of(np.random.default_rng(1).normal(size=30_000), n_draws=10).dof == pytest.approx(10_000, rel=0.05)


def test_where_few_tell_of_the_error_the_interval_is_as_much_wider_as_a_t() -> None:
    clicks = np.zeros(10_000)
    clicks[:4] = 1.0
    found = mean_of(clicks)
    low, high = np.quantile(found.draws, [0.025, 0.975]) - found.value
    wider = t.ppf(0.975, found.dof) / 1.959964
    assert wider > 1.4
    ends = np.array(found.interval(0.95, -1.0, 1.0)) - found.value
    np.testing.assert_allclose(ends, [wider * low, wider * high], rtol=1e-5)


def test_an_interval_is_not_widened_beyond_the_rewards() -> None:
    clicks = np.zeros(10_000)
    clicks[:4] = 1.0
    assert mean_of(clicks).interval(0.95, 0.0, 1.0)[0] == 0.0
    assert mean_of(clicks).interval(0.95, 0.0, 1.0)[1] > 4e-4


def test_where_all_rewards_are_the_same_it_is_that_of_clopper_and_pearson() -> None:
    found = mean_of(np.zeros(30))
    assert found.dof == 0.0
    assert found.interval(0.95, 0.0, 1.0) == pytest.approx((0.0, beta.ppf(0.975, 1, 30)))
    assert mean_of(np.ones(30)).interval(0.95, 0.0, 1.0) == pytest.approx((beta.ppf(0.025, 30, 1), 1.0))
    nothing = Bootstrapped(0.0, np.zeros(5), np.zeros(5), 0.0)
    assert nothing.interval(0.95, -2.0, 3.0) == (-2.0, 3.0)


def test_a_lead_is_that_of_the_same_draws() -> None:
    rng = np.random.default_rng(2)
    luck = 5.0 * rng.normal(size=400)
    better, worse = mean_of(luck + 1.0 + 0.1 * rng.normal(size=400)), mean_of(luck)
    gap, low, high = better.gain_over(worse, 0.95, -20.0, 20.0)
    assert gap == pytest.approx(1.0, abs=0.02)
    assert (low, high) == pytest.approx((gap - 0.0098, gap + 0.0098), abs=0.002)
    assert better.gain_over(better, 0.95, -20.0, 20.0) == (0.0, 0.0, 0.0)


def test_a_lead_over_what_does_not_move_is_as_unsure_as_both() -> None:
    mine, still = mean_of(np.random.default_rng(3).normal(size=400)), mean_of(np.zeros(30))
    gap, low, high = mine.gain_over(still, 0.95, -4.0, 4.0)
    ends, theirs = mine.interval(0.95, -4.0, 4.0), still.interval(0.95, -4.0, 4.0)
    assert (gap, low, high) == pytest.approx((mine.value, ends[0] - theirs[1], ends[1] - theirs[0]))


def test_clicks_that_are_rare_are_covered() -> None:
    """Of 60 decisions with 2 clicks expected: the percentile bootstrap alone holds the truth in 86 % of such logs."""
    rng, truth, held, plain = np.random.default_rng(4), 2 / 60, 0, 0
    for seed in range(300):
        found = mean_of((rng.random(60) < truth).astype(float), n_draws=300, seed=seed)
        low, high = found.interval(0.95, 0.0, 1.0)
        held += low <= truth <= high
        low, high = np.quantile(found.draws, [0.025, 0.975])
        plain += low <= truth <= high
    assert plain < 0.9 * 300 < 0.93 * 300 < held
