"""What newcomers and heavier edges do to a user covariance, without inverting anything of its size."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg

from coterie.algebra import JitterLog, cholesky, solve_lower
from coterie.contracts import Array, Index
from coterie.kernels.user import MOST_DEGREE, Green, UserKernel

RESIDUAL = 1e-13
STRIP = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCovariance:
    """The user covariance scale (L + ridge I)^-1 + own I + common 11', whose changes have a closed form.

    L is the combinatorial Laplacian: an edge then adds a rank-one term to it, and 11' shares its eigenvectors.
    """

    ridge: float
    scale: float = 1.0
    own: float = 0.0
    common: float = 0.0

    @classmethod
    def of(cls, kernel: UserKernel | None) -> "GraphCovariance | None":
        """Returns a user kernel in this form, if it has it.

        Examples:
            >>> GraphCovariance.of(Green(laplacian_ridge=0.5))
            GraphCovariance(ridge=0.5, scale=1.0, own=0.0, common=0.0)
            >>> GraphCovariance.of(Green(normalised=True)) is None
            True
        """
        plain = isinstance(kernel, Green) and kernel.power == 1.0 and not kernel.normalised
        return cls(ridge=float(kernel.laplacian_ridge)) if plain and isinstance(kernel, Green) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedEdges:
    """Weight that is added between rows of users, which may be newcomers' rows."""

    rows: Index
    others: Index
    weights: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A change of a user covariance, put as something that a belief can be conditioned on.

    Newcomers come first: each is `share` times the sum of everybody who is there, and a part of covariance `residual`
    besides. Then the `combinations` of users, one a column, are seen to be zero, with noise: an edge says that two
    users are alike. It is so for each arm, spread and noise being those of users times the arm kernel.

    Attributes:
        user_cov: The covariance afterwards.
        newcomers: How many there are, in the last rows.
        share: What a newcomer has of the sum of everybody.
        residual: The covariance of what newcomers have besides, a row for each.
        combinations: What is seen to be zero: a row for each user.
        noise: With which noise, a row for each combination.
        spread: The covariance of the combinations before they are seen.
        lost: By how much the trace of the covariance falls when they are.
    """

    user_cov: Array
    newcomers: int
    share: float
    residual: Array
    combinations: Array
    noise: Array
    spread: Array
    lost: float


def make_link(
    form: GraphCovariance, user_cov: Array, laplacian: sp.csr_array, edges: AddedEdges, *, newcomers: int
) -> Link | None:
    """Returns what added edges do to a covariance of this form; none if it cannot be computed to full accuracy.

    With the incidences D and weights w of the edges, C = scale (L + ridge I)^-1 and K = C + own I + common 11' before
    them, it is K - C D (scale / w + D'C D)^-1 D'C afterwards: what is left when A'f, with A = K^-1 C D, is seen to be
    zero with noise scale / w + own D'A. O(n^2) for each edge.

    Args:
        form: What the covariance is made of.
        user_cov: The covariance before, without the newcomers.
        laplacian: The Laplacian before, with the newcomers, who have no edges yet.
        edges: What is added.
        newcomers: How many users are new.

    Examples:
        >>> edges = AddedEdges(rows=np.array([0]), others=np.array([1]), weights=np.array([1.0]))
        >>> link = make_link(GraphCovariance(ridge=0.5), np.eye(1) / 0.5, sp.csr_array((2, 2)), edges, newcomers=1)
        >>> link.user_cov.round(3)
        array([[1.2, 0.8],
               [0.8, 1.2]])
    """
    n_before, n_edges = len(user_cov), len(edges.rows)
    heaviest = float(np.max(laplacian.diagonal(), initial=0.0)) + float(edges.weights.sum())
    lightest = float(np.min(edges.weights, initial=np.inf))
    if not (heaviest <= MOST_DEGREE * form.ridge and lightest > form.scale / np.finfo(np.float64).max):
        return None
    incidence = np.zeros((n_before + newcomers, n_edges))
    incidence[edges.rows, np.arange(n_edges)] = 1.0
    incidence[edges.others, np.arange(n_edges)] = -1.0
    combinations = incidence if form.own == 0 else _smoothed(form, laplacian, incidence)
    if combinations is None:
        return None
    alone = form.scale / form.ridge + form.own
    share = form.common / (alone + form.common * n_before)
    after = _with_newcomers(form, user_cov, newcomers, alone)
    crossed = after[:, edges.rows] - after[:, edges.others] - form.own * incidence
    spread = _symmetric(combinations.T @ crossed)
    noise = np.diag(form.scale / edges.weights) + form.own * _symmetric(incidence.T @ combinations)
    lost = 0.0
    if n_edges:
        taken = solve_lower(cholesky(noise + spread, JitterLog()), crossed.T).T
        for start in range(
            0, len(after), STRIP
        ):  # in strips, or room for a second matrix would cost more than all this
            after[start : start + STRIP] -= taken[start : start + STRIP] @ taken.T
        lost = float(np.sum(taken * taken))
    return Link(
        user_cov=after,
        newcomers=newcomers,
        share=share,
        residual=alone * np.eye(newcomers) + form.common * (1.0 - share * n_before),
        combinations=combinations,
        noise=noise,
        spread=spread,
        lost=lost,
    )


def _with_newcomers(form: GraphCovariance, user_cov: Array, newcomers: int, alone: float) -> Array:
    """Returns the covariance with newcomers who have no edges yet, in an array of its own."""
    n_before = len(user_cov)
    out = np.empty((n_before + newcomers, n_before + newcomers))
    out[:n_before, :n_before] = user_cov
    out[n_before:], out[:, n_before:] = form.common, form.common
    rows = np.arange(n_before, len(out))
    out[rows, rows] += alone
    return out


def _smoothed(form: GraphCovariance, laplacian: sp.csr_array, incidence: Array) -> Array | None:
    """Returns K^-1 C D = scale (scale I + own (L + ridge I))^-1 D by conjugate gradients; none if they fail."""
    matrix = sp.csr_array(form.own * laplacian + (form.scale + form.own * form.ridge) * sp.eye_array(len(incidence)))
    out = np.empty_like(incidence)
    for i, column in enumerate(incidence.T):
        out[:, i], _ = cg(matrix, column, rtol=RESIDUAL / 10, atol=0.0, maxiter=2 * len(column) + 100)
        if not np.linalg.norm(matrix @ out[:, i] - column) <= RESIDUAL * np.sqrt(len(column)):
            return None
    return form.scale * out


def _symmetric(matrix: Array) -> Array:
    return np.asarray((matrix + matrix.T) / 2)
