"""A log of decisions: what it holds, its order, and what it refuses."""

from typing import Any

import numpy as np
import pytest

from coterie.errors import CandidatesError, DimensionError, InputError, ParameterError, RewardError
from coterie.product.evaluation import Logged

GOOD: dict[str, Any] = {
    "users": [0, 1, 0],
    "candidates": [[0, 1], [2, 0, 1], [1]],
    "arms": [1, 2, 1],
    "rewards": [1.0, 0.5, -1.0],
    "propensities": [0.5, 0.2, 1.0],
    "times": [3.0, 1.0, 2.0],
    "chances": [[0.5, 0.5], [0.2, 0.3, 0.5], [1.0]],
}


def made(**changes: Any) -> Logged:
    return Logged.of(**(GOOD | changes))


def test_chosen_arms_are_found_among_ragged_candidates() -> None:
    log = made()
    assert log.places.tolist() == [1, 2, 5]
    assert log.candidates[log.places].tolist() == [1, 2, 1]
    assert [log.shown(row).tolist() for row in range(3)] == [[0, 1], [2, 0, 1], [1]]


def test_order_of_time_takes_every_column_along() -> None:
    log = made().in_order()
    assert log.users.tolist() == [1, 0, 0]
    assert log.candidates.tolist() == [2, 0, 1, 1, 0, 1]
    assert log.starts.tolist() == [0, 3, 4, 6]
    assert log.rewards.tolist() == [0.5, -1.0, 1.0]
    assert log.chances is not None
    assert log.chances.tolist() == [0.2, 0.3, 0.5, 1.0, 0.5, 0.5]


def test_decisions_of_the_same_time_stay_in_their_order() -> None:
    assert made(times=[1.0, 0.0, 0.0]).in_order().rewards.tolist() == [0.5, -1.0, 1.0]
    assert made(times=None).in_order().rewards.tolist() == GOOD["rewards"]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"rewards": [1.0, np.nan, 0.0]}, RewardError, "row 1: the reward is nan; a reward is a finite number"),
        ({"rewards": [1.0, 0.0, -1e300]}, RewardError, r"row 2: the reward is -1e\+300; a reward is a finite number"),
        ({"propensities": [0.5, 0.2, 0.0]}, ParameterError, "row 2: the propensity is"),
        (
            {"propensities": [0.5, 1e-21, 1.0]},
            ParameterError,
            "row 1: the propensity is 1e-21; a propensity is a number",
        ),
        ({"propensities": [0.5, 1.2, 1.0]}, ParameterError, "row 1: the propensity is"),
        ({"times": [0.0, 1.0, np.inf]}, ParameterError, "row 2: the time is"),
        ({"arms": [1, 7, 1]}, CandidatesError, r"row 1: arm 7 was chosen among \[2, 0, 1\]"),
        ({"candidates": [[0, 1], [2, 0, 1], [1, 1]], "chances": None}, CandidatesError, "row 2: a candidate is given"),
        ({"candidates": [[0, 1], [], [1]], "chances": None}, CandidatesError, "row 1: there are no candidates"),
        ({"rewards": [1.0]}, DimensionError, "3 users and 1 rewards"),
        ({"times": [1.0]}, DimensionError, "3 users and 1 times"),
        ({"chances": [[0.5, 0.5], [0.2, 0.8], [1.0]]}, DimensionError, "6 candidates"),
        ({"chances": [[0.5, 0.5], [0.2, 0.3, 0.2], [1.0]]}, ParameterError, "row 1: the candidates' probabilities"),
        ({"chances": [[0.3, 0.7], [0.2, 0.3, 0.5], [1.0]]}, ParameterError, "row 0: the candidates' probabilities"),
    ],
)
def test_a_row_that_is_wrong_is_named(changes: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        made(**changes)


def test_an_empty_log_is_refused() -> None:
    with pytest.raises(InputError, match="the log is empty"):
        Logged.of([], [], [], [], [])
