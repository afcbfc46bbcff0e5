"""A model that is made beside the one in use, by a thread of its own, and follows what happens meanwhile."""

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Generic, TypeVar

from coterie.models import Model

Found = TypeVar("Found")
Step = Callable[[Model], None]


class Ahead(Generic[Found]):
    """Makes something, then a model from it, and lets the model follow; nothing is shared with what goes on meanwhile.

    What comes out depends on the steps alone, not on how fast the thread is. In a forked process, where no thread comes
    along, it begins anew.

    Args:
        find: What the model is made from.
        make: Makes the model.
    """

    def __init__(self, find: Callable[[], Found], make: Callable[[Found], Model]) -> None:
        self._find, self._make = find, make
        self._taken: list[Step] = []
        self._begin()

    def _begin(self) -> None:
        self._steps: SimpleQueue[Step | None] = SimpleQueue()
        for step in self._taken:
            self._steps.put(step)
        self._found: Found | None = None
        self._model: Model | None = None
        self._failure: BaseException | None = None
        self._ready = Event()
        self._process = os.getpid()
        self._thread = Thread(target=self._run, name="coterie-refit", daemon=True)
        self._thread.start()

    def _begin_if_forked(self) -> None:
        if self._process != os.getpid():
            self._begin()

    def follow(self, step: Step) -> None:
        """Lets the model do a step, in its turn."""
        self._begin_if_forked()
        self._taken.append(step)
        self._steps.put(step)

    def found(self) -> Found:
        """Returns what the model is made from; waits for it, and raises what went wrong."""
        self._begin_if_forked()
        self._ready.wait()
        if self._found is None:
            assert self._failure is not None
            raise self._failure
        return self._found

    def finish(self) -> tuple[Found, Model]:
        """Returns all, the model having done every step; waits for it, and raises what went wrong."""
        self._begin_if_forked()
        self._steps.put(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        assert self._model is not None
        return self.found(), self._model

    def _run(self) -> None:
        try:
            self._found = self._find()
            self._ready.set()
            self._model = self._make(self._found)
            while (step := self._steps.get()) is not None:
                step(self._model)
        except BaseException as failure:  # whatever it was, it is raised where the result is asked for
            self._failure = failure
            self._ready.set()
