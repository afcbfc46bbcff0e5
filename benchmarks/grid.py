"""`grid`: decide among five and update, through the public policy with string ids."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

import coterie as ct
from benchmarks.timing import Row, at_least, at_most, medians, seconds
from coterie.kernels import PoolKernel

Array = NDArray[np.float64]

SHAPES = {200: (20, 10), 1000: (50, 20), 2000: (100, 20), 4000: (200, 20)}
SPEEDUP = {1000: 6.0, 2000: 12.0, 4000: 30.0}
BLOCK = 64


class Ours:
    """The policy, fed one round after another."""

    def __init__(self, n_users: int, n_arms: int) -> None:
        rng = np.random.default_rng(0)
        graph = ct.make_graph("erdos-renyi", n_users, edge_prob=0.2, seed=0)
        graph = ct.UserGraph.from_matrix(graph.weights, users=[f"user-{i}" for i in range(n_users)])
        arms = ct.ArmPool(rng.normal(size=(n_arms, 5)), ids=[f"arm-{i}" for i in range(n_arms)])
        self.policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, engine="grid")
        self.rounds = [
            (
                graph.users[rng.integers(n_users)],
                [arms.ids[i] for i in rng.permutation(n_arms)[:5]],
                float(rng.normal()),
            )
            for _ in range(BLOCK)
        ]

    def run(self) -> None:
        policy = self.policy
        for user, candidates, noise in self.rounds:
            choice = policy.select(user, candidates)
            policy.update(user, choice.arm, noise)


class RankOne:
    """The same recursion as a full rank-one update in NumPy, on integer indices."""

    def __init__(self, ours: Ours, rounds: int) -> None:
        kernel = ours.policy.model.kernel
        assert isinstance(kernel, PoolKernel)
        fortran = np.empty((kernel.n_pairs, kernel.n_pairs), order="F")
        kernel.fill(fortran)
        self.cov: Array = fortran.T  # the same numbers, row by row, as NumPy's outer product likes them
        self.mean = np.zeros(len(self.cov))
        self.n_arms = kernel.n_arms
        index = ours.policy.graph.index
        arms = ours.policy.arms
        assert arms is not None
        self.rounds = [
            (index[user] * self.n_arms + np.array([arms.index[arm] for arm in candidates]), reward)
            for user, candidates, reward in ours.rounds[:rounds]
        ]

    def run(self) -> None:
        cov, mean, noise_var = self.cov, self.mean, 0.01
        for pairs, reward in self.rounds:
            score = mean[pairs] + np.sqrt(np.maximum(cov[pairs, pairs], 0.0))
            pair = pairs[score.argmax()]
            column = cov[:, pair].copy()
            scale = noise_var + column[pair]
            mean += column * ((reward - mean[pair]) / scale)
            cov -= np.outer(column, column / scale)


class HandWritten(RankOne):
    """The blocked recursion of `grid`, written by hand on integer indices: no ids, no checks, no records."""

    def __init__(self, ours: Ours, rounds: int) -> None:
        super().__init__(ours, rounds)
        self.cov = self.cov.T
        self.variance = self.cov.diagonal().copy()
        self.block_size = 32
        self.pending = np.zeros((len(self.cov), self.block_size), order="F")
        self.k = 0

    def run(self) -> None:
        cov, mean, variance, pending, k = self.cov, self.mean, self.variance, self.pending, self.k
        for pairs, reward in self.rounds:
            score = mean[pairs] + np.sqrt(np.maximum(variance[pairs], 0.0))
            pair = pairs[score.argmax()]
            column = np.empty(len(mean))
            column[:pair] = cov[pair, :pair]
            column[pair:] = cov[pair:, pair]
            column -= pending[:, :k] @ pending[pair, :k]
            scale = 0.01 + column[pair]
            column /= np.sqrt(scale)
            mean += column * ((reward - mean[pair]) / np.sqrt(scale))
            variance -= column * column
            pending[:, k] = column
            k += 1
            if k == self.block_size:
                blas.dsyrk(-1.0, pending, beta=1.0, c=cov, lower=1, overwrite_c=1)
                k = 0
        self.k = k


def gemm_seconds_per_multiply_add(size: int = 2000) -> float:
    left = np.random.default_rng(0).normal(size=(size, size))
    np.dot(left, left)
    return float(np.median([seconds(lambda: np.dot(left, left)) for _ in range(5)])) / size**3


def rows() -> list[Row]:
    out = []
    for size, (n_users, n_arms) in SHAPES.items():
        ours = Ours(n_users, n_arms)
        peer_rounds = BLOCK if size <= 1000 else 12
        if size == 200:
            peer: RankOne = HandWritten(ours, BLOCK)
            mine, theirs = (t / BLOCK for t in medians(ours.run, peer.run, repeats=25))
            out.append(at_most(f"round, n*m = {size}", mine, theirs, 2.0, per="hand-written blocked loop"))
            rank_one = RankOne(ours, BLOCK)
            mine, theirs = (t / BLOCK for t in medians(ours.run, rank_one.run, repeats=25))
            out.append(at_most(f"round, n*m = {size}", mine, theirs, None, per="hand-written rank-one loop"))
            continue
        peer = RankOne(ours, peer_rounds)
        rate = gemm_seconds_per_multiply_add()
        mine, theirs = medians(ours.run, peer.run)
        mine, theirs = mine / BLOCK, theirs / peer_rounds
        out.append(at_least(f"round, n*m = {size}", mine, theirs, SPEEDUP[size], per="rank-one NumPy"))
        target = 1.5 if size >= 2000 else None
        out.append(
            at_most(f"round, n*m = {size}", mine, size**2 * rate, target, per="(n m)^2 multiply-adds at dgemm rate")
        )
        out.append(at_most(f"round, n*m = {size}", mine, size**2 * rate / 2, None, per="half of that: the dsyrk limit"))
    return out
