"""Estimators: ten rows by hand, limits, simulated truth, and obp's figures where obp is installed."""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from coterie.contracts import Array
from coterie.errors import DimensionError, ParameterError
from coterie.product.evaluation import ESTIMATORS, Logged, Sample
from coterie.product.evaluation.estimators import effective_size
from coterie.product.evaluation.intervals import value_of

ARMS = [0, 1, 0, 1, 0, 1, 0, 1, 0, 0]
REWARDS = [1.0, 0.0, 2.0, 1.0, 0.0, 3.0, 1.0, 1.0, 0.0, 1.0]
PROPENSITIES = [0.5, 0.5, 0.8, 0.2, 0.8, 0.2, 0.5, 0.5, 0.8, 0.8]
TARGET = [0.25, 0.75]  # of arms 0 and 1, in all decisions
PREDICTED = [0.8, 1.6]


def by_hand() -> Sample:
    chances = [[p, 1 - p] if arm == 0 else [1 - p, p] for arm, p in zip(ARMS, PROPENSITIES, strict=True)]
    log = Logged.of([0] * 10, [[0, 1]] * 10, ARMS, REWARDS, PROPENSITIES, chances=chances)
    return Sample(log, np.tile(TARGET, 10), np.tile(PREDICTED, 10))


def value(name: str, sample: Sample, threshold: float | None = 2.0, seed: int = 0) -> float:
    return value_of(ESTIMATORS[name](replace(sample, threshold=threshold, seed=seed)))


def shares(rng: np.random.Generator, starts: Any) -> Any:
    """Returns probabilities over the candidates of each decision."""
    drawn = rng.exponential(size=starts[-1])
    return drawn / np.repeat(np.add.reduceat(drawn, starts[:-1]), np.diff(starts))


def simulated(rng: np.random.Generator, n: int = 400, *, logger_is_target: bool = False) -> tuple[Sample, float]:
    """Returns a log of two to four candidates with a wrong reward model, and the target's true value."""
    sizes = rng.integers(2, 5, size=n)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    truth, target = rng.normal(size=starts[-1]), shares(rng, starts)
    chances = target if logger_is_target else 0.5 * shares(rng, starts) + 0.5 / np.repeat(sizes, sizes)
    ends = np.cumsum(chances)
    places = np.minimum(np.searchsorted(ends, np.arange(n) + rng.random(n)), starts[1:] - 1)
    candidates = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    log = Logged(
        users=np.zeros(n, dtype=np.intp),
        starts=starts,
        candidates=candidates,
        arms=candidates[places],
        rewards=truth[places] + rng.normal(size=n),
        propensities=chances[places],
        chances=chances,
    )
    return Sample(log, target, 0.5 * truth + 0.3), float(np.add.reduceat(target * truth, starts[:-1]).mean())


def test_ten_rows_by_hand() -> None:
    weights = [0.5, 1.5, 0.3125, 3.75, 0.3125, 3.75, 0.5, 1.5, 0.3125, 0.3125]
    np.testing.assert_allclose(by_hand().weights, weights)
    weighted = 0.5 + 0.0 + 0.625 + 3.75 + 0.0 + 11.25 + 0.5 + 1.5 + 0.0 + 0.3125
    surprise = 0.1 - 2.4 + 0.375 - 2.25 - 0.25 + 5.25 + 0.1 - 0.9 - 0.25 + 0.0625
    small = surprise + 2.25 - 5.25  # the weights of 3.75 are switched off
    assert value("ips", by_hand()) == pytest.approx(weighted / 10)
    assert value("snips", by_hand()) == pytest.approx(weighted / sum(weights))
    assert value("dm", by_hand()) == pytest.approx(0.25 * 0.8 + 0.75 * 1.6)
    assert value("dr", by_hand()) == pytest.approx(1.4 + surprise / 10)
    assert value("switch", by_hand()) == pytest.approx(1.4 + small / 10)
    # Arm 1 has the weight 0.75 / 0.2 = 3.75 in the six decisions in which the logger preferred arm 0.
    assert value("switch-ips", by_hand()) == pytest.approx((weighted - 15.0 + 6 * 0.75 * 1.6) / 10)


def test_switch_lies_between_the_model_and_the_weights() -> None:
    sample, _ = simulated(np.random.default_rng(1))
    assert value("switch-ips", sample, inf) == pytest.approx(value("ips", sample))
    assert value("switch-ips", sample, 0.0) == pytest.approx(value("dm", sample))
    assert value("switch", sample, inf) == pytest.approx(value("dr", sample))
    assert value("switch", sample, 0.0) == pytest.approx(value("dm", sample))


def test_switch_ips_believes_the_model_where_the_logger_never_chose() -> None:
    log = Logged.of([0, 0], [[0, 1]] * 2, [0, 0], [1.0, 3.0], [1.0, 1.0], chances=[[1.0, 0.0]] * 2)
    sample = Sample(log, np.array([0.5, 0.5] * 2), np.array([0.0, 8.0] * 2))
    assert value("switch-ips", sample, 10.0) == pytest.approx(0.5 * 2.0 + 0.5 * 8.0)


def test_replay_is_the_mean_reward_when_the_logger_is_the_target() -> None:
    sample, _ = simulated(np.random.default_rng(2), logger_is_target=True)
    terms = ESTIMATORS["replay"](sample)
    assert terms.effective == len(sample.log)
    assert value_of(terms) == pytest.approx(sample.log.rewards.mean())


def test_replay_of_a_uniform_log_is_the_decisions_agreed_on() -> None:
    rng = np.random.default_rng(3)
    arms, rewards = rng.integers(3, size=90), rng.normal(size=90)
    log = Logged.of([0] * 90, [[0, 1, 2]] * 90, arms.tolist(), rewards.tolist(), [1 / 3] * 90)
    terms = ESTIMATORS["replay"](Sample(log, np.tile([0.0, 1.0, 0.0], 90)))
    assert terms.effective == (arms == 1).sum()
    assert value_of(terms) == pytest.approx(rewards[arms == 1].mean())


def errors(name: str, n_logs: int, n: int) -> Array:
    rng = np.random.default_rng(4)
    drawn = (simulated(rng, n) for _ in range(n_logs))
    return np.array([value(name, sample, None, i) - truth for i, (sample, truth) in enumerate(drawn)])


@pytest.mark.parametrize("name", ["ips", "dr", "snips", "replay"])
def test_there_is_no_bias_beyond_four_standard_errors(name: str) -> None:
    found = errors(name, 200, 200)
    assert abs(found.mean()) < 4 * found.std(ddof=1) / np.sqrt(len(found))


def test_a_wrong_model_has_a_bias_that_doubly_robust_mends() -> None:
    assert abs(errors("dm", 30, 200).mean()) > 5 * abs(errors("dr", 30, 200).mean())


def test_snips_comes_closer_with_more_decisions() -> None:
    assert errors("snips", 10, 6400).std() < 0.5 * errors("snips", 40, 100).std()


def test_a_weight_common_to_all_leaves_snips_as_it_is() -> None:
    sample = by_hand()
    log = Logged.of([0] * 10, [[0, 1]] * 10, ARMS, REWARDS, [p / 2 for p in PROPENSITIES])
    assert value("snips", Sample(log, sample.target)) == pytest.approx(value("snips", sample))


def test_what_an_estimator_lacks_is_named() -> None:
    log = Logged.of([0], [[0, 1]], [0], [1.0], [0.5])
    with pytest.raises(ParameterError, match="no reward model"):
        value("dr", Sample(log, np.array([1.0, 0.0])))
    with pytest.raises(ParameterError, match="no `chances`"):
        value("switch-ips", Sample(log, np.array([1.0, 0.0]), np.zeros(2)))
    with pytest.raises(DimensionError, match="2 candidates"):
        Sample(log, np.array([1.0]))


def test_nothing_in_common_gives_no_number_and_no_effective_decision() -> None:
    log = Logged.of([0, 0], [[0, 1]] * 2, [0, 0], [1.0, 1.0], [0.5, 0.5])
    sample = Sample(log, np.array([0.0, 1.0] * 2))
    for name in ("snips", "replay"):
        assert np.isnan(value(name, sample))
    assert effective_size(sample.weights) == 0.0


def test_effective_size_bears_huge_weights() -> None:
    assert effective_size(np.array([1e200, 1e200, 0.0])) == pytest.approx(2.0)
