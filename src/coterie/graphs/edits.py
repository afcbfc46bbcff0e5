"""What an edit does to the weights, and the record that says what changed."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from coterie.graphs.adjacency import Floats, Indices, canonical, from_pairs
from coterie.graphs.versions import Edit


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


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of a graph whose users all stayed in their rows.

    Attributes:
        newcomers: How many users joined, in the last rows.
        edges: The weights that changed, each pair once.
    """

    newcomers: int
    edges: tuple[Edit, ...]

    @classmethod
    def of(cls, edits: Iterable[Edit], *, newcomers: int) -> "Difference":
        """Returns what edits, made one after another, come to."""
        found: dict[tuple[int, int], Edit] = {}
        for edit in edits:
            pair = edit.row, edit.other
            found[pair] = edit._replace(old=found[pair].old) if pair in found else edit
        return cls(newcomers, tuple(edit for edit in found.values() if edit.old != edit.new))


def difference(before: sp.csr_array, after: sp.csr_array) -> list[Edit]:
    """Returns the weights that differ, where rows may have been added; O(edges).

    Examples:
        >>> difference(canonical([[0.0]]), canonical([[0, 2], [2, 0]]))
        [Edit(row=0, other=1, old=0.0, new=2.0)]
    """
    old = sp.csr_array((before.data, before.indices, before.indptr), shape=before.shape)
    old.resize(after.shape)
    changed = sp.triu(after != old, k=1).tocoo()
    pairs = zip(changed.row.tolist(), changed.col.tolist(), strict=True)
    return [Edit(row, other, float(old[row, other]), float(after[row, other])) for row, other in pairs]


def merged(weights: sp.csr_array, n_users: int, edits: Iterable[Edit]) -> sp.csr_array:
    """Returns the weights of so many users with the edits made; O(edges).

    Examples:
        >>> merged(canonical([[0.0]]), 2, [Edit(0, 1, 0.0, 2.0)]).toarray().tolist()
        [[0.0, 2.0], [2.0, 0.0]]
    """
    last = {(edit.row, edit.other): edit.new for edit in edits}
    ends = np.array(list(last), dtype=np.int64).reshape(-1, 2)
    rows, cols, old = _upper(weights)
    kept = ~np.isin(rows * np.int64(n_users) + cols, ends[:, 0] * n_users + ends[:, 1])
    pairs = np.concatenate([rows[kept], ends[:, 0]]), np.concatenate([cols[kept], ends[:, 1]])
    return from_pairs(n_users, *pairs, np.concatenate([old[kept], np.array(list(last.values()), dtype=np.float64)]))


def without_user(weights: sp.csr_array, index: int) -> sp.csr_array:
    """Returns the weights without one user; those after it move up by one; O(edges).

    Examples:
        >>> without_user(canonical([[0, 1, 0], [1, 0, 2], [0, 2, 0]]), 0).toarray().tolist()
        [[0.0, 2.0], [2.0, 0.0]]
    """
    kept = np.delete(np.arange(weights.shape[0]), index)
    return canonical(weights[kept][:, kept])


def _upper(weights: sp.csr_array) -> tuple[Indices, Indices, Floats]:
    upper = sp.triu(weights, k=1).tocoo()
    return upper.row, upper.col, upper.data
