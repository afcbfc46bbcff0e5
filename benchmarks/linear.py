"""`linear`: a graph-linear policy decides among twenty and updates, at n*d = 1000."""

from collections.abc import Callable
from typing import Any

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


def river_regressions(ours: Ours) -> Callable[[], object]:
    """River's disjoint LinUCB with our users as its arms.

    Its `LinUCBDisjoint` scores one context for all arms and tells only the winner, so the regression it keeps for each
    arm is asked directly: one `predict_one` a candidate, one `learn_one`. The contexts are dictionaries already.
    """
    from river.linear_model import BayesianLinearRegression

    regressions = [BayesianLinearRegression() for _ in range(N_USERS)]
    contexts = [dict(enumerate(row)) for row in ours.features.tolist()]

    def upper(user: int, arm: int) -> float:
        belief = regressions[user].predict_one(contexts[arm], with_dist=True)  # type: ignore[no-untyped-call] # river has no types
        return float(belief.mu + belief.sigma)

    def run() -> None:
        for user, shown, (_, _, reward) in zip(ours.users.tolist(), ours.shown, ours.rounds, strict=True):
            best = max(shown.tolist(), key=lambda arm: upper(user, arm))
            regressions[user].learn_one(contexts[best], reward)

    return run


def mabwiser_bandit(ours: Ours) -> Callable[[], object]:
    """MABWiser's LinUCB with our users as its arms: one `predict_expectations` on all candidates, one `partial_fit`.

    It scores every user for each candidate, of which one is looked at, and copies every user's model at each update.
    """
    bandit = _fitted(list(range(N_USERS)))
    return lambda: _rounds(ours, [bandit] * N_USERS)


def mabwiser_bandits(ours: Ours) -> Callable[[], object]:
    """The same scores from a bandit for each user, with that user as its only arm: the fastest we found."""
    bandits = [_fitted([user]) for user in range(N_USERS)]
    return lambda: _rounds(ours, bandits)


def _fitted(users: list[int]) -> Any:
    from mabwiser.mab import MAB, LearningPolicy

    bandit = MAB(arms=users, learning_policy=LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0))
    bandit.fit(users[:1], [0.0], np.zeros((1, DIMENSION)))  # it must be fitted once; this changes nothing
    return bandit


def _rounds(ours: Ours, bandits: list[Any]) -> None:
    for user, shown, (_, _, reward) in zip(ours.users.tolist(), ours.shown, ours.rounds, strict=True):
        contexts = ours.features[shown]
        scores = [each[user] for each in bandits[user].predict_expectations(contexts)]
        bandits[user].partial_fit([user], [reward], contexts[[int(np.argmax(scores))]])


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
    for peer, target, per in (
        (river_regressions, 4.0, "river, disjoint LinUCB, users as arms"),
        (mabwiser_bandit, 15.0, "MABWiser, LinUCB, users as arms"),
    ):
        mine, theirs = (seconds / BLOCK for seconds in medians(alone.run, peer(alone)))
        out.append(at_least("per-user-linucb, round, d = 20", mine, theirs, target, per=per))
    mine, theirs = (seconds / BLOCK for seconds in medians(alone.run, mabwiser_bandits(alone)))
    out.append(at_most("per-user-linucb, round, d = 20", mine, theirs, None, per="MABWiser, a LinUCB for each user"))
    return out
