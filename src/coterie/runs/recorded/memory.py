"""The most memory that this process held during a piece of work."""

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@contextmanager
def peak_memory() -> Iterator[Callable[[], int]]:
    """Gives a function that returns the bytes held at most since this began, or since the process began.

    Linux forgets the peak when asked to; elsewhere it is that of the whole process so far.

    Examples:
        >>> with peak_memory() as peak:
        ...     peak() > 1_000_000
        True
    """
    with suppress(OSError):
        _RESET.write_text("5")
    yield _peak


def _peak() -> int:
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
