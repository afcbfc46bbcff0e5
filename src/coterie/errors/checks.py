"""What a value is, for all checks of arguments: a whole number, a number, a reward, and in which range.

True and False are numbers to Python, and a flag where a number belongs is a mistake: here they are none.
"""

from collections.abc import Iterable, Mapping
from math import inf, isfinite
from numbers import Real
from typing import Any

import numpy as np

from coterie.algebra.gaps import gap_of_matrices
from coterie.contracts import LARGEST_REWARD, REWARD_RULE
from coterie.errors import CandidatesError, KernelError, ParameterError, PrecisionError, RewardError, listed

LARGEST_VARIANCE = 1e4 * LARGEST_REWARD**2  # a prior may guess more than there is
LARGEST_RATIO = 1e12


SAME = 1e-6  # the gap between numbers that were saved and those computed again


def is_whole(value: Any, low: float = -inf, high: float = inf) -> bool:
    """Returns whether a value is a whole number from low to high.

    Examples:
        >>> is_whole(np.int64(3), 1), is_whole(3.0), is_whole(True), is_whole(0, 1)
        (True, False, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(low <= value <= high)


def is_number(value: Any) -> bool:
    """Returns whether a value is a finite real number.

    Examples:
        >>> is_number(0.5), is_number(np.float32(2)), is_number(True), is_number(inf), is_number(10**400)
        (True, True, False, False, False)
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def check_whole(name: str, value: Any, *, least: int = 1) -> None:
    """Raises if a value is not a whole number of at least this size.

    Examples:
        >>> check_whole("window", 0)
        Traceback (most recent call last):
        coterie.errors.ParameterError: window is 0; it is a whole number >= 1. Pass one, or leave it out.
    """
    if not is_whole(value, least):
        raise ParameterError(f"{name} is {value!r}", f"it is a whole number >= {least}", "Pass one, or leave it out")


def checked_positive(name: str, value: Any) -> float:
    """Returns the value as a float, or raises if it is not a finite number > 0."""
    if is_number(value) and value > 0:
        return float(value)
    raise ParameterError(f"{name} is {value!r}", "it is a finite number > 0", "Choose 0.1, or leave it out")


def checked_flag(name: str, value: Any) -> bool:
    """Returns the value if it is True or False, and raises otherwise."""
    if isinstance(value, bool):
        return value
    raise ParameterError(f"{name} is {value!r}", "it is True or False", "Choose one, or leave it out")


def checked_reward(reward: Any) -> float:
    """Returns the reward as a float, or raises if it is not a finite number."""
    if type(reward) is float and -LARGEST_REWARD <= reward <= LARGEST_REWARD:
        return reward
    try:
        value = float("nan") if isinstance(reward, str | bytes) else float(reward)
    except (TypeError, ValueError, OverflowError):
        value = float("nan")
    if not abs(value) <= LARGEST_REWARD:
        raise RewardError(f"reward is {reward!r}", REWARD_RULE, "Drop or mend this observation")
    return value


def checked_binary(reward: Any) -> float:
    """Returns the reward as 0.0 or 1.0, or raises if it is neither."""
    value = checked_reward(reward)
    if value not in (0.0, 1.0):
        rule = "a binary reward is 0 or 1, or False or True"
        raise RewardError(f"reward is {reward!r}", rule, 'Pass 0 or 1, or make the bandit with reward="real"')
    return value


def checked_noise_var(noise_var: Any) -> float:
    """Returns the noise variance as a float, or raises if it is not a finite number > 0."""
    if is_number(noise_var) and 0 < noise_var <= LARGEST_VARIANCE:
        return float(noise_var)
    raise ParameterError(
        f"noise_var is {noise_var!r}",
        "it is a finite number > 0 (make_policy also takes a SpectralSchedule)",
        "Choose, say, 0.01",
    )


def check_ratio(max_variance: float, noise_var: float) -> None:
    """Raises if the noise variance would drown in the rounding of the prior variance."""
    if max_variance > LARGEST_RATIO * noise_var:
        raise PrecisionError(
            f"noise_var is {noise_var!r} and the largest prior variance {max_variance:.3g}",
            f"their ratio must not exceed {LARGEST_RATIO:g}: beyond it float64 cannot tell noise from rounding",
            "Raise noise_var or laplacian_ridge, or bring the features or the arm kernel to about 1",
        )


def as_list(what: str, values: Any) -> list[Any]:
    """Returns the values of any iterable but a string, which is one id, and a mapping, half of which would be lost."""
    if type(values) is list:  # by far the most common, and candidates are read at every decision
        return values
    if isinstance(values, Mapping):
        keys = listed(values) or "nothing"
        raise CandidatesError(f"{what} are a mapping, with keys {keys}", "they are a list", "Pass a list of its keys")
    if what == "candidates" and isinstance(values, set | frozenset):
        rule = "their order decides ties, and a set has none"
        raise CandidatesError(f"{what} are a {type(values).__name__}", rule, "Pass a list, such as sorted(...)")
    scalar = isinstance(values, np.ndarray) and values.ndim == 0
    if isinstance(values, str | bytes) or scalar or not isinstance(values, Iterable):
        raise CandidatesError(f"{what} are {values!r}", "they are a list", f"Pass [{values!r}]")
    return list(values)


def check_same(name: str, held: Any, made: Any) -> None:
    """Raises if numbers that were saved are not those that the settings give, up to rounding.

    Examples:
        >>> check_same("noise variance", 0.01, 0.5)
        Traceback (most recent call last):
        coterie.errors.KernelError: the noise variance that was saved is off by 0.98; settings, graph and arms give ...
    """
    found = gap_of_matrices(np.asarray(held, dtype=np.float64), np.asarray(made, dtype=np.float64))
    if not found <= SAME:
        what, rule = f"the {name} that was saved is off by {found:.2g}", "settings, graph and arms give the kernel"
        raise KernelError(what, rule, "Learn the rewards again")
