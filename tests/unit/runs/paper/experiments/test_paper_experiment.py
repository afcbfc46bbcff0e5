"""What the records of the theory are made of."""

import json

import numpy as np
import pytest

from coterie.runs.paper.experiments.experiment import finding, mean_and_error, plain, slope_and_error


def test_plain_is_json_of_six_digits() -> None:
    value = {"a": np.float64(1 / 3), 2: (np.int64(3), [np.array([2.0 / 3e5])]), "t": True, "s": "x", "none": None}
    told = plain(value)
    assert json.loads(json.dumps(told)) == told
    assert told == {"a": 0.333333, "2": [3, [[6.66667e-06]]], "t": True, "s": "x", "none": None}


def test_a_power_law_has_its_slope_without_error() -> None:
    rows = np.tile([2.0, 4.0, 8.0], (5, 1))
    steep, error = slope_and_error([1, 4, 16], rows)
    assert steep == pytest.approx(0.5)
    assert error == pytest.approx(0.0, abs=1e-12)


def test_the_error_of_a_slope_is_that_of_its_noise() -> None:
    rng = np.random.default_rng(1)
    x = np.array([10.0, 20.0, 40.0, 80.0])
    draws = [slope_and_error(x.tolist(), x * np.exp(0.1 * rng.standard_normal((30, 4)))) for _ in range(40)]
    spread = float(np.std([steep for steep, _ in draws], ddof=1))
    assert np.mean([error for _, error in draws]) == pytest.approx(spread, rel=0.35)


def test_the_error_of_one_repeat_is_zero() -> None:
    assert mean_and_error(np.array([2.0])) == (2.0, 0.0)
    assert mean_and_error(np.array([1.0, 3.0])) == pytest.approx((2.0, 1.0))


def test_a_finding_without_a_claim_of_the_paper_has_no_verdict() -> None:
    assert finding("seen", None, "42") == {"claim": "seen", "evidence": "42"}
    assert finding("claim", "holds", "42")["verdict"] == "holds"
