"""How alike two inputs are: arms in their contexts, as rows of numbers.

    k = Ka (1 + interaction Kc) + context Kc + level,   all times a variance
    Ka = smooth SE(arm features) + linear,  or 1 for the same and -1 / (arms - 1) for others without features
    Kc = smooth SE(numbers) SE(categories) + linear

An input has the columns of its `InputLayout`: which arm it is where arms have no features, the arm's features, the
context's numbers, and a code for each of the context's categories. Two categories are as far apart as their one-hot
rows are: a squared distance of 2. What depends on the context alone moves all candidates of a decision alike; it is
learned since it is noise otherwise. So the effects of arms without features, and their interactions with a context, sum
to zero over the arms, as in an analysis of variance. Arms that have nothing to do with one another are those of a
context's variance of 1 / (arms - 1) of the interaction's; with less, what one arm gains the others lose.

Features and numbers are measured in units of the spread that they had at the last fit. Beyond two of these they are
compressed logarithmically: prices, counts and durations have heavy tails, and a pixel that is hardly ever lit is many
spreads off when it is. Either would otherwise be far from everything.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from coterie.contracts import LEAST_SPREAD, Array
from coterie.errors import DimensionError
from coterie.kernels.arithmetic import ArmKernel, FloatArray
from coterie.kernels.joint import FreeKernel, OnVectors

STRAIGHT = 2.0  # in units of the spread: numbers that lie farther off are compressed


class InputLayout(NamedTuple):
    """Which columns an input has, in this order.

    Attributes:
        codes: How many arms there are, where they have no features and the first column says which it is; else 0.
        features: How many features an arm has.
        numbers: How many numbers a context has.
        categories: How many categories a context has.
    """

    codes: int
    features: int
    numbers: int
    categories: int

    @property
    def width(self) -> int:
        """How many columns."""
        return int(self.of_categories.stop)

    @property
    def of_arm(self) -> slice:
        """The columns of the arm's features."""
        first = int(self.codes > 0)
        return slice(first, first + self.features)

    @property
    def of_numbers(self) -> slice:
        """The columns of the context's numbers."""
        return slice(self.of_arm.stop, self.of_arm.stop + self.numbers)

    @property
    def of_categories(self) -> slice:
        """The columns of the context's categories."""
        return slice(self.of_numbers.stop, self.of_numbers.stop + self.categories)

    @property
    def of_context(self) -> slice:
        """The columns of the context."""
        return slice(self.of_arm.stop, self.width)


class InputScaling(NamedTuple):
    """What features and numbers are measured from, and in: (x - centre) weight; constant ones have weight 0.

    Attributes:
        centre: For each feature of the arm, then for each number of the context.
        weight: As many.
    """

    centre: tuple[float, ...]
    weight: tuple[float, ...]

    @classmethod
    def of(cls, rows: Array) -> Self:
        """Returns what gives these rows mean 0 and standard deviation 1.

        Examples:
            >>> InputScaling.of(np.array([[1990.0, 7.0], [2010.0, 7.0]]))
            InputScaling(centre=(2000.0, 7.0), weight=(0.1, 0.0))
        """
        if len(rows) == 0:
            return cls((0.0,) * rows.shape[1], (0.0,) * rows.shape[1])
        about = rows - rows[0]  # exact, however far from zero the numbers lie
        size = np.abs(about).max(axis=0)
        varies = size > np.maximum(1e-14 * np.abs(rows).max(axis=0), LEAST_SPREAD)
        unit = np.where(varies, size, 1.0)
        scaled = about / unit  # first, or squares of large and small numbers would be none
        centre = scaled.mean(axis=0)
        spread = np.sqrt(np.mean((scaled - centre) ** 2, axis=0))
        weight = np.where(varies, 1 / (np.where(varies, spread, 1.0) * unit), 0.0)
        return cls(tuple((rows[0] + centre * unit).tolist()), tuple(weight.tolist()))

    def then(self, other: "InputScaling") -> "InputScaling":
        """Returns the scaling of these columns and, after them, of others."""
        return InputScaling(self.centre + other.centre, self.weight + other.weight)

    def applied(self, rows: Array) -> Array:
        """Returns rows of these columns as they are measured."""
        return np.asarray((rows - np.array(self.centre)) * np.array(self.weight))


class ContextPart(NamedTuple):
    """Kc: the kernel of contexts, of unit mean diagonal.

    Attributes:
        number_scale: The length-scale of numbers.
        category_scale: That of categories.
        linear_share: The share of the linear part, between 0 and 1.
    """

    number_scale: float
    category_scale: float
    linear_share: float


@dataclass(frozen=True, slots=True)
class InputKernel(ArmKernel):
    """The kernel of inputs.

    Attributes:
        layout: Which columns they have.
        scaling: Of arms' features and contexts' numbers.
        variance: What all of it is multiplied by.
        lengthscale: Of the smooth part of arms.
        linear_share: The share of the linear part of arms.
        level: The variance of a constant.
        context_share: That of what depends on the context alone.
        interaction: That of what depends on arm and context together.
        context: The kernel of contexts.
        n_features: The mean square of an arm's features: as many as vary.
        n_context_features: The mean square of a context's linear features: the numbers that vary, and the categories.

    Examples:
        >>> layout, none = InputLayout(2, 0, 1, 0), InputScaling((0.0,), (1.0,))
        >>> kernel = InputKernel(layout, none, 1.0, 1.0, 0.0, 0.0, 0.5, 2.0, ContextPart(1.0, 1.0, 0.0))
        >>> kernel.cross([[0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]]).round(3)
        array([[ 3.5  , -2.5  ,  1.067]])
    """

    layout: InputLayout
    scaling: InputScaling
    variance: float
    lengthscale: float
    linear_share: float
    level: float
    context_share: float
    interaction: float
    context: ContextPart
    n_features: int = field(init=False, repr=False, compare=False)
    n_context_features: int = field(init=False, repr=False, compare=False)
    _centre: Array = field(init=False, repr=False, compare=False)
    _weight: Array = field(init=False, repr=False, compare=False)
    _places: "_Places" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weight, n_features = np.array(self.scaling.weight), self.layout.features
        varying = np.count_nonzero(weight[:n_features]), np.count_nonzero(weight[n_features:])
        object.__setattr__(self, "n_features", max(int(varying[0]), 1))
        object.__setattr__(self, "n_context_features", max(int(varying[1]) + self.layout.categories, 1))
        object.__setattr__(self, "_centre", np.array(self.scaling.centre))
        object.__setattr__(self, "_weight", weight)
        object.__setattr__(self, "_places", _Places.of(self.layout))

    @property
    def dimension(self) -> int:
        """How many columns an input has."""
        return self.layout.width

    def check_dimension(self, n_features: int) -> None:
        """Raises if an input has not as many columns."""
        if n_features != self.layout.width:
            what, rule = f"an input of {n_features} columns", f"it has {self.layout.width}"
            raise DimensionError(what, rule, "Give every arm and every context the same features")

    def _cross(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        return self.prepared_cross(self.prepared(X), self.prepared(Z))

    def _diag(self, X: FloatArray) -> FloatArray:
        arms, numbers = (self.scaled(X, columns) for columns in (self.layout.of_arm, self.layout.of_numbers))
        return self._variances(np.einsum("ij,ij->i", arms, arms), np.einsum("ij,ij->i", numbers, numbers))

    def prepared(self, X: FloatArray) -> FloatArray:
        """Returns inputs as `prepared_cross` takes them: numbers in length-scales, and half of their sum of squares."""
        layout = self.layout
        parts = [X[:, : layout.of_arm.start]]
        for columns, scale in ((layout.of_arm, self.lengthscale), (layout.of_numbers, self.context.number_scale)):
            if columns.start < columns.stop:
                scaled = self.scaled(X, columns) / scale
                parts += [scaled, 0.5 * np.einsum("ij,ij->i", scaled, scaled)[:, None]]
        return np.concatenate([*parts, X[:, layout.of_categories]], axis=1)

    def prepared_cross(self, P: FloatArray, Q: FloatArray) -> FloatArray:
        """Returns k(x, z) for prepared inputs. O(n m d), less where all rows of one table have the same context."""
        if len(P) > len(Q):  # loops are long along the second table
            return self.prepared_cross(Q, P).T
        if not self.layout.numbers + self.layout.categories:
            out = self._arms(P, Q)
            out += self.level
            out *= self.variance
            return out
        contexts, v = self._contexts(self._one_context(P), self._one_context(Q)), self.variance
        if self.layout.features:
            out = self._arms(P, Q)
            out *= 1.0 + self.interaction * contexts
            out += self.context_share * contexts
            out += self.level
            out *= v
            return out
        other = _of_others(self.layout.codes)
        of_same = contexts * (v * (self.interaction + self.context_share)) + v * (1.0 + self.level)
        contexts *= v * (other * self.interaction + self.context_share)
        contexts += v * (other + self.level)
        return np.where(np.equal.outer(P[:, 0], Q[:, 0]), of_same, contexts)

    def prepared_diag(self, P: FloatArray) -> FloatArray:
        """Returns k(x, x) for prepared inputs."""
        layout, places, none = self.layout, self._places, np.zeros(len(P))
        arms = 2 * self.lengthscale**2 * P[:, places.arm_half] if layout.features else none
        numbers = 2 * self.context.number_scale**2 * P[:, places.number_half] if layout.numbers else none
        return self._variances(arms, numbers)

    def _variances(self, arms: FloatArray, numbers: FloatArray) -> FloatArray:
        """Returns k(x, x) from the sums of squares of arms' features and of contexts' numbers."""
        layout, linear = self.layout, self.linear_share
        arm = (1 - linear) + linear / self.n_features * arms if layout.features else np.ones(len(arms))
        if not layout.numbers + layout.categories:
            return np.asarray(self.variance * (arm + self.level))
        linear = self.context.linear_share
        context = (1 - linear) + linear / self.n_context_features * (numbers + layout.categories)
        return np.asarray(
            self.variance * (arm * (1 + self.interaction * context) + self.context_share * context + self.level)
        )

    def scaled(self, X: FloatArray, columns: slice) -> FloatArray:
        """Returns features, or numbers, of inputs as they are measured."""
        first = self.layout.of_arm.start
        which = slice(columns.start - first, columns.stop - first)
        return compressed((X[:, columns] - self._centre[which]) * self._weight[which])

    def _one_context(self, P: FloatArray) -> FloatArray:
        """Returns the first row alone where all have the same context, as the candidates of a decision do."""
        if len(P) < 2:
            return P
        columns = P[:, self._places.context]
        differ = bool((columns[0] != columns[-1]).any()) or bool((columns != columns[0]).any())
        return P if differ else P[:1]

    def _arms(self, P: FloatArray, Q: FloatArray) -> FloatArray:
        """Returns Ka."""
        if not self.layout.features:
            return contrasts(P, Q, self.layout.codes)
        products, out = _products_and_exponents(P, Q, self._places.arm, self._places.arm_half)
        np.exp(out, out=out)
        return _mixed(out, products, self.linear_share, self.lengthscale**2 / self.n_features)

    def _contexts(self, P: FloatArray, Q: FloatArray) -> FloatArray:
        """Returns Kc."""
        part, layout, places = self.context, self.layout, self._places
        square = part.number_scale**2
        if layout.numbers:
            products, out = _products_and_exponents(P, Q, places.numbers, places.number_half)
        else:
            products, out = np.zeros((2, len(P), len(Q)))
        for column in places.categories:
            same = np.equal.outer(P[:, column], Q[:, column])
            products += same / square
            out -= ~same / part.category_scale**2
        np.exp(out, out=out)
        return _mixed(out, products, part.linear_share, square / self.n_context_features)

    def times(self, variance: float) -> Self:
        """Returns the kernel of this many times the variance."""
        return replace(self, variance=self.variance * variance)


class OnInputs(OnVectors):
    """A joint kernel whose arms are inputs."""

    has_inputs = True
    arm_kernel: InputKernel

    @property
    def dimension(self) -> int:
        """How many columns an input has."""
        return self.arm_kernel.dimension

    def no_arms(self) -> Any:
        """Returns a table of no inputs."""
        return np.empty((0, self.dimension))

    def prepared(self, arms: Array) -> Array:
        """Returns inputs as `prepared_cross` takes them."""
        return self.arm_kernel.prepared(arms)

    def prepared_cross(self, arms: Array, others: Array) -> Array:
        """Returns Kin between two lists of prepared inputs."""
        return self.arm_kernel.prepared_cross(arms, others)

    def prepared_diag(self, arms: Array) -> Array:
        """Returns Kin(x, x) of prepared inputs."""
        return self.arm_kernel.prepared_diag(arms)


class InputsKernel(OnInputs, FreeKernel):
    """The joint kernel of users and inputs: arms are rows of numbers, which a context is part of."""

    arm_kernel: InputKernel

    def with_user_cov(self, user_cov: Array) -> "InputsKernel":
        """Returns the same kernel with other user covariances."""
        return InputsKernel(super().with_user_cov(user_cov).user_cov, self.arm_kernel)


def contrasts(X: FloatArray, Z: FloatArray, n_arms: int) -> FloatArray:
    """Returns 1 for the same arm and -1 / (arms - 1) for others, from the first columns of two tables of inputs.

    Examples:
        >>> contrasts(np.array([[0.0]]), np.array([[0.0], [1.0]]), 3)
        array([[ 1. , -0.5]])
    """
    return np.where(np.equal.outer(X[:, 0], Z[:, 0]), 1.0, _of_others(n_arms))


def compressed(values: FloatArray) -> FloatArray:
    """Returns numbers in spreads as they are compared: as they are up to two, the logarithm of what is beyond.

    Examples:
        >>> compressed(np.array([-1.5, 2.0, 3.0, 1e6])).round(2)
        array([-1.5 ,  2.  ,  2.69, 15.82])
    """
    beyond = np.abs(values) - STRAIGHT
    if beyond.max(initial=0.0) <= 0:
        return values
    return np.where(beyond > 0, np.copysign(STRAIGHT + np.log1p(np.maximum(beyond, 0.0)), values), values)


def _of_others(n_arms: int) -> float:
    return -1.0 / (n_arms - 1) if n_arms > 1 else 0.0


def _products_and_exponents(P: FloatArray, Q: FloatArray, columns: slice, half: int) -> tuple[FloatArray, FloatArray]:
    """Returns the inner products of rows, and minus half of their squared distances, by one matrix product."""
    products: FloatArray = P[:, columns] @ Q[:, columns].T
    exponents: FloatArray = products - P[:, half, None]
    exponents -= Q[:, half]
    np.minimum(exponents, 0.0, out=exponents)
    return products, exponents


def _mixed(smooth: FloatArray, products: FloatArray, linear_share: float, slope: float) -> FloatArray:
    """Returns the smooth and the linear part with their shares, in the place of the smooth one."""
    smooth *= 1 - linear_share
    products *= linear_share * slope
    smooth += products
    return smooth


class _Places(NamedTuple):
    """Where a prepared input has what.

    Attributes:
        arm: The arm's features.
        arm_half: Half the sum of their squares.
        numbers: The context's numbers.
        number_half: Half the sum of their squares.
        categories: The context's categories.
        context: All of the context.
    """

    arm: slice
    arm_half: int
    numbers: slice
    number_half: int
    categories: range
    context: slice

    @classmethod
    def of(cls, layout: InputLayout) -> Self:
        """Returns them for a layout of inputs."""
        first, features, numbers = layout.of_arm.start, layout.features, layout.numbers
        start = first + features + (features > 0)
        end = start + numbers + (numbers > 0)
        last = end + layout.categories
        arm, of_numbers = slice(first, first + features), slice(start, start + numbers)
        return cls(arm, arm.stop, of_numbers, of_numbers.stop, range(end, last), slice(start, last))
