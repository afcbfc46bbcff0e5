"""The checks of what a Bandit is made with."""

from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.errors import DimensionError, DuplicateIdError, ParameterError, RewardError, listed
from coterie.errors.checks import check_whole, is_number
from coterie.product.learned import Memory

PENDING = ("ignore", "hallucinate")
REWARDS = ("real", "binary")
LONGEST_WAIT = 1e12  # seconds, some 30,000 years: a difference of times keeps a millisecond


def check_choices(*, pending: Any, reward: Any, likelihood: Any, min_propensity: Any) -> None:
    """Raises if one of these is no choice there is, or if they do not go together."""
    if not (isinstance(min_propensity, int | float) and 0 <= min_propensity <= 0.5):
        rule = "it is a probability of at most 1/2, for no choice between two leaves each more"
        raise ParameterError(f"min_propensity is {min_propensity!r}", rule, "Choose, say, 0.01, or 0 for none")
    if pending not in PENDING:
        raise ParameterError(f"pending is {pending!r}", f"it is one of {listed(PENDING)}", "Choose one of these")
    if reward not in REWARDS:
        raise ParameterError(f"reward is {reward!r}", f"it is one of {listed(REWARDS)}", "Choose one of these")
    if likelihood == "bernoulli" and reward != "binary":
        raise ParameterError(
            f"likelihood is 'bernoulli' and reward {reward!r}", "it is for rewards of 0 and 1", 'Pass reward="binary"'
        )
    if likelihood == "bernoulli" and pending != "ignore":
        raise ParameterError(
            f"likelihood is 'bernoulli' and pending {pending!r}",
            "how much a reward to come will tell depends on what it is",
            'Use pending="ignore", or likelihood="gaussian"',
        )


def checked_memory(forgetting: Any, window: Any) -> Memory:
    """Returns how much older rewards count."""
    if not (isinstance(forgetting, int | float) and 0 < forgetting <= 1):
        raise ParameterError(f"forgetting is {forgetting!r}", "it lies above 0 and is at most 1", "Choose, say, 0.999")
    if window is not None:
        check_whole("window", window)
    return Memory(forgetting=float(forgetting), window=None if window is None else int(window))


def checked_expiry(seconds: Any) -> float | None:
    """Returns after how many seconds a decision is forgotten, if ever."""
    plain: float | None = seconds.item() if isinstance(seconds, np.generic) else seconds
    if plain is None or (is_number(plain) and 0 < plain <= LONGEST_WAIT):
        return plain
    raise ParameterError(
        f"expire_after is {seconds!r}",
        f"it is a number of seconds above 0 and up to {LONGEST_WAIT:g}, or None",
        "Choose, say, 86400, or None for never",
    )


def check_equally_many(**columns: list[Any]) -> None:
    """Raises if lists that belong together are not of the same length.

    Examples:
        >>> check_equally_many(users=["ana"], rewards=[1.0, 0.0])
        Traceback (most recent call last):
        coterie.errors.DimensionError: there are 1 users, 2 rewards; there is one of each. Pass lists of the same ...
    """
    if len({len(column) for column in columns.values()}) > 1:
        counted = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
        raise DimensionError(f"there are {counted}", "there is one of each", "Pass lists of the same length")


def check_distinct(what: str, values: list[Any]) -> None:
    """Raises if a value is given twice.

    Examples:
        >>> check_distinct("decisions", [3, 3])
        Traceback (most recent call last):
        coterie.errors.DuplicateIdError: 3 is among the decisions twice; each is given once. Drop one.
    """
    if len(set(values)) < len(values):
        twice = next(each for i, each in enumerate(values) if each in values[:i])
        raise DuplicateIdError(f"{twice!r} is among the {what} twice", "each is given once", "Drop one")


def check_all_binary(rewards: Array, before: int) -> None:
    """Raises if one of these rewards, so many rows into a table, is neither 0 nor 1."""
    odd = np.flatnonzero((rewards != 0) & (rewards != 1))
    if odd.size:
        what, rule = f"row {before + odd[0]}: the reward is {float(rewards[odd[0]])!r}", "a binary reward is 0 or 1"
        raise RewardError(what, rule, 'Mend that row, or make the bandit with reward="real"; nothing was learned')


def nothing_to_check(rewards: Array, before: int) -> None:
    """Takes any rewards."""
