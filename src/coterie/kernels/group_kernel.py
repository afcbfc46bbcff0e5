"""The joint kernel of users in groups: those of one group are one and the same, and groups share nothing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array, Index
from coterie.errors import DimensionError
from coterie.kernels.arm import ArmKernel, Distinct
from coterie.kernels.arm_features import FEATURE_ERROR, MAX_FEATURES, OnFeatures, arm_features
from coterie.kernels.pool import ArmPool

Labels = NDArray[np.int64]


class GroupKernel(OnFeatures):
    """[group of u = group of v] (features_a . features_b): pooled users, users alone, clusters. O(users + arms x D).

    With kinds of arms, arms of different kinds have nothing in common, and a pair's group is that of user and kind.

    Attributes:
        labels: The name of each user's group, a whole number.
        features: One row for each arm of the pool.
        feature_error: How much of an arm's prior variance the features miss, of the largest, at most.
        kinds: The kind of each arm, from 0, if there are kinds.

    Examples:
        >>> kernel = GroupKernel([0, 0, 1], np.eye(2))
        >>> kernel.cross(np.array([0]), np.array([1]), np.array([1, 2]), np.array([1, 1]))
        array([[1., 0.]])
    """

    only_engine = "groups"
    instead_of_matrix = "its groups stand for it"
    why_only = "groups of users share nothing, so each has a small belief alone"

    def __init__(self, labels: Any, features: Any, *, feature_error: float = 0.0, kinds: Labels | None = None) -> None:
        given = np.asarray(labels)
        if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) == 0:
            rule = "there is one whole number for each user"
            raise DimensionError(f"labels of shape {given.shape} and type {given.dtype}", rule, "Pass such a list")
        self.labels: Labels = given.astype(np.int64)
        self.labels.flags.writeable = False
        self._take_features(features, feature_error)
        self.kinds = kinds

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.labels)

    def user_variance(self, user: int) -> float:  # noqa: ARG002 - the same for all
        """Returns 1."""
        return 1.0

    def max_variance(self, met: list[Any]) -> float:
        """Returns the largest prior variance of a pair."""
        return self._largest_arm_variance(met)

    def groups(self, user: int, arms: Index) -> list[int]:
        """Returns the group of each pair of this user."""
        label = int(self.labels[user])
        if self.kinds is None:
            return [label] * len(arms)
        return [label * self.n_arms + kind for kind in self.kinds[arms].tolist()]

    def parted(self, users: Index, label: int) -> "GroupKernel":
        """Returns the same kernel with these users in the group of this name. O(users) bytes are copied."""
        labels = self.labels.copy()
        labels[users] = label
        out = GroupKernel.__new__(GroupKernel)
        out.__dict__.update(self.__dict__)
        out.labels = labels
        return out

    def arm_cross(self, arms: Index, others: Index) -> Array:
        """Returns K_x between two lists of rows."""
        products = super().arm_cross(arms, others)
        return products if self.kinds is None else products * np.equal.outer(self.kinds[arms], self.kinds[others])

    def cross(self, users: Index, arms: Index, other_users: Index, other_arms: Index) -> Array:
        """Returns the b x t covariances between two lists of pairs."""
        return self.arm_cross(arms, other_arms) * np.equal.outer(self.labels[users], self.labels[other_users])

    def cross_of_user(self, user: int, arms: Index, other_users: Index, other_arms: Index) -> Array:
        """Returns the covariances of one user's arms with a list of pairs."""
        return np.asarray(self.arm_cross(arms, other_arms) * (self.labels[other_users] == self.labels[user]))

    def diag(self, users: Index, arms: Index) -> Array:  # noqa: ARG002 - users are all alike
        """Returns the prior variances of a list of pairs."""
        return self.arm_diag(arms)


def group_kernel(
    labels: Any,
    arm_kernel: ArmKernel,
    pool: ArmPool,
    *,
    feature_error: float = FEATURE_ERROR,
    max_features: int = MAX_FEATURES,
) -> GroupKernel:
    """Returns the kernel of engine "groups", by features of the pool; the options are those of `graph_kernel`.

    Arms that are `Distinct` are of a kind each, with one feature.

    Examples:
        >>> from coterie.kernels.arm import Linear
        >>> group_kernel([0, 0, 1], Linear(), ArmPool([[1.0], [2.0]])).features
        array([[1.],
               [2.]])
    """
    if isinstance(arm_kernel, Distinct):
        kinds = np.unique(pool.features + 0.0, axis=0, return_inverse=True)[1].ravel()  # -0.0 is 0.0
        return GroupKernel(labels, np.ones((len(pool), 1)), kinds=kinds)
    features, lost = arm_features(arm_kernel, pool, feature_error, max_features)
    return GroupKernel(labels, features, feature_error=lost)
