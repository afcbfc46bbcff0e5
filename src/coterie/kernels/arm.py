"""Arm kernels: how alike two arms are, from their features.

The stationary ones see only the scaled distance d = |(x - z) / lengthscale|; `Linear` and `Polynomial`
see the inner product, `Distinct` only whether two arms are the same, `Constant` nothing. Kernels combine
with `k1 + k2`, `k1 * k2` and `2.0 * k`. A table of n x m values for d features costs O(n m d).

Examples:
    >>> pool = [[0.0, 0.0], [3.0, 4.0]]
    >>> kernel = (2.0 * SquaredExponential("median") + Linear()).resolve(pool)
    >>> kernel.gram(pool).round(3)
    array([[ 2.   , 1.213],
           [ 1.213, 27.  ]])
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from scipy.spatial.distance import cdist

from coterie.errors import DimensionError, KernelError
from coterie.errors.checks import is_whole
from coterie.kernels.arithmetic import (
    ArmKernel,
    FloatArray,
    Product,
    Scaled,
    Sum,
    checked_number,
    median_distance,
)

__all__ = [
    "ArmKernel",
    "Constant",
    "Distinct",
    "Lengthscale",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "SquaredExponential",
    "Stationary",
    "Sum",
    "median_distance",
]

Lengthscale = float | Sequence[float] | FloatArray | Literal["median"]

# Beyond 100 lengthscales from the centre, |x|^2 + |z|^2 - 2 x.z loses more than about 1e-12 to cancellation.
_LARGEST_SQUARED_NORM = 1e4
# Within these a feature over a lengthscale is a number, however large the feature may be.
_SHORTEST, _LONGEST = 1e-150, 1e150
_LENGTHSCALE_RULE = (
    f'lengthscale must be a positive finite number from {_SHORTEST:g} to {_LONGEST:g}, a vector of them, or "median"'
)
# Far enough that every kernel is 0 there, small enough that none of them computes inf * 0.
_LARGEST_SQUARED_DISTANCE = 1e200


@dataclass(frozen=True, slots=True)
class Stationary(ArmKernel):
    """A kernel of the scaled distance alone; a subclass gives `_of_squared_distance`, and k(x, x) = 1.

    Cost: O(n m d) for the distances, as one matrix product, and O(n m) for the kernel.

    Attributes:
        lengthscale: The distance over which arms stop being alike: a positive number, one for each
            feature (kept as a tuple), or "median" until `resolve` sets it.

    Examples:
        >>> @dataclass(frozen=True, slots=True)
        ... class Cauchy(Stationary):
        ...     def _of_squared_distance(self, d2):
        ...         return 1.0 / (1.0 + d2)
        >>> Cauchy(2.0).cross([[0.0]], [[2.0]])
        array([[0.5]])
    """

    lengthscale: Lengthscale = "median"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", _as_lengthscale(self.lengthscale))

    @property
    def resolved(self) -> bool:
        """Returns whether the lengthscale is a number or a vector of them."""
        return not isinstance(self.lengthscale, str)

    def check_dimension(self, n_features: int) -> None:
        """Returns nothing; raises DimensionError if a lengthscale vector does not fit that many features."""
        if isinstance(self.lengthscale, tuple) and len(self.lengthscale) != n_features:
            raise DimensionError(
                f"the lengthscale has {len(self.lengthscale)} entries and the arms have {n_features} features",
                "a lengthscale vector has one entry for each feature",
                "Pass one number for all features, or a vector of that length",
            )

    @abstractmethod
    def _of_squared_distance(self, d2: FloatArray) -> FloatArray:
        """Returns the kernel at the squared scaled distances; it may overwrite them."""

    def _cross(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        inverse = self._inverse_lengthscale()
        if not (len(X) and len(Z)):
            return np.zeros((len(X), len(Z)))
        # The kernel does not see a shift, and near the origin the squared norms are small, hence also what
        # is lost in their difference. Z.mean(axis=0) is the same, but costs more than all of np.exp below.
        centre = np.full(len(Z), 1.0 / len(Z)) @ Z
        return self._of_squared_distance(self._squared_distance((X - centre) * inverse, (Z - centre) * inverse))

    def _diag(self, X: FloatArray) -> FloatArray:
        return np.ones(len(X))

    def _with_median(self, median: float) -> Self:
        return self if self.resolved else replace(self, lengthscale=median)

    def _squared_distance(self, A: FloatArray, B: FloatArray) -> FloatArray:
        return _squared_distance(A, B)

    def _inverse_lengthscale(self) -> float | FloatArray:
        if isinstance(self.lengthscale, str):
            raise KernelError(
                f"the lengthscale of {self!r} is not resolved",
                'a kernel can be evaluated once every lengthscale "median" is a number',
                "Call resolve(pool) first, or give a number such as lengthscale=1.0",
            )
        return np.divide(1.0, self.lengthscale)


@dataclass(frozen=True, slots=True)
class SquaredExponential(Stationary):
    """The kernel exp(-d^2 / 2), for very smooth rewards.

    Examples:
        >>> SquaredExponential(2.0).cross([[0.0]], [[0.0], [2.0]]).round(4)
        array([[1.    , 0.6065]])
    """

    def _of_squared_distance(self, d2: FloatArray) -> FloatArray:
        d2 *= -0.5
        return np.exp(d2, out=d2)


@dataclass(frozen=True, slots=True)
class Matern12(Stationary):
    """The kernel exp(-d), for rough rewards.

    Examples:
        >>> Matern12(2.0).cross([[0.0]], [[0.0], [2.0]]).round(4)
        array([[1.    , 0.3679]])
    """

    def _squared_distance(self, A: FloatArray, B: FloatArray) -> FloatArray:
        # Alone among these kernels exp(-d) has a slope at d = 0: there an error of 1e-16 in d^2, harmless
        # to the others, is one of 1e-8 in the kernel. Taking the differences first has no such error.
        return _differenced(A, B)

    def _of_squared_distance(self, d2: FloatArray) -> FloatArray:
        return _exp_minus(np.sqrt(d2, out=d2), out=d2)


@dataclass(frozen=True, slots=True)
class Matern32(Stationary):
    """The kernel (1 + s) exp(-s) with s = sqrt(3) d, for rewards with one derivative.

    Examples:
        >>> Matern32(2.0).cross([[0.0]], [[0.0], [2.0]]).round(4)
        array([[1.    , 0.4834]])
    """

    def _of_squared_distance(self, d2: FloatArray) -> FloatArray:
        d2 *= 3.0
        s = np.sqrt(d2, out=d2)
        decay = _exp_minus(s)
        s += 1.0
        return np.multiply(s, decay, out=s)


@dataclass(frozen=True, slots=True)
class Matern52(Stationary):
    """The kernel (1 + s + s^2 / 3) exp(-s) with s = sqrt(5) d, for rewards with two derivatives.

    Examples:
        >>> Matern52(2.0).cross([[0.0]], [[0.0], [2.0]]).round(4)
        array([[1.    , 0.524]])
    """

    def _of_squared_distance(self, d2: FloatArray) -> FloatArray:
        d2 *= 5.0
        s = np.sqrt(d2)
        d2 *= 1.0 / 3.0
        d2 += s
        d2 += 1.0
        return np.multiply(d2, _exp_minus(s, out=s), out=d2)


@dataclass(frozen=True, slots=True)
class RationalQuadratic(Stationary):
    """The kernel (1 + d^2 / (2 shape))^(-shape): squared exponentials of many lengthscales, mixed.

    Attributes:
        shape: How alike those lengthscales are; the kernel tends to `SquaredExponential` as it grows.

    Examples:
        >>> RationalQuadratic(2.0, shape=0.5).cross([[0.0]], [[0.0], [2.0]]).round(4)
        array([[1.    , 0.7071]])
    """

    shape: float = 1.0

    def __post_init__(self) -> None:
        Stationary.__post_init__(self)  # a bare super() does not survive slots=True
        object.__setattr__(self, "shape", checked_number("shape", self.shape))

    def _of_squared_distance(self, d2: FloatArray) -> FloatArray:
        d2 *= 0.5 / self.shape
        np.log1p(d2, out=d2)
        d2 *= -self.shape
        return np.exp(d2, out=d2)


@dataclass(frozen=True, slots=True)
class Linear(ArmKernel):
    """The kernel x.z + offset^2, for rewards that are linear in the features.

    Attributes:
        offset: The prior standard deviation of the intercept; 0 for none.

    Examples:
        >>> Linear(offset=2.0).cross([[1.0, 2.0]], [[3.0, 4.0]])
        array([[15.]])
    """

    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", checked_number("offset", self.offset, zero=True))

    def _cross(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        return self._shifted(X @ Z.T)

    def _diag(self, X: FloatArray) -> FloatArray:
        return self._shifted(_squared_norms(X))

    def _shifted(self, products: FloatArray) -> FloatArray:
        return np.add(products, self.offset**2, out=products)


@dataclass(frozen=True, slots=True)
class Polynomial(ArmKernel):
    """The kernel (x.z + offset)^degree, for rewards with interactions of up to `degree` features.

    Attributes:
        degree: A whole number, 1 or more.
        offset: How much the lower powers count; 0 keeps only the highest.

    Examples:
        >>> Polynomial(degree=2, offset=1.0).cross([[1.0, 2.0]], [[3.0, 4.0]])
        array([[144.]])
    """

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", _as_degree(self.degree))
        object.__setattr__(self, "offset", checked_number("offset", self.offset, zero=True))

    def _cross(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        return self._raised(X @ Z.T)

    def _diag(self, X: FloatArray) -> FloatArray:
        return self._raised(_squared_norms(X))

    def _raised(self, products: FloatArray) -> FloatArray:
        products += self.offset
        with np.errstate(over="ignore"):  # whoever takes a kernel refuses infinite variances, in words
            return _power(products, self.degree)


@dataclass(frozen=True, slots=True)
class Constant(ArmKernel):
    """The kernel that is 1 for any two arms: what is learned of one is learned of all, a level of their rewards.

    Examples:
        >>> (SquaredExponential(1.0) + 0.5 * Constant()).cross([[0.0]], [[0.0], [9.0]])
        array([[1.5, 0.5]])
    """

    def _cross(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        return np.ones((len(X), len(Z)))

    def _diag(self, X: FloatArray) -> FloatArray:
        return np.ones(len(X))


@dataclass(frozen=True, slots=True)
class Distinct(ArmKernel):
    """The kernel that is 1 for arms with the same features and 0 for others: nothing is learned of one from another.

    Examples:
        >>> Distinct().cross([[1.0, 2.0]], [[1.0, 2.0], [1.0, 2.5]])
        array([[1., 0.]])
    """

    def _cross(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        same: FloatArray = (cdist(X, Z, "chebyshev") == 0.0).astype(np.float64)
        return same

    def _diag(self, X: FloatArray) -> FloatArray:
        return np.ones(len(X))


def _squared_distance(A: FloatArray, B: FloatArray) -> FloatArray:
    """Returns |a - b|^2 for all rows as |a|^2 + |b|^2 - 2 a.b, or from the differences if that is inexact."""
    norms_a, norms_b = _squared_norms(A), _squared_norms(B)
    if max(norms_a.max(), norms_b.max()) > _LARGEST_SQUARED_NORM:
        return _differenced(A, B)
    d2 = (-2.0 * A) @ B.T
    d2 += norms_a[:, np.newaxis]
    d2 += norms_b
    return np.maximum(d2, 0.0, out=d2)


def _differenced(A: FloatArray, B: FloatArray) -> FloatArray:
    d2: FloatArray = cdist(A, B, "sqeuclidean")
    return np.minimum(d2, _LARGEST_SQUARED_DISTANCE, out=d2)


def _squared_norms(X: FloatArray) -> FloatArray:
    norms: FloatArray = np.einsum("ij,ij->i", X, X)
    return norms


def _power(values: FloatArray, degree: int) -> FloatArray:
    # np.power takes 50 ns an entry for whole degrees above 2; squaring and multiplying takes one or two.
    if degree == 1:
        return values
    powers = np.square(_power(values, degree // 2))
    return np.multiply(powers, values, out=powers) if degree % 2 else powers


def _exp_minus(s: FloatArray, out: FloatArray | None = None) -> FloatArray:
    out = np.negative(s, out=out)
    return np.exp(out, out=out)


def _as_lengthscale(value: object) -> float | tuple[float, ...] | Literal["median"]:
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    try:
        if isinstance(plain, list | tuple) and plain:
            return tuple(map(_as_length, plain))
        return "median" if plain == "median" else _as_length(plain)
    except KernelError as error:
        raise KernelError(error.problem, _LENGTHSCALE_RULE, error.remedy) from None


def _as_length(value: object) -> float:
    number = checked_number("lengthscale", value)
    if _SHORTEST <= number <= _LONGEST:
        return number
    raise KernelError(f"lengthscale is {value!r}", _LENGTHSCALE_RULE, "Measure the features in another unit")


def _as_degree(value: Any) -> int:
    if is_whole(value, 1):
        return int(value)
    raise KernelError(f"degree is {value!r}", "degree must be a whole number, 1 or more", "Pass degree=2, for example")
