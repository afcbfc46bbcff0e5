"""`sparse` moves all users together now and then: the residual stays exact, bounds stay true, and pushes become few."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import coterie as ct
from coterie.algebra import iterative
from coterie.kernels import PoolKernel
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models import DenseModel, SparseModel, restore_model
from coterie.models.engines.sparse import posterior_weights
from engine_cases import limited

pytest.importorskip("numba")

FEATURES = np.random.default_rng(3).normal(size=(8, 2))
TINY = 1e-9


def graph_of(name: str) -> ct.UserGraph:
    if name == "parts":  # two components and users alone: the null vector of all is not the only one
        return ct.UserGraph.from_edges([(0, 1), (1, 2), (3, 4, 1e4), (4, 5, 1e-4)], users=range(9))
    return ct.make_graph(name, 40, seed=1)


OFTEN = limited(deflation_patience=1, deflation_user=1, deflation_row=0, deflation_gain=0.0)


def steps_of(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Returns a list of how far steps of deflation move residuals."""
    moved: list[float] = []
    step = posterior_weights.Deflation.step

    def noted(self: posterior_weights.Deflation, *given: Any) -> posterior_weights.DeflationStep | None:
        made = step(self, *given)
        moved.append(0.0 if made is None else float(np.abs(made.residual).max()))
        return made

    monkeypatch.setattr(posterior_weights.Deflation, "step", noted)
    return moved


@pytest.mark.parametrize("ridge", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("name", ["barabasi-albert", "sbm", "ring", "parts"])
def test_the_bounds_stay_true(name: str, normalised: bool, ridge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    moved, graph = steps_of(monkeypatch), graph_of(name)
    kernel = GraphKernel(graph, FEATURES, laplacian_ridge=ridge, normalised=normalised)
    model = OFTEN(kernel, noise_var=0.1, max_work=3_000)
    model._posterior.solves_globally = False
    users = ct.Green(laplacian_ridge=ridge, normalised=normalised).matrix(graph)
    reference = DenseModel(PoolKernel(users, FEATURES @ FEATURES.T), noise_var=0.1)
    rng = np.random.default_rng(0)
    for _ in range(40):
        user, arm, reward = int(rng.integers(graph.n_users)), int(rng.integers(8)), float(5 * rng.normal())
        model.update(user, arm, reward)
        reference.update(user, arm, reward)
        gap = np.abs(model.predict(user)[0] - reference.predict(user)[0])
        assert np.all(gap <= model.error_bound(user) * (1 + TINY) + TINY)
    assert ridge > 1 or max(moved) > 0
    residual = model._posterior
    off = residual.fresh_residual(model._data) - residual.residual
    assert np.max(np.linalg.norm(off, axis=1) / model.kernel.shape) <= residual.rounding


@pytest.mark.parametrize("size", [1e6, 1e18])
def test_the_bound_allows_for_the_rounding_of_a_step(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    moved, graph = steps_of(monkeypatch), graph_of("sbm")
    model = OFTEN(GraphKernel(graph, FEATURES), noise_var=0.1)
    reference = DenseModel(PoolKernel(ct.Green().matrix(graph), FEATURES @ FEATURES.T), noise_var=0.1)
    for reward in (size, -size, 1.0, size / 3):
        for each in (model, reference):
            each.update_many([3] * 5 + [5], [1] * 5 + [2], [reward] * 5 + [-reward])
    assert max(moved) > 0
    gap = np.abs(model.predict(4)[0] - reference.predict(4)[0])
    assert np.all(gap <= model.error_bound(4) + 1e-15 * size)


def work_of(model: SparseModel) -> int:
    """Plays, and returns the work of all repairs."""
    made: list[int] = []

    def counted(*given: Any) -> int:
        made.append(int(iterative.repair(*given)))
        return made[-1]

    parts = {name: getattr(iterative, name) for name in dir(iterative)} | {"repair": counted}
    model._posterior._push = cast(Any, SimpleNamespace(**parts))
    rng = np.random.default_rng(0)
    for _ in range(150):
        model.learn(int(rng.integers(3_000)), int(rng.integers(8)), float(rng.normal()))
    return sum(made)


def test_pushes_become_few() -> None:
    graph = ct.make_graph("barabasi-albert", 3_000, attach=5, seed=1)
    kernel = GraphKernel(graph, FEATURES, laplacian_ridge=0.1)
    impatient, never = limited(deflation_patience=2), limited(deflation_user=10**9)  # with so few rewards
    assert 2 * work_of(impatient(kernel, noise_var=0.1)) < work_of(never(kernel, noise_var=0.1))


def test_a_large_graph_is_left_to_pushes_and_work_stays_capped() -> None:
    kernel = GraphKernel(ct.make_graph("ring", 3_000), FEATURES)
    model = SparseModel(kernel, noise_var=0.1, max_work=5_000)
    model._posterior.deflation.work_since = 10**9
    assert model._posterior.deflation.work_until_due(0, 5_000) == 5_000
    assert model._posterior.deflation.work_until_due(0, 20_000) == 0


def test_what_the_step_is_made_with_is_the_sum_of_blocks() -> None:
    model = SparseModel(GraphKernel(graph_of("sbm"), FEATURES), noise_var=0.1)
    rng = np.random.default_rng(0)
    for _ in range(60):
        model.update(int(rng.integers(40)), int(rng.integers(8)), 1.0)
    exact = sum(model._data.precision(user) for user in range(40))
    np.testing.assert_allclose(model._posterior.deflation.data_precision, exact)
    model._posterior.deflation.recompute(model._data)
    np.testing.assert_allclose(model._posterior.deflation.data_precision, exact)


def test_when_the_next_step_comes_is_kept_in_a_state() -> None:
    model = SparseModel(GraphKernel(graph_of("sbm"), FEATURES), noise_var=0.1)
    for user in range(40):
        model.update(user, user % 8, 1.0)
    assert model._posterior.deflation.work_since > 0
    other = restore_model(model.state(), model.kernel)
    assert isinstance(other, SparseModel)
    assert other._posterior.deflation.work_since == model._posterior.deflation.work_since
