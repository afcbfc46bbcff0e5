"""The laboratory's loop: what it adds to a policy's own cost, a round."""

from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.timing import Row, micro
from coterie.problems import WorldSettings
from coterie.runs.entries import LearnerSettings
from coterie.runs.trial import Trial, play
from coterie.runs.worlds import DrawnWorld

REPEATS = 7


class Clocked:
    """A policy that keeps the time spent inside it; the clock itself counts as the policy's."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.inside = 0.0

    def select(self, user: Any, candidates: Any) -> Any:
        start = perf_counter()
        choice = self.policy.select(user, candidates)
        self.inside += perf_counter() - start
        return choice

    def update(self, user: Any, arm: Any, reward: float) -> None:
        start = perf_counter()
        self.policy.update(user, arm, reward)
        self.inside += perf_counter() - start


def overhead(name: str, settings: WorldSettings) -> tuple[float, float]:
    """Seconds a round inside the policy, and outside it: drawing the rounds, the loop, the truth, the record."""
    start = perf_counter()
    trial = Trial(DrawnWorld(settings=settings), seed=0, number=0)
    drawing = perf_counter() - start
    learner = LearnerSettings(label=name, policy=name)
    made = trial.learner(learner)
    clocked = Clocked(made)
    start = perf_counter()
    list(zip(*play(clocked, trial.world, trial.rounds), strict=True))
    whole = perf_counter() - start
    return clocked.inside / settings.horizon, (drawing + whole - clocked.inside) / settings.horizon


def rows() -> list[Row]:
    out = []
    for name in ("lk-gp-ucb", "per-user-linucb", "random"):
        taken = np.array([overhead(name, WorldSettings()) for _ in range(REPEATS)])
        inside, outside = np.median(taken, axis=0)
        text = f"{outside * 1e6:.1f} us"
        out.append(
            Row(f"{name}, round, outside it", text, f"{micro(inside)} (inside it)", "-", "<= 10 us", outside <= 1e-5)
        )
    return out
