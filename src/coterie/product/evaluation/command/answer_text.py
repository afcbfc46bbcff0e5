"""The answer as JSON, and progress as lines."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from math import isfinite
from time import monotonic
from typing import Any, TextIO

from coterie.product.evaluation.asked import Asked, Target
from coterie.product.evaluation.comparing import Comparison
from coterie.product.evaluation.report import answer

OFTEN = 5.0  # seconds from one line to the next


class TextLines:
    """Progress as lines: one when something begins, then one every five seconds with the time that is left.

    Examples:
        >>> now = iter([0.0, 6.0])
        >>> tell = TextLines(sys.stdout, clock=lambda: next(now))
        >>> tell("greedy: is asked", 0, 300), tell("greedy: is asked", 100, 300)
        greedy: is asked, 300 decisions
        greedy: is asked, 100 of 300, about 12 s left
        (None, None)
    """

    def __init__(self, out: TextIO | None = None, *, clock: Callable[[], float] = monotonic) -> None:
        self._out, self._clock = out or sys.stderr, clock
        self._what, self._began, self._told = "", 0.0, 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Prints a line if it is time for one."""
        now = self._clock()
        if what != self._what:
            self._what, self._began, self._told = what, now, now
            print(f"{what}, {total} decisions", file=self._out, flush=True)
        elif now - self._told >= OFTEN:
            self._told = now
            left = (now - self._began) * (total / done - 1) if done else 0.0
            print(f"{what}, {done} of {total}, about {left:.0f} s left", file=self._out, flush=True)


def as_json(found: Comparison, *, asked: Asked, targets: list[Target], about: dict[str, Any]) -> str:
    """Returns everything that was found, and what was asked; a number that is not known is null."""
    policies = [
        asdict(each) | {"name": target.name, "options": dict(target.options), "answer": answer(each)}
        for each, target in zip(found.evaluations, targets, strict=True)
    ]
    whole = about | {"asked": asdict(asked), "policies": policies, "by": found.by, "best": found.best}
    whole["gaps"] = [asdict(gap) for gap in found.gaps]
    return json.dumps(_known(whole), indent=1) + "\n"


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _known(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_known(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value
