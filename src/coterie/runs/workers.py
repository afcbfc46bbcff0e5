"""Processes that do units of work: one BLAS thread each, so much memory, and gone when their parent is."""

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, Generic, TypeVar

from coterie.errors import StoreError
from coterie.errors.extras import require_extra

T = TypeVar("T")
Work = Callable[[T], None]

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
MEMORY_LIMIT = 8 * 2**30  # of addresses; what is held is less. Beyond it a policy fails, not the machine
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Workers(Generic[T]):
    """Does units of work, here or in processes, and yields each as it ends.

    Args:
        jobs: Processes at a time; with one the work is done here, unless processes are to end.
        most: Units after which a process gives way to a new one; None for any number.
        here: Does a unit in this process.
        make: Returns the same for another process, from `given`; a function of a module.
        given: What `make` is called with.
    """

    def __init__(self, jobs: int, *, most: int | None, here: Work[T], make: Callable[..., Work[T]], given: Any) -> None:
        self._here, self._make, self._given = here, make, given
        self._slots: Slots[T] | None = None
        if jobs > 1 or most is not None:
            self._slots = Slots(jobs, most=most, start=self._process)

    def _process(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=context, initializer=_start, initargs=(self._make, self._given))

    def __enter__(self) -> "Workers[T]":
        return self

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        if self._slots is not None:
            self._slots.end(at_once=kind is not None)

    def run(self, units: Sequence[T]) -> Iterator[T]:
        """Yields each unit when it is done."""
        if self._slots is None:
            with one_blas_thread():
                for unit in units:
                    self._here(unit)
                    yield unit
            return
        with one_thread_in_children():
            for unit, future in self._slots.run(_do, units):
                try:
                    future.result()
                except BrokenProcessPool:
                    raise StoreError(
                        "a process of the study died, out of memory perhaps",
                        "finished trials are stored",
                        "Go on with --resume and fewer --jobs",
                    ) from None
                yield unit


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


def one_blas_thread() -> Any:
    """Returns a context in which BLAS has one thread: on small matrices a second one waits more than it works."""
    with require_extra("lab", "running a study"):
        from threadpoolctl import threadpool_limits
    return threadpool_limits(limits=1, user_api="blas")


@contextmanager
def one_thread_in_children() -> Iterator[None]:
    """Lets processes that are started inside have one BLAS thread each."""
    before = {name: os.environ.get(name) for name in BLAS_THREADS}
    os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


_HERE: dict[str, Any] = {}


def _start(make: Callable[..., Work[Any]], given: Any) -> None:
    """Makes ready a new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides; a unit under way is dropped, never half written
    Thread(target=_end_with_parent, daemon=True).start()
    _HERE["work"] = make(*given)


def _end_with_parent() -> None:
    """Ends this process when the parent is gone, killed perhaps, so that no worker is left behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(unit: Any) -> None:
    _HERE["work"](unit)


def limit_memory(*, besides: int = 0) -> None:
    """Lets this process have so much memory and no more, where the system knows such limits.

    Args:
        besides: Bytes of addresses that do not count, as of memory that is shared with others.
    """
    with suppress(ValueError, OSError):
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT + besides, hard))


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
    found = _status("VmHWM")
    if found is not None:
        return found
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def addresses_held() -> int:
    """Returns the bytes of addresses that this process has, memory shared with others included; 0 if not known."""
    return _status("VmSize") or 0


def _status(name: str) -> int | None:
    """Returns what Linux says of this process, in bytes."""
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None
