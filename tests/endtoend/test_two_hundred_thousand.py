"""200,000 users in two GiB: generators, loaders, kernels, policies, worlds and files make nothing of users x users.

One row for each user against every other would be 320 GB. Pools of 12,000 arms make no table of arms x arms either.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CAP = 2 * 2**30

CAPPED = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({CAP}, {CAP}))
import numpy as np
import coterie as ct
N = 200_000
rng = np.random.default_rng(0)
"""

FAMILIES = """
drawn = {
    "erdos-renyi": {"edge_prob": 10 / N},
    "sbm": {"n_blocks": 2_000, "inside": 0.09, "across": 1 / N},
    "barabasi-albert": {"attach": 2},
    "watts-strogatz": {"k": 4},
    "rbf": {"latent_dim": 2, "scale": 1.0, "threshold": float(np.exp(-1e-5))},
    "grid": {},
    "ring": {},
    "empty": {},
}
assert set(drawn) == set(ct.graphs.FAMILIES) - {"complete"}
for family, options in drawn.items():
    assert ct.make_graph(family, N, **options).n_users == N
"""

LOADERS = """
graph = ct.make_graph("erdos-renyi", N, edge_prob=4 / N)
edges = list(graph.edges())
assert ct.UserGraph.from_edges(edges, users=range(N)) == graph
columns = dict(zip(("user", "friend", "weight"), zip(*edges)))
assert ct.UserGraph.from_table(columns, users=range(N)) == graph
assert ct.UserGraph.from_matrix(graph.weights) == graph
assert ct.UserGraph.from_features(rng.normal(size=(N, 3)), k=5).n_users == N
import networkx as nx
other = nx.Graph()
other.add_nodes_from(range(N))
other.add_weighted_edges_from(edges)
assert ct.UserGraph.from_networkx(other) == graph
del other
assert graph.add_user("new", {0: 1.0})[0].n_users == N + 1
assert graph.remove_user(5)[0].n_users == N - 1
assert graph.set_edge(0, 1, 2.0)[0].weight(0, 1) == 2
assert graph.permuted(0).n_edges == graph.rewired(0.01, 0).n_edges == graph.n_edges
assert graph.n_components > 1
"""

PLAYED = """
graph = ct.make_graph("barabasi-albert", N, attach=5)
arms = ct.ArmPool(rng.normal(size=(3_000, 4)))
for users in (ct.Green(laplacian_ridge=0.1), ct.Green(laplacian_ridge=0.5, normalised=True)):
    for name in ("lk-gp-ucb", "lk-gp-ts", "greedy"):
        policy = ct.make_policy(name, graph=graph, arms=arms, user_kernel=users)
        assert policy.model.engine == "sparse"
        choice = policy.select(150_000, range(50))
        policy.update(150_000, choice.arm, 1.0)
        del policy
bandit = ct.Bandit(graph=graph, arms=arms, policy="lk-gp-ucb")
for user in rng.integers(N, size=50).tolist():
    bandit.reward(bandit.decide(user, range(20)).id, 1.0)
bandit.decide_many(range(1_000, 1_050), range(20))
bandit.explain(7, 3)
bandit.save(FILE)
before = bandit.predict(7, range(5))
del bandit
again = ct.Bandit.load(FILE)
assert again.predict(7, range(5)) == before
"""

WORLDS = """
from coterie.problems import WorldSettings, draw_rounds, draw_world
seed, shape = np.random.SeedSequence(0), {"n_users": N, "n_arms": 20, "horizon": 200, "laplacian_ridge": 0.1}
shape |= {"graph": "barabasi-albert", "graph_options": {"attach": 5}}
draw_world(WorldSettings(kind="gp-draw", power=0.5, **shape | {"n_arms": 5}), seed)
draw_world(WorldSettings(kind="linear-gob", **shape), seed)
settings = WorldSettings(kind="gp-draw", power=1.0, **shape)
world = draw_world(settings, seed)
for name in ("club", "pooled-linucb", "per-user-linucb", "gp-ucb", "per-user-gp-ts", "popularity", "random"):
    options, regret = {"cluster_width": 0.05} if name == "club" else {}, 0.0
    policy = ct.make_policy(name, graph=world.graph, arms=world.arms, **options)
    assert policy.model.engine == "groups"
    for shown in draw_rounds(settings, world, seed):
        arm = policy.select(shown.user, shown.candidates).arm
        reward, lost = world.judge(shown, arm)
        policy.update(shown.user, arm, reward)
        regret += lost
    assert 0 < regret
    if name == "club":
        assert policy._followers[0].n_clusters > 100
"""

POOLS = """
graph = ct.make_graph("barabasi-albert", 42_000, attach=5)
arms = ct.ArmPool(rng.normal(size=(12_000, 26)) / 26**0.5)
engines = dict.fromkeys(["club", "pooled-linucb", "per-user-lints", "gp-ts", "per-user-gp-ucb", "popularity"], "groups")
engines |= dict.fromkeys(["gob-lin", "graph-ucb"], "sparse")
for name, engine in engines.items():
    policy = ct.make_policy(name, graph=graph, arms=arms)
    assert policy.model.engine == engine
    for user in rng.integers(42_000, size=30).tolist():
        arm = policy.select(user, rng.choice(12_000, size=25, replace=False).tolist()).arm
        policy.update(user, arm, float(rng.normal()))
    assert policy.predict(7)[0].shape == (12_000,)
"""


@pytest.mark.slow
@pytest.mark.parametrize("part", ["FAMILIES", "LOADERS", "PLAYED", "WORLDS", "POOLS"])
def test_nothing_of_the_size_users_times_users_is_made(part: str, tmp_path: Path) -> None:
    if part in ("PLAYED", "POOLS"):
        pytest.importorskip("numba")
    program = f"{CAPPED}FILE = {str(tmp_path / 'large.coterie')!r}\n{globals()[part]}"
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # threads reserve addresses, which count
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
