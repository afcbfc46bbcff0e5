"""Arm kernels against naive loops and other libraries."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist

from coterie.errors import ArmError, CoterieError, DimensionError, KernelError
from coterie.kernels import arm
from coterie.kernels.arm import (
    ArmKernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    SquaredExponential,
    Stationary,
    Sum,
    median_distance,
)
from kernel_cases import STATIONARY, Cauchy, every_kernel, every_stationary, table

FloatArray = NDArray[np.float64]


# Formulas

X, Z = table(7, 3, seed=1), table(5, 3, seed=2)
ARD = [0.5, 1.0, 4.0]


def scaled_distance(x: FloatArray, z: FloatArray, lengthscale: float | list[float]) -> float:
    scales = [lengthscale] * 3 if isinstance(lengthscale, float) else lengthscale
    return math.sqrt(sum(((a - b) / s) ** 2 for a, b, s in zip(x, z, scales, strict=True)))


def matern32(d: float) -> float:
    return (1 + math.sqrt(3) * d) * math.exp(-math.sqrt(3) * d)


def matern52(d: float) -> float:
    return (1 + math.sqrt(5) * d + 5 * d**2 / 3) * math.exp(-math.sqrt(5) * d)


STATIONARY_FORMULAS: list[tuple[Callable[[Any], ArmKernel], Callable[[float], float]]] = [
    (SquaredExponential, lambda d: math.exp(-(d**2) / 2)),
    (Matern12, lambda d: math.exp(-d)),
    (Matern32, matern32),
    (Matern52, matern52),
    (RationalQuadratic, lambda d: 1 / (1 + d**2 / 2)),
    (lambda scale: RationalQuadratic(scale, shape=0.3), lambda d: (1 + d**2 / 0.6) ** -0.3),
    (Cauchy, lambda d: 1 / (1 + d**2)),
]


@pytest.mark.parametrize("lengthscale", [1.0, 0.4, ARD], ids=["unit", "short", "ard"])
@pytest.mark.parametrize(("build", "formula"), STATIONARY_FORMULAS)
def test_stationary_formulas(
    build: Callable[[Any], ArmKernel], formula: Callable[[float], float], lengthscale: float | list[float]
) -> None:
    naive = [[formula(scaled_distance(x, z, lengthscale)) for z in Z] for x in X]
    np.testing.assert_allclose(build(lengthscale).cross(X, Z), naive, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (Linear(), lambda p: p),
        (Linear(offset=3.0), lambda p: p + 9.0),
        (Polynomial(), lambda p: (p + 1.0) ** 2),
        (Polynomial(degree=1, offset=0.0), lambda p: p),
        (Polynomial(degree=3, offset=0.5), lambda p: (p + 0.5) ** 3),
        (Polynomial(degree=12), lambda p: (p + 1.0) ** 12),
        (Polynomial(degree=13), lambda p: (p + 1.0) ** 13),
    ],
)
def test_inner_product_formulas(kernel: ArmKernel, formula: Callable[[float], float]) -> None:
    naive = [[formula(sum(a * b for a, b in zip(x, z, strict=True))) for z in Z] for x in X]
    np.testing.assert_allclose(kernel.cross(X, Z), naive, rtol=1e-12, atol=1e-12)


def test_against_scipy_distances_in_many_dimensions() -> None:
    many, more = table(40, 20, seed=3), table(60, 20, seed=4)
    distances = cdist(many, more) / 2.5
    np.testing.assert_allclose(SquaredExponential(2.5).cross(many, more), np.exp(-(distances**2) / 2), rtol=1e-12)
    np.testing.assert_allclose(Matern12(2.5).cross(many, more), np.exp(-distances), rtol=1e-13)


@pytest.mark.parametrize("lengthscale", [0.8, ARD], ids=["scalar", "ard"])
def test_against_scikit_learn(lengthscale: float | list[float]) -> None:
    theirs = pytest.importorskip("sklearn.gaussian_process.kernels")
    pairs = [
        (SquaredExponential(lengthscale), theirs.RBF(lengthscale)),
        (Matern12(lengthscale), theirs.Matern(lengthscale, nu=0.5)),
        (Matern32(lengthscale), theirs.Matern(lengthscale, nu=1.5)),
        (Matern52(lengthscale), theirs.Matern(lengthscale, nu=2.5)),
        (Linear(offset=1.5), theirs.DotProduct(sigma_0=1.5)),
        (Polynomial(degree=3, offset=4.0), theirs.DotProduct(sigma_0=2.0) ** 3),
        (2.0 * SquaredExponential(lengthscale) + Linear(), 2.0 * theirs.RBF(lengthscale) + theirs.DotProduct(0.0)),
    ]
    if isinstance(lengthscale, float):
        pairs.append((RationalQuadratic(lengthscale, shape=0.7), theirs.RationalQuadratic(lengthscale, 0.7)))
    for ours, reference in pairs:
        np.testing.assert_allclose(ours.cross(X, Z), reference(X, Z), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ours.gram(X), reference(X), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ours.diag(X), reference.diag(X), rtol=1e-12)


def test_equal_ard_entries_are_one_lengthscale() -> None:
    for cls in STATIONARY:
        np.testing.assert_array_equal(cls([0.6] * 3).cross(X, Z), cls(0.6).cross(X, Z))


def test_a_long_ard_entry_removes_its_feature() -> None:
    kernel = SquaredExponential([0.5, 0.5, 1e9])
    np.testing.assert_allclose(kernel.gram(X), SquaredExponential(0.5).gram(X[:, :2]), rtol=1e-12)


# Accuracy of the stationary kernels


@every_stationary
@pytest.mark.parametrize("shift", [1e6, -1e6])
def test_translation_changes_nothing(cls: type[Stationary], shift: float) -> None:
    for kernel in (cls(0.7), cls(ARD)):
        np.testing.assert_allclose(kernel.cross(X + shift, Z + shift), kernel.cross(X, Z), atol=1e-6, rtol=0)
        np.testing.assert_allclose(kernel.gram(X + shift), kernel.gram(X), atol=1e-6, rtol=0)


def test_translated_arms_keep_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*_: FloatArray) -> FloatArray:
        raise AssertionError("the differences were taken first")

    monkeypatch.setattr(arm, "_differenced", unwanted)
    SquaredExponential(0.7).cross(X + 1e6, Z + 1e6)
    with pytest.raises(AssertionError):
        SquaredExponential(0.7).cross(1e6 * X, Z)


@every_stationary
def test_nearly_equal_arms_far_from_the_rest(cls: type[Stationary]) -> None:
    """One arm 1e8 lengthscales away must not blur the small distances of the others."""
    points = np.vstack([X, X + 1e-3, [[1e8, 0.0, 0.0]]])
    np.testing.assert_allclose(cls(1.0).cross(X, points)[:, :-1], cls(1.0).cross(X, points[:-1]), atol=1e-9, rtol=0)


@every_stationary
def test_arms_too_far_for_squares_are_unlike_and_not_nan(cls: type[Stationary]) -> None:
    gram = cls(1e-150).gram([[-1e50], [1e50], [1e50]])
    np.testing.assert_allclose(gram, [[1, 0, 0], [0, 1, 1], [0, 1, 1]], atol=1e-30)


def test_matern12_is_exact_for_nearby_arms() -> None:
    near = X + 1e-9
    np.testing.assert_allclose(np.diag(Matern12(1.0).cross(X, near)), np.exp(-math.sqrt(3) * 1e-9), rtol=1e-15)
    np.testing.assert_array_equal(np.diag(Matern12(0.3).cross(X, X)), 1.0)


@every_stationary
@pytest.mark.parametrize("scale", [99.0, 101.0])
def test_both_ways_to_the_distances_agree(cls: type[Stationary], scale: float) -> None:
    """The arms lie just inside or outside the radius at which the differences are taken first."""
    sphere = scale * np.array([[1.0, 0.0], [math.cos(0.01), math.sin(0.01)], [-1.0, 0.0]])
    expected = cls(1.0)._of_squared_distance(cdist(sphere, sphere, "sqeuclidean"))
    np.testing.assert_allclose(cls(1.0).cross(sphere, sphere), expected, atol=1e-11, rtol=0)


# Operators


def test_operators_build_the_composites() -> None:
    first, second = SquaredExponential(0.5), Linear()
    assert first + second == Sum(first, second)
    assert first * second == Product(first, second)
    assert 2.0 * first == first * 2.0 == 2 * first == np.float64(2.0) * first == Scaled(first, 2.0)
    assert isinstance(np.float64(2.0) * first, Scaled)
    assert first + second != second + first
    assert (first + second).parts == (first, second)


def test_composites_are_entrywise() -> None:
    first, second = Matern32(0.5), Polynomial(degree=3)
    a, b = first.cross(X, Z), second.cross(X, Z)
    np.testing.assert_allclose((first + second).cross(X, Z), a + b, rtol=1e-15)
    np.testing.assert_allclose((first * second).cross(X, Z), a * b, rtol=1e-15)
    np.testing.assert_allclose((0.3 * first).cross(X, Z), 0.3 * a, rtol=1e-15)
    np.testing.assert_allclose((2.0 * (first + second) * first).diag(X), 2.0 * (1.0 + second.diag(X)), rtol=1e-15)


@pytest.mark.parametrize("other", ["2.0", None, True, [1.0, 2.0], np.ones(2)])
def test_operators_refuse_what_is_neither_kernel_nor_number(other: Any) -> None:
    acts: list[Callable[[], object]] = [
        lambda: Linear() * other,
        lambda: other * Linear(),
        lambda: Linear() + other,
    ]
    for act in acts:
        with pytest.raises(TypeError):
            act()


def test_a_number_is_not_added_to_a_kernel() -> None:
    with pytest.raises(TypeError):
        Linear() + 1.0  # type: ignore[operator]


# Lengthscales and their resolution


def test_median_is_the_default_and_the_first_argument() -> None:
    for cls in STATIONARY:
        assert cls() == cls("median") == cls(lengthscale="median")
        assert not cls().resolved
        assert cls(0.5).lengthscale == 0.5
        assert cls(0.5).resolved


def test_ard_vectors_are_kept_as_tuples() -> None:
    kernels = [SquaredExponential(vector) for vector in (ARD, tuple(ARD), np.array(ARD))]
    assert [k.lengthscale for k in kernels] == [(0.5, 1.0, 4.0)] * 3
    assert len(set(kernels)) == 1
    assert all(type(entry) is float for entry in kernels[2].lengthscale)  # type: ignore[union-attr]
    assert SquaredExponential([1, 2]) == SquaredExponential([1.0, 2.0])
    assert SquaredExponential(np.array(0.5)) == SquaredExponential(0.5)
    assert type(SquaredExponential(1).lengthscale) is float


def test_resolve_takes_the_median_distance() -> None:
    assert SquaredExponential().resolve(X) == SquaredExponential(float(np.median(pdist(X))))
    assert RationalQuadratic(shape=0.2).resolve([[0.0], [3.0]]) == RationalQuadratic(3.0, shape=0.2)
    assert SquaredExponential(0.1).resolve(X).lengthscale == 0.1


def test_composites_resolve_to_the_bottom() -> None:
    kernel = 2.0 * (SquaredExponential() + Linear()) * (Matern52(0.3) + 0.5 * (Matern12() * RationalQuadratic()))
    assert not kernel.resolved
    expected = (
        2.0 * (SquaredExponential(4.0) + Linear()) * (Matern52(0.3) + 0.5 * (Matern12(4.0) * RationalQuadratic(4.0)))
    )
    assert kernel.resolve([[0.0], [4.0]]) == expected
    assert kernel.resolve([[0.0], [4.0]]).resolved


def test_median_distance_keeps_zero_distances() -> None:
    # distances 0, 1, 1 and then 0, 0, 0, 1, 1, 1
    assert median_distance([[0.0], [0.0], [1.0]]) == 1.0
    assert median_distance([[0.0], [0.0], [0.0], [1.0]]) == 0.5


@pytest.mark.parametrize("pool", [np.empty((0, 2)), [[3.0, 4.0]], [[3.0, 4.0]] * 5])
def test_median_distance_falls_back_to_one(pool: Any) -> None:
    assert median_distance(pool) == 1.0
    assert SquaredExponential().resolve(pool) == SquaredExponential(1.0)


def test_median_distance_of_a_large_pool_uses_rows_at_even_steps() -> None:
    pool = table(3001, 1, seed=6)
    rows = [i * 3000 // 1999 for i in range(2000)]
    assert len(set(rows)) == 2000
    assert rows[-1] == 3000
    assert median_distance(pool) == np.median(pdist(pool[rows]))
    assert median_distance(pool[:2000]) == np.median(pdist(pool[:2000]))


# Errors


def refused(error: type[CoterieError], act: Callable[[], object]) -> CoterieError:
    with pytest.raises(error) as caught:
        act()
    assert type(caught.value) is error
    return caught.value


BAD_LENGTHSCALES = [
    0.0, -1.0, math.nan, math.inf, 10**400, "mean", True, None, 1j, [], [1.0, -1.0], [1.0, math.nan], ["1"],
    np.ones((2, 2)), [[1.0], [2.0, 3.0]], 1e-151, 1e151, [1.0, 5e-324],
]  # fmt: skip


@every_stationary
@pytest.mark.parametrize("value", BAD_LENGTHSCALES, ids=repr)
def test_bad_lengthscales(cls: type[Stationary], value: Any) -> None:
    assert "positive finite number" in refused(KernelError, lambda: cls(value)).rule


@pytest.mark.parametrize(
    ("act", "named"),
    [
        (lambda: RationalQuadratic(1.0, shape=0.0), "shape is 0.0"),
        (lambda: RationalQuadratic(1.0, shape=math.inf), "shape is inf"),
        (lambda: Linear(offset=-0.1), "offset is -0.1"),
        (lambda: Linear(offset=math.nan), "offset is nan"),
        (lambda: Polynomial(degree=0), "degree is 0"),
        (lambda: Polynomial(degree=True), "degree is True"),
        (lambda: Polynomial(degree=2.0), "degree is 2.0"),  # type: ignore[arg-type]
        (lambda: Polynomial(offset=-1.0), "offset is -1.0"),
        (lambda: 0.0 * Linear(), "variance is 0.0"),
        (lambda: Linear() * -2, "variance is -2"),
        (lambda: math.inf * Linear(), "variance is inf"),
        (lambda: 10**400 * Linear(), "variance is 1000"),
        (lambda: Scaled(Linear(), "2"), "variance is '2'"),  # type: ignore[arg-type]
        (lambda: Scaled(2.0, 2.0), "kernel is 2.0"),  # type: ignore[arg-type]
        (lambda: Sum(1.0, Linear()), "left is 1.0"),  # type: ignore[arg-type]
        (lambda: Product(Linear(), None), "right is None"),  # type: ignore[arg-type]
    ],
)
def test_bad_parameters(act: Callable[[], object], named: str) -> None:
    assert named in refused(KernelError, act).problem


UNRESOLVED = [cls() for cls in STATIONARY] + [Linear() + Matern12(), Matern12() * Linear(), 2.0 * Matern12()]


@pytest.mark.parametrize("kernel", UNRESOLVED, ids=repr)
def test_unresolved_kernels_cannot_be_evaluated(kernel: ArmKernel) -> None:
    none = np.empty((0, 3))
    for act in (
        lambda: kernel.cross(X, Z),
        lambda: kernel.gram(X),
        lambda: kernel._cross(X, Z),
        lambda: kernel._gram(X),
        lambda: kernel.gram(none),
    ):
        error = refused(KernelError, act)
        assert "resolve(pool)" in error.remedy
        assert "number" in error.remedy
    assert kernel.diag(X).shape == (7,)


@every_kernel
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 1), (2, 0)])
def test_wrong_shapes(kernel: ArmKernel, shape: tuple[int, ...]) -> None:
    wrong = np.ones(shape)
    for act in (
        lambda: kernel.cross(wrong, Z),
        lambda: kernel.cross(X, wrong),
        lambda: kernel.gram(wrong),
        lambda: kernel.diag(wrong),
        lambda: kernel.resolve(wrong),
    ):
        assert str(shape) in refused(DimensionError, act).problem


@every_kernel
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_features_that_are_not_finite(kernel: ArmKernel, value: float) -> None:
    wrong = X.copy()
    wrong[4, 1] = value
    for act in (
        lambda: kernel.cross(wrong, Z),
        lambda: kernel.cross(Z, wrong),
        lambda: kernel.gram(wrong),
        lambda: kernel.diag(wrong),
        lambda: kernel.resolve(wrong),
        lambda: median_distance(wrong),
    ):
        assert "row 4" in refused(ArmError, act).problem


@pytest.mark.parametrize("wrong", [[["a"]], [["1.0"]], [[1j]], [[1.0], [1.0, 2.0]], [[{}]], np.ones((2, 2)) * 1j])
def test_features_that_are_not_numbers(wrong: Any) -> None:
    assert "not a table of numbers" in refused(ArmError, lambda: Linear().gram(wrong)).problem


@every_kernel
def test_tables_of_different_width(kernel: ArmKernel) -> None:
    error = refused(DimensionError, lambda: kernel.cross(X, Z[:, :2]))
    assert error.problem == "X has 3 features and Z has 2"


@pytest.mark.parametrize("wrap", [lambda k: k, lambda k: 2.0 * k, lambda k: Linear() + k, lambda k: k * Matern12(1.0)])
@every_stationary
def test_ard_vectors_of_the_wrong_length(cls: type[Stationary], wrap: Callable[[ArmKernel], ArmKernel]) -> None:
    kernel = wrap(cls([1.0, 2.0]))
    kernel.check_dimension(2)
    for act in (
        lambda: kernel.check_dimension(3),
        lambda: kernel.cross(X, Z),
        lambda: kernel.gram(X),
        lambda: kernel.diag(X),
        lambda: kernel.resolve(X),
    ):
        assert "2 entries" in refused(DimensionError, act).problem


# Numbers out of range


@every_kernel
@pytest.mark.parametrize("value", [1e200, -1.1e50, math.nan])
def test_features_out_of_range_are_named(kernel: ArmKernel, value: float) -> None:
    odd = [[0.0, 1.0, 2.0], [0.0, value, 1.0]]
    assert refused(ArmError, lambda: kernel.cross(X, odd)).problem == f"feature 1 of row 1 of Z is {value}"
    for act in (lambda: kernel.gram(odd), lambda: kernel.diag(odd), lambda: kernel.resolve(odd)):
        assert refused(ArmError, act).problem == f"feature 1 of row 1 of X is {value}"


@every_stationary
@pytest.mark.parametrize("lengthscale", [1e-150, 1e-50, 1e50, 1e150])
def test_every_lengthscale_and_feature_in_range_gives_a_kernel(cls: type[Stationary], lengthscale: float) -> None:
    points = np.array([[0.0], [1e-300], [1.0], [1e50], [-1e50]])
    gram = cls(lengthscale).gram(points)
    assert np.all((gram >= 0) & (gram <= 1))
    assert gram[0, 1] == 1.0


def test_arms_that_hardly_differ_but_for_one_have_the_lengthscale_of_equal_ones() -> None:
    assert median_distance([[0.0], [1e-120], [2e-120], [3e-120], [1.0]]) == 1.0
