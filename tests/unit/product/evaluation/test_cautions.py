"""Warnings: each appears where it should and not on a good log; the report's words."""

import re

import numpy as np
import pytest

from coterie.product.evaluation import Evaluation, Logged, Sample, estimate
from coterie.product.evaluation.cautions import cautions, drifts
from coterie.product.evaluation.report import answer


def uniform(n: int = 1000, seed: int = 0, p: float = 0.5, rise: float = 0.0) -> Logged:
    rng = np.random.default_rng(seed)
    arms = (rng.random(n) >= p).astype(int)
    propensities, rewards = np.where(arms == 0, p, 1 - p), rng.normal(size=n) + arms + rise * np.arange(n) / n
    return Logged.of([0] * n, [[0, 1]] * n, arms.tolist(), rewards.tolist(), propensities.tolist())


def sample(log: Logged, share: float) -> Sample:
    """Returns a target that chooses arm 1 with this probability, and a model that knows it pays 1 more."""
    n = len(log)
    return Sample(log, np.tile([1 - share, share], n), np.tile([0.0, 1.0], n))


def words(of: Sample) -> str:
    return " ".join(cautions(of))


def judged(of: Sample) -> Evaluation:
    return estimate(of, ["replay", "ips", "snips", "dm", "dr"], policy="mine", n_fitted=7, model="a table")


def test_a_good_log_gives_no_warning() -> None:
    log = uniform()
    assert words(sample(log, 0.7)) == ""
    assert list(drifts(log)) == []
    assert judged(sample(log, 0.7)).warnings == ()


def test_no_overlap_is_told_by_the_weights() -> None:
    log = Logged.of([0] * 300, [[0, 1]] * 300, [0] * 300, [1.0] * 300, [1.0] * 300)
    found = words(sample(log, 0.4))
    assert "No overlap: about 40.0% of what the target would choose, the log never chose" in found
    assert "the target gives no probability to anything the log chose" in words(sample(log, 1.0))


def test_no_overlap_is_told_by_the_propensities_of_all() -> None:
    chances = [[1.0, 0.0]] * 3 + [[0.5, 0.5]] * 297
    log = Logged.of([0] * 300, [[0, 1]] * 300, [0] * 300, [1.0] * 300, [1.0] * 3 + [0.5] * 297, chances=chances)
    assert "about 0.5% of what the target would choose, the logger gave no probability to" in words(sample(log, 0.5))


def test_propensities_that_are_too_small_are_noticed() -> None:
    log = uniform()
    halved = Logged.of([0] * 1000, [[0, 1]] * 1000, log.arms.tolist(), log.rewards.tolist(), [0.25] * 1000)
    assert "The weights average 2" in words(sample(halved, 0.5))


def test_tiny_propensities_and_a_dominating_decision_are_counted() -> None:
    arms, propensities = [0] * 399 + [1], [0.9995] * 399 + [0.0005]
    log = Logged.of([0] * 400, [[0, 1]] * 400, arms, [1.0] * 400, propensities)
    found = words(sample(log, 0.5))
    assert "1 of 400 decisions have a propensity below 0.001, the smallest 0.0005" in found
    assert "A single decision carries 83% of all weight" in found
    assert re.search(r"The weights are as good as 1 decision, fewer than 100", found)


def test_an_error_known_from_few_decisions_is_told() -> None:
    arms, rewards = [0] * 990 + [1] * 10, [0.0] * 500 + [1.0] + [0.0] * 498 + [1.0]
    log = Logged.of([0] * 1000, [[0, 1]] * 1000, arms, rewards, [0.99] * 990 + [0.01] * 10)
    found = judged(sample(log, 0.3))
    assert any("What is known of the error of dr rests on some" in each for each in found.warnings)
    ips = estimate(Sample(log, sample(log, 0.3).target), ["ips"])
    assert any("What is known of the error of ips rests on some 1 decision:" in each for each in ips.warnings)


def test_an_estimate_beyond_all_rewards_is_told() -> None:
    log = Logged.of([0] * 400, [[0, 1]] * 400, [0, 1] * 200, [0.0, 1.0] * 200, [0.5, 1.0] * 200)
    found = estimate(Sample(log, np.tile([1.0, 0.0], 400), np.tile([0.2, 0.0], 400)), ["dr"])
    assert found.warnings == ()
    found = estimate(Sample(log, np.tile([1.0, 0.0], 400), np.tile([0.2, 0.0, -0.2, 0.0], 200)), ["dr"])
    assert any("dr says -0.2, and the rewards of the log lie between 0 and 1" in each for each in found.warnings)


def test_rounding_lies_within_the_rewards() -> None:
    log = Logged.of([0] * 300, [[0]] * 300, [0] * 300, [0.1] * 300, [1.0] * 300)
    assert np.mean([0.1] * 300) != 0.1
    assert estimate(Sample(log, np.ones(300)), ["snips"]).warnings == ()


def test_an_answer_with_warnings_is_a_guarded_one() -> None:
    found = judged(sample(uniform(60), 0.99))
    assert found.warnings
    assert "it seems that it would have earned more than the log" in answer(found)
    assert answer(found).endswith("but see the warnings.")


def test_a_log_whose_rewards_rise_drifts() -> None:
    assert "the mean reward is" in " ".join(drifts(uniform(rise=3.0)))


def test_a_log_whose_propensities_change_drifts_but_not_one_whose_candidates_do() -> None:
    rng = np.random.default_rng(1)
    sizes = [2] * 200 + [5] * 200
    rewards, arms = rng.normal(size=400).tolist(), [0] * 400
    even = Logged.of([0] * 400, [list(range(k)) for k in sizes], arms, rewards, [1 / k for k in sizes])
    assert list(drifts(even)) == []
    bolder = Logged.of([0] * 400, [[0, 1]] * 400, arms, rewards, [0.5] * 200 + [0.9] * 200)
    assert "the mean log of propensity times candidates is 0 in its first half" in " ".join(drifts(bolder))


def test_drift_is_that_of_the_clock() -> None:
    log = uniform(rise=3.0)
    order = np.random.default_rng(2).permutation(1000)
    without = log.take(order)
    timed = Logged.of(
        [0] * 1000,
        [[0, 1]] * 1000,
        without.arms.tolist(),
        without.rewards.tolist(),
        without.propensities.tolist(),
        times=order.tolist(),
    )
    assert list(drifts(without)) == []
    assert "the mean reward is" in " ".join(drifts(timed))


@pytest.mark.parametrize(("share", "word"), [(0.9, "earned more than"), (0.1, "earned less than"), (0.5, "not clear")])
def test_the_answer_is_a_sentence(share: float, word: str) -> None:
    assert word in answer(judged(sample(uniform(), share)))


def test_the_report_has_a_line_for_each_estimate_and_the_warnings() -> None:
    found = judged(sample(uniform(60), 0.9))
    lines = str(found).splitlines()
    assert lines[0] == "mine, frozen after 7 decisions, on the 60 after them."
    assert "95% interval" in lines[2]
    assert [line.split()[0] for line in lines[3:9]] == ["the", "replay", "ips", "snips", "dm", "dr"]
    assert "Reward model: a table." in str(found)
    assert [line for line in lines if line.startswith("Warning: ")] == [f"Warning: {each}" for each in found.warnings]
    assert found.warnings


def test_where_the_log_says_nothing_the_report_says_so() -> None:
    log = Logged.of([0] * 30, [[0, 1]] * 30, [0] * 30, [1.0] * 30, [1.0] * 30)
    found = judged(sample(log, 1.0))
    assert re.search(r"^replay +unknown", str(found), re.MULTILINE)
    assert answer(found) == "The log does not say what this policy would have earned."
