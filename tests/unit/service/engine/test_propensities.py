"""The logged propensity is the probability with which an arm is chosen: counted, over decisions of a frozen model."""

import numpy as np
import pytest
from scipy.stats import chi2

from coterie.service.records import DecisionRequest
from service_engines import ARMS, Kept, experiment


def played(n: int, policy: str, floor: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns how often each arm was chosen, the logged probabilities of each decision, and the floor's share."""
    kept = Kept()
    kept.engine.create(experiment(policy=policy, exploration_floor=floor, max_pending=10))
    for step in range(24):
        kept.reward(kept.decide("ana", candidates=[ARMS[step % 3]]), (0.6, 0.1, 0.4)[step % 3] + (step % 2 - 0.5))
    kept.take_fit()
    counts, logged = np.zeros(3), []
    for _ in range(n):
        answer, _ = kept.engine.decide("news", DecisionRequest(user="ana", probabilities=True))
        assert isinstance(answer.probabilities, dict)
        logged.append(list(answer.probabilities.values()))
        counts[list(answer.probabilities).index(answer.arm)] += 1
        assert answer.propensity == answer.probabilities[answer.arm]
        kept.engine.state.take_batch()
    return counts, np.array(logged), 3 * floor


def p_value(counts: np.ndarray, chances: np.ndarray) -> float:
    """Returns how likely counts this far from what was to be expected are."""
    expected = chances.sum(axis=0)
    assert expected.min() > 5
    return float(chi2.sf((((counts - expected) ** 2) / expected).sum(), len(counts) - 1))


def without_exploration(chances: np.ndarray, share: float) -> np.ndarray:
    """Returns what would be logged if nobody thought of the exploration that is mixed in."""
    return np.maximum((chances - share / 3) / (1 - share), 0.01)


def check(n: int, policy: str, floor: float) -> None:
    counts, chances, share = played(n, policy, floor)
    assert chances.sum(axis=1) == pytest.approx(1.0)
    assert p_value(counts, chances) > 1e-3
    wrong = without_exploration(chances, share) if floor else chances[:, [1, 2, 0]]
    assert p_value(counts, wrong) < 1e-6


def test_the_logged_propensity_is_the_share_of_choices() -> None:
    check(1_000, "auto-ts", 0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "floor"), [("auto-ts", 0.0), ("auto-ts", 0.05), ("auto-ucb", 0.05)])
def test_the_logged_propensity_is_the_share_of_choices_in_the_long_run(policy: str, floor: float) -> None:
    check(100_000, policy, floor)
