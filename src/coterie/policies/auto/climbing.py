"""Climbs of the evidence: in the thread that asks for one, or in a process of its own.

A climb takes the interpreter again and again for a moment, and a decision that gives it up as often waits for it each
time. A service lets its climbs run in another process, so that decisions hardly notice them.
"""

import logging
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

from coterie.policies.auto.evidence import Evidence, Together, level_of
from coterie.policies.auto.hyper import LearnedHyper
from coterie.policies.auto.prior import Prior, fit

log = logging.getLogger(__name__)
NICENESS = 5  # of the process: decisions come first
_PROGRAM = "from coterie.policies.auto.climbing import run_climbs; run_climbs()"


class Climb(NamedTuple):
    """What a fit looks for: the hyperparameters that explain some samples best.

    Attributes:
        samples: The evidence of each.
        prior: Of the hyperparameters.
        start: A warm start.
        options: How `fit` climbs, where not as by default.
    """

    samples: list[Evidence]
    prior: Prior[Any]
    start: LearnedHyper
    options: Mapping[str, Any]

    def run(self) -> "Summit":
        """Returns what it leads to, in this thread."""
        hyper = fit(Together(self.samples), self.prior, self.start, **self.options)[0]
        return Summit(hyper, level_of(self.samples, hyper))


class Summit(NamedTuple):
    """Where a climb ends.

    Attributes:
        hyper: The hyperparameters of the highest posterior density found.
        level: The most likely prior mean of all rewards at them.
    """

    hyper: LearnedHyper
    level: float


class ClimbProcess:
    """A process that climbs for this one, one climb after another.

    It starts with the first climb and ends when this process does, however that ends. If it cannot start or ends early
    its climb is run here: with the same numbers, only that decisions notice.
    """

    def __init__(self) -> None:
        self._one_at_a_time, self._is_closed = Lock(), False
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, climb: Climb) -> Summit:
        """Returns what a climb leads to, or raises what it raised."""
        with self._one_at_a_time:
            try:
                found = self._asked(climb)
            except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:  # ValueError: it was closed
                if not self._is_closed:
                    log.warning("the process that fits hyperparameters has ended: %r", error)
                self._end()
                return climb.run()
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """Ends the process; climbs are run here from now on."""
        self._is_closed = True
        self._end()

    def _asked(self, climb: Climb) -> Summit | BaseException:
        if self._process is None and not self._is_closed:
            self._process = _started()
        process = self._process
        if process is None:
            raise EOFError("it was closed")
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump(climb, process.stdin, pickle.HIGHEST_PROTOCOL)
        process.stdin.flush()
        found: Summit | BaseException = pickle.load(process.stdout)
        return found

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _started() -> subprocess.Popen[bytes]:
    """Returns a process that runs climbs, and imports what this one does."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-c", _PROGRAM]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def run_climbs() -> None:
    """Runs the climbs that come in and writes where they end, until there are no more: what the process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asked ends it
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nobody else is to write among the answers
    while True:
        try:
            climb: Climb = pickle.load(sys.stdin.buffer)
            answers.write(pickle.dumps(_ended(climb), pickle.HIGHEST_PROTOCOL))
        except (EOFError, BrokenPipeError):  # whoever asked is gone
            return


def _ended(climb: Climb) -> Summit | BaseException:
    try:
        return climb.run()
    except Exception as error:  # raised where the result is asked for
        return error


_run: list[Callable[[Climb], Summit]] = [Climb.run]


def is_aside() -> bool:
    """Returns whether climbs run in another process, since decisions are not to notice fits."""
    return len(_run) > 1


def run_aside(climb: Climb) -> Summit:
    """Returns what a climb beside decisions leads to, run where `climbing_in` says, or else in this thread."""
    return _run[-1](climb)


@contextmanager
def climbing_in(process: ClimbProcess) -> Iterator[None]:
    """Lets a process run the climbs beside decisions of all bandits of this one; ends it at the end."""
    _run.append(process.run)
    try:
        yield
    finally:
        _run.remove(process.run)
        process.close()
