"""Rules for the values of settings: each returns the value in its plain form, or says what is allowed."""

from collections.abc import Callable, Sequence
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


AT_LEAST_0 = number("of at least 0", lambda x: x >= 0)
ABOVE_0 = number("above 0", lambda x: x > 0)
FROM_0_TO_1 = number("from 0 to 1", lambda x: 0 <= x <= 1)
FROM_0_BELOW_1 = number("of at least 0 and below 1", lambda x: 0 <= x < 1)
