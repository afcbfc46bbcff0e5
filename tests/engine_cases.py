"""Every engine on a kernel that it can use, and the dense reference on the same prior covariance."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.kernels import PoolKernel
from coterie.kernels.graph_kernel import graph_kernel
from coterie.kernels.group_kernel import group_kernel
from coterie.kernels.joint import JointKernel
from coterie.models import DenseModel, GridModel, HybridModel, Model, SparseModel
from coterie.models.choose import ALL_ENGINES
from coterie.models.engines.sparse.limits import Limits
from strategies import Array, Case, scaled_gap

ENGINE_NAMES = sorted(ALL_ENGINES)
TINY = 1e-7
RIDGE = 0.3


def on_graph(case: Case) -> JointKernel:
    return graph_kernel(case.graph, case.arm_kernel, case.pool, laplacian_ridge=RIDGE, feature_error=0.0)


def in_groups(case: Case) -> JointKernel:
    return group_kernel(np.arange(case.graph.n_users) % 2, case.arm_kernel, case.pool, feature_error=0.0)


KERNELS: dict[str, Callable[[Case], Any]] = {"sparse": on_graph, "groups": in_groups}  # all others take any kernel
SMALL: dict[str, Callable[..., Model]] = {
    "hybrid": lambda kernel, **options: HybridModel(kernel, switch_after=6, **options),
    "grid": lambda kernel, **options: GridModel(kernel, block_size=3, **options),
}  # so small that a short history reaches every stage


def kernel_of(engine: str, case: Case) -> Any:
    """Returns the case's kernel, or for an engine with a kernel of its own the one that goes by graph or groups."""
    return KERNELS[engine](case) if engine in KERNELS else case.kernel


def dense_kernel(engine: str, case: Case) -> PoolKernel:
    """Returns the same prior covariance as two matrices."""
    if engine not in KERNELS:
        return case.kernel
    kernel = kernel_of(engine, case)
    users = np.arange(kernel.n_users)
    alike = (
        ct.Green(laplacian_ridge=RIDGE).matrix(case.graph) if engine == "sparse" else users[:, None] % 2 == users % 2
    )
    return PoolKernel(np.asarray(alike, dtype=np.float64), kernel.arm_cross(*[np.arange(kernel.n_arms)] * 2))


def model_of(engine: str, case: Case, kernel: JointKernel | None = None) -> Model:
    """Returns a model of this engine that has learned nothing yet."""
    if engine == "sparse":
        pytest.importorskip("numba")
    wanted = kernel_of(engine, case) if kernel is None else kernel
    return SMALL.get(engine, ALL_ENGINES[engine])(wanted, noise_var=case.noise_var)


def limited(**changes: Any) -> type[SparseModel]:
    """Returns engine `sparse` with other sizes at which it takes another way."""
    return type("LimitedSparseModel", (SparseModel,), {"limits": Limits(**changes)})


def model_and_reference(engine: str, case: Case) -> tuple[Model, DenseModel]:
    """Returns both, with nothing learned yet."""
    return model_of(engine, case), DenseModel(dense_kernel(engine, case), noise_var=case.noise_var)


def assert_same_belief(model: Model, dense: DenseModel, tolerance: float = TINY) -> None:
    """Compares every public quantity in units of the prior: up to rounding, or up to the error that is stated."""
    assert_same_moments(model, dense, tolerance)
    if isinstance(model, SparseModel):
        assert model.info_gain <= dense.info_gain + TINY
        assert model.max_variance >= (1 - TINY) * dense.max_variance
        return
    assert model.info_gain == pytest.approx(dense.info_gain, rel=1e-6, abs=1e-6)
    assert model.effective_dim == pytest.approx(dense.effective_dim, rel=1e-6, abs=1e-6)
    assert model.log_marginal_likelihood == pytest.approx(dense.log_marginal_likelihood, rel=1e-6, abs=1e-6)


def assert_same_moments(model: Model, dense: DenseModel, tolerance: float = TINY) -> None:
    """Compares means and covariances. Near zero, std = sqrt(variance) magnifies rounding: variances are compared."""
    assert model.n_observations == dense.n_observations
    scale = float(max(dense.prior_std(user).max() for user in range(dense.n_users)))
    for user in range(dense.n_users):
        if isinstance(model, SparseModel):
            _assert_within_stated_error(model, dense, user, scale)
            continue
        (mean, std), (dense_mean, dense_std) = model.predict(user), dense.predict(user)
        assert scaled_gap(mean, dense_mean, scale) < tolerance
        assert scaled_gap(std**2, dense_std**2, scale**2) < tolerance
        assert scaled_gap(model.covariance(user), dense.covariance(user), scale**2) < tolerance
        rounding = 0.0 if isinstance(model.kernel, PoolKernel) else 1e-12
        np.testing.assert_allclose(model.prior_std(user), dense.prior_std(user), rtol=rounding)


def _assert_within_stated_error(model: SparseModel, dense: DenseModel, user: int, scale: float) -> None:
    """A mean is within `error_bound`, and that within `eps`; variances are upper bounds."""
    (mean, std), (exact, exact_std) = model.predict(user), dense.predict(user)
    bound, prior = model.error_bound(user), dense.prior_std(user)
    assert np.all(np.abs(mean - exact) <= bound + TINY * scale)
    assert np.all(bound <= model.eps * prior + TINY * scale) or model.n_waiting
    assert np.all(exact_std**2 <= std**2 + TINY * scale**2)
    low, high = model.variance_bounds(user)
    assert_between(low, exact_std**2, high, TINY * scale**2)
    assert_between(prior, model.prior_std(user), (1 + model.accuracy) * prior, TINY * scale)
    more = model.covariance(user) - dense.covariance(user)
    assert np.linalg.eigvalsh((more + more.T) / 2)[0] >= -TINY * scale**2


def assert_between(low: Array, values: Array, high: Array, slack: float) -> None:
    assert np.all(low <= values + slack)
    assert np.all(values <= high + slack)
