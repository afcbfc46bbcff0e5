"""`sparse` with many rewards: one by one, at once, and files. Run by hand: python -m benchmarks.batch."""

import argparse
import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import coterie as ct
from benchmarks.large.world import COMMUNITY, N_ARMS, NOISE_VAR, WIDTH, communities
from coterie.contracts import Array
from coterie.graphs import UserGraph
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models import SparseModel
from coterie.models.engines.sparse.reward_table import RewardTable, collapsed


def peak() -> str:
    """Returns the largest memory that this process ever took."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB at most"


def arm_features(rng: np.random.Generator) -> Array:
    features = rng.normal(size=(N_ARMS, WIDTH))
    return np.asarray(features / np.linalg.norm(features, axis=1, keepdims=True))


def rewards_of(users: Any, arms: Any, features: Array, rng: np.random.Generator) -> Array:
    """Returns rewards of communities with a taste each, and noise."""
    taste = rng.normal(size=(int(users.max()) // COMMUNITY + 1, WIDTH))
    clean = np.concatenate(
        [
            np.einsum("ij,ij->i", features[arms[part]], taste[users[part] // COMMUNITY])
            for part in (slice(start, start + 2**18) for start in range(0, len(users), 2**18))
        ]
    )
    return np.asarray(clean + np.sqrt(NOISE_VAR) * rng.normal(size=len(users)))


def one_by_one(model: SparseModel, n_rewards: int, n_active: int, decide: bool) -> None:
    """Learns rewards of some users, decides for each of them before, and prints time and memory as it goes."""
    rng = np.random.default_rng(1)
    features = model.kernel.features
    active = rng.choice(model.n_users, size=n_active, replace=False)
    users = np.concatenate([active, rng.choice(active, size=max(n_rewards - n_active, 0))])[:n_rewards]
    arms = rng.integers(N_ARMS, size=n_rewards)
    values = rewards_of(users, arms, features, rng)
    start = perf_counter()
    for number, each in enumerate(zip(users.tolist(), arms.tolist(), values.tolist(), strict=True), start=1):
        if decide and number <= n_active:
            model.read(each[0], arms[:20])
        model.learn(*each)
        if number % (n_rewards // 10) == 0:
            took = perf_counter() - start
            print(f"{number:,} rewards: {took:.0f} s, {took / number * 1e3:.2f} ms each; {peak()}", flush=True)


def at_once(model: SparseModel, n_rewards: int) -> None:
    """Fits rewards of all users, and prints time, steps and memory."""
    rng = np.random.default_rng(1)
    users, arms = rng.integers(model.n_users, size=n_rewards), rng.integers(N_ARMS, size=n_rewards)
    columns: dict[str, Any] = {
        "users": users.astype(np.int32),
        "arms": arms.astype(np.int32),
        "counts": np.ones(n_rewards),
    }
    columns |= {"means": rewards_of(users, arms, model.kernel.features, rng), "scatters": np.zeros(n_rewards)}
    del users, arms
    rows = RewardTable.from_columns({"n_observations": n_rewards, **collapsed(columns, N_ARMS)}, model.n_users, N_ARMS)
    del columns
    steps = timed("fit", model.fit, rows)
    print(f"{steps} steps, {len(model.history):,} pairs", flush=True)
    start = perf_counter()
    for user in range(100):
        model.learn(user * 7, 3, 0.1)
    print(f"then {(perf_counter() - start) * 10:.2f} ms a reward, {len(model._data):,} blocks; {peak()}", flush=True)


def from_a_file(graph: UserGraph, n_rewards: int, folder: Path) -> None:
    """Fits a Parquet file, scores everybody to another, saves and loads, and prints what each takes."""
    rng = np.random.default_rng(1)
    columns = {"user": rng.integers(graph.n_users, size=n_rewards), "arm": rng.integers(N_ARMS, size=n_rewards)}
    pq.write_table(pa.table(columns | {"reward": rng.normal(size=n_rewards)}), folder / "rewards.parquet")
    del columns
    arms = ct.ArmPool(rng.normal(size=(N_ARMS, 2)))
    made = ct.Bandit(graph=graph, arms=arms, policy="lk-gp-ucb", engine="sparse", noise_var=NOISE_VAR)
    print(f"bandit: {made.describe()} {peak()}", flush=True)
    timed("fit", made.fit, folder / "rewards.parquet")
    timed("the ten best of everybody", partial(made.score_all, to=folder / "scores.parquet"))
    timed("save", made.save, folder / "bandit")
    before = made.predict(5)
    del made
    loaded = timed("load", ct.Bandit.load, folder / "bandit")
    print(f"{(folder / 'bandit').stat().st_size / 2**30:.2f} GiB in the file; same: {loaded.predict(5) == before}")


def timed(what: str, call: Callable[..., Any], *given: Any) -> Any:
    start, worked = perf_counter(), process_time()
    out = call(*given)
    took = f"{perf_counter() - start:.1f} s, {process_time() - worked:.1f} of them on a core"
    print(f"{what}: {took}; {peak()}", flush=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["online", "fit", "file"])
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--rewards", type=int, default=10_000_000)
    parser.add_argument("--active", type=int, default=100_000)
    parser.add_argument("--ridge", type=float, default=0.1)
    parser.add_argument("--eps", type=float, default=0.1)
    parser.add_argument("--decide", action="store_true")
    asked = parser.parse_args()
    start = perf_counter()
    graph = communities(asked.users, seed=0)
    print(f"graph: {perf_counter() - start:.0f} s; {peak()}", flush=True)
    if asked.what == "file":
        with TemporaryDirectory() as folder:
            from_a_file(graph, asked.rewards, Path(folder))
        return
    start = perf_counter()
    kernel = GraphKernel(graph, arm_features(np.random.default_rng(0)), laplacian_ridge=asked.ridge)
    model = SparseModel(kernel, noise_var=NOISE_VAR, eps=asked.eps)
    print(f"model: {perf_counter() - start:.0f} s; {peak()}", flush=True)
    if asked.what == "online":
        one_by_one(model, asked.rewards, asked.active, asked.decide)
    else:
        at_once(model, asked.rewards)


if __name__ == "__main__":
    main()
