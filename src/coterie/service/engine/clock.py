"""The time of events: it never goes back, and no jump of the computer's clock makes decisions expire."""

import time
from collections.abc import Callable


class ServiceClock:
    """Seconds since 1970 by the computer's clock at the start, and from then on by one that only goes forward.

    Args:
        wall: The computer's clock, asked once.
        steady: One that nobody sets.

    Examples:
        >>> ticks = iter([5.0, 7.5])
        >>> clock = ServiceClock(wall=lambda: 1000.0, steady=lambda: next(ticks))
        >>> clock()
        1002.5
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady, self._offset = steady, wall() - steady()

    def __call__(self) -> float:
        """Returns the time."""
        return self._offset + self._steady()

    def not_before(self, at: float) -> None:
        """Goes on from the time of the last event, if the computer's clock is behind it."""
        self._offset += max(at - self(), 0.0)
