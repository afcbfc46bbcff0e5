"""CLUB for many users: the search for parts against scipy's, and the same choices as with a matrix over users."""

from math import log
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import coterie as ct
from coterie.errors import ParameterError, UnknownArmError, UnknownNameError, UnknownUserError
from coterie.policies.adaptation.clusters import Clusters
from coterie.policies.adaptation.joined_clusters import Joined, JoinedClusters, Search, joined_at_first

N_USERS, N_TASTES = 40, 3
RNG = np.random.default_rng(0)
ARMS = ct.ArmPool(RNG.normal(size=(12, 4)))
TASTES = RNG.normal(size=(N_TASTES, 4))
TRUTH = TASTES[np.arange(N_USERS) % N_TASTES] @ ARMS.features.T
GRAPH = ct.make_graph("ring", N_USERS)


def play(policies: list[ct.Policy], rounds: int, seed: int = 1) -> list[list[Any]]:
    rng, chosen = np.random.default_rng(seed), []
    for _ in range(rounds):
        user, noise = int(rng.integers(N_USERS)), 0.1 * float(rng.normal())
        arms = rng.choice(12, size=5, replace=False).tolist()
        chosen.append([policy.select(user, arms).arm for policy in policies])
        for policy, arm in zip(policies, chosen[-1], strict=True):
            policy.update(user, arm, float(TRUTH[user, arm]) + noise)
    return chosen


def clusters_of(policy: ct.Policy) -> Any:
    (clusters,) = policy._followers
    return clusters


@pytest.mark.parametrize("width", [0.3, 0.6])
def test_choices_and_clusters_are_those_of_the_matrix_over_users(width: float) -> None:
    one, other = (
        ct.make_policy("club", graph=GRAPH, arms=ARMS, engine=engine, cluster_width=width)
        for engine in ("linear", "groups")
    )
    assert all(a == b for a, b in play([one, other], 600))
    assert isinstance(clusters_of(one), Clusters)
    labels = clusters_of(other).labels
    np.testing.assert_array_equal(np.equal.outer(labels, labels), clusters_of(one).matrix())
    assert 1 < clusters_of(other).n_clusters <= N_USERS
    for user in range(N_USERS):
        np.testing.assert_allclose(other.predict(user), one.predict(user), atol=1e-9)
    assert other.model.log_marginal_likelihood == pytest.approx(one.model.log_marginal_likelihood)


def test_from_the_same_sparse_graph_both_find_the_same_clusters() -> None:
    start = ct.make_graph("watts-strogatz", N_USERS, k=4, seed=3).weights
    one, other = Clusters(N_USERS, width=0.4), JoinedClusters(start, width=0.4, pool=ARMS.features)
    one._joined[:] = start.toarray() > 0
    rng = np.random.default_rng(5)
    for _ in range(400):
        user, arm = int(rng.integers(N_USERS)), int(rng.integers(12))
        reward = float(TRUTH[user, arm] + 0.1 * rng.normal())
        assert one.see(user, ARMS.features[arm], reward) == bool(other.see(user, ARMS.features[arm], reward))
        np.testing.assert_array_equal(np.equal.outer(other.labels, other.labels), one.matrix())
    assert other.n_clusters > 3


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), n_users=st.integers(2, 25), share=st.floats(0.05, 0.6))
def test_the_smaller_part_is_a_whole_component_and_nothing_else(seed: int, n_users: int, share: float) -> None:
    graph = ct.make_graph("erdos-renyi", n_users, edge_prob=share, seed=seed)
    labels = connected_components(graph.weights, directed=False)[1]
    part = Joined(graph.weights).part(Search(0), Search(n_users - 1))
    if labels[0] == labels[-1]:
        assert part is None
    else:
        assert part is not None
        assert part.tolist() in [np.flatnonzero(labels == labels[end]).tolist() for end in (0, -1)]


def test_a_cluster_that_only_one_user_holds_together_falls_into_all_its_parts() -> None:
    table = np.zeros((6, 6))
    for a, b in ((0, 1), (0, 2), (2, 3), (0, 4), (4, 5)):
        table[a, b] = table[b, a] = 1.0
    clusters = JoinedClusters(sp.csr_array(table), width=0.1, pool=np.ones((1, 1)))
    parts = clusters.see(0, np.ones(1), 5.0)
    names = {tuple(np.flatnonzero(clusters.labels == label).tolist()) for label in clusters.labels}
    assert names == {(0,), (1,), (2, 3), (4, 5)}
    assert len(parts) == 3


def test_many_users_begin_joined_by_a_sparse_connected_graph() -> None:
    start = joined_at_first(2_500, 0)
    assert 2.5 * log(2_500) < start.nnz / 2_500 < 3.5 * log(2_500)
    assert connected_components(start, directed=False)[0] == 1
    assert (joined_at_first(2_500, 0) != start).nnz == 0
    assert (joined_at_first(2_500, 1) != start).nnz > 0
    assert joined_at_first(50, 0).nnz == 50 * 49


def test_auto_takes_groups_beyond_two_thousand_users_or_arms() -> None:
    many = ct.make_policy("club", graph=ct.make_graph("empty", 2_001), arms=ARMS)
    assert many.model.engine == "groups"
    assert "2001 users" in many.describe()
    pool = ct.ArmPool(RNG.normal(size=(2_001, 3)))
    assert ct.make_policy("club", graph=GRAPH, arms=pool).model.engine == "groups"
    assert ct.make_policy("club", graph=ct.make_graph("empty", 300), arms=ARMS).model.engine == "linear"


def test_it_refuses_what_every_policy_refuses() -> None:
    policy = ct.make_policy("club", graph=GRAPH, arms=ARMS, engine="groups")
    with pytest.raises(UnknownUserError):
        policy.select("nobody")
    with pytest.raises(UnknownArmError):
        policy.update(0, "nothing", 1.0)
    with pytest.raises(ParameterError, match="engine 'groups' was asked for with Green"):
        ct.make_policy("lk-gp-ucb", graph=GRAPH, arms=ARMS, engine="groups")
    with pytest.raises(ParameterError, match="and a pool of arms"):
        ct.make_policy("club", graph=GRAPH, engine="groups")
    with pytest.raises(UnknownNameError, match="options of engine 'groups' are 'feature_error', 'max_features'"):
        ct.make_policy("club", graph=GRAPH, arms=ARMS, engine="groups", engine_options={"eps": 0.1})


@pytest.mark.parametrize("name", ["club", "per-user-linucb", "gp-ucb", "pooled-lints"])
def test_a_bandit_on_groups_is_saved_and_explains_itself(name: str, tmp_path: Any) -> None:
    bandit = ct.Bandit(graph=GRAPH, arms=ARMS, policy=name, engine="groups")
    rng = np.random.default_rng(2)
    for _ in range(60):
        decision = bandit.decide(int(rng.integers(N_USERS)), range(6))
        bandit.reward(decision.id, float(rng.normal()))
    bandit.save(tmp_path / "kept.coterie")
    again = ct.Bandit.load(tmp_path / "kept.coterie")
    for user in range(0, N_USERS, 7):
        assert again.predict(user, range(12)) == bandit.predict(user, range(12))
        assert again.decide(user, range(12)).arm == bandit.decide(user, range(12)).arm
    assert bandit.explain(3, 2) is not None
