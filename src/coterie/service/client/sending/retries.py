"""When to try again, and how long to wait before."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from coterie.errors import ParameterError
from coterie.errors.checks import check_whole, is_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often a call is tried, and how long the waits between are: each twice as long, up to a limit.

    Args:
        attempts: How often a call is tried in all; 1 for never again.
        first_wait: Seconds before the second time, at most.
        longest_wait: Seconds before any time, at most; a service that asks for more than that is not tried again.
        draw: Gives numbers from 0 to 1: a wait is drawn between half of its length and all of it, so that clients that
            failed together do not come back together.

    Examples:
        >>> each = Retries(attempts=4, longest_wait=3.0, draw=lambda: 1.0)
        >>> [each.wait(tried) for tried in (1, 2, 3, 4)]
        [0.1, 0.2, 0.4, None]
        >>> each.wait(1, retry_after="2"), each.wait(1, retry_after="60")
        (2.0, None)
    """

    attempts: int = 8
    first_wait: float = 0.1
    longest_wait: float = 5.0
    draw: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        check_whole("attempts", self.attempts)
        for name, value in (("first_wait", self.first_wait), ("longest_wait", self.longest_wait)):
            if not is_number(value) or value < 0:
                raise ParameterError(f"{name} is {value!r}", "it is a number of seconds >= 0", "Pass one")

    def wait(self, tried: int, retry_after: str | None = None) -> float | None:
        """Returns how long to wait after so many tries; None if it is not to be tried again."""
        asked = _seconds(retry_after)
        if tried >= self.attempts or asked > self.longest_wait:
            return None
        most = min(self.longest_wait, self.first_wait * 2.0 ** (tried - 1))
        return max(asked, most * (1 + self.draw()) / 2)


def _seconds(retry_after: str | None) -> float:
    """Returns the seconds of a header Retry-After, which names them or a date; 0 if there is none.

    Examples:
        >>> _seconds("1.5"), _seconds(None), _seconds("soon"), _seconds("Wed, 21 Oct 2015 07:28:00 GMT")
        (1.5, 0.0, 0.0, 0.0)
    """
    if retry_after is None:
        return 0.0
    try:
        seconds = float(retry_after)
    except ValueError:
        seconds = _until(retry_after)
    return seconds if seconds > 0 else 0.0


def _until(date: str) -> float:
    """Returns the seconds until a date; 0 if it is none."""
    try:
        return (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):  # one without a zone cannot be compared
        return 0.0
