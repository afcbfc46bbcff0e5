"""The world that everything is measured on: linear, its users alike by community, rewards on a few thousand users."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from coterie.contracts import Array, Index
from coterie.graphs import UserGraph, make_graph
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models import Model, SparseModel

COMMUNITY, DEGREE, ACROSS = 100, 10, 0.1
WIDTH, N_ARMS, CANDIDATES, NOISE_VAR = 32, 1_000, 20, 0.1
ACTIVE = 2_000


def communities(n_users: int, seed: int) -> UserGraph:
    """Communities of 100 users, mean degree 10, a tenth of the edges to anywhere."""
    rng = np.random.default_rng(seed)
    n_edges = n_users * DEGREE // 2
    ends = rng.integers(n_users, size=n_edges)
    near = np.minimum(ends // COMMUNITY * COMMUNITY + rng.integers(COMMUNITY, size=n_edges), n_users - 1)
    others = np.where(rng.random(n_edges) < ACROSS, rng.integers(n_users, size=n_edges), near)
    kept = ends != others
    ones = np.ones(int(kept.sum()))
    half = sp.coo_array((ones, (ends[kept], others[kept])), shape=(n_users, n_users)).tocsr()
    both = half + half.T
    both.data[:] = 1.0
    return UserGraph.from_matrix(both)


def graph_of(kind: str, n_users: int) -> UserGraph:
    if kind == "communities":
        return communities(n_users, seed=0)
    return make_graph("barabasi-albert", n_users, attach=DEGREE // 2, seed=0)


@dataclass(slots=True)
class World:
    """Users, arms and rewards; `seed` deals the rounds, so that runs differ."""

    kind: str
    n_users: int
    seed: int = 0
    n_active: int = ACTIVE
    graph: UserGraph = field(init=False)
    features: Array = field(init=False)
    _taste: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(1)
        self.graph = graph_of(self.kind, self.n_users)
        self.features = rng.normal(size=(N_ARMS, WIDTH)) / np.sqrt(WIDTH)
        # About the size of the prior.
        self._taste = rng.normal(size=(self.n_users // COMMUNITY + 1, WIDTH)) / np.sqrt(DEGREE)

    def model(self, ridge: float, eps: float) -> SparseModel:
        return SparseModel(self.kernel(ridge), noise_var=NOISE_VAR, eps=eps)

    def kernel(self, ridge: float) -> GraphKernel:
        return GraphKernel(self.graph, self.features, laplacian_ridge=ridge)

    def rewards(self, users: Any, arms: Any, rng: np.random.Generator) -> Array:
        """Returns the rewards of many pairs."""
        parts = np.array_split(np.arange(len(users)), max(len(users) // 100_000, 1))
        clean = [
            np.einsum("ij,ij->i", self.features[arms[part]], self._taste[users[part] // COMMUNITY]) for part in parts
        ]
        return np.asarray(np.concatenate(clean) + np.sqrt(NOISE_VAR) * rng.normal(size=len(users)))

    def rounds(self, n_rounds: int) -> Iterator[tuple[int, Index, Array]]:
        """Yields a user who is active, candidates, and the reward that each of these would give."""
        rng = np.random.default_rng([2, self.seed])
        active = rng.choice(self.n_users, size=min(self.n_active, self.n_users), replace=False)
        for _ in range(n_rounds):
            user = int(rng.choice(active))
            taste, noise = self._taste[user // COMMUNITY], float(np.sqrt(NOISE_VAR) * rng.normal())
            arms = rng.choice(N_ARMS, size=CANDIDATES, replace=False)
            yield user, arms, self.features[arms] @ taste + noise


@dataclass(slots=True)
class Times:
    """Seconds of each decision and each reward."""

    decide: list[float] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    certain: list[bool] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Medians and 99 in 100, in milliseconds."""
        both = {"reward": self.reward, "decide": self.decide}
        out: dict[str, float] = {}
        for name, seconds in both.items():
            middle, high = np.percentile(np.array(seconds) * 1e3, [50, 99])
            out |= {f"{name}_p50": float(middle), f"{name}_p99": float(high)}
        return out


def play(world: World, model: Model, warm: int, rounds: int, *, certified: bool = False) -> Times:
    """Decides by UCB, certified if asked for, and learns; the first `warm` rounds are not timed."""
    times = Times()
    for number, (user, arms, rewards) in enumerate(world.rounds(warm + rounds)):
        start = perf_counter()
        if certified and isinstance(model, SparseModel):
            mean, std, certain = model.read_certain(user, arms, 1.0)
        else:
            (mean, std), certain = model.read(user, arms), False
        best = int(np.argmax(mean + std))
        decided = perf_counter()
        arm, reward = int(arms[best]), float(rewards[best])
        before = perf_counter()
        model.learn(user, arm, reward)
        done = perf_counter()
        if number >= warm:
            times.decide.append(decided - start)
            times.reward.append(done - before)
            times.certain.append(certain)
    return times
