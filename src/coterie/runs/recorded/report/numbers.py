"""A study on logs in numbers: hits over time and by visit, what the graph added, and for whom."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.runs.recorded.outcome import LogWorld, Outcome
from coterie.runs.report.numbers import Estimate, estimates

WINDOWS = 20
FEWEST_ROUNDS = 200  # for a point of the curve by visits: a rate of 0.2 is then known to 0.03
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What one policy got more than another in the same rounds.

    Attributes:
        mine: The mean reward of the one.
        other: That of the other.
        gap: Their difference, paired by trial.
    """

    mine: float
    other: float
    gap: Estimate

    @property
    def ratio(self) -> float:
        """How many times as much."""
        return self.mine / self.other if self.other > 0 else np.nan


def rate(world: LogWorld, policy: str) -> Estimate:
    """Returns the mean reward of a round."""
    return estimates(world.means(policy)[None])[0]


def by_rate(world: LogWorld) -> list[str]:
    """Returns the policies, the best first."""
    return sorted(world.rewards, key=lambda policy: -float(world.means(policy).mean()))


def gain(world: LogWorld, policy: str, other: str) -> Gain | None:
    """Returns what a policy got more than another in the trials that both played; nothing if there are none."""
    return gain_where(world, policy, other, lambda trial: np.ones(len(world.visits[trial]), dtype=bool))


def gain_where(world: LogWorld, policy: str, other: str, where: Callable[[int], NDArray[np.bool_]]) -> Gain | None:
    """Returns the same in some of the rounds of each trial."""
    trials = world.trials(policy, other)
    if not trials:
        return None
    pair = np.array([[_mean(world.rewards[each][trial][where(trial)]) for trial in trials] for each in (policy, other)])
    mine, theirs = pair.mean(axis=1)
    return Gain(mine=float(mine), other=float(theirs), gap=estimates((pair[0] - pair[1])[None])[0])


def _mean(rewards: Array) -> float:
    known = rewards[~np.isnan(rewards)]
    return float(known.mean()) if len(known) else 0.0


def thirds(world: LogWorld, policy: str, other: str, kind: str) -> list[tuple[str, Gain]]:
    """Returns the gain in the rounds of users with few, some and many neighbours (or visits so far).

    Bounds are such that each third has about a third of the rounds; where bounds fall together there are fewer.
    """
    values = world.degrees if kind == "degree" else world.visits
    together = np.concatenate([values[trial] for trial in world.trials(policy, other)])
    inner = np.quantile(together, [1 / 3, 2 / 3]).astype(int)
    bounds = sorted({int(together.min()), *(int(each) + 1 for each in inner if each < together.max())})
    ends = [*(bound - 1 for bound in bounds[1:]), int(together.max())]
    out = []
    for low, high in zip(bounds, ends, strict=True):

        def inside(trial: int, low: int = low, high: int = high) -> NDArray[np.bool_]:
            return np.asarray((values[trial] >= low) & (values[trial] <= high))

        found = gain_where(world, policy, other, inside)
        if found is not None:
            met = together[(together >= low) & (together <= high)] + (kind != "degree")  # visits count from 1
            name = f"{met.min()}" if met.min() == met.max() else f"{met.min()} to {met.max()}"
            out.append((name, found))
    return out


def over_time(world: LogWorld, policy: str) -> tuple[Array, Array]:
    """Returns the ends of windows of rounds, and the mean reward in each over all trials."""
    rewards = np.array([world.rewards[policy][trial] for trial in world.trials(policy)])
    parts = np.array_split(np.arange(rewards.shape[1]), min(WINDOWS, rewards.shape[1]))
    return np.array([part[-1] + 1.0 for part in parts]), np.array([_mean(rewards[:, part]) for part in parts])


def by_visit(world: LogWorld, policy: str) -> tuple[Array, Array]:
    """Returns the numbers of visits from 1, and the mean reward at a user's visit of that number.

    They end where too few rewards are known: a short replay may use no user's first visit at all.
    """
    trials = world.trials(policy)
    visits = np.concatenate([world.visits[trial] for trial in trials])
    rewards = np.concatenate([world.rewards[policy][trial] for trial in trials])
    known = ~np.isnan(rewards)
    counts = np.bincount(visits[known])
    few = np.flatnonzero(counts < max(min([FEWEST_ROUNDS, *counts[:1]]), 1))
    last = int(few[0]) if len(few) else len(counts)
    sums = np.bincount(visits[known], weights=rewards[known])
    return np.arange(1.0, last + 1), sums[:last] / counts[:last]


def best_without_graph(outcome: Outcome, world: LogWorld) -> str | None:
    """Returns the best policy that sees no graph."""
    blind = {each.label for each in outcome.study.policies if each.graph == "none" or each.policy in BLIND}
    return next((policy for policy in by_rate(world) if policy in blind), None)


BLIND = frozenset(
    {
        *("per-user-linucb", "per-user-lints", "per-user-gp-ucb", "per-user-gp-ts", "pooled-linucb", "pooled-lints"),
        *("gp-ucb", "gp-ts", "exchangeable-gp-ucb", "exchangeable-gp-ts", "popularity", "random"),
    }
)
