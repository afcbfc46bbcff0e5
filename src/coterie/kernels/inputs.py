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

Features and numbers are measured in units of the spread that they had at the last fit, and at most a hundred of these.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from coterie.contracts import LEAST_SPREAD, Array
from coterie.errors import DimensionError
from coterie.kernels.arithmetic import ArmKernel, FloatArray
from coterie.kernels.joint import FreeKernel

FARTHEST = 100.0  # in units of the spread: a number that lies farther off would drown all others until the next fit


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

    Examples:
        >>> layout, none = InputLayout(2, 0, 1, 0), InputScaling((0.0,), (1.0,))
        >>> kernel = InputKernel(layout, none, 1.0, 1.0, 0.0, 0.0, 0.5, 2.0, ContextPart(1.0, 1.0, 0.0))
        >>> kernel.cross([[0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]]).round(3)
        array([[ 3.5  , -2.5  ,  1.028]])
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
    _centre: Array = field(init=False, repr=False, compare=False)
    _weight: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_centre", np.array(self.scaling.centre))
        object.__setattr__(self, "_weight", np.array(self.scaling.weight))

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
        out = self._arms(X, Z)
        if self.layout.numbers + self.layout.categories:
            contexts = self._contexts(self._one_context(X), self._one_context(Z))
            out *= 1.0 + self.interaction * contexts
            out += self.context_share * contexts
        out += self.level
        out *= self.variance
        return out

    def _diag(self, X: FloatArray) -> FloatArray:
        layout, linear = self.layout, self.linear_share
        arm = np.ones(len(X))
        if layout.features:
            squares = np.sum(self._scaled(X, layout.of_arm) ** 2, axis=1)
            arm = (1 - linear) + linear * squares / self.n_features
        if layout.numbers + layout.categories == 0:
            return np.asarray(self.variance * (arm + self.level))
        linear = self.context.linear_share
        squares = np.sum(self._scaled(X, layout.of_numbers) ** 2, axis=1) + layout.categories
        context = (1 - linear) + linear * squares / self.n_context_features
        return np.asarray(
            self.variance * (arm * (1 + self.interaction * context) + self.context_share * context + self.level)
        )

    @property
    def n_features(self) -> int:
        """The mean square of an arm's features: as many as vary."""
        return max(int(np.count_nonzero(self._weight[: self.layout.features])), 1)

    @property
    def n_context_features(self) -> int:
        """The mean square of a context's linear features: the numbers that vary, and the categories."""
        return max(self.n_numbers + self.layout.categories, 1)

    @property
    def n_numbers(self) -> int:
        """How many numbers of contexts vary."""
        return int(np.count_nonzero(self._weight[self.layout.features :]))

    def _one_context(self, X: FloatArray) -> FloatArray:
        """Returns the first row alone where all have the same context, as the candidates of a decision do."""
        columns = X[:, self.layout.of_context]
        return X[:1] if len(X) > 1 and bool((columns == columns[0]).all()) else X

    def _scaled(self, X: FloatArray, columns: slice) -> FloatArray:
        first = self.layout.of_arm.start
        which = slice(columns.start - first, columns.stop - first)
        out: FloatArray = (X[:, columns] - self._centre[which]) * self._weight[which]
        np.minimum(out, FARTHEST, out=out)
        np.maximum(out, -FARTHEST, out=out)
        return out

    def _arms(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        layout = self.layout
        if not layout.features:
            return contrasts(X, Z, layout.codes)
        x, z = self._scaled(X, layout.of_arm), self._scaled(Z, layout.of_arm)
        products, halves = _products_and_halves(x, z)
        out: FloatArray = np.exp(halves / self.lengthscale**2)
        out *= 1 - self.linear_share
        products *= self.linear_share / self.n_features
        out += products
        return out

    def _contexts(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        part, layout = self.context, self.layout
        products, exponent = _products_and_halves(
            self._scaled(X, layout.of_numbers), self._scaled(Z, layout.of_numbers)
        )
        exponent /= part.number_scale**2
        for column in range(layout.of_categories.start, layout.width):
            same = np.equal.outer(X[:, column], Z[:, column])
            products += same
            exponent -= ~same / part.category_scale**2
        out: FloatArray = np.exp(exponent, out=exponent)
        out *= 1 - part.linear_share
        products *= part.linear_share / self.n_context_features
        out += products
        return out

    def times(self, variance: float) -> Self:
        """Returns the kernel of this many times the variance."""
        return replace(self, variance=self.variance * variance)


class InputsKernel(FreeKernel):
    """The joint kernel of users and inputs: arms are rows of numbers, which a context is part of."""

    arm_kernel: InputKernel

    @property
    def dimension(self) -> int:
        """How many columns an input has."""
        return self.arm_kernel.dimension

    def no_arms(self) -> Array:
        """Returns an array of no inputs."""
        return np.empty((0, self.dimension))

    def with_user_cov(self, user_cov: Array) -> "InputsKernel":
        """Returns the same kernel with other user covariances."""
        return InputsKernel(super().with_user_cov(user_cov).user_cov, self.arm_kernel)


def contrasts(X: FloatArray, Z: FloatArray, n_arms: int) -> FloatArray:
    """Returns 1 for the same arm and -1 / (arms - 1) for others, from the first columns of two tables of inputs.

    Examples:
        >>> contrasts(np.array([[0.0]]), np.array([[0.0], [1.0]]), 3)
        array([[ 1. , -0.5]])
    """
    other = -1.0 / (n_arms - 1) if n_arms > 1 else 0.0
    return np.where(np.equal.outer(X[:, 0], Z[:, 0]), 1.0, other)


def _products_and_halves(X: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Returns the inner products of rows, and minus half of their squared distances, by one matrix product."""
    products: FloatArray = X @ Z.T
    halves: FloatArray = products - 0.5 * np.einsum("ij,ij->i", X, X)[:, None]
    halves -= 0.5 * np.einsum("ij,ij->i", Z, Z)
    np.minimum(halves, 0.0, out=halves)
    return products, halves
