"""Logs whose truth is known: users on a graph of blocks who like what their block likes."""

from dataclasses import replace

import numpy as np

from coterie.graphs import make_graph
from coterie.kernels import ArmPool
from coterie.logs import Events, Log


def planted_log(*, n_users: int = 80, n_arms: int = 30, each: int = 12, one_class: bool = False, seed: int = 0) -> Log:
    """Returns a log in which users of a block of the graph have one taste, linear in three features, and some noise."""
    rng = np.random.default_rng(seed)
    graph = make_graph("sbm", n_users, seed=seed, n_blocks=4, inside=0.4, across=0.02)
    arms = ArmPool(rng.normal(size=(n_arms, 3)), feature_names=["sweet", "hot", "dull"])
    block = np.arange(n_users) * 4 // n_users  # as make_graph lays its blocks out
    taste = rng.normal(size=(4, 3))[block] * [1.5, 1.5, 0.0]
    user = np.repeat(np.arange(n_users), each)
    arm = np.concatenate([rng.choice(n_arms, size=each, replace=False) for _ in range(n_users)])
    reward = np.einsum("ij,ij->i", taste[user], arms.features[arm]) + 0.3 * rng.normal(size=len(user))
    if one_class:
        kept = reward > 0
        user, arm, reward = user[kept], arm[kept], np.ones(np.count_nonzero(kept))
    return Log(graph=graph, arms=arms, events=Events(user=user, arm=arm, reward=reward))


def with_users_permuted(log: Log, seed: int = 1) -> Log:
    """Returns the log with every user at another's place in the graph."""
    return replace(log, graph=log.graph.permuted(seed))
