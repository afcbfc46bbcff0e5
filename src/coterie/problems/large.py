"""Truths on graphs too large for a matrix over users: solves with L_rho, and draws that have their covariance.

A draw of covariance A^-1, with A = L + rho I = F F', is A^-1 F z with z normal, and F is known: a column for each edge
and one for each user. Other powers of A are sums of such terms.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from coterie.contracts import Array
from coterie.errors import NumericalError
from coterie.graphs import UserGraph
from coterie.kernels import Green
from coterie.kernels.user import check_ridge

SOLVED = 1e-10  # what a solve leaves of its right-hand side
MOST_STEPS = 10_000
TOLERANCE = 1e-4  # of the covariance, at every frequency of the graph, where the power is not whole
SPACING, MARGIN = 6.0, 3.0
CHUNK = 2**24  # normal numbers drawn at once: 128 MB


class Fractions(NamedTuple):
    """x^-power = sum_j weights_j / (x + shifts_j) + rest, all of them >= 0."""

    shifts: Array
    weights: Array
    rest: float


def smoothed(graph: UserGraph, homophily: float, start: Array) -> Array:
    """Returns (I + homophily L)^-1 start. O(edges) a step of conjugate gradients.

    Examples:
        >>> smoothed(UserGraph.from_edges([("ana", "bo")]), 1.0, np.array([[3.0], [0.0]])).round(6).tolist()
        [[2.0], [1.0]]
    """
    matrix = sp.csr_array(sp.eye_array(graph.n_users) + homophily * graph.laplacian())
    return solved(matrix, start)


def smooth_draw(graph: UserGraph, kernel: Green, n_columns: int, rng: np.random.Generator) -> Array:
    """Returns independent columns, normal with the kernel's covariance of all users.

    Exact up to rounding and SOLVED for whole powers; for others within TOLERANCE of the covariance at each frequency.

    Examples:
        >>> smooth_draw(UserGraph.from_edges([("ana", "bo")]), Green(), 3, np.random.default_rng(0)).shape
        (2, 3)
    """
    precision = graph.regularised_laplacian(kernel.laplacian_ridge, normalised=kernel.normalised)
    check_ridge(kernel.laplacian_ridge, precision.diagonal())
    root = root_of(graph, kernel)
    size = max(1, CHUNK // root.shape[1])
    parts = [min(size, n_columns - start) for start in range(0, n_columns, size)]
    return np.hstack([_drawn(precision, root, kernel, width, rng) for width in parts])


def root_of(graph: UserGraph, kernel: Green) -> sp.csr_array:
    """Returns F with F F' = L_rho, a column for each edge and one for each user.

    Examples:
        >>> root_of(UserGraph.from_edges([("ana", "bo")]), Green(laplacian_ridge=4.0)).toarray().tolist()
        [[1.0, 2.0, 0.0], [-1.0, 0.0, 2.0]]
    """
    edges = sp.triu(graph.weights, k=1).tocoo()
    scale = (
        1 / np.sqrt(np.where(graph.degrees > 0, graph.degrees, 1.0)) if kernel.normalised else np.ones(graph.n_users)
    )
    size, number = np.sqrt(edges.data), np.arange(len(edges.data))
    entries = np.concatenate([size * scale[edges.row], -size * scale[edges.col]])
    places = np.concatenate([edges.row, edges.col]), np.concatenate([number, number])
    along = sp.csr_array((entries, places), shape=(graph.n_users, len(number)))
    return sp.csr_array(sp.hstack([along, np.sqrt(kernel.laplacian_ridge) * sp.eye_array(graph.n_users)]))


def _drawn(precision: sp.csr_array, root: sp.csr_array, kernel: Green, width: int, rng: np.random.Generator) -> Array:
    """Returns columns of covariance A^-power: one of A^-r with 0 < r <= 2, solved for as often as 2 is left."""
    solves = int(np.ceil(kernel.power / 2)) - 1
    left = kernel.power - 2 * solves
    if left == 2.0:
        out = solved(precision, rng.standard_normal((len(precision.indptr) - 1, width)))
    elif left == 1.0:
        out = solved(precision, _rooted(root, width, rng))
    else:
        out = _mixed(precision, root, left, kernel.laplacian_ridge, width, rng)
    for _ in range(solves):
        out = solved(precision, out)
    return out


def _mixed(
    precision: sp.csr_array, root: sp.csr_array, power: float, lowest: float, width: int, rng: np.random.Generator
) -> Array:
    """Returns columns of covariance A^-power, for a power below 1 or between 1 and 2; a solve for each fraction.

    Below 1 a fraction is a draw of covariance (A + t)^-1. Above 1 one of A (A + t)^-1, and A^-1 times their sum.
    """
    n_users, above = precision.shape[0], power > 1
    parts = fractions_of(power - above, lowest, float(abs(precision).sum(axis=1).max()))
    out = np.sqrt(parts.rest) * (_rooted(root, width, rng) if above else rng.standard_normal((n_users, width)))
    for shift, weight in zip(parts.shifts.tolist(), parts.weights.tolist(), strict=True):
        normal, other = rng.standard_normal((n_users, width)), _rooted(root, width, rng)
        whole, shifted = (precision @ normal, other) if above else (other, normal)
        right = whole + np.sqrt(shift) * shifted
        out += np.sqrt(weight) * solved(precision, right, shift=shift)
    return solved(precision, out) if above else out


def _rooted(root: sp.csr_array, width: int, rng: np.random.Generator) -> Array:
    """Returns columns of covariance A."""
    return np.asarray(root @ rng.standard_normal((root.shape[1], width)))


def fractions_of(power: float, lowest: float, highest: float) -> Fractions:
    """Returns fractions that x^-power is within TOLERANCE of itself by, for 0 < power < 1 and x in this range.

    Examples:
        >>> parts = fractions_of(0.5, 0.01, 100.0)
        >>> round(float(np.sum(parts.weights / (4.0 + parts.shifts)) + parts.rest), 4)
        0.5
    """
    ends = lowest / MARGIN, highest * MARGIN
    count = int(np.ceil(np.log(ends[1] / ends[0]) / np.log(SPACING))) + 1
    shifts = np.concatenate([[0.0], np.geomspace(*ends, count)])
    points = np.geomspace(lowest, highest, 40 * count)[:, None]
    shares = points**power * np.hstack([1 / (points + shifts), np.ones_like(points)])
    scale = shares.max(axis=0)
    weights = nnls(shares / scale, np.ones(len(points)))[0] / scale
    missed = float(np.abs(shares @ weights - 1).max())
    if not missed <= TOLERANCE:
        rule = f"{TOLERANCE:g} is allowed"
        raise NumericalError(f"fractions miss {missed:.1g} of x^-{power:g}", rule, "Take power 1, or a larger ridge")
    kept = weights[:-1] > 0
    return Fractions(shifts[kept], weights[:-1][kept], float(weights[-1]))


def solved(matrix: sp.csr_array, right: Array, *, shift: float = 0.0, most_steps: int = MOST_STEPS) -> Array:
    """Returns (matrix + shift I)^-1 right, by conjugate gradients on all columns at once, for a matrix > 0.

    Examples:
        >>> solved(sp.csr_array(np.diag([2.0, 4.0])), np.array([[2.0], [2.0]])).round(6).tolist()
        [[1.0], [0.5]]
    """
    inverse = (1 / (matrix.diagonal() + shift))[:, None]
    out, left = np.zeros_like(right), right.copy()
    along = inverse * left
    size = _products(left, along)
    enough = SOLVED**2 * _products(right, right)
    for _ in range(most_steps):
        if np.all(_products(left, left) <= enough):
            return out
        image = matrix @ along + shift * along
        step = _ratio(size, _products(along, image))
        out += step * along
        left -= step * image
        turned = inverse * left
        before, size = size, _products(left, turned)
        along = turned + _ratio(size, before) * along
    raise NumericalError(
        f"a solve for {len(right)} users has not ended after {most_steps} steps",
        f"it is to leave {SOLVED:g} of its right-hand side",
        "Take a larger ridge, or drop edges that are far heavier than others",
    )


def _products(one: Array, other: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->j", one, other))


def _ratio(one: Array, other: Array) -> Array:
    return np.divide(one, other, out=np.zeros_like(one), where=other > 0)
