"""One pass over a set: decide for a row, pay 1 for the right class, learn; and what a method must offer for it."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns, process_time_ns
from typing import Any, Protocol

import numpy as np

from benchmarks.context.data import Labelled

LOOKED = 10  # rounds between two looks at the clock of the processor, which is slow to read


class Learner(Protocol):
    """Who plays a pass. Every row is decided for and then learned, before the next comes."""

    def decide(self, row: Any) -> tuple[int, float]:
        """Returns an arm and the probability with which it was chosen."""

    def learn(self, row: Any, arm: int, propensity: float, reward: float) -> None:
        """Learns the reward of the arm that was chosen for a row."""


@dataclass(frozen=True)
class Method:
    """A way to play: a library in one of its configurations."""

    library: str  # as it is imported
    name: str
    make: Callable[[Any, int], Learner]  # from a set and a seed
    rows: Callable[[Any], Sequence[Any]]  # a set, in the form that the library takes
    patient: bool = False  # whether it plays every seed to the end, however slow

    @property
    def key(self) -> str:
        return f"{self.library}: {self.name}"


@dataclass(frozen=True)
class Pass:
    """What a pass gave: the mean reward, and milliseconds a round of deciding and learning together.

    `ms` is processor time of the whole process, which other work on the machine and threads in the background cannot
    hide; `wall` is wall-clock time.
    """

    rounds: int
    reward: float
    ms: float
    wall: float


def play(method: Method, data: Labelled, seed: int, *, limit: float = math.inf) -> Pass:
    """Plays one pass over a set, in an order that the seed shuffles."""
    order = np.random.default_rng(seed).permutation(data.n_rows)
    rows = method.rows(data)
    rounds = ((rows[place], int(data.labels[place])) for place in order)
    return one_pass(method.make(data, seed), rounds, limit=limit)


def one_pass(learner: Learner, rounds: Iterable[tuple[Any, int]], *, limit: float = math.inf) -> Pass:
    """Plays rounds of a row and its right class, until they end or have taken more than the limit in seconds."""
    n_rounds = n_right = wall = 0
    started = process_time_ns()
    for row, right in rounds:
        start = perf_counter_ns()
        arm, propensity = learner.decide(row)
        learner.learn(row, arm, propensity, float(arm == right))
        wall += perf_counter_ns() - start
        n_rounds += 1
        n_right += arm == right
        if n_rounds % LOOKED == 0 and process_time_ns() - started > 1e9 * limit:
            break
    taken = process_time_ns() - started
    return Pass(n_rounds, n_right / n_rounds, 1e-6 * taken / n_rounds, 1e-6 * wall / n_rounds)
