"""What one run of each kind of case measures; a run has a process of its own."""

import resource
import sys
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.large.peers import right_side
from benchmarks.large.world import N_ARMS, World, play
from coterie.models.engines.sparse.reward_table import RewardTable, collapsed
from coterie.models.engines.sparse.solves import PosteriorPrecision

FINE = 1e-9
LOOKED_AT = 500


def peak_gib() -> float:
    """The largest resident size of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def rounds_of(
    kind: str, n_users: int, ridge: float, eps: float, seed: int, *, rounds: int, certified: bool = False
) -> dict[str, float]:
    """Times of rewards and decisions, and of construction from a given graph."""
    world = World(kind, n_users, seed=seed)
    world.model(ridge, eps)  # compiled code is loaded
    start = perf_counter()
    model = world.model(ridge, eps)
    built = perf_counter() - start
    times = play(world, model, rounds // 5, rounds, certified=certified)
    more = {"built": built, "waiting": model.n_waiting, "peak": peak_gib(), "certain": float(np.mean(times.certain))}
    return times.summary() | more


def fit_of(n_users: int, n_rows: int, seed: int) -> dict[str, float]:
    """One solve for a table of rewards of everybody, rho 0.1, eps 0.1, from columns in memory."""
    world, rng = World("communities", n_users, seed=seed), np.random.default_rng(seed)
    model = world.model(0.1, 0.1)
    users, arms = (
        rng.integers(n_users, size=n_rows).astype(np.int32),
        rng.integers(N_ARMS, size=n_rows).astype(np.int32),
    )
    columns: dict[str, Any] = {"users": users, "arms": arms, "counts": np.ones(n_rows)}
    columns |= {"means": world.rewards(users, arms, rng), "scatters": np.zeros(n_rows)}
    del users, arms
    start = perf_counter()
    rows = RewardTable.from_columns({"n_observations": n_rows, **collapsed(columns, N_ARMS)}, n_users, N_ARMS)
    del columns
    steps = model.fit(rows)
    return {"seconds": perf_counter() - start, "steps": steps, "peak": peak_gib(), "pairs": len(model.history)}


def memory_of(n_users: int, n_active: int, n_rewards: int, seed: int, *, decided: bool) -> dict[str, float]:
    """Peak memory of the whole process, graph and history included."""
    world = World("communities", n_users, seed=seed, n_active=n_active)
    model = world.model(1.0, 1.0)
    start = perf_counter()
    if decided:
        play(world, model, n_rewards, 0)
    else:
        for user, arms, rewards in world.rounds(n_rewards):
            model.learn(user, int(arms[0]), float(rewards[0]))
    return {
        "peak": peak_gib(),
        "held": model.nbytes / 2**30,
        "users": len(model._data),
        "seconds": perf_counter() - start,
    }


def error_of(ridge: float, eps: float, seed: int, *, n_users: int, rounds: int) -> dict[str, float]:
    """How far means are from a tight global solution, in prior stds, what is stated, and what a reward took."""
    world = World("communities", n_users, seed=seed)
    model = world.model(ridge, eps)
    taken = play(world, model, rounds // 5, rounds).reward
    threshold = FINE * model._posterior.threshold / eps
    exact = PosteriorPrecision(model.kernel, model._data).solve(right_side(model.history, world), threshold)
    users = np.random.default_rng(seed).choice(n_users, size=min(LOOKED_AT, n_users), replace=False)
    off = np.abs((model._posterior.weights[users] - exact[users]) @ world.features.T)
    prior = np.array([model.prior_std(int(user)) for user in users])
    stated = np.array([model.error_bound(int(user)) for user in users])
    relative = (off / prior).max(axis=1)
    return {
        "reward": 1e3 * float(np.mean(taken)),
        "median": float(np.median(relative)),
        "largest": float(relative.max()),
        "stated": float((stated / prior).max()),
    }


def drift_of(n_rewards: int, seed: int) -> dict[str, float]:
    """How far the kept residual is from one computed from scratch, as a share of its scale."""
    world = World("communities", 10_000, seed=seed, n_active=10_000)
    model = world.model(1.0, 1.0)
    for user, arms, rewards in world.rounds(n_rewards):
        model.learn(user, int(arms[0]), float(rewards[0]))
    kept, fresh = model._posterior.residual, model._posterior.fresh_residual(model._data)
    return {"gap": float(np.abs(fresh - kept).max()), "scale": float(np.abs(kept).max())}
