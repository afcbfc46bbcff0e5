"""What an arm kernel is, and how two of them combine: sums, products and scalings.

The kernels themselves are in `coterie.kernels.arm`.

Examples:
    >>> from coterie.kernels.arm import Linear, SquaredExponential
    >>> Linear() + 2.0 * SquaredExponential(0.5)
    Sum(left=Linear(offset=0.0), right=Scaled(kernel=SquaredExponential(lengthscale=0.5), variance=2.0))
"""

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist, squareform

from coterie.contracts import LEAST_SPREAD
from coterie.errors import ArmError, DimensionError, KernelError
from coterie.kernels.pool import check_range, check_spread

__all__ = [
    "ArmKernel",
    "FloatArray",
    "Product",
    "Scaled",
    "Sum",
    "as_features",
    "checked_number",
    "median_distance",
    "squared_distances",
]

FloatArray = NDArray[np.float64]

_MEDIAN_ROWS = 2000


class ArmKernel(ABC):
    """How alike two arms are, from their features: k(x, z), symmetric and positive semi-definite.

    A subclass gives `_cross` and `_diag`. The underscored methods take checked float64 tables of shape
    (n, d) and check nothing themselves; they return fresh arrays, which the caller may overwrite.

    Examples:
        >>> from coterie.kernels.arm import SquaredExponential
        >>> kernel = SquaredExponential().resolve([[0.0], [2.0]])
        >>> kernel.lengthscale
        2.0
        >>> kernel.cross([[0.0]], [[0.0], [2.0]]).round(4)
        array([[1.    , 0.6065]])
    """

    __slots__ = ()

    # Without this, `np.float64(2.0) * kernel` would be taken apart by numpy instead of reaching `__rmul__`.
    __array_ufunc__: ClassVar[None] = None

    def cross(self, X: ArrayLike, Z: ArrayLike) -> FloatArray:
        """Returns the (n, m) table of k(x, z) for the rows x of X and z of Z.

        Cost: O(n m d) for d features.

        Raises:
            ArmError: Features that are not finite numbers, or too large.
            DimensionError: Tables that are not 2-d, or widths that do not agree.
            KernelError: A lengthscale "median" that was not resolved.
        """
        left, right = as_features("X", X), as_features("Z", Z)
        if left.shape[1] != right.shape[1]:
            raise DimensionError(
                f"X has {left.shape[1]} features and Z has {right.shape[1]}",
                "both tables must describe arms by the same features",
                "Pass tables with the same number of columns",
            )
        self.check_dimension(left.shape[1])
        return self._cross(left, right)

    def gram(self, X: ArrayLike) -> FloatArray:
        """Returns the (n, n) table of k(x, x'), exactly symmetric and with `diag` on its diagonal.

        Cost: O(n^2 d). Raises as `cross` does.
        """
        return self._gram(self._checked(X))

    def diag(self, X: ArrayLike) -> FloatArray:
        """Returns the n values k(x, x), without the table.

        Cost: O(n d). Raises as `cross` does, except that "median" need not be resolved.
        """
        return self._diag(self._checked(X))

    def resolve(self, X: ArrayLike) -> Self:
        """Returns the same kernel with every lengthscale "median" replaced by `median_distance(X)`.

        Cost: O(n^2 d) for up to 2000 rows, the same for more; only the checks of X if nothing is to resolve.
        """
        pool = self._checked(X)
        return self if self.resolved else self._with_median(median_distance(pool))

    @property
    def resolved(self) -> bool:
        """Returns whether every lengthscale is a number."""
        return all(part.resolved for part in self.parts)

    @property
    def parts(self) -> "tuple[ArmKernel, ...]":
        """Returns the kernels this one is made of; none for a simple kernel."""
        return ()

    def check_dimension(self, n_features: int) -> None:
        """Returns nothing; raises DimensionError if some lengthscale vector does not fit that many features."""
        for part in self.parts:
            part.check_dimension(n_features)

    def __add__(self, other: "ArmKernel") -> "Sum":
        return Sum(self, other) if isinstance(other, ArmKernel) else NotImplemented

    def __mul__(self, other: "ArmKernel | float") -> "Product | Scaled":
        return Product(self, other) if isinstance(other, ArmKernel) else self.__rmul__(other)

    def __rmul__(self, other: float) -> "Scaled":
        return Scaled(self, other) if _is_real(other) else NotImplemented

    @abstractmethod
    def _cross(self, X: FloatArray, Z: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _diag(self, X: FloatArray) -> FloatArray: ...

    def _gram(self, X: FloatArray) -> FloatArray:
        gram = self._cross(X, X)
        # A matrix product may round k(x, z) and k(z, x) differently; a + b and b + a never do.
        gram = gram + gram.T
        gram *= 0.5
        np.fill_diagonal(gram, self._diag(X))
        return gram

    def _with_median(self, median: float) -> Self:  # noqa: ARG002 - a kernel without lengthscale has no use for it
        return self

    def _checked(self, X: ArrayLike) -> FloatArray:
        features = as_features("X", X)
        self.check_dimension(features.shape[1])
        return features


@dataclass(frozen=True, slots=True)
class _Pair(ArmKernel):
    left: ArmKernel
    right: ArmKernel

    def __post_init__(self) -> None:
        _check_kernel("left", self.left)
        _check_kernel("right", self.right)

    @property
    def parts(self) -> tuple[ArmKernel, ...]:
        return (self.left, self.right)

    @staticmethod
    @abstractmethod
    def _join(left: FloatArray, right: FloatArray) -> FloatArray:
        """Returns the two tables combined entry by entry, in place of the left one."""

    def _cross(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        return self._join(self.left._cross(X, Z), self.right._cross(X, Z))

    def _gram(self, X: FloatArray) -> FloatArray:
        return self._join(self.left._gram(X), self.right._gram(X))

    def _diag(self, X: FloatArray) -> FloatArray:
        return self._join(self.left._diag(X), self.right._diag(X))

    def _with_median(self, median: float) -> Self:
        return replace(self, left=self.left._with_median(median), right=self.right._with_median(median))


@dataclass(frozen=True, slots=True)
class Sum(_Pair):
    """The kernel left(x, z) + right(x, z), written `left + right`: arms are alike if either says so.

    Examples:
        >>> from coterie.kernels.arm import Linear
        >>> (Linear() + Linear(offset=2.0)).cross([[1.0]], [[3.0]])
        array([[10.]])
    """

    @staticmethod
    def _join(left: FloatArray, right: FloatArray) -> FloatArray:
        return np.add(left, right, out=left)


@dataclass(frozen=True, slots=True)
class Product(_Pair):
    """The kernel left(x, z) * right(x, z), written `left * right`: arms are alike if both say so.

    Examples:
        >>> from coterie.kernels.arm import Linear
        >>> (Linear() * Linear(offset=2.0)).cross([[1.0]], [[3.0]])
        array([[21.]])
    """

    @staticmethod
    def _join(left: FloatArray, right: FloatArray) -> FloatArray:
        return np.multiply(left, right, out=left)


@dataclass(frozen=True, slots=True)
class Scaled(ArmKernel):
    """The kernel variance * kernel(x, z), written `variance * kernel`.

    Examples:
        >>> from coterie.kernels.arm import Linear
        >>> (2.0 * Linear()).cross([[1.0]], [[3.0]])
        array([[6.]])
    """

    kernel: ArmKernel
    variance: float

    def __post_init__(self) -> None:
        _check_kernel("kernel", self.kernel)
        object.__setattr__(self, "variance", checked_number("variance", self.variance))

    @property
    def parts(self) -> tuple[ArmKernel, ...]:
        """Returns the one kernel that is scaled."""
        return (self.kernel,)

    def _cross(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        return self._times(self.kernel._cross(X, Z))

    def _gram(self, X: FloatArray) -> FloatArray:
        return self._times(self.kernel._gram(X))

    def _diag(self, X: FloatArray) -> FloatArray:
        return self._times(self.kernel._diag(X))

    def _with_median(self, median: float) -> Self:
        return replace(self, kernel=self.kernel._with_median(median))

    def _times(self, values: FloatArray) -> FloatArray:
        return np.multiply(values, self.variance, out=values)


def median_distance(X: ArrayLike) -> float:
    """Returns the median of |x - x'| over all n (n - 1) / 2 pairs of rows, zero distances kept.

    It is 1.0 if that median is 0 (or as good as 0, below 1e-100) or there are fewer than two rows. Of more than 2000
    rows it takes 2000 at even steps from the first to the last, always the same ones. Raises ArmError if rows differ by
    less than `check_spread` allows.

    Cost: O(n^2 d) for up to 2000 rows, and no more after that.

    Examples:
        >>> median_distance([[0.0], [1.0], [3.0]])
        2.0
    """
    features = as_features("X", X)
    if len(features) < 2:
        return 1.0
    check_spread(features)
    if len(features) > _MEDIAN_ROWS:
        features = features[np.linspace(0, len(features) - 1, _MEDIAN_ROWS).astype(np.intp)]
    median = float(np.median(pdist(features)))
    return median if median > LEAST_SPREAD**2 else 1.0


def squared_distances(features: FloatArray) -> FloatArray:
    """Returns |x - x'|^2 for all pairs of rows, from their differences: features may lie far from zero.

    As |x|^2 + |x'|^2 - 2 x.x' it would lose what is below the rounding of |x|^2.

    Cost: O(n^2 d), for 20 features no slower than that matrix product.

    Examples:
        >>> squared_distances(np.array([[1e9], [1e9 + 2.0]]))
        array([[0., 4.],
               [4., 0.]])
    """
    return np.asarray(squareform(pdist(features, "sqeuclidean")))


def as_features(name: str, values: ArrayLike) -> FloatArray:
    """Returns the values as an (n, d) float64 table of features, copied only where it must be.

    Examples:
        >>> as_features("X", [[1, 2]])
        array([[1., 2.]])
    """
    features = _as_floats(name, values)
    if features.ndim != 2 or features.shape[1] == 0:
        raise DimensionError(
            f"{name} has shape {features.shape}",
            "features must be a table (n, d) with one row per arm and at least one column",
            "Write one arm as [[...]], or use reshape(-1, d)",
        )
    check_range(features, whose=lambda row: f"row {row} of {name}")
    return features


def _as_floats(name: str, values: ArrayLike) -> FloatArray:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiubO":
            raise TypeError(f"dtype {array.dtype}")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise ArmError(
            f"{name} is not a table of numbers ({cause})",
            "features must be real numbers, as many in each row",
            "Encode text and categories as numbers, and give every arm the same features",
        ) from cause


def checked_number(name: str, value: object, *, zero: bool = False) -> float:
    """Returns the value as a float if it is a positive finite number, or zero where `zero` allows it.

    Examples:
        >>> checked_number("offset", 0, zero=True)
        0.0
    """
    if _is_real(value) and (0 < value <= sys.float_info.max or (zero and value == 0)):
        return float(value)
    kind = "zero or a positive finite number" if zero else "a positive finite number"
    raise KernelError(f"{name} is {value!r}", f"{name} must be {kind}", f"Pass a number such as {name}=1.0")


def _is_real(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_kernel(name: str, value: object) -> None:
    if not isinstance(value, ArmKernel):
        raise KernelError(
            f"{name} is {value!r}",
            "a combined kernel is made of arm kernels",
            "Pass a kernel such as SquaredExponential(), or scale one with 2.0 * kernel",
        )
