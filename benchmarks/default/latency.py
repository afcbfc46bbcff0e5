"""What a call of the default Bandit costs in a loop as fast as it goes, at several sizes: run in a process each."""

import json
import resource
import sys
from subprocess import run
from time import perf_counter, thread_time
from typing import Any

import numpy as np
import scipy.sparse as sp

import coterie as ct

SIZES = (300, 2_000, 10_000, 100_000, 1_000_000)
ARMS, DIMENSION, SHOWN, ROUNDS, ACTIVE = 1_000, 20, 20, 2_500, 1_500


def graph_of(n_users: int, rng: np.random.Generator) -> ct.UserGraph:
    """Returns communities of fifty, nine edges in ten inside, mean degree 8."""
    first = rng.integers(n_users, size=4 * n_users)
    inside = np.minimum(first // 50 * 50 + rng.integers(50, size=len(first)), n_users - 1)
    second = np.where(rng.random(len(first)) < 0.9, inside, rng.integers(n_users, size=len(first)))
    apart = first != second
    weights = sp.coo_array((np.ones(apart.sum()), (first[apart], second[apart])), shape=(n_users, n_users)).tocsr()
    return ct.UserGraph.from_matrix(((weights + weights.T) > 0).astype(float))


def measured(n_users: int, policy: str, *, clicks: bool, rounds: int = ROUNDS) -> dict[str, Any]:
    """Returns how long decisions and rewards took, of the wall and of the calling thread, and the memory."""
    rng = np.random.default_rng(0)
    graph, features = graph_of(n_users, rng), rng.normal(size=(ARMS, DIMENSION))
    taste = rng.normal(size=(n_users // 50 + 1, DIMENSION))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, perf_counter()
    bandit = ct.Bandit(graph=graph, arms=ct.ArmPool(features), policy=policy, seed=0)
    made, wall = perf_counter() - start, list[float]()
    own: dict[str, list[float]] = {"decide": [], "reward": []}
    for _ in range(rounds):
        user, shown = int(rng.integers(min(n_users, ACTIVE))), rng.choice(ARMS, SHOWN, replace=False).tolist()
        began = perf_counter(), thread_time()
        choice = bandit.decide(user, shown)
        wall.append(perf_counter() - began[0])
        own["decide"].append(thread_time() - began[1])
        value = np.tanh(features[int(str(choice.arm))] @ taste[user // 50] / 3)
        reward = float(rng.random() < (value + 1) / 2) if clicks else float(value + 0.3 * rng.normal())
        began = perf_counter(), thread_time()
        bandit.reward(choice.id, reward)
        wall.append(perf_counter() - began[0])
        own["reward"].append(thread_time() - began[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "users": n_users,
        "policy": policy,
        "clicks": clicks,
        "made": made,
        "wall": quantiles(wall),
        "own": quantiles(own["decide"] + own["reward"]),
        **{name: quantiles(each) for name, each in own.items()},
        "round_ms": 1e3 * sum(wall) / rounds,
        "more_mib": (peak - before) / 1024,
    }


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Returns milliseconds: the median, the 90th and 99th percentile, and the longest."""
    found = 1e3 * np.quantile(seconds, [0.5, 0.9, 0.99, 1.0])
    return dict(zip(("p50", "p90", "p99", "longest"), found.tolist(), strict=True))


def apart(n_users: int, policy: str, *, clicks: bool) -> dict[str, Any]:
    """Returns what a process of its own measures."""
    command = [sys.executable, "-m", "benchmarks.default.latency", str(n_users), policy, str(int(clicks))]
    out: dict[str, Any] = json.loads(run(command, check=True, capture_output=True, text=True).stdout)
    return out


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]), sys.argv[2], clicks=sys.argv[3] == "1")))
