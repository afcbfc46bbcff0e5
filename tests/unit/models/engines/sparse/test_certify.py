"""`sparse`: two-sided bounds of mean and variance hold at every stage of a solve, on any graph, with any cap."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.algebra.iterative import COMPILED
from coterie.errors import ParameterError
from coterie.kernels import PoolKernel
from coterie.kernels.graph_kernel import GraphKernel, graph_kernel
from coterie.models import DenseModel, SparseModel, make_model, restore_model
from coterie.models.engines.sparse.certify import RefinableSolve
from engine_cases import limited
from strategies import graphs

pytestmark = pytest.mark.skipif(not COMPILED, reason="needs the extra 'scale'")

N_ARMS = 6
TINY = 1e-9
AS_IF_MANY = limited(few_users=0)  # pushes, and no solve for all


def make_case(
    graph: ct.UserGraph, n_rewards: int = 30, *, engine: type[SparseModel] = SparseModel, **options: Any
) -> tuple[SparseModel, DenseModel]:
    """A model and the reference, with the same rewards; pushes alone settle it, however few the users are."""
    asked = {name: options.pop(name) for name in ("laplacian_ridge", "normalised") if name in options}
    pool = ct.ArmPool(np.random.default_rng(3).normal(size=(N_ARMS, 2)))
    kernel = graph_kernel(graph, ct.Linear(offset=0.5), pool, **asked)
    reference = DenseModel(
        PoolKernel(ct.Green(**asked).matrix(graph), kernel.features @ kernel.features.T), noise_var=0.1
    )
    model = engine(kernel, noise_var=0.1, **options)
    model._posterior.solves_globally = False
    rng = np.random.default_rng(0)
    for _ in range(n_rewards):
        one = int(rng.integers(graph.n_users)), int(rng.integers(N_ARMS)), float(rng.normal() * 3)
        model.update(*one)
        reference.update(*one)
    return model, reference


def assert_readings_hold(model: SparseModel, reference: DenseModel, user: int, cap: int = 10**6) -> list[float]:
    """Refines a solve for every arm; returns how far apart the mean's bounds were at each stage of the last."""
    mean, std = reference.predict(user)
    errors: list[float] = []
    for arm in range(N_ARMS):
        contender, errors = RefinableSolve(model.kernel, model.limits), []
        contender.start(user, model.kernel.features[arm])
        for _ in range(6):
            contender.refine(model._data, cap)
            found = contender.read(model._posterior)
            assert abs(found.mean - mean[arm]) <= found.error * (1 + TINY) + TINY
            assert found.lower <= std[arm] ** 2 * (1 + TINY) + TINY
            assert found.upper >= std[arm] ** 2 * (1 - TINY) - TINY
            errors.append(found.error)
    return errors


@settings(max_examples=25)
@given(graph=graphs(), ridge=st.floats(0.01, 10.0), normalised=st.booleans(), cap=st.sampled_from([1, 30, 10**5]))
def test_readings_are_true_on_any_graph_at_every_stage(
    graph: ct.UserGraph, ridge: float, normalised: bool, cap: int
) -> None:
    model, reference = make_case(graph, 12, laplacian_ridge=ridge, normalised=normalised, max_work=100)
    assert_readings_hold(model, reference, 0, cap)


def hostile(name: str) -> ct.UserGraph:
    rng = np.random.default_rng(0)
    if name == "hub":
        return ct.UserGraph.from_edges([(0, i) for i in range(1, 50)], users=range(60))  # ten users are left alone
    if name == "path":
        return ct.UserGraph.from_edges([(i, i + 1) for i in range(59)])
    pairs = {tuple(sorted(map(int, rng.integers(50, size=2)))) for _ in range(120)}
    return ct.UserGraph.from_edges([(*p, float(10 ** rng.uniform(-4, 4))) for p in pairs if p[0] < p[1]])


@pytest.mark.parametrize("ridge", [1e-4, 1.0, 1e2])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("name", ["hub", "path", "weights"])
def test_readings_are_true_on_hostile_graphs(name: str, ridge: float, normalised: bool) -> None:
    model, reference = make_case(
        hostile(name), laplacian_ridge=ridge, normalised=normalised, max_work=500, engine=AS_IF_MANY
    )
    for user in (0, 1, 30):
        assert_readings_hold(model, reference, user, cap=2000)


def test_a_finer_solve_says_more_of_the_mean() -> None:
    model, reference = make_case(ct.make_graph("sbm", 60, seed=1), laplacian_ridge=1.0, engine=AS_IF_MANY)
    errors = assert_readings_hold(model, reference, 5)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.1 * model.error_bound(5, [N_ARMS - 1])[0]


@pytest.mark.parametrize("family", ["sbm", "ring", "empty"])
def test_variances_are_within_the_accuracy(family: str) -> None:
    model, reference = make_case(ct.make_graph(family, 40, seed=1), laplacian_ridge=0.5, accuracy=0.01)
    for user in (0, 7, 20):
        lower, upper = model.variance_bounds(user)
        exact = reference.predict(user)[1] ** 2
        assert np.all(lower <= exact * (1 + TINY))
        assert np.all(upper >= exact * (1 - TINY))
        assert np.all(upper - lower <= 0.01 * upper)


def test_variances_of_some_arms_are_those_of_all() -> None:
    model, _ = make_case(ct.make_graph("sbm", 40, seed=1))
    for one, other in zip(model.variance_bounds(3, [4, 1]), model.variance_bounds(3), strict=True):
        np.testing.assert_array_equal(one, other[[4, 1]])


def test_with_no_work_left_nothing_is_certain_but_what_is_clear() -> None:
    kernel = GraphKernel(ct.make_graph("ring", 2000), np.array([[1.0, 0.0], [0.99, 0.0], [0.1, 0.0]]))
    model = SparseModel(kernel, noise_var=0.1, max_work=1, certified=True)
    model.update(0, 2, 1e-3)
    assert not model.read_certain(1, np.array([0, 1]), 1.0).certain
    assert model.read_certain(1, np.array([0, 2]), 1.0).certain
    assert model.read_certain(1, np.array([1]), 1.0).certain


def test_arms_of_equal_features_are_one_contender() -> None:
    kernel = GraphKernel(ct.make_graph("ring", 30), np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.2]]))
    model = SparseModel(kernel, noise_var=0.1, certified=True)
    model.update(0, 0, 1.0)
    mean, std, certain = model.read_certain(1, np.arange(3), 1.0)
    assert certain
    assert (mean[0], std[0]) == (mean[1], std[1])


def test_more_solves_than_there_is_room_for_are_told_apart() -> None:
    engine = limited(open_solves=2)
    model, reference = make_case(ct.make_graph("sbm", 60, seed=1), eps=1.0, laplacian_ridge=0.5, engine=engine)
    mean, std = reference.predict(8)
    found = model.read_certain(8, np.arange(N_ARMS), 2.0)
    assert found.certain
    assert np.argmax(found.mean + 2 * found.std) == np.argmax(mean + 2 * std)
    assert len(model._certifier._solves) <= 2


def test_the_option_is_kept_and_checked() -> None:
    kernel = GraphKernel(ct.make_graph("ring", 5), np.eye(2))
    model = make_model(kernel, engine="sparse", engine_options={"certified": True})
    restored = restore_model(model.state(), kernel)
    assert isinstance(restored, SparseModel)
    assert restored.certified
    with pytest.raises(ParameterError, match="certified is 1"):
        make_model(kernel, engine="sparse", engine_options={"certified": 1})


def test_an_arm_without_features_ends_a_decision_as_any_other() -> None:
    kernel = GraphKernel(ct.make_graph("ring", 30), np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]))
    model = SparseModel(kernel, certified=True)
    model._certifier._most = 10**9
    model.update(0, 1, 0.0)
    model.update(0, 2, 0.0)
    assert not model.read_certain(0, np.arange(3), 0.0).certain
