"""Features of a pool: as few as miss no more than is allowed; by landmarks where there are many arms."""

import numpy as np
from scipy.linalg import solve_triangular

from coterie.contracts import Array
from coterie.kernels.arm import ArmKernel

SPARE = 4
MOST_SCANNED = 8192


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


def landmark_features(kernel: ArmKernel, rows: Array, error: float, most: int) -> tuple[Array, float]:
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
    if len(rows) > MOST_SCANNED:
        return _of_many(kernel, rows, diagonal, error, most)
    columns, _ = _pivoted(kernel, rows, diagonal, error, SPARE * most)
    turn = np.linalg.eigh(columns.T @ columns)[1]
    return fewest_features((columns @ turn)[:, ::-1], diagonal, error, most)


def _of_many(kernel: ArmKernel, rows: Array, diagonal: Array, error: float, most: int) -> tuple[Array, float]:
    """Returns the same by some of the arms, drawn at random: landmarks and turn are theirs, O(arms x landmarks).

    What features miss is counted over all arms all the same. Columns are made piece by piece: they would be the
    largest thing there is.
    """
    seen = np.sort(np.random.default_rng(0).choice(len(rows), MOST_SCANNED, replace=False))
    columns, pivots = _pivoted(kernel, rows[seen], diagonal[seen], error, SPARE * most)
    turn = np.linalg.eigh(columns.T @ columns)[1][:, ::-1][:, :most]
    weights = solve_triangular(columns[pivots], turn, lower=True, trans="T")
    pieces = np.array_split(rows, -(-len(rows) // MOST_SCANNED))
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
