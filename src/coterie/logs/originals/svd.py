"""Features of items by truncated singular value decomposition, in an order and with signs that a seed fixes."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from coterie.errors import ParameterError
from coterie.errors.checks import is_whole
from coterie.logs.log import Floats


def leading_directions(matrix: sp.csr_array, dimension: int, seed: int) -> Floats:
    """Returns the leading right singular vectors as columns, the strongest first; their largest entries are positive.

    Examples:
        >>> leading_directions(sp.csr_array([[1.0, 0.0], [0.0, -3.0], [0.0, -3.0]]), 1, 0)[1].round(6).tolist()
        [1.0]
    """
    most = min(matrix.shape) - 1
    if not is_whole(dimension, 1, most):
        rule = f"it is a whole number from 1 to {most}, one less than the smaller side of {matrix.shape}"
        raise ParameterError(f"dimension = {dimension!r} is out of range", rule, "Pass a dimension in this range")
    start = np.random.default_rng(seed).normal(size=min(matrix.shape))
    _, strengths, directions = svds(matrix, k=int(dimension), v0=start)
    columns: Floats = directions[np.argsort(-strengths)].T
    largest = columns[np.argmax(np.abs(columns), axis=0), np.arange(columns.shape[1])]
    return columns * np.where(largest < 0, -1.0, 1.0)


def unit_rows(rows: Floats) -> Floats:
    """Returns the rows scaled to length 1, but for those of zeros.

    Examples:
        >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
