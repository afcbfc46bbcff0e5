"""Fits of the hyperparameters beside the decisions: when one starts, the thread it runs in, when it is taken.

A fit sees the rewards up to a moment. A thread finds hyperparameters, makes a model on them, and lets the model learn
the rewards that come in meanwhile, so that taking the fit costs nothing.
"""

import atexit
import os
import weakref
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from math import inf
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np

from coterie.algebra.giving_way import giving_way, rest
from coterie.errors import FAILURES
from coterie.models import Model
from coterie.policies.auto.climbing import is_aside
from coterie.policies.auto.hyper import LearnedHyper, hyper_of

FIRST_FIT = 8  # rewards
FEW = 4  # rewards that a model may still have to learn when it is taken

Reward = tuple[int, Any, float, float]  # user, arm, what is less the centre, and its weight
MakeModel = Callable[["Found", dict[str, Any]], Model | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSchedule:
    """After how many rewards hyperparameters are fitted: powers of two, and early on halfway between.

    Attributes:
        halfway_until: Rewards from which on there is none halfway.
        due_share: A fit that starts after t rewards is due after one part in `due_share` of them more.

    Examples:
        >>> [t for t in range(8, 100) if FitSchedule().starts_at(t)]
        [8, 12, 16, 24, 32, 48, 64, 96]
        >>> FitSchedule().due_after(64)
        68
    """

    halfway_until: int = 1024
    due_share: int = 16

    def starts_at(self, t: int) -> bool:
        """Returns whether a fit starts after so many rewards."""
        odd = t // (t & -t)
        return t >= FIRST_FIT and (odd == 1 or (odd == 3 and t < self.halfway_until))

    def due_after(self, t: int) -> int:
        """Returns after how many rewards a fit is due that starts after t of them."""
        return t + max(t // self.due_share, 1)


class Found(NamedTuple):
    """What a fit finds.

    Attributes:
        hyper: The hyperparameters.
        shift: The prior mean of all rewards, less the one in use: it is taken off every reward.
    """

    hyper: LearnedHyper
    shift: float

    @classmethod
    def of(cls, numbers: Iterable[float]) -> "Found":
        """Returns it from its numbers."""
        *hyper, shift = numbers
        return cls(hyper_of(hyper), shift)

    def numbers(self) -> list[float]:
        """Returns it as a list of numbers."""
        return [*self.hyper, self.shift]


class Work:
    """What a thread does, and what has come of it; it knows nothing of who asked, so that they can be forgotten."""

    def __init__(self, find: Callable[[], Found], make: MakeModel, history: dict[str, Any]) -> None:
        self._find, self._make, self._history = find, make, history
        self.rewards: SimpleQueue[Reward | None] = SimpleQueue()  # None ends it
        self.found: Found | None = None
        self.model: Model | None = None
        self.failure: BaseException | None = None
        self.is_found, self.is_made = Event(), Event()
        self.is_urgent = False  # whether somebody waits for what comes of it

    def run(self) -> None:
        """Finds hyperparameters, makes the model, and lets it learn rewards until there are no more."""
        with giving_way(lambda: self.is_urgent) if is_aside() else nullcontext():
            self._run()

    def _run(self) -> None:
        try:
            self.found = self._find()
            self.is_found.set()
            rest()
            self.model = self._make(self.found, self._history)
            self.is_made.set()
            fewest = inf  # rewards that waited: it rests where it gains on them, so that it catches up with any rate
            while (reward := self.rewards.get()) is not None:
                if self.model is not None:
                    row, column, value, weight = reward
                    self.model.learn_noisier(row, column, value - self.found.shift, weight=weight)
                if self.rewards.qsize() < fewest:
                    fewest = self.rewards.qsize()
                    rest()
        except BaseException as failure:  # whatever it was, it is raised where the result is asked for
            self.failure = failure
            self.is_found.set()
            self.is_made.set()


class PendingFit:
    """Hyperparameters that are being learned from the rewards up to a moment, and perhaps a model on them.

    What comes out depends on the rewards alone, not on how fast the thread is. In a forked process, where no thread
    comes along, it starts again. Once nobody holds it any more its thread ends after the step it is at.

    Args:
        started: After how many rewards it started.
        due: After how many rewards it is to be taken.
        history: The rewards that it sees, as a history's state.
        find: Computes hyperparameters and shift.
        make: Makes a model of what was found and of these rewards, or none.
        at_once: Whether it starts at once.

    Attributes:
        since: The rewards that came since.
    """

    def __init__(
        self,
        started: int,
        due: int,
        history: dict[str, Any],
        find: Callable[[], Found],
        make: MakeModel,
        *,
        at_once: bool = True,
    ) -> None:
        self.started, self.due, self.history = started, due, history
        self.since: list[Reward] = []
        self._find, self._make = find, make
        self._work: Work | None = None
        self._process = 0  # that the work goes on in
        self._thread: Thread | None = None
        if at_once:
            self.start()

    def start(self) -> Work:
        """Starts its thread, if none runs in this process; returns its work."""
        if self._work is None or self._process != os.getpid():
            self._work, self._process = Work(self._find, self._make, self.history), os.getpid()
            for reward in self.since:
                self._work.rewards.put(reward)
            self._thread = thread = Thread(target=self._work.run, name="coterie-refit", daemon=True)
            _RUNNING[thread] = self._work
            thread.start()
            weakref.finalize(self, self._work.rewards.put, None).atexit = False
        return self._work

    def give(self, found: Found) -> None:
        """Takes these hyperparameters, and computes none."""
        if self._work is not None:
            self._work.rewards.put(None)
        self._find, self._work = lambda: found, None

    def follow(self, reward: tuple[int, Any, float], weight: float = 1.0) -> None:
        """Lets its model learn a reward, too; its noise is that of others over the weight."""
        weighted = (*reward, weight)
        if self._work is not None:
            self.start().rewards.put(weighted)
        self.since.append(weighted)

    @property
    def is_ready(self) -> bool:
        """Whether it can be taken at once: the model is made and knows all rewards but a few, or the fit has failed.

        The model catches up, since whoever gives rewards does more for each than learn it. In a forked process the fit
        has not started.
        """
        work = self._work
        if work is None or self._process != os.getpid() or not work.is_made.is_set():
            return False
        return work.failure is not None or work.rewards.qsize() <= FEW

    def found(self) -> Found:
        """Returns hyperparameters and shift; waits for them, and raises what went wrong."""
        work = self.start()
        work.is_urgent = True
        work.is_found.wait()
        if work.found is None:
            assert work.failure is not None
            raise work.failure
        return work.found

    def finish(self) -> tuple[Found, Model | None]:
        """Returns what was found and the model, which knows every reward; waits, and raises what went wrong."""
        work = self.start()
        work.is_urgent = True
        work.rewards.put(None)
        assert self._thread is not None  # the work runs in it
        self._thread.join()
        if work.failure is not None:
            raise work.failure
        return self.found(), work.model


def state_of(pending: PendingFit | None) -> dict[str, Any] | None:
    """Returns what `pending_of` makes the same fit from; waits for its hyperparameters."""
    if pending is None:
        return None
    try:
        found = pending.found()
    except FAILURES:  # it would not be taken: to whoever loads this it is as if it had not started
        return None
    users, arms, values, weights = zip(*pending.since, strict=True) if pending.since else ((), (), (), ())
    later = {"users": list(users), "arms": [_plain_arm(arm) for arm in arms], "values": list(values)}
    if any(weight != 1 for weight in weights):
        later["weights"] = list(weights)
    return {
        "started": pending.started,
        "due": pending.due,
        "shift": found.shift,
        "history": pending.history,
        "hyper": found.hyper._asdict(),
        "later": later,
    }


def _plain_arm(arm: Any) -> Any:
    return arm.tolist() if isinstance(arm, np.ndarray) else arm


def pending_of(state: dict[str, Any], make: MakeModel) -> PendingFit:
    """Returns the fit of a state."""
    found, later = Found(hyper_of(list(state["hyper"].values())), state["shift"]), state["later"]
    out = PendingFit(state["started"], state["due"], state["history"], lambda: found, make)
    weights = later.get("weights", [1.0] * len(later["values"]))
    for user, arm, value, weight in zip(later["users"], later["arms"], later["values"], weights, strict=True):
        out.follow((user, np.array(arm) if isinstance(arm, list) else arm, value), weight)
    return out


_RUNNING: "weakref.WeakKeyDictionary[Thread, Work]" = weakref.WeakKeyDictionary()


@atexit.register
def _end_threads() -> None:
    """Lets threads come to their end before the interpreter does: BLAS must not be taken from under one."""
    running = [(thread, work) for thread, work in _RUNNING.items() if thread.is_alive()]
    for thread, work in running:
        work.is_urgent = True
        work.rewards.put(None)
        thread.join()
