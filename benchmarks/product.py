"""The Bandit against the bare policy, propensities by quadrature against simulation, and saving against raw bytes."""

import os
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import coterie as ct
from benchmarks.timing import Row, at_least, at_most, medians
from coterie.policies.rules.propensity import thompson_probabilities

N_ARMS, CANDIDATES, BLOCK = 20, 5, 256


class Rounds:
    """A graph, arms and rounds with string ids."""

    def __init__(self, n_users: int) -> None:
        rng = np.random.default_rng(0)
        drawn = ct.make_graph("erdos-renyi", n_users, edge_prob=0.1, seed=0)
        self.graph = ct.UserGraph.from_matrix(drawn.weights, users=[f"user-{i}" for i in range(n_users)])
        self.arms = ct.ArmPool(rng.normal(size=(N_ARMS, 5)), ids=[f"arm-{i}" for i in range(N_ARMS)])
        self.rounds = [
            (
                self.graph.users[int(rng.integers(n_users))],
                [self.arms.ids[i] for i in rng.permutation(N_ARMS)[:CANDIDATES]],
                float(rng.normal()),
            )
            for _ in range(BLOCK)
        ]

    def bare(self, policy: ct.Policy) -> None:
        for user, candidates, reward in self.rounds:
            policy.update(user, policy.select(user, candidates).arm, reward)

    def kept(self, bandit: ct.Bandit) -> None:
        for user, candidates, reward in self.rounds:
            bandit.reward(bandit.decide(user, candidates).id, reward)


class Joining:
    """A user who joins 2,000 others with two arms: `add_user` against the belief computed from scratch."""

    def __init__(self, policy: str, n_rewards: int, n_users: int = 2_000) -> None:
        rng = np.random.default_rng(0)
        drawn = ct.make_graph("erdos-renyi", n_users, edge_prob=0.005, seed=0)
        self.bandit = ct.Bandit(graph=drawn, arms=ct.ArmPool(rng.normal(size=(2, 5))), policy=policy, engine="grid")
        for _ in range(n_rewards):
            self.bandit.learn(int(rng.integers(n_users)), int(rng.integers(2)), float(rng.normal()))
        self.number = n_users

    def add(self) -> None:
        self.bandit.add_user(self.number, {0: 1.0, 1: 1.0, 2: 1.0})
        self.number += 1

    def rebuild(self) -> None:
        self.bandit._learned.relearn(self.bandit._learned.policy.hyperparameters())


def joining() -> list[Row]:
    out = []
    for policy, n_rewards in (("lk-gp-ucb", 500), ("auto-ucb", 16)):  # each fit of auto takes a while
        joins = Joining(policy, n_rewards)
        mine, theirs = medians(joins.add, joins.rebuild)
        what = f"{policy}, a user with 3 friends joins 2,000, n*m = 4000"
        out.append(at_least(what, mine, theirs, 10.0, per="rebuild"))
    return out


def deciding() -> list[Row]:
    """200 users among 20 candidates, at once and one after another."""
    rounds, out = Rounds(100), []
    for policy in ("lk-gp-ucb", "auto-ucb", "lk-gp-ts"):
        bandit = ct.Bandit(graph=rounds.graph, arms=rounds.arms, policy=policy, engine="grid")
        for user, candidates, reward in rounds.rounds[:64]:
            bandit.learn(user, candidates[0], reward)
        users, shown = list(rounds.graph.users) * 2, list(rounds.arms.ids)
        at_once = partial(bandit.decide_many, users, shown)
        mine, theirs = medians(at_once, partial(_one_by_one, bandit, users, shown), repeats=25)
        out.append(at_least(f"{policy}, decide_many, 200 users x 20", mine, theirs, 1.0, per="a loop of decide"))
    return out


def _one_by_one(bandit: ct.Bandit, users: list[Any], shown: list[Any]) -> None:
    for user in users:
        bandit.decide(user, shown)


def rows() -> list[Row]:
    out = joining() + deciding()
    for n_users in (50, 100, 200):
        rounds = Rounds(n_users)
        options: dict[str, Any] = {"graph": rounds.graph, "arms": rounds.arms, "engine": "grid"}
        policy, bandit = ct.make_policy("lk-gp-ucb", **options), ct.Bandit(policy="lk-gp-ucb", **options)
        mine, theirs = medians(partial(rounds.kept, bandit), partial(rounds.bare, policy), repeats=9)
        what = f"Bandit, decide + reward, n*m = {n_users * N_ARMS}"
        out.append(at_most(what, mine / BLOCK, theirs / BLOCK, 1.3, per="bare policy"))
    rng = np.random.default_rng(1)
    mean, spread = rng.normal(size=20), rng.uniform(0.2, 1.0, size=20)

    def simulate() -> None:
        draws = mean + spread * rng.standard_normal((10_000, 20))
        np.bincount(draws.argmax(axis=1), minlength=20)

    mine, theirs = medians(lambda: thompson_probabilities(mean, spread), simulate, repeats=25)
    out.append(at_least("propensities of 20, within 1e-6", mine, theirs, 1.0, per="10,000 draws, good to 5e-3"))
    with TemporaryDirectory() as folder:
        out += saving(Path(folder), bandit)
    return out


def saving(folder: Path, bandit: ct.Bandit) -> list[Row]:
    """The whole bandit to a file and back, against the same bytes without a format or a checksum."""
    path, peer = folder / "bandit.coterie", folder / "raw"
    bandit.save(path)
    content = path.read_bytes()

    def write() -> None:
        with peer.with_suffix(".partial").open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        peer.with_suffix(".partial").replace(peer)

    size = f"n*m = {bandit.graph.n_users * N_ARMS}, {len(content) / 1e6:.0f} MB"
    mine, theirs = medians(partial(bandit.save, path), write, repeats=9)
    saved = at_most(f"save, {size}", mine, theirs, 2.0, per="the same bytes raw")
    mine, theirs = medians(partial(ct.Bandit.load, path), partial(np.fromfile, path, dtype=np.uint8), repeats=9)
    return [saved, at_most(f"load, {size}", mine, theirs, None, per="the same bytes raw")]
