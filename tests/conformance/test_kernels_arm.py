"""What every arm kernel must satisfy; kernels are found by themselves."""

import inspect
import pickle
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from coterie.kernels import arithmetic, arm
from coterie.kernels.arm import ArmKernel
from kernel_cases import ARM_KERNELS, Cauchy, FloatArray, every_kernel, made, table

X, Z = table(7, 3, seed=1), table(5, 3, seed=2)


def test_the_search_finds_every_kernel_of_the_module() -> None:
    exported = {getattr(arm, name) for name in arm.__all__}
    found = {cls for cls in exported if inspect.isclass(cls) and not inspect.isabstract(cls)}
    assert found | {Cauchy} <= set(ARM_KERNELS)
    assert len(found) == 12


def test_both_modules_export_only_what_they_hold() -> None:
    for module in (arm, arithmetic):
        assert all(hasattr(module, name) for name in module.__all__)


@every_kernel
def test_gram_is_symmetric_and_agrees_with_cross_and_diag(kernel: ArmKernel) -> None:
    points = table(25, 3, seed=5)
    gram = kernel.gram(points)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(np.diag(gram), kernel.diag(points))
    np.testing.assert_allclose(gram, kernel.cross(points, points), rtol=1e-12, atol=1e-12)


@every_kernel
def test_cross_is_entrywise_and_symmetric_in_its_arguments(kernel: ArmKernel) -> None:
    full = kernel.cross(X, Z)
    np.testing.assert_allclose(kernel.cross(Z, X), full.T, rtol=1e-12, atol=1e-12)
    for i, j in ((0, 0), (6, 4), (3, 1)):
        np.testing.assert_allclose(kernel.cross(X[i : i + 1], Z[j : j + 1])[0, 0], full[i, j], rtol=1e-12, atol=1e-12)


@every_kernel
@settings(max_examples=25, deadline=None)
@given(points=arrays(np.float64, st.tuples(st.integers(1, 12), st.just(3)), elements=st.floats(-10.0, 10.0)))
def test_gram_is_positive_semi_definite(kernel: ArmKernel, points: FloatArray) -> None:
    gram = kernel.gram(points)
    assert np.linalg.eigvalsh(gram)[0] >= -1e-10 * np.trace(gram)


@every_kernel
def test_results_are_fresh_float64_and_inputs_are_untouched(kernel: ArmKernel) -> None:
    frozen = X.copy()
    frozen.flags.writeable = False
    for result in (kernel.cross(frozen, frozen), kernel.gram(frozen), kernel.diag(frozen)):
        assert result.dtype == np.float64
        assert not np.shares_memory(result, frozen)
        result[...] = np.nan
    np.testing.assert_array_equal(frozen, X)
    assert np.isfinite(kernel.gram(frozen)).all()


@every_kernel
def test_the_unchecked_path_gives_the_same(kernel: ArmKernel) -> None:
    np.testing.assert_array_equal(kernel._cross(X, Z), kernel.cross(X, Z))
    np.testing.assert_array_equal(kernel._gram(X), kernel.gram(X))
    np.testing.assert_array_equal(kernel._diag(X), kernel.diag(X))


@every_kernel
def test_lists_integers_and_other_layouts_are_read(kernel: ArmKernel) -> None:
    whole = np.arange(12).reshape(4, 3) % 5
    expected = kernel.gram(whole.astype(np.float64))
    np.testing.assert_array_equal(kernel.gram(whole.tolist()), expected)
    np.testing.assert_array_equal(kernel.gram(whole), expected)
    np.testing.assert_allclose(kernel.gram(np.asfortranarray(whole)), expected, rtol=1e-14)


@every_kernel
def test_no_rows_give_empty_tables(kernel: ArmKernel) -> None:
    none = np.empty((0, 3))
    assert kernel.cross(none, Z).shape == (0, 5)
    assert kernel.cross(X, none).shape == (7, 0)
    assert kernel.gram(none).shape == (0, 0)
    assert kernel.diag(none).shape == (0,)


@every_kernel
def test_kernels_are_values(kernel: ArmKernel) -> None:
    twin = made(type(kernel))
    assert kernel == twin
    assert hash(kernel) == hash(twin)
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert kernel != 2.0 * kernel
    assert not hasattr(kernel, "__dict__")
    for field in fields(kernel):  # type: ignore[arg-type]
        with pytest.raises(FrozenInstanceError):
            setattr(kernel, field.name, 3.0)


@every_kernel
def test_a_resolved_kernel_resolves_to_itself(kernel: ArmKernel) -> None:
    assert kernel.resolved
    assert kernel.resolve(X) is kernel
