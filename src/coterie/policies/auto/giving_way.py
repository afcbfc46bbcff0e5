"""Threads that give way: they work for a moment, then rest, so that decisions find the interpreter free.

A thread that computes takes the interpreter whenever a decision gives it up, at each call of BLAS and each system call,
and keeps it until it is asked to let go. CPython knows no priorities. But it calls a thread's profiler at every call
and return, which is a good place to rest.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, sleep
from typing import Any

WORKS, RESTS = 0.0005, 0.005  # seconds


@contextmanager
def giving_way(is_urgent: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Lets this thread rest for most of the time, while it is in the context.

    It must hold no lock there that a decision may wait for.

    Args:
        is_urgent: Whether somebody waits for it: then it does not rest.
    """
    if sys.getprofile() is not None:  # somebody looks at what it does: it goes on as it is
        yield
        return
    began = perf_counter()

    def rest(*_: Any) -> None:
        nonlocal began
        if perf_counter() - began > WORKS and not is_urgent():
            sleep(RESTS)
            began = perf_counter()

    sys.setprofile(rest)
    try:
        yield
    finally:
        sys.setprofile(None)
