"""Long computations in threads that give way: they rest in between, so that others find the interpreter free.

A thread that computes takes the interpreter whenever a decision gives it up, at each call of BLAS and each system call,
and keeps it until it is asked to let go. Threads of CPython have no priorities. So what takes long asks now and then
whether it should `rest`: a matter of a tenth of a microsecond, unless it is in a thread that gives way.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, sleep

WORKS, RESTS = 0.0005, 0.005  # seconds


class _Way(threading.local):
    """What the thread that looks at it is doing.

    Attributes:
        began: When it began to work; none in a thread that does not give way.
        is_urgent: Whether somebody waits for it.
    """

    began: float | None = None
    is_urgent: Callable[[], bool]


_mine = _Way()


@contextmanager
def giving_way(is_urgent: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Lets this thread rest for most of the time, while it is in the context.

    It must hold no lock there that a decision may wait for.

    Args:
        is_urgent: Whether somebody waits for it: then it does not rest.
    """
    _mine.began, _mine.is_urgent = perf_counter(), is_urgent
    try:
        yield
    finally:
        _mine.began = None


def rest() -> None:
    """Rests if this thread gives way and has worked for a while: for long computations to call in their loops."""
    if _mine.began is not None and perf_counter() - _mine.began > WORKS and not _mine.is_urgent():
        sleep(RESTS)
        _mine.began = perf_counter()


def gives_way() -> bool:
    """Returns whether this thread gives way."""
    return _mine.began is not None
