"""Processes that are replaced after a few units of work, so that what they hold does not add up."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Slots(Generic[T]):
    """Runs units in so many processes, each of which ends after `most` units and gives way to a new one.

    `max_tasks_per_child` of the standard library does the same, and waits for ever in Python 3.11 once a process ends
    while no other is idle.

    Args:
        jobs: Processes at a time.
        most: Units of a process; None for any number.
        start: Makes an executor of one process.
    """

    def __init__(self, jobs: int, *, most: int | None, start: Callable[[], ProcessPoolExecutor]) -> None:
        self._most, self._start = most, start
        self._pools: list[ProcessPoolExecutor | None] = [None] * jobs
        self._used = [0] * jobs

    def run(self, work: Callable[[T], None], units: Sequence[T]) -> Iterator[tuple[T, "Future[None]"]]:
        """Yields each unit as it ends, with what came of it."""
        waiting, free = list(reversed(units)), list(range(len(self._pools)))
        at_work: dict[Future[None], tuple[int, T]] = {}
        while waiting or at_work:
            while waiting and free:
                place, unit = free.pop(), waiting.pop()
                at_work[self._pool(place).submit(work, unit)] = place, unit
            for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                place, unit = at_work.pop(future)
                free.append(place)
                yield unit, future

    def _pool(self, place: int) -> ProcessPoolExecutor:
        """Returns the executor of a place, a new one if the process has done its share."""
        pool = self._pools[place]
        if pool is not None and self._used[place] == self._most:
            pool.shutdown(wait=False)
            pool = None
        if pool is None:
            pool = self._start()
            self._pools[place], self._used[place] = pool, 0
        self._used[place] += 1
        return pool

    def end(self, *, at_once: bool) -> None:
        """Ends the processes, when they have done what they are at or at once."""
        for pool in self._pools:
            if pool is not None:
                processes: dict[int, Any] = getattr(pool, "_processes", None) or {}
                for process in list(processes.values()) if at_once else ():
                    process.terminate()
                pool.shutdown(wait=not at_once, cancel_futures=True)
