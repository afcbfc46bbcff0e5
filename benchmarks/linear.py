"""`linear`: a graph-linear policy decides among twenty and updates, at n*d = 1000."""

import numpy as np

import coterie as ct
from benchmarks.timing import Row, at_least, at_most, medians

N_USERS, DIMENSION, N_ARMS, CANDIDATES, BLOCK = 50, 20, 100, 20, 64


class Ours:
    """A policy with string ids, fed one round after another."""

    def __init__(self, name: str) -> None:
        rng = np.random.default_rng(0)
        graph = ct.make_graph("erdos-renyi", N_USERS, seed=0)
        graph = ct.UserGraph.from_matrix(graph.weights, users=[f"user-{i}" for i in range(N_USERS)])
        self.features = rng.normal(size=(N_ARMS, DIMENSION))
        arms = ct.ArmPool(self.features, ids=[f"arm-{i}" for i in range(N_ARMS)])
        self.policy = ct.make_policy(name, graph=graph, arms=arms)
        shown = [rng.permutation(N_ARMS)[:CANDIDATES] for _ in range(BLOCK)]
        self.users = rng.integers(N_USERS, size=BLOCK)
        self.shown = shown
        self.rounds = [
            (graph.users[int(user)], [arms.ids[i] for i in rows], float(rng.normal()))
            for user, rows in zip(self.users, shown, strict=True)
        ]

    def run(self) -> None:
        for user, candidates, reward in self.rounds:
            choice = self.policy.select(user, candidates)
            self.policy.update(user, choice.arm, reward)


class RankOne:
    """The same method as a full rank-one update of the inverse design matrix in NumPy, on integers."""

    def __init__(self, ours: Ours) -> None:
        self.ours = ours
        self.inverse = np.kron(ours.policy.model.kernel.user_cov, np.eye(DIMENSION))
        self.weights = np.zeros(len(self.inverse))

    def run(self) -> None:
        inverse, weights = self.inverse, self.weights
        for user, rows, (_, _, reward) in zip(self.ours.users, self.ours.shown, self.ours.rounds, strict=True):
            place = slice(user * DIMENSION, (user + 1) * DIMENSION)
            shown = self.ours.features[rows]
            variance = np.einsum("ij,ij->i", shown @ inverse[place, place], shown)
            score = shown @ weights[place] + np.sqrt(np.maximum(variance, 0.0))
            chosen = shown[score.argmax()]
            column = inverse[:, place] @ chosen
            scale = 1.0 + chosen @ column[place]
            weights += column * ((reward - chosen @ weights[place]) / scale)
            inverse -= np.outer(column, column / scale)


class ShermanMorrison:
    """LinUCB for each user alone, written by hand on integers: no ids, no checks, no records."""

    def __init__(self, ours: Ours) -> None:
        self.ours = ours
        self.inverse = np.tile(np.eye(DIMENSION), (N_USERS, 1, 1))
        self.weights = np.zeros((N_USERS, DIMENSION))

    def run(self) -> None:
        for user, rows, (_, _, reward) in zip(self.ours.users, self.ours.shown, self.ours.rounds, strict=True):
            inverse, weights = self.inverse[user], self.weights[user]
            shown = self.ours.features[rows]
            variance = np.einsum("ij,ij->i", shown @ inverse, shown)
            chosen = shown[(shown @ weights + np.sqrt(variance)).argmax()]
            column = inverse @ chosen
            scale = 1.0 + chosen @ column
            weights += column * ((reward - chosen @ weights) / scale)
            inverse -= np.outer(column, column / scale)


def rows() -> list[Row]:
    out = []
    for name in ("gob-lin", "graph-ucb"):
        ours = Ours(name)
        assert ours.policy.model.engine == "linear"
        mine, theirs = (seconds / BLOCK for seconds in medians(ours.run, RankOne(ours).run))
        out.append(at_least(f"{name}, round, n*d = 1000", mine, theirs, 10.0, per="rank-one NumPy"))
    alone = Ours("per-user-linucb")
    mine, theirs = (seconds / BLOCK for seconds in medians(alone.run, ShermanMorrison(alone).run, repeats=25))
    out.append(at_most("per-user-linucb, round, d = 20", mine, theirs, 1.5, per="hand-written Sherman-Morrison loop"))
    return out
