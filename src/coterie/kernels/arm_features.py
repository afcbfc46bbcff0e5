"""A pool of arms by features: K_x(x, x') is a product of two rows, and no table over all arms x arms is kept.

There are as few features as miss no more than is allowed; where there are many arms they are those of landmarks.
"""

from math import sqrt
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from coterie.contracts import Array, Index
from coterie.errors import ParameterError
from coterie.errors.checks import is_whole
from coterie.kernels.arm import ArmKernel, Linear, Scaled
from coterie.kernels.joint import NoUserMatrix, OnPool, as_numbers, checked_psd
from coterie.kernels.pool import ArmPool

FEATURE_ERROR = 1e-3
MAX_FEATURES = 64
MOST_EIGEN = 2000
SPARE = 4
MOST_SCANNED = 8192


class OnFeatures(NoUserMatrix, OnPool):
    """A joint kernel on a pool that keeps a row of features for each arm.

    Attributes:
        features: One row for each arm of the pool.
        feature_error: How much of an arm's prior variance the features miss, of the largest, at most.
    """

    features: Array
    feature_error: float

    def _take_features(self, features: Any, feature_error: float) -> None:
        self.features = np.ascontiguousarray(as_numbers(features, what="table of arm features"))
        self.n_arms, self.feature_error = len(self.features), feature_error
        self._arm_variance = np.einsum("ij,ij->i", self.features, self.features)

    def arm_cross(self, arms: Index, others: Index) -> Array:
        """Returns K_x between two lists of rows."""
        return np.asarray(self.features[arms] @ self.features[others].T)


def arm_features(
    arm_kernel: ArmKernel,
    pool: ArmPool,
    feature_error: float,
    max_features: int = MAX_FEATURES,
    *,
    most_eigen: int = MOST_EIGEN,
) -> tuple[Array, float]:
    """Returns features whose products are the arm kernel on the pool, and the share of the variance they miss.

    Those of a linear kernel are the arms' own; otherwise as many eigen-features of the pool as are needed, O(m^3), or
    of landmarks among more than `most_eigen` arms.
    """
    if not (isinstance(feature_error, int | float | np.number) and 0 <= feature_error < 1):
        raise ParameterError(f"feature_error is {feature_error!r}", "it is a share, 0 <= share < 1", "Choose 1e-3")
    if not is_whole(max_features, 1):
        raise ParameterError(f"max_features is {max_features!r}", "it is a whole number >= 1", "Choose 64")
    linear, variance = _unscaled(arm_kernel)
    if isinstance(linear, Linear) and pool.dimension < len(pool):
        offset = np.full((len(pool), 1 if linear.offset else 0), linear.offset)
        return np.hstack([pool.features, offset]) * sqrt(variance), 0.0
    kernel = arm_kernel.resolve(pool.features)
    if len(pool) > most_eigen:
        return landmark_features(kernel, pool.features, feature_error, max_features)
    gram = checked_psd(kernel.gram(pool.features), len(pool), what="arm kernel on the pool")
    values, vectors = np.linalg.eigh(gram)
    scaled = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    return fewest_features(scaled, gram.diagonal(), feature_error, max_features)


def _unscaled(kernel: ArmKernel) -> tuple[ArmKernel, float]:
    """Returns what is scaled, and by how much."""
    variance = 1.0
    while isinstance(kernel, Scaled):
        variance *= kernel.variance
        kernel = kernel.kernel
    return kernel, variance


def fewest_features(columns: Array, diagonal: Array, error: float, most: int) -> tuple[Array, float]:
    """Returns the first columns that miss no more than `error`, `most` of them at most, and what they miss.

    That is the largest part of an arm's variance that their squares leave, as a share of the largest variance.

    Examples:
        >>> features, missed = fewest_features(np.eye(2), np.ones(2), 0.0, 1)
        >>> features.shape, missed
        ((2, 1), 1.0)
    """
    largest = float(diagonal.max()) or 1.0
    missing = (diagonal[:, None] - np.cumsum(columns**2, axis=1)).max(axis=0) / largest
    enough = np.flatnonzero(missing <= max(error, len(diagonal) * np.finfo(float).eps))
    kept = min(int(enough[0]) + 1 if enough.size else columns.shape[1], most)
    return np.ascontiguousarray(columns[:, :kept]), max(float(missing[kept - 1]), 0.0)


def landmark_features(
    kernel: ArmKernel, rows: Array, error: float, most: int, *, most_scanned: int = MOST_SCANNED
) -> tuple[Array, float]:
    """Returns features of many arms, and what they miss; only the landmarks' columns of K_x are made (Nystrom).

    The next landmark is the arm of which most is missing. A few times as many as there may be features are taken, and
    then turned so that the first features hold the most. O(arms x landmarks^2).

    Examples:
        >>> from coterie.kernels.arm import SquaredExponential
        >>> features, missed = landmark_features(SquaredExponential(1.0), np.linspace(0, 1, 50)[:, None], 1e-3, 64)
        >>> features.shape, missed < 1e-3
        ((50, 3), True)
    """
    diagonal = kernel.diag(rows)
    if len(rows) > most_scanned:
        return _of_many(kernel, rows, diagonal, error, most, most_scanned)
    columns, _ = _pivoted(kernel, rows, diagonal, error, SPARE * most)
    turn = np.linalg.eigh(columns.T @ columns)[1]
    return fewest_features((columns @ turn)[:, ::-1], diagonal, error, most)


def _of_many(
    kernel: ArmKernel, rows: Array, diagonal: Array, error: float, most: int, most_scanned: int
) -> tuple[Array, float]:
    """Returns the same by some of the arms, drawn at random: landmarks and turn are theirs, O(arms x landmarks).

    What features miss is counted over all arms all the same. Columns are made piece by piece: they would be the
    largest thing there is.
    """
    seen = np.sort(np.random.default_rng(0).choice(len(rows), most_scanned, replace=False))
    columns, pivots = _pivoted(kernel, rows[seen], diagonal[seen], error, SPARE * most)
    turn = np.linalg.eigh(columns.T @ columns)[1][:, ::-1][:, :most]
    weights = solve_triangular(columns[pivots], turn, lower=True, trans="T")
    pieces = np.array_split(rows, -(-len(rows) // most_scanned))
    features = np.vstack([kernel.cross(piece, rows[seen][pivots]) @ weights for piece in pieces])
    return fewest_features(features, diagonal, error, most)


def _pivoted(kernel: ArmKernel, rows: Array, diagonal: Array, error: float, most: int) -> tuple[Array, list[int]]:
    """Returns the columns of a partial Cholesky factor, and its landmarks in order.

    Half of the error is left to what is cut off afterwards.
    """
    left, floor = diagonal.copy(), max(error / 2, 1e-12) * float(diagonal.max())
    columns, pivots = np.zeros((len(rows), min(most, len(rows)))), list[int]()
    for k in range(columns.shape[1]):
        pivot = int(np.argmax(left))
        if left[pivot] <= floor:
            break
        pivots.append(pivot)
        across = kernel.cross(rows, rows[pivot : pivot + 1])[:, 0] - columns[:, :k] @ columns[pivot, :k]
        columns[:, k] = across / np.sqrt(left[pivot])
        left -= columns[:, k] ** 2
    return columns[:, : max(len(pivots), 1)], pivots
