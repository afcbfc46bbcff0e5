"""Features of items by truncated singular value decomposition: of their ratings, or of the tags that users gave."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from coterie.errors import ParameterError
from coterie.errors.checks import is_whole
from coterie.logs.log import Floats, Ints


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tagged:
    """Who gave which item which tag: one row for each time."""

    user: Ints
    item: Ints
    tag: Ints


class TagFeatures:
    """Features of the items that have tags: row of counts times inverse frequency, to length 1, on leading directions.

    A tag counts log((1 + items) / (1 + items that have it)) + 1 for each time an item was given it. Every row of
    features has length 1, or is zero where an item's tags have no part in the leading directions.

    Args:
        tagged: Who gave which item which tag.
        n_items: How many items there are.
        n_tags: How many tags there are.
        dimension: How many features an item gets.
        seed: Of the decomposition's start.

    Attributes:
        items: The items that have tags, in order.
        rows: Their features, one row each.
        dimension: How many features an item has.

    Examples:
        >>> tagged = Tagged(user=np.array([0, 0, 1, 1]), item=np.array([0, 2, 2, 3]), tag=np.array([0, 0, 1, 2]))
        >>> features = TagFeatures(tagged, n_items=4, n_tags=3, dimension=2)
        >>> features.items.tolist(), features.rows.shape
        ([0, 2, 3], (3, 2))
    """

    def __init__(self, tagged: Tagged, *, n_items: int, n_tags: int, dimension: int = 25, seed: int = 0) -> None:
        counts = _counts(tagged.item, tagged.tag, (n_items, n_tags))
        self._tagged = tagged
        self.items: Ints = np.flatnonzero(np.diff(counts.indptr)).astype(np.int64)
        self._place = np.full(n_items, -1, dtype=np.int64)
        self._place[self.items] = np.arange(len(self.items))
        self._counts = counts[self.items]
        frequency = np.bincount(self._counts.indices, minlength=n_tags)
        self._idf: Floats = np.log((1 + len(self.items)) / (1 + frequency)) + 1
        self._directions = leading_directions(self._weighted(self._counts), dimension, seed)
        self.rows = self._features(self._counts)

    @property
    def dimension(self) -> int:
        """How many features an item has."""
        return int(self.rows.shape[1])

    def changed_without(self, user: int) -> tuple[Ints, Floats]:
        """Returns the rows that the own tags of a user (a row of the graph) had a part in, and what they are without.

        The rows' counts are exact; how much a tag counts and the directions stay those of all users. An
        item that nobody else gave a tag has features of zeros.
        """
        own = np.flatnonzero(self._tagged.user == user)
        item, tag = self._place[self._tagged.item[own]], self._tagged.tag[own]
        mine = _counts(item, tag, self._counts.shape)
        rows = np.unique(item)
        left = self._counts[rows] - mine[rows]
        left.eliminate_zeros()
        return rows, self._features(left)

    def features_without(self, user: int) -> Floats:
        """Returns the features of all items without what a user's own tags gave to them."""
        rows, changed = self.changed_without(user)
        features = self.rows.copy()
        features[rows] = changed
        return features

    def _weighted(self, counts: sp.csr_array) -> sp.csr_array:
        """Returns rows of TF-IDF, of length 1 where there are tags: else much-tagged items would be all directions."""
        weighted = sp.csr_array(counts @ sp.diags_array(self._idf))
        lengths = np.sqrt(weighted.multiply(weighted).sum(axis=1))
        return sp.csr_array(sp.diags_array(1 / np.where(lengths > 0, lengths, 1.0)) @ weighted)

    def _features(self, counts: sp.csr_array) -> Floats:
        return unit_rows(np.asarray(self._weighted(counts) @ self._directions))


def _counts(item: Ints, tag: Ints, shape: tuple[int, int]) -> sp.csr_array:
    return sp.csr_array(sp.coo_array((np.ones(len(item)), (item, tag)), shape=shape))
