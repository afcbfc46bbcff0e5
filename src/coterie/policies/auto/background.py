"""A model that is made beside the one in use, by a thread of its own, and follows what happens meanwhile."""

import atexit
import os
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, Generic, TypeVar

from coterie.models import Model

Found = TypeVar("Found")
Step = Callable[[Model, Any], None]  # of the model and of what it was made from


_RUNNING: "weakref.WeakKeyDictionary[Thread, SimpleQueue[Step | None]]" = weakref.WeakKeyDictionary()


@atexit.register
def _end_threads() -> None:
    """Lets threads come to their end before the interpreter does: BLAS must not be taken from under one."""
    running = [(thread, steps) for thread, steps in _RUNNING.items() if thread.is_alive()]
    for thread, steps in running:
        steps.put(None)
        thread.join()


class Work(Generic[Found]):
    """What a thread does, and what has come of it; it knows nothing of who asked, so that they can be forgotten."""

    def __init__(self, find: Callable[[], Found], make: Callable[[Found], Model | None]) -> None:
        self._find, self._make = find, make
        self.steps: SimpleQueue[Step | None] = SimpleQueue()
        self.found: Found | None = None
        self.model: Model | None = None
        self.failure: BaseException | None = None
        self.ready, self.made = Event(), Event()

    def run(self) -> None:
        """Finds, makes, and does steps until there are no more."""
        try:
            self.found = self._find()
            self.ready.set()
            self.model = self._make(self.found)
            self.made.set()
            while (step := self.steps.get()) is not None:
                if self.model is not None:
                    step(self.model, self.found)
        except BaseException as failure:  # whatever it was, it is raised where the result is asked for
            self.failure = failure
            self.ready.set()
            self.made.set()


class BackgroundModel(Generic[Found]):
    """Makes something, then a model from it, and lets the model follow; nothing is shared with what goes on meanwhile.

    What comes out depends on the steps alone, not on how fast the thread is. In a forked process, where no thread comes
    along, it begins anew. Once nobody holds it any more the thread ends with what it is at.

    Args:
        find: What the model is made from.
        make: Makes the model, or none.
    """

    def __init__(self, find: Callable[[], Found], make: Callable[[Found], Model | None]) -> None:
        self._find, self._make = find, make
        self._taken: list[Step] = []
        self._begin()

    def _begin(self) -> None:
        self._work = Work(self._find, self._make)
        for step in self._taken:
            self._work.steps.put(step)
        self._process = os.getpid()
        self._thread = Thread(target=self._work.run, name="coterie-refit", daemon=True)
        _RUNNING[self._thread] = self._work.steps
        self._thread.start()
        weakref.finalize(self, self._work.steps.put, None).atexit = False

    def _begin_if_forked(self) -> None:
        if self._process != os.getpid():
            self._begin()

    def follow(self, step: Step) -> None:
        """Lets the model do a step, in its turn."""
        self._begin_if_forked()
        self._taken.append(step)
        self._work.steps.put(step)

    @property
    def is_ready(self) -> bool:
        """Whether the model is made, or the work has failed; in a forked process it has not begun."""
        return self._process == os.getpid() and self._work.made.is_set()

    def found(self) -> Found:
        """Returns what the model is made from; waits for it, and raises what went wrong."""
        self._begin_if_forked()
        self._work.ready.wait()
        if self._work.found is None:
            assert self._work.failure is not None
            raise self._work.failure
        return self._work.found

    def finish(self) -> tuple[Found, Model | None]:
        """Returns all, the model having done every step; waits for it, and raises what went wrong."""
        self._begin_if_forked()
        self._work.steps.put(None)
        self._thread.join()
        if self._work.failure is not None:
            raise self._work.failure
        return self.found(), self._work.model
