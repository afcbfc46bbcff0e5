"""What a newcomer costs on `sparse`, in processor time. Run by hand: python -m benchmarks.joining."""

import argparse
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from benchmarks.large.world import ACTIVE, COMMUNITY, DEGREE, N_ARMS, NOISE_VAR, WIDTH, communities
from coterie import ArmPool, Bandit, Green, Linear, make_graph, make_policy
from coterie.graphs import UserGraph
from coterie.policies.policy import Policy

FRIENDS, TASTES = 3, 50
HEAD = "| users | through | added | p50, ms | mean, ms | p99, ms | largest, ms | rebuild, s |"


def friends_of(rng: np.random.Generator, n_users: int) -> dict[int, float]:
    """Three friends of one community, and now and then somebody else."""
    first = int(rng.integers(n_users))
    near = first // COMMUNITY * COMMUNITY + rng.integers(COMMUNITY, size=4 * FRIENDS)
    chosen = dict.fromkeys([first, *(int(each) % n_users for each in near)])
    return dict.fromkeys(list(chosen)[:FRIENDS], 1.0)


def options() -> dict[str, Any]:
    return {
        "arm_kernel": Linear(),
        "user_kernel": Green(laplacian_ridge=1.0),
        "noise_var": NOISE_VAR,
        "engine": "sparse",
    }


def arms() -> ArmPool:
    return ArmPool(np.random.default_rng(1).normal(size=(N_ARMS, WIDTH)) / np.sqrt(WIDTH))


def row(n_users: int, through: str, seconds: list[float], rebuild: str) -> str:
    middle, high = np.percentile(np.array(seconds) * 1e3, [50, 99])
    mean, most = float(np.mean(seconds)) * 1e3, max(seconds) * 1e3
    times = f"{middle:.3f} | {mean:.3f} | {high:.2f} | {most:.0f}"
    return f"| {n_users:,} | {through} | {len(seconds):,} | {times} | {rebuild} |"


def rewarded(learn: Callable[..., None], n_users: int, rewards: int) -> None:
    """Gives rewards of a world whose communities differ, to a few of the users."""
    rng = np.random.default_rng(2)
    features, taste = arms().features, rng.normal(size=(TASTES, WIDTH)) / np.sqrt(DEGREE)
    active = rng.choice(n_users, size=min(ACTIVE, n_users), replace=False)
    for _ in range(rewards):
        user, arm = int(rng.choice(active)), int(rng.integers(N_ARMS))
        learn(user, arm, float(features[arm] @ taste[user // COMMUNITY % TASTES]))


def through_policy(graph: UserGraph, joining: int, rewards: int) -> str:
    """A newcomer is one edit of the graph and one `relink`."""
    rng, n_users = np.random.default_rng(3), graph.n_users
    policy = make_policy("lk-gp-ucb", graph=graph, arms=arms(), **options())
    rewarded(policy.update, n_users, rewards)
    rebuild = rebuilt(policy)
    seconds = []
    for number in range(joining):
        friends = friends_of(rng, n_users)
        start = process_time()
        changed, _ = policy.graph.add_user(n_users + number, friends)
        followed = policy.relink(changed)
        seconds.append(process_time() - start)
        if not followed:
            raise RuntimeError
    return row(n_users, "Policy.relink", seconds, f"{rebuild:.2f}")


def rebuilt(policy: Policy) -> float:
    """Seconds for a policy on a graph with one more user that learns the same rewards."""
    start = process_time()
    changed, _ = policy.graph.add_user("another", {0: 1.0})
    make_policy("lk-gp-ucb", graph=changed, arms=arms(), **options()).relearn(policy.model.history)
    return process_time() - start


def through_bandit(graph: UserGraph, joining: int, rewards: int) -> str:
    """The same through `Bandit.add_user`, each newcomer decided for and rewarded at once."""
    rng, n_users = np.random.default_rng(3), graph.n_users
    bandit = Bandit(graph=graph, arms=arms(), policy="lk-gp-ucb", **options())
    rewarded(bandit.learn, n_users, rewards)
    seconds = []
    for number in range(joining):
        friends, user = friends_of(rng, n_users), n_users + number
        start = process_time()
        bandit.add_user(user, friends)
        seconds.append(process_time() - start)
        bandit.reward(bandit.decide(user, range(20)).id, 1.0)
    return row(n_users, "Bandit.add_user", seconds, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--joining", type=int, default=2_000)
    parser.add_argument("--rewards", type=int, default=2_000)
    parser.add_argument("--graph", choices=["communities", "barabasi-albert"], default="communities")
    asked = parser.parse_args()
    print(HEAD + "\n" + "|---" * HEAD.count(" | ") + "|---|")
    for n_users in asked.users:
        hubs = asked.graph == "barabasi-albert"
        graph = make_graph(asked.graph, n_users, attach=DEGREE // 2, seed=0) if hubs else communities(n_users, seed=0)
        print(through_policy(graph, asked.joining, asked.rewards), flush=True)
        print(through_bandit(graph, asked.joining, asked.rewards), flush=True)


if __name__ == "__main__":
    main()
