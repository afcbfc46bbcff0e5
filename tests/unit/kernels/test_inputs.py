"""The kernel of inputs: what its formula says entry by entry, a covariance, and units that make no difference."""

from math import copysign, exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.contracts import Array
from coterie.errors import DimensionError
from coterie.kernels.inputs import ContextPart, InputKernel, InputLayout, InputScaling, InputsKernel, contrasts
from strategies import input_kernels, input_rows


def smooth_and_linear(x: Any, z: Any, apart: list[bool], scales: tuple[float, float], linear: float) -> Any:
    """(1 - linear) SE(numbers) SE(categories), and linear times the products of the numbers."""
    distance = sum((a - b) ** 2 for a, b in zip(x, z, strict=True))
    exponent = -distance / (2 * scales[0] ** 2) - sum(2 * each for each in apart) / (2 * scales[1] ** 2)
    return (1 - linear) * exp(exponent), linear * sum(a * b for a, b in zip(x, z, strict=True))


def in_spreads(value: float) -> float:
    """As it is up to two spreads, the logarithm of what is beyond."""
    return value if abs(value) <= 2 else copysign(2 + log(abs(value) - 1), value)


def plain(kernel: InputKernel, x: Array, z: Array) -> float:
    """k(x, z) as the module's docstring has it, number by number."""
    layout, centre, weight = kernel.layout, kernel.scaling.centre, kernel.scaling.weight
    first, n = int(layout.codes > 0), layout.features + layout.numbers
    (x_all, z_all) = ([in_spreads((row[first + i] - centre[i]) * weight[i]) for i in range(n)] for row in (x, z))
    varying = sum(each > 0 for each in weight[: layout.features])
    same_arm = x[0] == z[0]
    contrast = 1.0 if same_arm else (-1 / (layout.codes - 1) if layout.codes > 1 else 0.0)
    if layout.features:
        scales = (kernel.lengthscale, kernel.lengthscale)
        of_x, of_z = x_all[: layout.features], z_all[: layout.features]
        smooth, products = smooth_and_linear(of_x, of_z, [], scales, kernel.linear_share)
        arm = smooth + products / max(varying, 1)
    else:
        arm = contrast
    if layout.numbers + layout.categories == 0:
        return float(kernel.variance * (arm + kernel.level))
    apart = [x[i] != z[i] for i in range(first + n, layout.width)]
    part, of_x, of_z = kernel.context, x_all[layout.features :], z_all[layout.features :]
    smooth, products = smooth_and_linear(of_x, of_z, apart, part[:2], part.linear_share)
    products += part.linear_share * sum(not each for each in apart)
    varying = sum(each > 0 for each in weight[layout.features :]) + layout.categories
    context = smooth + products / max(varying, 1)
    both = arm * (1 + kernel.interaction * context) + kernel.context_share * context + kernel.level
    return float(kernel.variance * both)


@given(input_kernels(), st.integers(0, 1000), st.integers(1, 6), st.integers(1, 6))
def test_it_is_its_formula(kernel: InputKernel, seed: int, size: int, others: int) -> None:
    x, z = input_rows(kernel.layout, size, seed), input_rows(kernel.layout, others, seed + 1)
    expected = [[plain(kernel, one, other) for other in z] for one in x]
    np.testing.assert_allclose(kernel.cross(x, z), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(kernel.diag(x), [plain(kernel, one, one) for one in x], rtol=1e-10, atol=1e-10)


@given(input_kernels(), st.integers(0, 1000))
def test_the_candidates_of_a_decision_share_its_context(kernel: InputKernel, seed: int) -> None:
    x, z = input_rows(kernel.layout, 4, seed), input_rows(kernel.layout, 5, seed + 1)
    for table in (x, z):
        table[:, kernel.layout.of_context] = table[0, kernel.layout.of_context]
    for one, other in ((x, z), (z, x), (x, x)):
        expected = [[plain(kernel, a, b) for b in other] for a in one]
        np.testing.assert_allclose(kernel.cross(one, other), expected, rtol=1e-10, atol=1e-10)


@given(input_kernels(), st.integers(0, 1000), st.integers(1, 25))
def test_it_is_a_covariance(kernel: InputKernel, seed: int, size: int) -> None:
    gram = kernel.gram(input_rows(kernel.layout, size, seed))
    np.testing.assert_array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram)[0] >= -1e-10 * max(np.trace(gram), 1e-300)


@settings(max_examples=30)
@given(st.integers(2, 6), st.integers(0, 1000), st.floats(0.05, 3.0))
def test_effects_of_arms_without_features_sum_to_zero_in_every_context(
    n_arms: int, seed: int, interaction: float
) -> None:
    layout = InputLayout(n_arms, 0, 1, 1)
    kernel = InputKernel(
        layout, InputScaling((0.0,), (1.0,)), 1.0, 1.0, 0.0, 0.0, 0.0, interaction, ContextPart(1.0, 1.0, 0.3)
    )
    context = input_rows(InputLayout(0, 0, 1, 1), 1, seed)
    every = np.column_stack([np.arange(n_arms), np.repeat(context, n_arms, axis=0)])
    anywhere = input_rows(layout, 7, seed + 1)
    np.testing.assert_allclose(kernel.cross(every, anywhere).sum(axis=0), np.zeros(7), atol=1e-12)


def test_contrasts_of_one_arm_and_of_three() -> None:
    codes = np.array([[0.0], [1.0], [2.0]])
    np.testing.assert_array_equal(contrasts(codes[:1], codes[:1], 1), [[1.0]])
    found = contrasts(codes, codes, 3)
    np.testing.assert_array_equal(found, np.eye(3) * 1.5 - 0.5)
    np.testing.assert_allclose(found.sum(axis=0), np.zeros(3))


def test_a_context_that_is_alone_moves_all_candidates_alike() -> None:
    """Differences of two arms do not depend on what follows from the context alone."""
    layout, x = InputLayout(3, 0, 1, 0), np.array([[0.0, 0.7], [1.0, 0.7], [2.0, 0.7]])
    differences = []
    for share in (0.0, 5.0):
        kernel = InputKernel(
            layout, InputScaling((0.0,), (1.0,)), 1.0, 1.0, 0.0, 0.1, share, 0.5, ContextPart(1.0, 1.0, 0.3)
        )
        gram = kernel.gram(x)
        differences.append(gram[0, 0] + gram[1, 1] - 2 * gram[0, 1])
    assert differences[0] == pytest.approx(differences[1], rel=1e-12)


@given(input_kernels())
def test_a_layout_has_every_column_once(kernel: InputKernel) -> None:
    layout = kernel.layout
    columns = np.arange(layout.width)
    parts = [
        columns[: int(layout.codes > 0)],
        *(columns[p] for p in (layout.of_arm, layout.of_numbers, layout.of_categories)),
    ]
    np.testing.assert_array_equal(np.concatenate(parts), columns)
    np.testing.assert_array_equal(columns[layout.of_context], np.concatenate(parts[2:]))
    assert [len(part) for part in parts[1:]] == list(layout[1:])


def test_inputs_of_other_widths_are_refused() -> None:
    kernel = InputKernel(
        InputLayout(2, 0, 1, 0), InputScaling((0.0,), (1.0,)), 1.0, 1.0, 0.0, 0.0, 0.5, 2.0, ContextPart(1.0, 1.0, 0.0)
    )
    with pytest.raises(DimensionError, match="an input of 3 columns; it has 2"):
        kernel.cross([[0.0, 1.0, 2.0]], [[0.0, 1.0, 2.0]])
    with pytest.raises(DimensionError, match="an input of 1 columns"):
        InputsKernel(np.eye(2), kernel).checked_arm([1.0])


@given(st.integers(1, 30), st.integers(0, 1000), st.sampled_from([1e-6, 1.0, 1e6]), st.sampled_from([0.0, 5e6, -3.0]))
def test_a_scaling_gives_mean_0_and_deviation_1_whatever_the_units(
    size: int, seed: int, unit: float, origin: float
) -> None:
    values = np.random.default_rng(seed).normal(size=(size, 2))
    scaling = InputScaling.of(values * [unit, 1.0] + [origin * unit, 7.0])
    scaled = scaling.applied(values * [unit, 1.0] + [origin * unit, 7.0])
    if size == 1:
        np.testing.assert_array_equal(scaled, np.zeros((1, 2)))
        assert scaling.weight == (0.0, 0.0)
        return
    np.testing.assert_allclose(scaled.mean(axis=0), np.zeros(2), atol=1e-7)
    np.testing.assert_allclose(scaled.std(axis=0), np.ones(2), rtol=1e-7)
    np.testing.assert_allclose(scaled, (values - values.mean(axis=0)) / values.std(axis=0), atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 7.0, 1e50, 0.1 + 0.2])
def test_what_does_not_vary_has_no_weight(value: float) -> None:
    assert InputScaling.of(np.full((5, 1), value)).weight == (0.0,)


@pytest.mark.parametrize("size", [1e50, 1e-40])
def test_a_scaling_of_numbers_whose_squares_are_too_large_or_small(size: float) -> None:
    rows = size * np.array([[-1.0], [0.0], [1.0]])
    np.testing.assert_allclose(InputScaling.of(rows).applied(rows)[:, 0], [-np.sqrt(1.5), 0, np.sqrt(1.5)], atol=1e-12)


def test_scalings_of_no_rows_and_one_after_another() -> None:
    none = InputScaling.of(np.empty((0, 2)))
    assert (none.centre, none.weight) == ((0.0, 0.0), (0.0, 0.0))
    other = InputScaling.of(np.array([[1.0], [3.0]]))
    both = none.then(other)
    assert (both.centre, both.weight) == ((0.0, 0.0, 2.0), (0.0, 0.0, 1.0))


def test_a_kernel_times_a_number_and_other_users() -> None:
    kernel = InputKernel(
        InputLayout(2, 0, 1, 0), InputScaling((0.0,), (1.0,)), 0.5, 1.0, 0.0, 0.0, 0.5, 2.0, ContextPart(1.0, 1.0, 0.0)
    )
    x = np.array([[0.0, 0.3], [1.0, 0.3]])
    np.testing.assert_allclose(kernel.times(3.0).gram(x), 3 * kernel.gram(x))
    joint = InputsKernel(np.eye(2), kernel).with_user_cov(2 * np.eye(2))
    assert isinstance(joint, InputsKernel)
    np.testing.assert_allclose(joint.cross(np.zeros(2, int), x, np.zeros(2, int), x), 2 * kernel.cross(x, x))
