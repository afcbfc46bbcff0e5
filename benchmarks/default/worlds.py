"""`auto-ucb` with nothing set on random worlds, beside other policies at their defaults and one with the true prior."""

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

import coterie as ct
from coterie.problems import RandomWorld, Round, World, draw_rounds, draw_world, random_world, world_settings

OTHERS = (
    "lk-gp-ucb",
    "graph-ucb",
    "gob-lin",
    "per-user-linucb",
    "pooled-linucb",
    "gp-ucb",
    "per-user-gp-ucb",
    "popularity",
)
OURS = {"auto-ucb": "auto-ucb", "no graph": "auto-ucb", "auto-ts": "auto-ts"}


def judged(drawn: RandomWorld) -> tuple[World, list[Round]]:
    """Returns a world that judges choices, and its rounds."""
    settings = world_settings({"kind": "random", "number": drawn.traits.number})
    seed = np.random.SeedSequence(drawn.traits.number)
    world = draw_world(settings, seed)
    return world, draw_rounds(settings, world, seed)


def played(policy: Any, world: World, rounds: list[Round]) -> tuple[float, float]:
    """Returns the regret of a policy, and its milliseconds of processor time a round, fits in threads included."""
    start, regret = process_time(), 0.0
    for shown in rounds:
        arm = policy.select(shown.user, shown.candidates).arm
        reward, lost = world.judge(shown, arm)
        policy.update(shown.user, arm, reward)
        regret += lost
    return regret, 1e3 * (process_time() - start) / len(rounds)


def with_the_true_prior(drawn: RandomWorld, world: World, rounds: list[Round]) -> float:
    """Returns the regret of GP-UCB with the very prior, noise and level that rewards were drawn with."""
    size = len(rounds)
    factor, white, regret = np.zeros((size, size)), np.zeros(size), 0.0
    users, arms = np.zeros(size, dtype=int), np.zeros(size, dtype=int)
    variances = drawn.arm_cov.diagonal()
    for t, shown in enumerate(rounds):
        user, rows = drawn.graph.index_of(shown.user), np.array([drawn.arms.index_of(arm) for arm in shown.candidates])
        cross = drawn.user_cov[users[:t], user][:, None] * drawn.arm_cov[np.ix_(arms[:t], rows)]
        half = solve_triangular(factor[:t, :t], cross, lower=True, check_finite=False) if t else cross
        variance = np.maximum(drawn.user_cov[user, user] * variances[rows] - (half * half).sum(axis=0), 0.0)
        best = int(np.argmax(white[:t] @ half + np.sqrt(variance)))
        reward, lost = world.judge(shown, shown.candidates[best])
        regret += lost
        factor[t, :t], factor[t, t] = half[:, best], np.sqrt(variance[best] + drawn.noise_std**2)
        white[t] = (reward - drawn.level - white[:t] @ half[:, best]) / factor[t, t]
        users[t], arms[t] = user, rows[best]
    return regret


def row_of(number: int, names: tuple[str, ...]) -> dict[str, Any]:
    """Returns regrets as shares of a random policy's, and milliseconds, in one world."""
    drawn = random_world(number)
    world, rounds = judged(drawn)
    anything = sum(float(np.mean([world.judge(shown, arm)[1] for arm in shown.candidates])) for shown in rounds)
    out: dict[str, Any] = {
        "number": number,
        "is": str(drawn.traits),
        "clicks": drawn.traits.clicks,
        "regret": {},
        "ms": {},
    }
    out["graph_tells"] = drawn.traits.shares[0] > 0.01
    for name in names:
        graph = ct.UserGraph.from_edges([], users=drawn.graph.users) if name == "no graph" else drawn.graph
        policy = ct.make_policy(OURS.get(name, name), graph=graph, arms=drawn.arms, seed=0)
        regret, out["ms"][name] = played(policy, world, rounds)
        out["regret"][name] = regret / anything
    if not drawn.traits.clicks:
        out["regret"]["told the prior"] = with_the_true_prior(drawn, world, rounds) / anything
    return out


def rows(
    numbers: range, folder: Path, *, jobs: int = 2, names: tuple[str, ...] = (*OURS, *OTHERS)
) -> Iterator[dict[str, Any]]:
    """Yields the rows of these worlds, from the folder where they are there already."""
    folder.mkdir(parents=True, exist_ok=True)
    left = [number for number in numbers if not (folder / f"{number}.json").exists()]
    with ProcessPoolExecutor(jobs) as pool:
        for number, row in zip(left, pool.map(row_of, left, [names] * len(left)), strict=True):
            (folder / f"{number}.json").write_text(json.dumps(row))
            print(f"world {number} of {numbers[-1]}: {row['is']}", flush=True)
    for number in numbers:
        yield json.loads((folder / f"{number}.json").read_text())


def ratios(found: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Returns the regret of `auto-ucb` over that of others, world by world."""
    mine = [each["regret"]["auto-ucb"] for each in found]
    best = [min(each["regret"][name] for name in OTHERS if name in each["regret"]) for each in found]
    over = {
        "GP-UCB with the true prior (no clicks)": [
            m / each["regret"]["told the prior"] for m, each in zip(mine, found, strict=True) if not each["clicks"]
        ],
        "the best of the other policies": [m / b for m, b in zip(mine, best, strict=True)],
        "itself without the graph": [m / each["regret"]["no graph"] for m, each in zip(mine, found, strict=True)],
        "itself without the graph, where the graph is uninformative": [
            m / each["regret"]["no graph"] for m, each in zip(mine, found, strict=True) if not each["graph_tells"]
        ],
    }
    return {name: np.array(values) for name, values in over.items()}


def as_ts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the same rows with `auto-ts` in the place of `auto-ucb`."""
    return [{**each, "regret": {**each["regret"], "auto-ucb": each["regret"]["auto-ts"]}} for each in found]


__all__ = ["OTHERS", "OURS", "as_ts", "ratios", "row_of", "rows"]
