"""Progress of long work as lines of text: one when a step starts, then one every few seconds with what is left."""

import sys
from collections.abc import Callable
from math import log
from time import monotonic
from typing import TextIO

OFTEN = 5.0  # seconds from one line to the next


class ProgressLines:
    """Lines on how far the work is.

    Examples:
        >>> now = iter([0.0, 6.0, 7.0])
        >>> lines = ProgressLines(sys.stdout, clock=lambda: next(now))
        >>> for done in (0, 100, 101): lines("reading", done, 300, "rows")
        reading: 300 rows
        reading: 100 of 300 rows, about 12 s left
    """

    def __init__(self, out: TextIO | None = None, *, clock: Callable[[], float] = monotonic) -> None:
        self._out, self._clock = out or sys.stderr, clock
        self._what, self._started, self._last = "", 0.0, 0.0

    def __call__(self, what: str, done: int, total: int, unit: str, note: str = "") -> None:
        """Prints a line if it is time for one."""
        share = done / total if total else 0.0
        self.tell(what, f"{total:,} {unit}", f"{done:,} of {total:,} {unit}{note}", share)

    def tell(self, what: str, first: str, later: str, share: float) -> None:
        """Prints the first line of a step, or a later one if it is time; `share` of the step is done."""
        now = self._clock()
        if what != self._what:
            self._what, self._started, self._last = what, now, now
            self._print(f"{what}: {first}" if first else what)
        elif now - self._last >= OFTEN:
            self._last = now
            left = f", about {(now - self._started) * (1 / share - 1):.0f} s left" if share > 0 else ""
            self._print(f"{what}: {later}{left}")

    def _print(self, line: str) -> None:
        print(line, file=self._out, flush=True)


class SolveLines:
    """Lines on the steps of a solve, whose residual falls about evenly on the scale of logarithms.

    Args:
        lines: Where they go.
    """

    def __init__(self, lines: ProgressLines) -> None:
        self._lines, self._first = lines, 0.0

    def __call__(self, step: int, level: float) -> None:
        """Tells of a step: `level` is how many times as large as its limit the residual is."""
        self._first = max(self._first, level)
        share = 1 - log(level) / log(self._first) if self._first > 1 and level > 1 else 0.0
        first = f"residual {level:.3g} times its limit"
        self._lines.tell("solving for all users", first, f"step {step}, residual {level:.3g} times its limit", share)
