"""An exception raised at any line of Coterie's own code, counted from the start."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import coterie as ct
from coterie.errors import NumericalError

SOURCE = str(Path(ct.__file__).parent)


class InterruptedHereError(BaseException):
    """What is raised at a line; nothing of ours catches it by its type."""


# Failures are expected in some places: a fit is given up then, or a rebuild done instead, which rounds otherwise.
INTERRUPTS: tuple[type[BaseException], ...] = (InterruptedHereError, KeyboardInterrupt)
FAILURES: tuple[type[BaseException], ...] = (MemoryError, NumericalError)


class Interruption:
    """Raises at a line of Coterie's own code, counted from the start."""

    def __init__(self, at: int, error: type[BaseException]) -> None:
        self._at, self.error = at, error
        self.n_lines = 0

    def __enter__(self) -> "Interruption":
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line":
            self.n_lines += 1
            if self.n_lines == self._at:
                sys.settrace(None)
                raise self.error("here", "rule", "remedy") if self.error is NumericalError else self.error
        return self._trace
