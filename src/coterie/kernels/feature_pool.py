"""A pool of arms by features: K_x(x, x') is a product of two rows, and no table over all arms x arms is made."""

from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.kernels.joint import Index, OnPool, as_numbers


class OnFeatures(OnPool):
    """A joint kernel on a pool that keeps a row of features for each arm.

    Attributes:
        features: One row for each arm of the pool.
        feature_error: How much of an arm's prior variance the features miss, of the largest, at most.
    """

    features: Array
    feature_error: float
    _arm_variance: Array

    def _take_features(self, features: Any, feature_error: float) -> None:
        self.features = np.ascontiguousarray(as_numbers(features, what="table of arm features"))
        self.n_arms, self.feature_error = len(self.features), feature_error
        self._arm_variance = np.einsum("ij,ij->i", self.features, self.features)

    def _largest_arm_variance(self, met: list[Any]) -> float:  # noqa: ARG002 - the pool bounds every arm
        return float(self._arm_variance.max())

    def arm_cross(self, arms: Index, others: Index) -> Array:
        """Returns K_x between two lists of rows."""
        return np.asarray(self.features[arms] @ self.features[others].T)

    def arm_diag(self, arms: Index) -> Array:
        """Returns K_x(x, x) of these rows."""
        return np.asarray(self._arm_variance.take(arms))
