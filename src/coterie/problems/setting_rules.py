"""Rules for the values of settings: each returns the value in its plain form, or says what is allowed."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from coterie.errors import SettingError, listed, or_similar
from coterie.errors.checks import is_number, is_whole

Rule: TypeAlias = Callable[[str, Any], Any]


def whole(low: int) -> Rule:
    """Returns the rule for a whole number of at least `low`.

    Examples:
        >>> whole(1)("n_users", 20)
        20
    """

    def check(key: str, value: Any) -> int:
        if is_whole(value, low):
            return int(value)
        rule = f"it is a whole number of at least {low}"
        raise SettingError(f"{key} is {value!r}", rule, "Pass such a number", key=key)

    return check


def number(span: str, allowed: Callable[[float], bool]) -> Rule:
    """Returns the rule for a finite number that is allowed; `span` says in words which ones are.

    Examples:
        >>> number("at least 0", lambda x: x >= 0)("noise_std", 1)
        1.0
    """

    def check(key: str, value: Any) -> float:
        if is_number(value) and allowed(float(value)):
            return float(value)
        raise SettingError(f"{key} is {value!r}", f"it is a finite number {span}", "Pass such a number", key=key)

    return check


def choice(names: Sequence[str]) -> Rule:
    """Returns the rule for one of these names.

    Examples:
        >>> choice(["real", "binary"])("rewards", "binary")
        'binary'
    """

    def check(key: str, value: Any) -> str:
        if isinstance(value, str) and value in names:
            return value
        remedy = or_similar(value, names, "Pick one of these")
        raise SettingError(f"{key} is {value!r}", f"it is one of {listed(names, len(names))}", remedy, key=key)

    return check


def flag(key: str, value: Any) -> bool:
    """Returns the value if it is true or false.

    Examples:
        >>> flag("unit_spread", True)
        True
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise SettingError(f"{key} is {value!r}", "it is true or false", "Pass one of these", key=key)


def text(key: str, value: Any) -> str:
    """Returns the value if it is a text.

    Examples:
        >>> text("title", "A study")
        'A study'
    """
    if isinstance(value, str):
        return value
    raise SettingError(f"{key} is {value!r}", "it is a text", "Write it in quotes", key=key)


def positives(key: str, value: Any) -> tuple[float, ...]:
    """Returns a list of numbers > 0.

    Examples:
        >>> positives("width", [1, 2.5])
        (1.0, 2.5)
    """
    if isinstance(value, list | tuple) and value and all(is_number(each) and each > 0 for each in value):
        return tuple(float(each) for each in value)
    raise SettingError(f"{key} is {value!r}", "it is a list of numbers > 0", "Choose, say, [0.5, 1, 2, 4]", key=key)


def check_keys(
    given: Iterable[str],
    known: Iterable[str],
    rule: str,
    *,
    problem: str = "key {!r} is unknown",
    remedy: str = "Use one of these",
) -> None:
    """Raises if one of the given keys is not known; the rule is followed by those that are.

    Examples:
        >>> check_keys(["trails"], ["trials", "seed"], "keys are")
        Traceback (most recent call last):
        coterie.errors.SettingError: key 'trails' is unknown; keys are 'trials', 'seed'. Did you mean 'trials'?
    """
    names = list(known)
    for key in given:
        if key not in names:
            allowed = f"{rule} {listed(names, len(names)) or 'none'}"
            raise SettingError(problem.format(key), allowed, or_similar(key, names, remedy), key=str(key))


AT_LEAST_0 = number("of at least 0", lambda x: x >= 0)
ABOVE_0 = number("above 0", lambda x: x > 0)
FROM_0_TO_1 = number("from 0 to 1", lambda x: 0 <= x <= 1)
FROM_0_BELOW_1 = number("of at least 0 and below 1", lambda x: 0 <= x < 1)
