"""The least probability of every candidate, by uniform exploration mixed in."""

from coterie.errors import ParameterError
from coterie.policies.rules.draws import Draws


def check_least(min_propensity: float, n_candidates: int) -> None:
    """Raises if not all of so many candidates can have this probability."""
    if not 0.0 <= min_propensity <= 1.0 / n_candidates:
        raise ParameterError(
            f"min_propensity is {min_propensity!r} with {n_candidates} candidates",
            f"it lies between 0 and 1/{n_candidates} = {1.0 / n_candidates:.6g}, for the probabilities sum to 1",
            "Name fewer candidates, or make the bandit with a lower one",
        )


def exploration(draws: Draws, number: int, size: int, min_propensity: float) -> tuple[float, int | None]:
    """Returns the share of uniform exploration, and the candidate it takes in this decision, if it takes one.

    The share depends on the number of candidates alone, so that the floor holds whatever the policy would do, and also
    where its propensities are estimates.
    """
    if min_propensity <= 0:
        return 0.0, None
    check_least(min_propensity, size)
    share = min_propensity / (1.0 / size)
    coin, place = draws.explore(number, size)
    return share, place if coin < share else None
