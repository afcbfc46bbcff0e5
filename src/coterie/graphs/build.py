"""Reading edge lists, tables, networkx graphs and features into users and weights."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from coterie.contracts import FEATURE_RULE, LARGEST_FEATURE, LEAST_SPREAD, SPREAD_RULE
from coterie.errors import (
    DimensionError,
    GraphError,
    InputError,
    ParameterError,
    UnknownNameError,
    UnknownUserError,
    listed,
)
from coterie.errors.checks import is_whole
from coterie.graphs.adjacency import (
    Adjacency,
    Floats,
    Indices,
    canonical,
    checked_symmetrise,
    checked_users,
    edge_weight,
    from_pairs,
    joined,
    self_loop,
    user_id,
)

NearestWeights: TypeAlias = Literal["rbf", "binary"]

EDGE_PAIRS = (("user", "other"), ("user", "friend"), ("source", "target"), ("from", "to"))
WEIGHT = "weight"
_COLUMN_RULE = f"an edge has two users, and a weight in a column {WEIGHT!r} only"
_EDGE_RULE = "an edge is a tuple (user, user) or (user, user, weight)"
_TABLE_RULE = "a table has the columns user, other and perhaps weight"


class _Roster:
    """The users met so far; closed when the caller has named them all."""

    def __init__(self, users: Iterable[object] | None) -> None:
        self.closed = users is not None
        self.index = {user: i for i, user in enumerate(checked_users(users))}

    def place(self, user: Hashable, edge: object) -> int:
        """Returns the index of the user, who is added unless the roster is closed."""
        if self.closed and user not in self.index:
            problem = f"edge {edge!r} names user {user!r}, who is not in users"
            raise UnknownUserError(problem, f"users are {listed(self.index)}", "Add the user to users or drop the edge")
        return self.index.setdefault(user, len(self.index))


def read_edges(edges: Iterable[Any], *, users: Iterable[object] | None, symmetrise: str | None) -> Adjacency:
    """Returns the users and weights of an edge list; O(edges)."""
    how = checked_symmetrise(symmetrise)
    roster = _Roster(users)
    if hasattr(edges, "columns") or type(edges) is dict:
        problem = f"edges are a {type(edges).__name__}, a table of columns"
        raise GraphError(problem, _EDGE_RULE, "Use UserGraph.from_table")
    if not isinstance(edges, Iterable):
        raise GraphError(f"edges = {edges!r} is not a list", _EDGE_RULE, "Pass an iterable of such tuples")
    found: dict[tuple[int, int], float] = {}
    for edge in edges:
        u, v, weight = _read_edge(edge)
        i, j = roster.place(u, edge), roster.place(v, edge)
        # Without symmetrise both directions are the same pair, so they share one key.
        key = (i, j) if how or i < j else (j, i)
        if found.setdefault(key, weight) != weight:
            raise _conflict(edge, found[key], weight, directed=how is not None)
    rows, cols = np.array(list(found), dtype=np.int64).reshape(-1, 2).T
    weights = np.fromiter(found.values(), dtype=np.float64, count=len(found))
    ids = tuple(roster.index)
    if how is None:
        return ids, from_pairs(len(ids), rows, cols, weights)
    directed = sp.coo_array((weights, (rows, cols)), shape=(len(ids), len(ids)))
    return ids, joined(canonical(directed), how)


def _read_edge(edge: Any) -> tuple[Hashable, Hashable, float]:
    # A string of two letters would also unpack, and a set has no order: neither is an edge.
    if not isinstance(edge, tuple | list | np.ndarray) or len(edge) not in (2, 3):
        raise GraphError(f"edge {edge!r} is malformed", _EDGE_RULE, "Correct or drop this edge")
    u, v = user_id(edge[0]), user_id(edge[1])
    if u == v:
        raise self_loop(edge)
    return u, v, edge_weight(edge[2], edge) if len(edge) == 3 else 1.0


def _conflict(edge: object, first: float, second: float, *, directed: bool) -> GraphError:
    problem = f"edge {edge!r} is given twice, with weights {first} and {second}"
    if directed:
        return GraphError(problem, "each direction has one weight", "Keep one of the two")
    remedy = "Keep one, or pass symmetrise='max', 'mean' or 'min' if these are two directions"
    return GraphError(problem, "each pair has one weight", remedy)


def read_networkx(graph: Any, *, weight: str | None, symmetrise: str | None) -> Adjacency:
    """Returns the users and weights of a networkx graph, isolated nodes included; O(nodes + edges)."""
    how = checked_symmetrise(symmetrise)
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed", "is_multigraph")):
        problem = f"{type(graph).__name__} is not a networkx graph"
        raise GraphError(problem, "nodes, edges, is_directed and is_multigraph are needed", "Use from_edges instead")
    if graph.is_multigraph():
        problem = f"the graph is a {type(graph).__name__}"
        raise GraphError(problem, "each pair has at most one edge", "Join parallel edges, e.g. with networkx.Graph")
    if graph.is_directed() and how is None:
        problem = f"the graph is a {type(graph).__name__}, which is directed"
        raise GraphError(problem, "weights are the same in both directions", "Pass symmetrise='max', 'mean' or 'min'")
    edges = graph.edges(data=weight, default=1.0) if weight is not None else graph.edges()
    # An undirected graph lists each edge once; read as directed it would lose its other half.
    return read_edges(edges, users=graph.nodes, symmetrise=how if graph.is_directed() else None)


def read_table(
    table: Any, *, weight: Hashable | None, users: Iterable[object] | None, symmetrise: str | None
) -> Adjacency:
    """Returns the users and weights of a table with the columns user, other and perhaps weight; O(rows).

    Examples:
        >>> read_table({"from": ["ana"], "to": ["bo"]}, weight=None, users=None, symmetrise=None)[0]
        ('ana', 'bo')
    """
    if hasattr(table, "collect_schema") and hasattr(table, "collect"):
        raise GraphError("the table is lazy and has no rows yet", _TABLE_RULE, "Pass table.collect()")
    names = edge_columns(_column_names(table), weight)
    rows = _rows(table, names)
    try:
        return read_edges(rows, users=users, symmetrise=symmetrise)
    except InputError as error:
        taken = ", ".join(f"{name!r} as {what}" for name, what in zip(names, ("user", "other", "weight"), strict=False))
        raise type(error)(f"{error.problem} (the table's columns: {taken})", error.rule, error.remedy) from None


def _rows(table: Any, names: list[Any]) -> Iterator[tuple[Any, ...]]:
    columns = [_values(name, table[name]) for name in names]
    sizes = [len(column) for column in columns]
    if len(set(sizes)) > 1:
        raise DimensionError(f"the columns have {sizes} rows", "columns are equally long", "Pass one value per edge")
    return zip(*columns, strict=True)


def _column_names(table: Any) -> list[Any]:
    # pyarrow has `columns` too, but there it holds the values; its `column_names` must be asked first.
    for attribute in ("column_names", "columns"):
        if hasattr(table, attribute):
            return list(getattr(table, attribute))
    if isinstance(table, Mapping):
        return list(table)
    raise GraphError(f"{type(table).__name__} is not a table", _TABLE_RULE, "Pass a dataframe or a dict of columns")


def _values(name: object, column: Any) -> list[Any]:
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    if isinstance(column, Sequence) and not isinstance(column, str | bytes):
        return list(column)
    problem = f"column {name!r} is a {type(column).__name__}"
    raise GraphError(problem, "a column holds one value per edge", "Pass a list, an array or a dataframe column")


def read_features(
    features: Any,
    *,
    users: Iterable[object] | None,
    k: int,
    weights: str,
    mutual: bool,
    lengthscale: float | str,
) -> Adjacency:
    """Returns the users and weights of the k-nearest-neighbour graph; about O(n k log n) in few dimensions.

    Examples:
        >>> ids, w = read_features(
        ...     [[0.0], [1.0], [5.0]], users=None, k=1, weights="binary", mutual=False, lengthscale="median"
        ... )
        >>> w.toarray().tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    points = _points(features)
    n_users = len(points)
    ids = checked_users(users, n_users)
    _check_options(k, n_users, weights, lengthscale)
    neighbours, distances = _nearest(points, k)
    values = _rbf(distances, lengthscale) if weights == "rbf" else np.ones_like(distances)
    rows = np.repeat(np.arange(n_users), k)
    directed = sp.coo_array((values.ravel(), (rows, neighbours.ravel())), shape=(n_users, n_users))
    # Absent directions count as 0, so the larger one gives the union and the smaller one the mutual edges.
    return ids, joined(canonical(directed), "min" if mutual else "max")


def _points(features: Any) -> Floats:
    try:
        points = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        problem = f"features of type {type(features).__name__} are not numbers ({error})"
        raise GraphError(problem, "features are a matrix of real numbers", "Encode them as numbers") from error
    if points.ndim != 2 or points.shape[1] == 0:
        problem = f"features have shape {points.shape}"
        raise DimensionError(problem, "features have one row per user and at least one column", "Reshape them")
    _check_range(points)
    return points


def _check_range(points: Floats) -> None:
    bad = np.argwhere(~(np.abs(points) <= LARGEST_FEATURE))
    if bad.size:
        row, col = bad[0]
        problem = f"feature {col} of row {row} is {points[row, col]}"
        raise GraphError(problem, FEATURE_RULE, "Fill in what is missing, and measure what is large in another unit")
    spread = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    if 0 < spread < LEAST_SPREAD:
        raise GraphError(f"no feature differs by more than {spread:g}", SPREAD_RULE, "Measure them in another unit")


def _check_options(k: int, n_users: int, weights: str, lengthscale: float | str) -> None:
    if not is_whole(k, 1, n_users - 1):
        rule = f"k is an integer from 1 to {n_users - 1}, one less than the number of users"
        raise ParameterError(f"k = {k!r} neighbours of {n_users} users", rule, "Pass a k in this range")
    if weights not in ("rbf", "binary"):
        raise UnknownNameError(f"weights = {weights!r} is unknown", "weights is 'rbf' or 'binary'", "Pick one of them")
    is_length = isinstance(lengthscale, Real) and 0 < lengthscale < np.inf
    if lengthscale != "median" and not is_length:
        rule = "lengthscale is 'median' or a finite number above 0"
        raise ParameterError(f"lengthscale = {lengthscale!r} is out of range", rule, "Try 'median'")


def _nearest(points: Floats, k: int) -> tuple[Indices, Floats]:
    """Returns the indices of the k nearest others of each point, and their distances."""
    distances, neighbours = cKDTree(points).query(points, k=k + 1)
    is_self = neighbours == np.arange(len(points))[:, None]
    # Among more than k equal points a point need not be its own neighbour; the last one goes then.
    is_self[~is_self.any(axis=1), -1] = True
    return neighbours[~is_self].reshape(-1, k), distances[~is_self].reshape(-1, k)


def _rbf(distances: Floats, lengthscale: float | str) -> Floats:
    length = float(np.median(distances)) or 1.0 if lengthscale == "median" else float(lengthscale)
    values: Floats = np.exp(-0.5 * np.square(distances / length))
    return values


def edge_pair(names: Sequence[Any]) -> tuple[str, str] | None:
    """Returns the columns of the two users, if they have names that say so.

    Examples:
        >>> edge_pair(["weight", "friend", "user"]), edge_pair(["a", "b"])
        (('user', 'friend'), None)
    """
    return next((pair for pair in EDGE_PAIRS if set(pair) <= set(names)), None)


def edge_columns(names: Sequence[Any], weight: Hashable | None = None) -> list[Any]:
    """Returns the columns of the two users and, if there is one, of the weight, which any other name does not make.

    Two columns beside the weight hold the users, in that order, whatever they are called. Of more, those with the names
    that say so do, and only where the weight has a name too are the rest left out.

    Args:
        names: The columns of the table.
        weight: The column of the weights; none means "weight", if there is such a column.

    Examples:
        >>> edge_columns(["since", "weight", "friend", "user"]), edge_columns(["a", "b"])
        (['user', 'friend', 'weight'], ['a', 'b'])
        >>> edge_columns(["user", "friend", "since"], weight="since")
        ['user', 'friend', 'since']
        >>> edge_columns(["user", "friend", "since"])
        Traceback (most recent call last):
        coterie.errors.GraphError: the table has 3 columns ('user', 'friend', 'since'); an edge has two users, and ...
    """
    if weight is not None and weight not in names:
        raise GraphError(
            f"there is no column {weight!r} of weights", f"columns are {listed(names)}", "Name one of these"
        )
    held = [name for name in names if name == (WEIGHT if weight is None else weight)]
    others = [name for name in names if name not in held]
    pair = edge_pair(others)
    if len(others) == 2 or (pair and held):
        return [*(pair or others), *held]
    problem = f"the table has {len(names)} columns ({listed(names)})"
    raise GraphError(
        problem, _COLUMN_RULE, f"Call the column of weights {WEIGHT!r}, if there is one, and leave out what is more"
    )
