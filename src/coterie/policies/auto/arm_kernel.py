"""How `auto` sees arms: features in units of their own spread, a smooth and a linear kernel of them, and a level."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from coterie.contracts import Array
from coterie.kernels import ArmKernel
from coterie.kernels.arithmetic import FloatArray

ROUNDING = 1e-14  # of a feature's size; one that differs by less is a constant that was rounded


def standardised(features: Array) -> Array:
    """Returns features of mean 0 and standard deviation 1; constant ones are left out, or one column of zeros stays.

    So a feature may be measured in any unit, and from anywhere.

    Examples:
        >>> standardised(np.array([[1990.0, 7.0], [2010.0, 7.0]]))
        array([[-1.],
               [ 1.]])
    """
    about = features - features[0]  # exact, however far from zero the features lie
    size = np.abs(about).max(axis=0)
    kept = size > ROUNDING * np.abs(features).max(axis=0)
    if not kept.any():
        return np.zeros((len(features), 1))
    scaled = about[:, kept] / size[kept]  # first, or squares of large and small numbers would be none
    scaled -= scaled.mean(axis=0)
    return np.ascontiguousarray(scaled / np.sqrt(np.mean(scaled * scaled, axis=0)))


@dataclass(frozen=True, slots=True)
class SmoothAndLinear(ArmKernel):
    """smooth exp(-|x - z|^2 / (2 lengthscale^2)) + linear x.z + level, by one matrix product.

    Attributes:
        lengthscale: Of the smooth part.
        smooth: Its variance.
        linear: The variance of a feature's slope.
        level: The variance of a constant.

    Examples:
        >>> SmoothAndLinear(1.0, 0.5, 0.5, 0.25).cross([[1.0]], [[1.0], [0.0]]).round(4)
        array([[1.25  , 0.5533]])
    """

    lengthscale: float
    smooth: float
    linear: float
    level: float

    def times(self, variance: float) -> Self:
        """Returns the kernel of this many times the variance."""
        return type(self)(self.lengthscale, self.smooth * variance, self.linear * variance, self.level * variance)

    def _cross(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        products: FloatArray = X @ Z.T
        out: FloatArray = products - 0.5 * np.einsum("ij,ij->i", X, X)[:, None]
        out -= 0.5 * np.einsum("ij,ij->i", Z, Z)
        out *= 1 / self.lengthscale**2
        np.minimum(out, 0.0, out=out)
        np.exp(out, out=out)
        out *= self.smooth
        products *= self.linear
        out += products
        out += self.level
        return out

    def _diag(self, X: FloatArray) -> FloatArray:
        squares: FloatArray = np.einsum("ij,ij->i", X, X)
        squares *= self.linear
        squares += self.smooth + self.level
        return squares
