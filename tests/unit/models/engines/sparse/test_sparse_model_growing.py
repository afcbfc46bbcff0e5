"""`sparse` on a graph that changes: the belief is that of the same rewards on the graph as it is now."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.kernels import PoolKernel
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models import DenseModel, SparseModel, restore_model
from engine_cases import limited
from strategies import graphs

pytest.importorskip("numba")

FEATURES = np.random.default_rng(3).normal(size=(6, 2))
TINY = 1e-9

stars = st.integers(8, 16).map(lambda n: ct.UserGraph.from_edges([(0, i) for i in range(1, n)] + [(1, 2), (3, 4)]))
numbers = st.integers(0, 10_000)
weights = st.sampled_from([1e-4, 0.5, 1.0, 3.0, 1e4])
changes = st.lists(st.tuples(st.sampled_from(["user", "users", "edge", "cut"]), numbers, numbers, weights), max_size=12)


def changed(graph: ct.UserGraph, kind: str, i: int, j: int, weight: float) -> ct.UserGraph:
    """The graph after one change; users are their rows."""
    n, ends = graph.n_users, (i % graph.n_users, j % graph.n_users)
    if kind == "cut" and graph.has_edge(*ends):
        return graph.remove_edge(*ends)[0]
    if kind == "edge" and ends[0] != ends[1]:
        return graph.set_edge(*ends, weight)[0]
    if kind == "users":
        return graph.add_users({n: {ends[0]: weight, n + 1: 1.0}, n + 1: {ends[1]: 2.0}})[0]
    return graph.add_user(n, {ends[0]: weight, ends[1]: weight} if i % 3 else None)[0]


def reference_of(model: SparseModel, graph: ct.UserGraph, *, ridge: float, normalised: bool) -> DenseModel:
    """The exact belief of the same rewards, on the graph as it is."""
    users = ct.Green(laplacian_ridge=ridge, normalised=normalised).matrix(graph)
    reference = DenseModel(PoolKernel(users, FEATURES @ FEATURES.T), noise_var=0.1)
    history = model.history
    for user, arm, count, mean in zip(history.users, history.arms, history.counts, history.means, strict=True):
        reference.update_many([user] * int(count), [arm] * int(count), [mean] * int(count))
    return reference


def assert_bounds_hold(model: SparseModel, reference: DenseModel) -> None:
    assert model.n_users == reference.n_users
    for user in range(model.n_users):
        mean, std = model.predict(user)
        exact_mean, exact_std = reference.predict(user)
        assert np.all(np.abs(mean - exact_mean) <= model.error_bound(user) * (1 + TINY) + TINY)
        assert np.all(std >= exact_std * (1 - TINY))


def assert_variances_are_between(model: SparseModel, reference: DenseModel) -> None:
    """The reference inverts a matrix of weights up to 1e4 beside a ridge, and loses digits."""
    for user in (0, model.n_users - 1):
        exact = reference.predict(user)[1] ** 2
        lower, upper = model.variance_bounds(user)
        assert np.all(lower <= exact * (1 + 1e-7) + TINY)
        assert np.all(upper >= exact * (1 - 1e-7) - TINY)


def learn(model: SparseModel, i: int, j: int) -> None:
    model.update(i % model.n_users, j % 6, float(j % 7 - 3))
    model.predict(j % model.n_users)


@settings(max_examples=60, deadline=None)
@given(
    graph=st.one_of(graphs(), stars),
    changes=changes,
    ridge=st.sampled_from([0.01, 0.3, 5.0]),
    normalised=st.booleans(),
    cap=st.sampled_from([5, 20_000]),
    few=st.booleans(),
)
def test_the_bounds_are_true_after_any_changes(
    graph: ct.UserGraph, changes: Any, ridge: float, normalised: bool, cap: int, few: bool
) -> None:
    kernel = GraphKernel(graph, FEATURES, laplacian_ridge=ridge, normalised=normalised)
    model = SparseModel(kernel, noise_var=0.1, max_work=cap)
    model._posterior.solves_globally = few
    for kind, i, j, weight in changes:
        learn(model, i, j)
        after = changed(graph, kind, i, j, weight)
        difference = after.changes_since(graph)
        assert difference is not None
        assert model.regraph(difference)
        graph = after
    reference = reference_of(model, graph, ridge=ridge, normalised=normalised)
    assert_bounds_hold(model, reference)
    assert_variances_are_between(model, reference)
    assert_rows_are_those_of(model.kernel, GraphKernel(graph, FEATURES, laplacian_ridge=ridge, normalised=normalised))
    assert kernel.n_users == kernel.weights.shape[0] <= graph.n_users
    assert_residual_is_exact(model)


def assert_residual_is_exact(model: SparseModel) -> None:
    kept = model._posterior
    fresh = kept.fresh_residual(model._data)
    terms = 1 + model.kernel.diagonal.max() * np.abs(kept.weights).max()
    assert np.abs(fresh - kept.residual).max() < 1e-8 * terms
    blocks = [null**2 * model._data.precision(user) for user, null in enumerate(model.kernel.null)]
    np.testing.assert_allclose(kept.deflation.data_precision, sum(blocks), atol=1e-8 * terms)


@pytest.mark.parametrize("normalised", [False, True])
def test_few_users_are_within_eps_after_each_change(normalised: bool) -> None:
    graph = ct.make_graph("sbm", 20, seed=1)
    model = SparseModel(GraphKernel(graph, FEATURES, laplacian_ridge=0.3, normalised=normalised), noise_var=0.1)
    for number, kind in enumerate(["user", "edge", "cut", "users"] * 3):
        learn(model, 7 * number, 5 * number + 2)
        after = changed(graph, kind, number, 3 * number + 1, 0.3 + number)
        difference = after.changes_since(graph)
        assert difference is not None
        model.regraph(difference)
        graph = after
        reference = reference_of(model, graph, ridge=0.3, normalised=normalised)
        assert_bounds_hold(model, reference)
        worst = max(float(np.max(model.error_bound(user) / reference.prior_std(user))) for user in range(20))
        assert worst <= 0.1 * (1 + TINY)


def assert_rows_are_those_of(grown: GraphKernel, fresh: GraphKernel) -> None:
    np.testing.assert_allclose(grown.weights.toarray(), fresh.weights.toarray(), rtol=1e-12)
    np.testing.assert_allclose(grown.diagonal, fresh.diagonal, rtol=1e-12)
    np.testing.assert_allclose(grown.null, fresh.null, rtol=1e-12)
    precision = np.diag(grown.diagonal) - grown.weights.toarray()
    assert np.all(precision @ grown.reach >= grown.shape * (1 - 1e-9))
    assert np.all(grown.shape > 0)
    for user, (start, end) in enumerate(zip(*grown.rows[:2], strict=False)):
        if user < grown.n_users:
            assert np.all(np.diff(grown.rows[2][start:end]) > 0)


def grown_model(*, normalised: bool = False, **options: Any) -> tuple[SparseModel, ct.UserGraph]:
    """A model that has seen rewards and all kinds of changes, on a graph with a hub."""
    hub = [(0, i, 1.0 + i % 3) for i in range(1, 25)] + [(i, i + 1) for i in range(1, 24)]
    graph = ct.UserGraph.from_edges(hub)
    model = SparseModel(GraphKernel(graph, FEATURES, laplacian_ridge=2.0, normalised=normalised), **options)
    for number, kind in enumerate(["user", "edge", "cut", "users", "edge", "user", "cut"] * 3):
        learn(model, 7 * number, 5 * number + 2)
        after = changed(graph, kind, number, 3 * number + 1, 0.3 + number)
        difference = after.changes_since(graph)
        assert difference is not None
        model.regraph(difference)
        graph = after
    return model, graph


@pytest.mark.parametrize("normalised", [False, True])
def test_a_grown_model_is_restored_to_the_bit(normalised: bool) -> None:
    model, graph = grown_model(normalised=normalised, max_work=60)
    fresh = GraphKernel(graph, FEATURES, laplacian_ridge=2.0, normalised=normalised)
    other = restore_model(_copied(model.state()), fresh)
    assert isinstance(other, SparseModel)
    after, _ = graph.add_user(graph.n_users, {0: 1.0, 3: 0.5})
    difference = after.changes_since(graph)
    assert difference is not None
    for each in (model, other):
        each.update(3, 1, 1.0)
        each.regraph(difference)
        each.update(graph.n_users, 2, -1.0)
    for user in range(after.n_users):
        np.testing.assert_array_equal(model.predict(user), other.predict(user))
        np.testing.assert_array_equal(model.error_bound(user), other.error_bound(user))
    assert other.describe() == model.describe()
    assert fresh.n_users == graph.n_users


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


def test_two_models_on_one_kernel_do_not_share_what_they_grow_to() -> None:
    graph = ct.make_graph("ring", 8)
    kernel = GraphKernel(graph, FEATURES)
    models = [SparseModel(kernel, noise_var=0.1) for _ in range(3)]
    versions = [graph.add_user("x", {0: 1.0})[0], graph.set_edge(0, 4, 2.0)[0], graph]
    for model, version in zip(models, versions, strict=True):
        model.update(0, 1, 2.0)
        difference = version.changes_since(graph)
        assert difference is not None
        model.regraph(difference)
    for model, version in zip(models, versions, strict=True):
        assert_bounds_hold(model, reference_of(model, version, ridge=0.1, normalised=False))
    assert kernel.n_users == 8


def test_an_added_edge_keeps_the_blocks_and_a_lighter_one_does_not() -> None:
    graph = ct.make_graph("ring", 30)
    model = SparseModel(GraphKernel(graph, FEATURES))
    model.predict(3)
    for weight, kept in ((0.5, 1), (0.7, 1), (0.6, 0)):
        after, _ = graph.set_edge(0, 10, weight)
        difference = after.changes_since(graph)
        assert difference is not None
        model.regraph(difference)
        assert len(model._marginals) == kept
        graph = after


def hub_after(
    weight: float | None, *, normalised: bool = False, engine: type[SparseModel] = SparseModel
) -> SparseModel:
    """A model on a star that a newcomer has joined by an edge to its hub."""
    graph = ct.UserGraph.from_edges([(0, i) for i in range(1, 25)])
    model = engine(GraphKernel(graph, FEATURES, laplacian_ridge=2.0, normalised=normalised), noise_var=0.1)
    model.update(0, 1, 5.0)
    after = graph.add_user("x", None if weight is None else {0: weight})[0]
    difference = after.changes_since(graph)
    assert difference is not None
    model.regraph(difference)
    assert_bounds_hold(model, reference_of(model, after, ridge=2.0, normalised=normalised))
    assert_rows_are_those_of(model.kernel, model.kernel)
    return model


@pytest.mark.parametrize("weight", [None, 1e-3, 1.0, 30.0])
def test_a_hub_goes_on_waiting(weight: float | None) -> None:
    assert hub_after(weight).kernel.shape[0] > 1.5


def test_hubs_do_not_wait_beside_weights_that_drown_their_shape() -> None:
    model = hub_after(1e10, engine=limited(rounding=float("inf")))
    assert model.kernel.shape[0] == 1.0
    assert model._posterior._uneven > 1.0


def test_sums_are_of_the_graph_as_it_is() -> None:
    model, graph = grown_model()
    reference = reference_of(model, graph, ridge=2.0, normalised=False)
    reference.set_noise_var(model.noise_var)
    assert 0.9 * reference.info_gain < model.info_gain <= reference.info_gain


def test_a_handful_that_has_grown_is_no_longer_one() -> None:
    graph = ct.make_graph("ring", 195)
    model = SparseModel(GraphKernel(graph, FEATURES, laplacian_ridge=2.0), accuracy=0.2)
    finer, after = model._variance_bounds._accuracy, graph
    for _ in range(10):
        after = after.add_user(after.n_users, {0: 1.0})[0]
    difference = after.changes_since(graph)
    assert difference is not None
    model.regraph(difference)
    assert model._variance_bounds._accuracy > finer
    other = restore_model(_copied(model.state()), GraphKernel(after, FEATURES, laplacian_ridge=2.0))
    for user in (0, 50, 204):
        np.testing.assert_array_equal(model.predict(user), other.predict(user))
        model.update(user, 1, 1.0)
        other.update(user, 1, 1.0)


def test_a_history_of_fewer_users_is_learned_on_a_graph_with_more() -> None:
    model, graph = grown_model()
    after, _ = graph.add_user("more", {0: 1.0})
    other = SparseModel(GraphKernel(after, FEATURES, laplacian_ridge=2.0), noise_var=model.noise_var)
    other.relearn(model.history)
    other.update(after.n_users - 1, 0, 1.0)
    assert len(model.history) + 1 == len(other.history)
    assert_bounds_hold_of(other, after)


def assert_bounds_hold_of(model: SparseModel, graph: ct.UserGraph) -> None:
    reference = reference_of(model, graph, ridge=2.0, normalised=False)
    reference.set_noise_var(model.noise_var)
    assert_bounds_hold(model, reference)


def test_room_for_newcomers_runs_out_ever_more_rarely() -> None:
    model, graph = grown_model()
    model.predict(5)
    buffers: set[int] = set()
    for _ in range(300):
        after, _ = graph.add_user(graph.n_users, {graph.n_users - 1: 1.0, 0: 0.5})
        difference = after.changes_since(graph)
        assert difference is not None
        model.regraph(difference)
        graph = after
        for array in (model._posterior.weights, model._marginals.slot, model.kernel.reach):
            assert array.base is not None
            buffers.add(array.base.ctypes.data)
    assert len(model._marginals) > 0
    assert len(buffers) <= 15


@pytest.mark.parametrize("few", [False, True])
def test_eps_holds_again_when_users_have_doubled(few: bool) -> None:
    graph = ct.make_graph("ring", 10)
    model = SparseModel(GraphKernel(graph, FEATURES, laplacian_ridge=0.5), noise_var=0.1, max_work=10**7)
    model._posterior.solves_globally = few
    model.update(0, 1, 3.0)
    after = graph
    for _ in range(40):
        after = after.add_user(after.n_users, dict.fromkeys(range(after.n_users), 4.0))[0]
    difference = after.changes_since(graph)
    assert difference is not None
    model.regraph(difference)
    reference = reference_of(model, after, ridge=0.5, normalised=False)
    assert_bounds_hold(model, reference)
    assert all(np.all(model.error_bound(user) <= 0.1 * reference.prior_std(user) * (1 + TINY)) for user in range(50))
