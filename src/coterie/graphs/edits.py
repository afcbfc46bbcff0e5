"""What an edit does to the weights, and the record that says what changed."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from coterie.graphs.adjacency import Floats, Indices, canonical, from_pairs


@dataclass(frozen=True, slots=True)
class GraphChange:
    """What one edit of a graph did.

    Attributes:
        kind: The edit.
        users: The ids added or removed.
        edges: Tuples (user, user, old weight, new weight); weight 0 means no edge.
    """

    kind: Literal["add-user", "remove-user", "set-edge", "remove-edge"]
    users: tuple[Hashable, ...] = ()
    edges: tuple[tuple[Hashable, Hashable, float, float], ...] = ()


def appended(weights: sp.csr_array, friends: Indices, values: Floats) -> sp.csr_array:
    """Returns the weights with one more user, the last; O(edges).

    Examples:
        >>> appended(canonical([[0.0]]), np.array([0]), np.array([2.0])).toarray().tolist()
        [[0.0, 2.0], [2.0, 0.0]]
    """
    n_users = weights.shape[0]
    rows, cols, old = _upper(weights)
    new = np.full(len(friends), n_users)
    pairs = np.concatenate([rows, friends]), np.concatenate([cols, new])
    return from_pairs(n_users + 1, *pairs, np.concatenate([old, values]))


def grown(weights: sp.csr_array, newcomers: int) -> sp.csr_array:
    """Returns the weights with more users, the last, who have no edges; O(edges).

    Examples:
        >>> grown(canonical([[0.0]]), 1).toarray().tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """
    out = weights.copy()
    out.resize((weights.shape[0] + newcomers, weights.shape[0] + newcomers))
    return canonical(out)


def joined(weights: sp.csr_array, ends: Indices, values: Floats) -> sp.csr_array:
    """Returns the weights with more edges, for pairs (row, later row) that have none yet; O(edges).

    Examples:
        >>> joined(canonical([[0, 0], [0, 0]]), np.array([[0, 1]]), np.array([2.0])).toarray().tolist()
        [[0.0, 2.0], [2.0, 0.0]]
    """
    rows, cols, old = _upper(weights)
    pairs = np.concatenate([rows, ends[:, 0]]), np.concatenate([cols, ends[:, 1]])
    return from_pairs(weights.shape[0], *pairs, np.concatenate([old, values]))


def without_user(weights: sp.csr_array, index: int) -> sp.csr_array:
    """Returns the weights without one user; those after it move up by one; O(edges).

    Examples:
        >>> without_user(canonical([[0, 1, 0], [1, 0, 2], [0, 2, 0]]), 0).toarray().tolist()
        [[0.0, 2.0], [2.0, 0.0]]
    """
    kept = np.delete(np.arange(weights.shape[0]), index)
    return canonical(weights[kept][:, kept])


def reweighted(weights: sp.csr_array, i: int, j: int, weight: float) -> sp.csr_array:
    """Returns the weights with one pair set; 0 removes the edge; O(edges).

    Examples:
        >>> reweighted(canonical([[0, 1], [1, 0]]), 1, 0, 3.0).toarray().tolist()
        [[0.0, 3.0], [3.0, 0.0]]
    """
    rows, cols, old = _upper(weights)
    others = (rows != min(i, j)) | (cols != max(i, j))
    pairs = np.append(rows[others], min(i, j)), np.append(cols[others], max(i, j))
    return from_pairs(weights.shape[0], *pairs, np.append(old[others], weight))


def _upper(weights: sp.csr_array) -> tuple[Indices, Indices, Floats]:
    upper = sp.triu(weights, k=1).tocoo()
    return upper.row, upper.col, upper.data
