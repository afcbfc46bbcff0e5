"""Kernels that never write out a matrix over all users or all arms."""

import numpy as np
import pytest

import coterie as ct
from coterie.errors import KernelError
from coterie.kernels.additive import MOST_USERS, AdditiveInputs, AdditiveKernel, EvaluatedPool, TraitPart, UserParts
from kernel_cases import INPUT_KERNEL

ARMS = np.random.default_rng(0).normal(size=(9, 2))


def additive(graph: ct.UserGraph, *, normalised: bool = False, ridge: float = 0.4) -> AdditiveKernel:
    return AdditiveKernel(graph, UserParts(1.5, ridge, 0.3, 0.7, normalised), ct.SquaredExponential(1.0), ARMS)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("family", ["sbm", "barabasi-albert", "ring"])
def test_among_all_users_the_covariance_is_the_whole_one(family: str, normalised: bool) -> None:
    graph = ct.make_graph(family, 30, seed=1)
    green = np.asarray(ct.Green(laplacian_ridge=0.4, normalised=normalised).matrix(graph))
    found = additive(graph, normalised=normalised).user_block(np.arange(30))
    np.testing.assert_allclose(found, 1.5 * green + 0.3 * np.eye(30) + 0.7, atol=1e-10)


def test_among_some_users_it_is_near_the_whole_one_and_never_above() -> None:
    graph = ct.make_graph("sbm", 60, seed=1)
    green = 1.5 * np.asarray(ct.Green(laplacian_ridge=0.4).matrix(graph)) + 0.3 * np.eye(60) + 0.7
    users = np.array([7, 3, 20, 41, 8])
    found = additive(graph).user_block(users)
    exact = green[np.ix_(users, users)]
    assert np.all(found <= exact + 1e-9)
    assert np.all(found.diagonal() > 0.8 * exact.diagonal())


def test_a_neighbourhood_begins_with_the_user_and_has_those_with_rewards_nearest_first() -> None:
    graph = ct.make_graph("ring", 40)
    rows = np.zeros(40, dtype=np.intp)
    rows[[1, 2, 5, 39]] = 3
    found = additive(graph).neighbourhood(0, rows, 100)
    assert found.users[0] == 0
    assert set(found.users[1:].tolist()) == {1, 2, 39}
    assert np.all(np.diff(found.cov[1:]) <= 1e-12)


def test_a_star_of_ten_thousand_leaves_has_small_neighbourhoods() -> None:
    graph = ct.UserGraph.from_edges([(0, leaf) for leaf in range(1, 10_001)])
    rows = np.zeros(10_001, dtype=np.intp)
    rows[5000:5400] = 2
    kernel = additive(graph)
    for user in (0, 17):
        found = kernel.neighbourhood(user, rows, 128)
        assert len(found.users) <= MOST_USERS
        assert np.linalg.eigvalsh(found.among(np.arange(len(found.users))))[0] > 0
    assert np.all(rows[kernel.neighbourhood(0, rows, 128).users[1:]] > 0)


def test_no_matrix_over_all_users_is_to_be_had() -> None:
    kernel = additive(ct.make_graph("ring", 5))
    with pytest.raises(KernelError, match="the covariance of all 5 users was asked for"):
        _ = kernel.user_cov
    with pytest.raises(KernelError, match="another user covariance"):
        kernel.with_user_cov(np.eye(5))
    assert kernel.max_variance([]) >= max(kernel.user_variance(user) for user in range(5))


def test_arms_are_evaluated_where_they_are_asked_for() -> None:
    kernel = EvaluatedPool(np.eye(3) + 1, ct.SquaredExponential(1.0), ARMS)
    gram = ct.SquaredExponential(1.0).gram(ARMS)
    np.testing.assert_allclose(kernel.arm_cross(np.array([1, 4]), np.arange(9)), gram[[1, 4]])
    np.testing.assert_allclose(kernel.arm_diag(np.arange(9)), np.ones(9))
    np.testing.assert_array_equal(kernel.with_user_cov(np.eye(3)).user_cov, np.eye(3))


def on_inputs(graph: ct.UserGraph, features: np.ndarray | None) -> AdditiveInputs:
    traits = None if features is None else TraitPart(0.8, features)
    return AdditiveInputs(graph, UserParts(1.5, 0.4, 0.3, 0.7, normalised=False), INPUT_KERNEL, traits=traits)


def test_what_follows_users_features_is_added_and_what_these_miss_is_their_own() -> None:
    graph, rng = ct.make_graph("sbm", 30, seed=1), np.random.default_rng(0)
    features = rng.normal(size=(30, 3))
    features *= 0.9 / np.linalg.norm(features, axis=1, keepdims=True)
    kernel, plain = on_inputs(graph, features), additive(graph)
    everybody = np.arange(30)
    more = kernel.user_block(everybody) - plain.user_block(everybody)
    expected = 0.8 * features @ features.T
    np.testing.assert_allclose(more[~np.eye(30, dtype=bool)], expected[~np.eye(30, dtype=bool)], atol=1e-12)
    np.testing.assert_allclose(more.diagonal(), np.full(30, 0.8))
    for user in range(30):
        assert kernel.user_variance(user) == pytest.approx(plain.user_variance(user) + 0.8)
    shared = kernel.shared_features(everybody)
    np.testing.assert_allclose(shared @ shared.T, 0.7 + expected, atol=1e-12)
    np.testing.assert_array_equal(kernel.shared_features(4), shared[4])
    np.testing.assert_array_equal(plain.shared_features(np.array([3, 4])), np.full((2, 1), np.sqrt(0.7)))


def test_few_users_with_rewards_are_all_near_one_another_where_arms_are_inputs() -> None:
    graph, rows = ct.make_graph("ring", 200), np.zeros(200, dtype=np.intp)
    seen = [50, 2, 120, 1]
    rows[seen] = 2
    found = on_inputs(graph, None).neighbourhood(0, rows, 100, seen)
    assert found.users.tolist() == [0, 1, 2, 50, 120]  # those who covary most first
    assert np.all(found.cov[1:] >= 0.7 - 1e-12)  # what is common to all
    many = list(range(100, 100 + MOST_USERS + 1))
    rows[:] = 0
    rows[many] = 1
    assert on_inputs(graph, None).neighbourhood(0, rows, 100, many).users.tolist() == [0]  # nobody near has any
