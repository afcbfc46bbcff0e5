"""The one form in which a graph is stored, and the checks that every input passes on its way there."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coterie.contracts import WEIGHT_RULE, is_weight
from coterie.errors import DimensionError, DuplicateIdError, GraphError, ParameterError, UnknownNameError, listed

Symmetrise: TypeAlias = Literal["max", "mean", "min"]
Adjacency: TypeAlias = tuple[tuple[Hashable, ...], sp.csr_array]
Indices: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

# A matrix computed as X X' differs from its transpose by rounding only; that is not a directed graph.
ROUNDING = 1e-12


def user_id(value: object) -> Hashable:
    """Returns the id as a plain hashable Python value.

    Examples:
        >>> user_id(np.int64(7))
        7
    """
    plain = value
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        plain = value.item()
    if plain is None or (isinstance(plain, float) and plain != plain) or type(plain).__name__ in ("NAType", "NaTType"):
        raise GraphError(f"user id {value!r} is missing", "every user has an id", "Drop or fill the missing ids")
    if not _is_hashable(plain):
        raise GraphError(f"user id {value!r} is not hashable", "ids are hashable", "Use a string, a number or a tuple")
    return plain


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def checked_users(users: Iterable[object] | None, n_users: int | None = None) -> tuple[Hashable, ...]:
    """Returns the ids as a tuple without repeats; 0, 1, ... when `users` is None.

    Examples:
        >>> checked_users(None, 3)
        (0, 1, 2)
    """
    if users is None:
        return tuple(range(n_users or 0))
    if not isinstance(users, Iterable):
        raise ParameterError(f"users = {users!r} is not a list", "users is an iterable of ids", "Pass a list of ids")
    ids = tuple(user_id(user) for user in users)
    if n_users is not None and len(ids) != n_users:
        raise DimensionError(f"{len(ids)} users for {n_users} rows", "each row has one user", "Pass one id per row")
    if len(set(ids)) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise DuplicateIdError(f"user {twice!r} is given twice", "user ids are unique", "Remove the repeated id")
    return ids


def edge_weight(value: Any, edge: object) -> float:
    """Returns the weight as a float, or says which edge has a bad one.

    Examples:
        >>> edge_weight(2, ("ana", "bo", 2))
        2.0
    """
    try:
        weight = float("nan") if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        weight = float("nan")
    if not is_weight(weight):
        raise GraphError(f"edge {edge!r} has weight {value!r}", WEIGHT_RULE, "Correct or drop this edge")
    return weight


def checked_symmetrise(symmetrise: str | None) -> Symmetrise | None:
    """Returns the rule for joining two directions, or says which ones exist.

    Examples:
        >>> checked_symmetrise("max")
        'max'
    """
    match symmetrise:
        case None | "max" | "mean" | "min":
            return symmetrise
    allowed = listed(["max", "mean", "min"])
    raise UnknownNameError(f"symmetrise = {symmetrise!r} is unknown", f"it is None or one of {allowed}", "Pick one")


def canonical(matrix: Any) -> sp.csr_array:
    """Returns a float64 CSR copy with sorted indices, no repeats and no stored zeros.

    Examples:
        >>> canonical([[0, 2], [2, 0]]).nnz
        2
    """
    csr = sp.csr_array(matrix, dtype=np.float64, copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    # Sparse factorisations take 32-bit indices only, and half the memory is welcome.
    if max(csr.nnz, *csr.shape) < np.iinfo(np.int32).max:
        csr.indices, csr.indptr = csr.indices.astype(np.int32), csr.indptr.astype(np.int32)
    return csr


def from_pairs(n_users: int, rows: Indices, cols: Indices, weights: Floats) -> sp.csr_array:
    """Returns the symmetric CSR of pairs that are given once each; O(edges).

    Examples:
        >>> from_pairs(2, np.array([0]), np.array([1]), np.array([3.0])).toarray().tolist()
        [[0.0, 3.0], [3.0, 0.0]]
    """
    ends = np.concatenate([rows, cols]), np.concatenate([cols, rows])
    return canonical(sp.coo_array((np.concatenate([weights, weights]), ends), shape=(n_users, n_users)))


def joined(directed: sp.csr_array, how: Symmetrise) -> sp.csr_array:
    """Returns the undirected weights; a direction that is absent counts as 0.

    Examples:
        >>> joined(canonical([[0, 4], [2, 0]]), "mean").toarray().tolist()
        [[0.0, 3.0], [3.0, 0.0]]
    """
    back = directed.T.tocsr()
    match how:
        case "max":
            return canonical(directed.maximum(back))
        case "min":
            return canonical(directed.minimum(back))
        case "mean":
            return canonical(0.5 * directed + 0.5 * back)


def read_matrix(matrix: Any, *, users: Iterable[object] | None, symmetrise: str | None) -> Adjacency:
    """Returns the users and weights of a square matrix, dense or sparse; O(entries)."""
    how = checked_symmetrise(symmetrise)
    directed = _square(matrix)
    if users is None and hasattr(matrix, "columns") and hasattr(matrix, "index"):
        users = _labels(matrix)
    ids = checked_users(users, directed.shape[0])
    _check_entries(directed, ids)
    if how is None:
        _check_symmetric(directed, ids)
    return ids, joined(directed, how or "max")


def _square(matrix: Any) -> sp.csr_array:
    try:
        array = matrix if sp.issparse(matrix) else np.asarray(matrix)
    except ValueError:
        raise DimensionError("the matrix has rows of different lengths", "weights are square", "Mend it") from None
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise DimensionError(f"the matrix has shape {array.shape}", "weights are square", "Pass one row per user")
    if array.dtype.kind not in "biuf":
        raise GraphError(f"the matrix has type {array.dtype}", "weights are real numbers", "Convert it to float64")
    return canonical(array)


def _labels(frame: Any) -> list[object]:
    """Returns the users that label the rows of a dataframe, once the columns agree."""
    rows, columns = list(frame.index), list(frame.columns)
    if rows != columns:
        problem = f"rows are labelled {listed(rows)} and columns {listed(columns)}"
        raise GraphError(
            problem, "both name the same users in the same order", "Reorder one, or pass an array and users"
        )
    return rows


def _check_entries(directed: sp.csr_array, ids: tuple[Hashable, ...]) -> None:
    entries = directed.tocoo()
    bad = np.flatnonzero(~is_weight(entries.data))
    if bad.size:
        first = bad[0]
        edge_weight(float(entries.data[first]), (ids[entries.row[first]], ids[entries.col[first]]))
    loops = np.flatnonzero(entries.row == entries.col)
    if loops.size:
        user, weight = ids[entries.row[loops[0]]], float(entries.data[loops[0]])
        raise self_loop((user, user, weight))


def self_loop(edge: object) -> GraphError:
    """Returns the error for an edge from a user to the same user.

    Examples:
        >>> print(self_loop(("ana", "ana")))
        edge ('ana', 'ana') is a self loop; an edge joins two different users. Drop it (set the diagonal to 0).
    """
    rule = "an edge joins two different users"
    return GraphError(f"edge {edge!r} is a self loop", rule, "Drop it (set the diagonal to 0)")


def _check_symmetric(directed: sp.csr_array, ids: tuple[Hashable, ...]) -> None:
    back = directed.T.tocsr()
    excess = (abs(directed - back) - ROUNDING * directed.maximum(back)).tocoo()
    bad = np.flatnonzero(excess.data > 0)
    if bad.size:
        i, j = int(excess.row[bad[0]]), int(excess.col[bad[0]])
        there, back_again = float(directed[i, j]), float(directed[j, i])
        problem = f"({ids[i]!r}, {ids[j]!r}) has weight {there} and ({ids[j]!r}, {ids[i]!r}) has {back_again}"
        remedy = "Correct the matrix, or pass symmetrise='max', 'mean' or 'min'"
        raise GraphError(problem, "weights are the same in both directions", remedy)
