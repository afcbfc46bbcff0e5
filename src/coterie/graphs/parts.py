"""Cuts a graph into parts of about as many users, with few edges between them."""

from typing import Any

import numpy as np

from coterie.contracts import Index
from coterie.errors import ParameterError
from coterie.errors.checks import check_whole
from coterie.errors.extras import is_installed
from coterie.graphs.graph import UserGraph

METHODS = ("metis", "hash")
MIXING = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: consecutive rows are spread evenly


def cut_graph(graph: UserGraph, n_parts: int, method: str | None = None) -> Index:
    """Returns the part of each user, from 0: by METIS, or by a hash of the row where `pymetis` is not installed.

    METIS keeps neighbours together, so that little is sent between parts; a hash only makes them equally large.

    Args:
        graph: Of the users.
        n_parts: How many parts.
        method: "metis" or "hash"; none for the first that can be had.

    Examples:
        >>> ring = UserGraph.from_edges([(user, (user + 1) % 6) for user in range(6)])
        >>> np.bincount(cut_graph(ring, 2, "hash")).tolist()
        [3, 3]
    """
    check_whole("n_parts", n_parts)
    if method not in (None, *METHODS):
        raise ParameterError(f"method is {method!r}", f"it is one of {METHODS}", "Leave it out for the best there is")
    if n_parts == 1:
        return np.zeros(graph.n_users, np.intp)
    if method == "hash" or (method is None and not is_installed("pymetis")):
        return _by_hash(graph.n_users, n_parts)
    return _by_metis(graph, n_parts)


def _by_hash(n_users: int, n_parts: int) -> Index:
    """Returns parts whose sizes differ by one at most."""
    with np.errstate(over="ignore"):
        mixed = np.arange(n_users, dtype=np.uint64) * MIXING
    out = np.empty(n_users, np.intp)
    out[np.argsort(mixed, kind="stable")] = np.arange(n_users) % n_parts
    return out


def _by_metis(graph: UserGraph, n_parts: int) -> Index:
    try:
        import pymetis
    except ImportError:
        rule = "METIS comes with the package 'pymetis', in the extra 'ray'"
        raise ParameterError("the method is 'metis'", rule, "Install it, or use 'hash'") from None
    weights: Any = graph.weights
    adjacency = pymetis.CSRAdjacency(adj_starts=weights.indptr, adjacent=weights.indices)
    return np.asarray(pymetis.part_graph(n_parts, adjacency=adjacency)[1], np.intp)


def cut_share(graph: UserGraph, parts: Index) -> float:
    """Returns the share of the edges that join users of different parts.

    Examples:
        >>> ring = UserGraph.from_edges([(user, (user + 1) % 4) for user in range(4)])
        >>> cut_share(ring, np.array([0, 0, 1, 1]))
        0.5
    """
    weights: Any = graph.weights
    owners = np.repeat(parts, np.diff(weights.indptr))
    return float(np.mean(owners != parts[weights.indices])) if len(weights.indices) else 0.0
