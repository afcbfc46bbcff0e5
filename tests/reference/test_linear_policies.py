"""The linear baselines against their textbook forms, and the ties between policies."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import coterie as ct
from coterie.errors import KernelError, ParameterError

Array = NDArray[np.float64]

GRAPH = ct.make_graph("erdos-renyi", 6, edge_prob=0.5, seed=1)
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(9, 4)))
HISTORY = [
    (int(u), int(a), float(r))
    for u, a, r in zip(
        np.random.default_rng(1).integers(6, size=60),
        np.random.default_rng(2).integers(9, size=60),
        np.random.default_rng(3).normal(size=60),
        strict=True,
    )
]


def trained(name: str, **options: Any) -> ct.Policy:
    policy = ct.make_policy(name, graph=GRAPH, arms=ARMS, **options)
    for row in HISTORY:
        policy.update(*row)
    return policy


def scores(policy: ct.Policy, user: int) -> Array:
    """The score of each arm, asked for one at a time."""
    return np.array([policy.select(user, [arm]).score for arm in range(9)])


def design(prior_precision: Array, noise_var: float) -> tuple[Any, Any]:
    """The design matrix of the stacked users and the ridge estimate, from scratch."""
    matrix, target = noise_var * np.kron(prior_precision, np.eye(4)), np.zeros(24)
    for user, arm, reward in HISTORY:
        row = np.kron(np.eye(6)[user], ARMS.features[arm])
        matrix += np.outer(row, row)
        target += row * reward
    return matrix, np.linalg.solve(matrix, target)


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("per-user-linucb", np.eye(6)),
        ("gob-lin", np.eye(6) + GRAPH.laplacian().toarray()),
        ("graph-ucb", 0.1 * np.eye(6) + GRAPH.laplacian().toarray()),
    ],
)
@pytest.mark.parametrize("noise_var", [1.0, 0.3])
def test_scores_are_those_of_the_design_matrix(name: str, precision: Array, noise_var: float) -> None:
    matrix, estimate = design(precision, noise_var)
    policy = trained(name, noise_var=noise_var, width=0.7)
    for user in range(6):
        rows = np.kron(np.eye(6)[user], ARMS.features)
        norm = np.sqrt(np.einsum("ij,ij->i", rows, np.linalg.solve(matrix, rows.T).T))
        np.testing.assert_allclose(scores(policy, user), rows @ estimate + 0.7 * norm, atol=1e-9)


def test_pooled_linucb_is_one_ridge_regression() -> None:
    features = ARMS.features[[arm for _, arm, _ in HISTORY]]
    matrix = np.eye(4) + features.T @ features
    estimate = np.linalg.solve(matrix, features.T @ np.array([reward for _, _, reward in HISTORY]))
    norm = np.sqrt(np.einsum("ij,ij->i", ARMS.features, np.linalg.solve(matrix, ARMS.features.T).T))
    for user in (0, 5):
        np.testing.assert_allclose(scores(trained("pooled-linucb"), user), ARMS.features @ estimate + norm, atol=1e-9)


def test_gob_lin_is_graph_ucb_with_ridge_one() -> None:
    gob, graph = trained("gob-lin"), trained("graph-ucb", laplacian_ridge=1.0)
    for user in range(6):
        np.testing.assert_allclose(scores(gob, user), scores(graph, user), atol=1e-12)


def test_a_pooled_gp_with_a_linear_kernel_is_pooled_linucb_up_to_scale() -> None:
    gp = trained("gp-ucb", arm_kernel=ct.Linear(), noise_var=0.25, width=2.0)
    linear = trained("pooled-linucb", noise_var=0.25, width=2.0 * 0.5)
    np.testing.assert_allclose(scores(gp, 2), scores(linear, 2), atol=1e-9)


def test_exchangeable_lies_between_alone_and_pooled() -> None:
    alone, pooled = trained("per-user-gp-ucb"), trained("gp-ucb")
    for share, other in ((0.0, alone), (1.0, pooled)):
        policy = trained("exchangeable-gp-ucb", user_kernel=ct.Exchangeable(share=share))
        for user in range(6):
            np.testing.assert_allclose(policy.predict(user), other.predict(user), atol=1e-9)
    with pytest.raises(KernelError, match=r"1\.5"):
        ct.Exchangeable(share=1.5)


def test_greedy_takes_the_best_mean_and_random_takes_anything() -> None:
    greedy = trained("greedy", seed=1)
    assert all(greedy.select(user).mean == greedy.predict(user)[0].max() for user in range(6))
    anything = ct.make_policy("random", graph=GRAPH, arms=ARMS)
    anything.update(0, 3, 100.0)
    chosen = [anything.select(0).arm for _ in range(4500)]
    assert all(abs(chosen.count(arm) / 4500 - 1 / 9) < 0.03 for arm in range(9))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_epsilon_greedy_explores_as_often_as_it_says(epsilon: float) -> None:
    policy = ct.make_policy("epsilon-greedy", graph=GRAPH, arms=ARMS, width=epsilon)
    policy.update(0, 3, 100.0)
    best = int(policy.predict(0)[0].argmax())
    share = np.mean([policy.select(0).arm == best for _ in range(3000)])
    assert share == pytest.approx(1 - epsilon + epsilon / 9, abs=0.03)


@pytest.mark.parametrize("name", ["pooled-linucb", "graph-ucb", "gob-lin-ts"])
def test_a_linear_policy_keeps_its_kernel(name: str) -> None:
    with pytest.raises(ParameterError, match="arm_kernel"):
        ct.make_policy(name, graph=GRAPH, arms=ARMS, arm_kernel=ct.Matern32(1.0))
