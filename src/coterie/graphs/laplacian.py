"""The Laplacian of a graph and its components: everything that needs no eigenvalue."""

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from coterie.errors import ParameterError
from coterie.graphs.adjacency import Floats, Indices, canonical


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """The connected components of a graph.

    Attributes:
        count: How many there are.
        labels: For each user the number of its component, from 0.
    """

    count: int
    labels: Indices


def degrees(weights: sp.csr_array) -> Floats:
    """Returns the weighted degree of each user; O(edges).

    Examples:
        >>> degrees(canonical([[0, 2], [2, 0]])).tolist()
        [2.0, 2.0]
    """
    sums: Floats = np.asarray(weights.sum(axis=1), dtype=np.float64).ravel()
    return sums


def laplacian(weights: sp.csr_array, *, normalised: bool = False) -> sp.csr_array:
    """Returns L = D - W, or I - D^-1/2 W D^-1/2 with zero rows for isolated users; O(edges)."""
    degree = degrees(weights)
    if not normalised:
        return canonical(sp.diags_array(degree) - weights)
    linked = degree > 0
    root = np.sqrt(degree, out=np.ones_like(degree), where=linked)
    entries = weights.tocoo()
    # One division by the product of both roots keeps the matrix exactly symmetric.
    scaled = entries.data / (root[entries.row] * root[entries.col])
    off_diagonal = sp.coo_array((scaled, (entries.row, entries.col)), shape=weights.shape)
    return canonical(sp.diags_array(linked.astype(np.float64)) - off_diagonal)


def regularised_laplacian(weights: sp.csr_array, *, laplacian_ridge: float, normalised: bool = False) -> sp.csr_array:
    """Returns L_rho = L + laplacian_ridge I, which is positive definite; O(edges)."""
    if not (isinstance(laplacian_ridge, Real) and 0 < laplacian_ridge < np.inf):
        problem = f"laplacian_ridge = {laplacian_ridge!r} leaves the Laplacian singular"
        raise ParameterError(problem, "laplacian_ridge is a finite number above 0", "Try 0.1")
    ridge = np.full(weights.shape[0], float(laplacian_ridge))
    return canonical(laplacian(weights, normalised=normalised) + sp.diags_array(ridge))


def components(weights: sp.csr_array) -> Components:
    """Returns the connected components; O(users + edges)."""
    if weights.shape[0] == 0:
        return Components(count=0, labels=np.empty(0, dtype=np.int64))
    count, labels = connected_components(weights, directed=False)
    labels = labels.astype(np.int64)
    labels.flags.writeable = False
    return Components(count=int(count), labels=labels)


def blocks(weights: sp.csr_array, parts: Components) -> Iterator[tuple[Indices, sp.csr_array]]:
    """Yields the members and the weights of every component that has an edge; O(users + edges) in all.

    Examples:
        >>> w = canonical([[0, 0, 3], [0, 0, 0], [3, 0, 0]])
        >>> [members.tolist() for members, block in blocks(w, components(w))]
        [[0, 2]]
    """
    order = np.argsort(parts.labels, kind="stable")
    # Sorting the users by component once makes each block a cheap contiguous slice.
    grouped = weights[order][:, order]
    sizes = np.bincount(parts.labels, minlength=parts.count)
    ends = np.cumsum(sizes)
    for start, end in zip(ends - sizes, ends, strict=True):
        if end - start > 1:
            yield order[start:end], grouped[start:end, start:end]
