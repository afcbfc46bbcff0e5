"""Kernels that never write out a matrix over all users or all arms."""

import numpy as np
import pytest

import coterie as ct
from coterie.errors import KernelError
from coterie.kernels.additive import MOST_USERS, AdditiveKernel, EvaluatedPool, UserParts

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
