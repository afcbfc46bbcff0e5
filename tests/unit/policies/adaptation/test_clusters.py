"""CLUB: clusters against a naive copy, and the model of a cluster against ridge regression on its rewards."""

from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import coterie as ct
from coterie.errors import ParameterError
from coterie.policies.adaptation.clusters import Clusters

Array = NDArray[np.float64]

N_USERS, DIMENSION = 9, 3
GRAPH = ct.make_graph("ring", N_USERS)
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(8, DIMENSION)))
TASTES = np.random.default_rng(5).normal(size=(3, DIMENSION))
TRUTH = TASTES[np.arange(N_USERS) % 3] @ ARMS.features.T


def club(**options: Any) -> ct.Policy:
    settings: dict[str, Any] = {"graph": GRAPH, "arms": ARMS} | options
    return ct.make_policy("club", **settings)


def clusters_of(policy: ct.Policy) -> Clusters:
    (clusters,) = policy._followers
    assert isinstance(clusters, Clusters)
    return clusters


def history(rounds: int, noise: float = 0.1) -> list[tuple[int, int, float]]:
    rng = np.random.default_rng(6)
    pairs = [(int(rng.integers(N_USERS)), int(rng.integers(8))) for _ in range(rounds)]
    return [(user, arm, float(TRUTH[user, arm] + noise * rng.normal())) for user, arm in pairs]


def naive_components(rows: list[tuple[int, int, float]], width: float) -> Array:
    """The edges, and who is connected by them, from scratch after each reward."""
    edges = np.ones((N_USERS, N_USERS))
    for t in range(1, len(rows) + 1):
        estimates, radius = np.zeros((N_USERS, DIMENSION)), np.zeros(N_USERS)
        for user in range(N_USERS):
            own = [(ARMS.features[arm], reward) for u, arm, reward in rows[:t] if u == user]
            gram = np.eye(DIMENSION) + sum(np.outer(x, x) for x, _ in own)
            estimates[user] = np.linalg.solve(gram, sum((x * y for x, y in own), np.zeros(DIMENSION)))
            radius[user] = width * sqrt((1 + log(1 + len(own))) / (1 + len(own)))
        i = rows[t - 1][0]
        for j in range(N_USERS):
            if j != i and np.linalg.norm(estimates[i] - estimates[j]) > radius[i] + radius[j]:
                edges[i, j] = edges[j, i] = 0.0
    return (np.linalg.matrix_power(edges, N_USERS) > 0).astype(float)


@pytest.mark.parametrize("rounds", [5, 40, 150])
@pytest.mark.parametrize("width", [0.2, 0.6])
def test_clusters_are_the_components_of_the_edges_left(rounds: int, width: float) -> None:
    policy = club(cluster_width=width)
    for row in history(rounds):
        policy.update(*row)
    expected = naive_components(history(rounds), width)
    np.testing.assert_array_equal(clusters_of(policy).matrix(), expected)
    np.testing.assert_array_equal(policy.model.kernel.user_cov, expected)


def test_users_of_like_taste_end_in_one_cluster() -> None:
    policy = club(cluster_width=1.0)
    np.testing.assert_array_equal(policy.model.kernel.user_cov, np.ones((N_USERS, N_USERS)))
    for row in history(400):
        policy.update(*row)
    assert clusters_of(policy).labels.tolist() == [0, 1, 2] * 3


def test_a_clusters_score_is_linear_ucb_on_its_rewards() -> None:
    policy, rows = club(width=0.7, cluster_width=1.0), history(400)
    for row in rows:
        policy.update(*row)
    own = [(ARMS.features[arm], reward) for user, arm, reward in rows if user % 3 == 1]
    gram = np.eye(DIMENSION) + sum(np.outer(x, x) for x, _ in own)
    estimate = np.linalg.solve(gram, sum(x * y for x, y in own))
    for arm, x in enumerate(ARMS.features):
        expected = x @ estimate + 0.7 * sqrt(x @ np.linalg.solve(gram, x)) * sqrt(log(402))
        assert policy.select(4, [arm]).score == pytest.approx(expected)


def test_a_cluster_that_only_one_user_holds_together_falls_into_all_its_parts() -> None:
    clusters = Clusters(4, width=0.1)
    clusters._joined[:] = False
    clusters._joined[0, 1:] = clusters._joined[1:, 0] = True
    clusters._joined[2, 3] = clusters._joined[3, 2] = True
    assert clusters.see(0, np.ones(1), 5.0)
    assert clusters.labels.tolist() == [0, 1, 2, 2]


def test_a_batch_splits_too_and_a_reward_that_changes_nothing_rebuilds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one, many = club(), club()
    users, arms, rewards = zip(*history(150), strict=True)
    many.update_many(users, arms, rewards)
    for row in history(150):
        one.update(*row)
    np.testing.assert_array_equal(many.model.kernel.user_cov, one.model.kernel.user_cov)
    np.testing.assert_allclose(many.predict(3), one.predict(3), atol=1e-9)
    monkeypatch.setattr(type(one.model), "rebuild", lambda _: pytest.fail("rebuilt"))
    before = one.model.kernel
    one.update(0, 1, float(TRUTH[0, 1]))
    assert one.model.kernel is before


def test_without_a_pool_the_clusters_are_the_same() -> None:
    pooled, free = club(), club(arms=None)
    for user, arm, reward in history(150):
        pooled.update(user, arm, reward)
        free.update(user, ARMS.features[arm], reward)
    np.testing.assert_array_equal(free.model.kernel.user_cov, pooled.model.kernel.user_cov)
    np.testing.assert_allclose(free.predict(2, ARMS.features), pooled.predict(2), atol=1e-8)


def test_many_users_cost_a_block_for_each_cluster() -> None:
    policy = ct.make_policy("club", graph=ct.make_graph("empty", 500), arms=ARMS)
    assert policy.model.engine == "linear"
    assert policy.model.nbytes < 1000


@pytest.mark.parametrize("width", [0.0, -1.0, "wide", True, float("inf")])
def test_a_bad_cluster_width_is_named(width: Any) -> None:
    with pytest.raises(ParameterError, match="cluster_width is"):
        club(cluster_width=width)


def test_cluster_width_is_for_club_alone() -> None:
    with pytest.raises(ParameterError, match="given to 'lk-gp-ucb'"):
        ct.make_policy("lk-gp-ucb", graph=GRAPH, arms=ARMS, cluster_width=1.0)
