"""Users who are one and the same: a small belief, the same answers, and a change of who is who."""

import numpy as np
import pytest
from numpy.typing import NDArray

from coterie.errors import MemoryLimitError
from coterie.kernels import PoolKernel, SquaredExponential
from coterie.models import ENGINES, DenseModel, GridModel, HybridModel, LinearModel, choose_engine, make_model
from coterie.models.engines.grid import merged

ARM_COV = SquaredExponential(1.0).gram(np.random.default_rng(0).normal(size=(6, 2)))


def clustered(labels: list[int]) -> NDArray[np.float64]:
    return np.equal.outer(labels, labels).astype(float)


def test_users_with_equal_rows_are_of_one_kind() -> None:
    cov = np.array([[2.0, 1.0, 2.0, 0.0], [1.0, 3.0, 1.0, 0.0], [2.0, 1.0, 2.0, -0.0], [0.0, 0.0, 0.0, 1.0]])
    kinds, smaller = merged(PoolKernel(cov, ARM_COV))
    assert kinds == [0, 1, 0, 2]
    np.testing.assert_array_equal(smaller.user_cov, [[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]])


def test_users_who_differ_leave_the_kernel_as_it_is() -> None:
    kernel = PoolKernel(np.eye(3) + 1, ARM_COV)
    assert merged(kernel)[1] is kernel


@pytest.mark.parametrize("engine", sorted(set(ENGINES) - {"dense"}))
def test_the_belief_is_dense_while_clusters_come_and_go(engine: str) -> None:
    steps = ([0] * 8, [0, 0, 1, 1, 0, 2, 2, 2], list(range(8)), [0, 1] * 4)
    kernel = PoolKernel(clustered(steps[0]), ARM_COV)
    model, dense = make_model(kernel, engine=engine, noise_var=0.1), DenseModel(kernel, noise_var=0.1)
    rng = np.random.default_rng(1)
    for labels in steps:
        for each in (model, dense):
            each.set_user_cov(clustered(labels))
        for _ in range(40):
            row = int(rng.integers(8)), int(rng.integers(6)), float(rng.normal())
            for each in (model, dense):
                each.update(*row)
        for user in range(8):
            np.testing.assert_allclose(model.predict(user), dense.predict(user), atol=1e-8)
        np.testing.assert_allclose(model.covariance(5), dense.covariance(5), atol=1e-8)
        assert model.info_gain == pytest.approx(dense.info_gain)
        assert model.log_marginal_likelihood == pytest.approx(dense.log_marginal_likelihood)
        assert not model.check().healed


def test_the_belief_holds_each_kind_once() -> None:
    pooled = PoolKernel(np.ones((300, 300)), ARM_COV)
    assert GridModel(pooled).nbytes == GridModel(PoolKernel(np.ones((1, 1)), ARM_COV)).nbytes
    assert LinearModel(PoolKernel(clustered([0, 1, 2] * 100), ARM_COV)).n_weights == 3 * 6


@pytest.mark.parametrize("make", [GridModel, HybridModel, LinearModel])
def test_a_split_that_would_not_fit_leaves_the_belief_as_it_was(
    make: type[GridModel | HybridModel | LinearModel],
) -> None:
    model = make(PoolKernel(np.ones((40, 40)), ARM_COV), noise_var=0.1, memory_limit=100_000)
    model.update(0, 0, 1.0)
    before = model.predict(7)
    with pytest.raises(MemoryLimitError):
        model.set_user_cov(np.eye(40) + 0.5)
    np.testing.assert_allclose(model.predict(7), before, atol=1e-12)


def test_the_choice_of_engine_counts_kinds() -> None:
    pooled = choose_engine(PoolKernel(np.ones((200, 200)), np.eye(50)), expected_rounds=5000)
    assert pooled.engine == "grid"
    assert "= 50 pairs" in pooled.reason
    two = PoolKernel(clustered([0, 1] * 100), np.eye(50))
    assert choose_engine(two).engine == "linear"
    assert choose_engine(PoolKernel(np.ones((3, 3)), np.eye(5)), clusters=True).engine == "linear"
    assert choose_engine(PoolKernel(np.eye(200), np.eye(50)), refresh_every=200).engine == "exact"
