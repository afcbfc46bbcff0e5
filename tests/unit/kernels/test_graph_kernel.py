"""The features of a pool reproduce its kernel, within the error that is stated."""

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ParameterError
from coterie.kernels.arm_features import arm_features
from coterie.kernels.graph_kernel import graph_kernel

POOL = ct.ArmPool(np.random.default_rng(0).normal(size=(40, 3)))


def test_linear_features_are_the_arms_own() -> None:
    features, lost = arm_features(ct.Linear(offset=2.0), POOL, 1e-3)
    assert features.shape == (40, 4)
    assert lost == 0
    np.testing.assert_allclose(features @ features.T, ct.Linear(offset=2.0).gram(POOL.features))


@pytest.mark.parametrize("error", [0.0, 1e-6, 1e-3, 0.3])
def test_eigen_features_miss_no_more_than_is_allowed(error: float) -> None:
    gram = 3 * ct.SquaredExponential(2.0).gram(POOL.features)
    features, lost = arm_features(3 * ct.SquaredExponential(2.0), POOL, error)
    missing = (gram - features @ features.T).diagonal() / 3
    assert missing.max() <= max(error, 1e-12)
    assert lost == pytest.approx(max(missing.max(), 0.0), abs=1e-12)
    fewer = features[:, :-1]
    assert (gram - fewer @ fewer.T).diagonal().max() / 3 > error


@pytest.mark.parametrize("ridge", [1e-4, 0.1, 10.0])
def test_hubs_may_wait_longer_where_that_is_proven_to_cost_little(ridge: float) -> None:
    graph = ct.make_graph("barabasi-albert", 200, attach=3, seed=1)
    kernel = graph_kernel(graph, ct.Linear(), POOL, laplacian_ridge=ridge)
    precision = graph.regularised_laplacian(ridge)
    assert np.all(precision @ kernel.reach >= kernel.shape * (1 - 1e-9))
    assert np.all(kernel.reach <= 1.5 / ridge)
    hub = int(np.argmax(kernel.diagonal))
    assert kernel.shape[hub] == pytest.approx(max(kernel.diagonal[hub] / (2 * np.median(kernel.diagonal)), 1.0))
    assert kernel.shape.min() == 1.0


def test_a_share_out_of_range_is_refused() -> None:
    with pytest.raises(ParameterError, match="feature_error"):
        arm_features(ct.Linear(), POOL, 1.0)


@pytest.mark.parametrize("normalised", [False, True])
def test_the_arrays_are_those_of_the_regularised_laplacian(normalised: bool) -> None:
    graph = ct.UserGraph.from_edges([(0, 1, 2.0), (1, 2, 0.5)], users=range(4))
    kernel = graph_kernel(graph, ct.Linear(), POOL, laplacian_ridge=0.3, normalised=normalised)
    matrix = np.diag(kernel.diagonal) - kernel.weights.toarray()
    np.testing.assert_allclose(matrix, graph.regularised_laplacian(0.3, normalised=normalised).toarray())
    assert np.all(matrix @ kernel.reach >= kernel.shape * (1 - 1e-12))
    inverse = np.linalg.inv(matrix)
    assert np.all([kernel.user_variance(user) <= inverse[user, user] + 1e-12 for user in range(4)])
    assert kernel.max_variance([]) >= inverse.max() * kernel.arm_diag(np.arange(40)).max()
