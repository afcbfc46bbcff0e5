"""`sparse`: what a reward and a decision cost on large graphs, on one core. Run by hand: python -m benchmarks.scale."""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import scipy.sparse as sp

from coterie.graphs import UserGraph, make_graph
from coterie.kernels.graph import GraphKernel
from coterie.models import SparseModel

COMMUNITY, DEGREE, ACROSS = 100, 10, 0.1
WIDTH, N_ARMS, CANDIDATES, NOISE_VAR = 32, 1_000, 20, 0.1
ACTIVE, WARM = 2_000, 1_000


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    n_users: int
    ridge: float
    eps: float


def communities(n_users: int, seed: int) -> UserGraph:
    """Communities of 100 users, mean degree 10, a tenth of the edges to anywhere."""
    rng = np.random.default_rng(seed)
    n_edges = n_users * DEGREE // 2
    ends = rng.integers(n_users, size=n_edges)
    near = ends // COMMUNITY * COMMUNITY + rng.integers(COMMUNITY, size=n_edges)
    others = np.where(rng.random(n_edges) < ACROSS, rng.integers(n_users, size=n_edges), near)
    kept = ends != others
    ones = np.ones(int(kept.sum()))
    half = sp.coo_array((ones, (ends[kept], others[kept])), shape=(n_users, n_users)).tocsr()
    both = half + half.T
    both.data[:] = 1.0
    return UserGraph.from_matrix(both)


def percentiles(seconds: list[float]) -> str:
    middle, high = np.percentile(np.array(seconds) * 1e3, [50, 99])
    return f"{middle:.3f} / {high:.2f}"


def measure(case: Case, graph: UserGraph, rounds: int) -> str:
    """Plays rounds of a linear world whose users differ by community, and returns a row of the table."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(N_ARMS, WIDTH)) / np.sqrt(WIDTH)
    taste = rng.normal(size=(case.n_users // COMMUNITY + 1, WIDTH)) / np.sqrt(DEGREE)  # about the prior's size
    active = rng.choice(case.n_users, size=ACTIVE, replace=False)
    start = perf_counter()
    model = SparseModel(GraphKernel(graph, features, laplacian_ridge=case.ridge), noise_var=NOISE_VAR, eps=case.eps)
    built = perf_counter() - start
    rewards: list[float] = []
    decisions: list[float] = []
    for number in range(WARM + rounds):
        user, arms = int(rng.choice(active)), rng.choice(N_ARMS, size=CANDIDATES, replace=False)
        start = perf_counter()
        mean, std = model.read(user, arms)
        arm = int(arms[np.argmax(mean + std)])
        decided = perf_counter()
        reward = float(features[arm] @ taste[user // COMMUNITY] + np.sqrt(NOISE_VAR) * rng.normal())
        before = perf_counter()
        model.learn(user, arm, reward)
        done = perf_counter()
        if number >= WARM:
            rewards.append(done - before)
            decisions.append(decided - start)
    return (
        f"| {case.n_users:,} | {case.ridge:g} | {case.eps:g} | {percentiles(rewards)} | {percentiles(decisions)} | "
        f"{built:.2f} | {model.n_waiting} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--ridge", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--eps", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--graph", choices=["communities", "barabasi-albert"], default="communities")
    parser.add_argument("--rounds", type=int, default=5_000)
    asked = parser.parse_args()
    print("| users | rho | eps | reward p50 / p99, ms | decide p50 / p99, ms | built, s | waiting |")
    print("|---|---|---|---|---|---|---|")
    for n_users in asked.users:
        hubs = asked.graph == "barabasi-albert"
        graph = make_graph(asked.graph, n_users, attach=DEGREE // 2, seed=0) if hubs else communities(n_users, seed=0)
        for ridge in asked.ridge:
            for eps in asked.eps:
                print(measure(Case(n_users, ridge, eps), graph, asked.rounds), flush=True)


if __name__ == "__main__":
    main()
