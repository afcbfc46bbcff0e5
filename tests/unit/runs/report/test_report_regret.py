"""The numbers of a report against hand-made cases and what a bootstrap must do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.runs.report.regret import (
    contenders,
    differences,
    final_regrets,
    lead_in,
    microseconds,
    ranks,
    reference,
)
from coterie.runs.report.trial_means import FEWEST, intervals, trial_means
from played import results_of


def test_mean_and_standard_error_are_those_of_the_trials_the_least_first() -> None:
    found = final_regrets(results_of({"w": {"a": [5, 7, 9], "b": [1, 2, 6]}}), "w")
    assert list(found) == ["b", "a"]
    assert found["a"].mean == pytest.approx(7.0)
    assert found["a"].std_err == pytest.approx(2 / np.sqrt(3))
    assert found["a"].n_trials == 3


def test_one_trial_has_no_standard_error_and_no_interval() -> None:
    (found,) = trial_means(np.array([[4.0]]))
    assert (found.mean, found.std_err, found.interval, found.n_trials) == (4.0, None, None, 1)


@pytest.mark.parametrize("n_trials", range(2, FEWEST))
def test_few_trials_have_a_standard_error_but_no_interval(n_trials: int) -> None:
    sample = np.arange(2.0 * n_trials).reshape(2, n_trials) ** 2
    for row, found in zip(sample, trial_means(sample), strict=True):
        assert found.mean == pytest.approx(row.mean())
        assert found.std_err == pytest.approx(np.std(row, ddof=1) / np.sqrt(n_trials))
        assert (found.interval, found.n_trials) == (None, n_trials)


def test_from_five_trials_on_there_is_an_interval_of_each_row() -> None:
    assert FEWEST == 5
    sample = np.random.default_rng(2).random((2, FEWEST))
    np.testing.assert_array_equal([found.interval for found in trial_means(sample)], intervals(sample))


@pytest.mark.parametrize(("n_trials", "least"), [(FEWEST, 0.89), (10, 0.925), (20, 0.925)])
def test_intervals_cover_the_true_mean_nineteen_times_in_twenty(n_trials: int, least: float) -> None:
    # Within what 600 samples can tell; five trials fall short, at 92 %, for no percentile lies outside the sample.
    low, high = intervals(np.random.default_rng(1).normal(size=(600, n_trials))).T
    covered = np.mean((low <= 0.0) & (high >= 0.0))
    assert least < covered < 0.975


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=8))
def test_an_interval_holds_its_mean_and_stays_within_the_sample(sample: list[float]) -> None:
    ((low, high),) = intervals(np.array([sample]))
    slack = 1e-9
    assert low <= np.mean(sample) + slack
    assert high >= np.mean(sample) - slack
    assert low >= min(sample) - slack
    assert high <= max(sample) + slack


def test_differences_are_paired_by_trial() -> None:
    noisy = [100.0, 250.0, 30.0, 900.0, 400.0]
    found = differences(results_of({"w": {"a": noisy, "b": [x + 5 for x in noisy], "c": noisy[::-1]}}), "w", to="a")
    assert found["b"].interval == pytest.approx((5.0, 5.0))
    assert found["c"].interval is not None
    assert found["c"].interval[1] - found["c"].interval[0] > 100.0
    assert found["a"].interval == (0.0, 0.0)


def test_the_same_numbers_give_the_same_interval() -> None:
    sample = np.random.default_rng(0).random((3, 7))
    np.testing.assert_array_equal(intervals(sample), intervals(sample.copy()))


def test_the_reference_is_the_study_s_or_the_best_but_never_the_oracle_by_itself() -> None:
    finals = {"w": {"a": [5, 7], "b": [1, 2], "oracle": [0, 0]}}
    assert reference(results_of(finals), "w") == "b"
    assert reference(results_of(finals, settings={"reference": "a"}), "w") == "a"
    assert reference(results_of(finals, settings={"reference": "absent"}), "w") == "b"
    assert contenders(results_of({"w": {"oracle": [0.0]}}), "w") == ["oracle"]


def test_ranks_of_a_hand_made_case() -> None:
    # trials: a < b < c, a = b < c, b < c < a; in the second world c plays alone against a
    results = results_of({"w": {"a": [1, 1, 9], "b": [2, 1, 2], "c": [3, 3, 3]}, "v": {"a": [4], "c": [2]}})
    found = {rank.policy: rank for rank in ranks([results])}
    means = {policy: rank.mean_rank for policy, rank in found.items()}
    assert means == pytest.approx({"a": (1 + 1.5 + 3 + 2) / 4, "b": (2 + 1.5 + 1) / 3, "c": (3 + 3 + 2 + 1) / 4})
    assert [(found[policy].wins, found[policy].n_trials) for policy in "abc"] == [(2, 4), (2, 3), (1, 4)]
    assert [rank.policy for rank in ranks([results])] == ["b", "a", "c"]


def test_an_oracle_takes_nobody_s_rank() -> None:
    assert [rank.policy for rank in ranks([results_of({"w": {"a": [1], "b": [2], "oracle": [0]}})])] == ["a", "b"]


def test_ranks_of_two_studies_are_those_of_all_their_trials() -> None:
    first, second = results_of({"w": {"a": [1], "b": [2]}}), results_of({"w": {"a": [2, 2, 2], "b": [1, 1, 1]}})
    assert [(rank.policy, rank.mean_rank, rank.wins) for rank in ranks([first, second])] == [
        ("b", 1.25, 3),
        ("a", 1.75, 1),
    ]


def test_the_verdict_is_the_best_its_lead_and_the_next() -> None:
    found = lead_in(
        results_of({"w": {"a": [9] * 5, "b": [1, 2, 1, 2, 1], "c": [4, 6, 5, 5, 4], "oracle": [0] * 5}}), "w"
    )
    assert (found.winner, found.runner_up) == ("b", "c")
    assert found.margin is not None
    assert found.margin.mean == pytest.approx(3.4)
    assert found.margin.interval == pytest.approx(intervals(np.array([[3.0, 4.0, 4.0, 3.0, 3.0]]))[0])


def test_who_plays_alone_leads_nobody() -> None:
    found = lead_in(results_of({"w": {"a": [9, 9], "oracle": [0, 0]}}), "w")
    assert (found.winner, found.runner_up, found.margin) == ("a", None, None)


def test_time_is_the_median_in_microseconds_where_it_was_kept() -> None:
    results = results_of({"w": {"a": [1, 1, 1], "b": [1, 1, 1]}}, seconds={"w": {"a": np.array([1e-6, 9e-6, 4e-6])}})
    assert microseconds(results, "w", "a") == pytest.approx(4.0)
    assert microseconds(results, "w", "b") is None
    assert microseconds(results, "v", "a") is None
