"""The joint kernel of a graph that is too large for a matrix over its users: the graph itself stands for it.

It takes newcomers and changed edges in place, in amortised constant time, once it is made to grow.
"""

from collections.abc import Mapping
from copy import copy
from functools import cached_property
from math import inf
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg

from coterie.algebra.gaps import gap, gap_of_matrices
from coterie.contracts import Array, Index
from coterie.graphs import Difference, UserGraph
from coterie.kernels.arm import ArmKernel
from coterie.kernels.arm_features import FEATURE_ERROR, MAX_FEATURES, OnFeatures, arm_features
from coterie.kernels.growing_rows import Entries, GrowingRows, Hubs, Room, rows_of
from coterie.kernels.pool import ArmPool

HUB = 2.0
MOST_STEPS = 200
NEARLY = 1e-5  # shares are kept up to date, and have a margin of their own


class Growth(NamedTuple):
    """What a change of graph did to L_rho = diag(diagonal) - weights.

    Attributes:
        entries: By how much weights have grown.
        diagonal: By how much entries of the diagonal have.
        covariance_grows: Whether some covariance may have become larger.
        reshaped: Whose shape may have changed; none for everybody, where hubs have no larger one any more.
        null_squares: By how much squares of `null` have; none under the combinatorial Laplacian, where it is all ones.
        uneven: Where the shape of somebody fell, the largest of all shapes there ever were over the smallest; else 1.
    """

    entries: tuple[Entries, ...]
    diagonal: Mapping[int, float]
    covariance_grows: bool
    reshaped: Index | None
    null_squares: Mapping[int, float]
    uneven: float


class GraphKernel(OnFeatures):
    """[(L + ridge I)^-1]_uv (features_a . features_b), never written out. O(edges + arms x D).

    L_rho = diag(diagonal) - weights is an M-matrix, so where L_rho reach >= shape > 0, no solution of L_rho x = r
    exceeds reach_u max_v |r_v| / shape_v at user u: errors are bounded by residuals.

    Attributes:
        weights: The off-diagonal entries of L_rho, their sign changed, in CSR.
        rows: The same as compiled code takes them: where each row starts and ends, neighbours, and entries.
        diagonal: The diagonal of L_rho.
        shape: The tolerance of each user's residual beside others'; larger at hubs, whose pushes are costly.
        reach: A supersolution, L_rho reach >= shape: how large an error residuals of that shape make at most.
        null: L_rho null = ridge null: all ones, or the roots of the degrees.
        ridge: The paper's rho.
        features: One row for each arm of the pool.
        feature_error: How much of an arm's prior variance the features miss, of the largest, at most.

    Examples:
        >>> graph = UserGraph.from_edges([("ana", "bo")])
        >>> kernel = GraphKernel(graph, np.eye(2), laplacian_ridge=0.5)
        >>> kernel.n_users, kernel.diagonal
        (2, array([1.5, 1.5]))
    """

    only_engine = "sparse"
    why_only = "the graph itself stands for the covariance of all users"
    _matrices: tuple[Any, Any]  # entries and plain weights, in CSR
    _span: tuple[float, float]  # the smallest and the largest shape there ever were
    _growing: GrowingRows | None = None
    _hubs: Hubs | None = None
    _room: Room

    def __init__(
        self,
        graph: UserGraph,
        features: Any,
        *,
        laplacian_ridge: float = 0.1,
        normalised: bool = False,
        feature_error: float = 0.0,
    ) -> None:
        precision = graph.regularised_laplacian(laplacian_ridge, normalised=normalised)
        self.diagonal = np.asarray(precision.diagonal())
        self._matrices = (_off_diagonal(precision) if normalised else graph.weights), graph.weights
        self._degrees, self.rows = graph.degrees, rows_of(self.weights)
        self.ridge, self.normalised = float(laplacian_ridge), normalised
        self.null = self._null(graph.degrees)
        self.shape, self.reach = shape_and_reach(precision, self.null, self.ridge)
        self._hubs_wait = self.shape is not self.null
        self._take_features(features, feature_error)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.diagonal)

    @cached_property
    def arm_moment(self) -> Array:
        """The mean over the pool of phi_a phi_a', so that the mean variance of arms costs nothing of their number."""
        return np.asarray(self.features.T @ self.features) / len(self.features)

    def user_variance(self, user: int) -> float:
        """Returns a lower bound of a user's prior variance, 1 / (degree + ridge). O(1)."""
        return float(1.0 / self.diagonal[user])

    def max_variance(self, met: list[Any]) -> float:
        """Returns an upper bound of the largest prior variance of a pair; a user without edges reaches it."""
        return self._largest_arm_variance(met) / self.ridge

    # Growth

    @property
    def weights(self) -> Any:
        """The off-diagonal entries of L_rho, their sign changed, in CSR; O(edges) after each growth."""
        return self._both()[0]

    def _both(self) -> tuple[Any, Any]:
        if self._growing is not None and self._growing.changed:
            self._matrices = self._growing.matrices()
        return self._matrices

    def growing(self, growth: Mapping[str, Any] | None = None) -> Self:
        """Returns this kernel, all its settings kept, in room of its own where `follow` can change it. O(edges).

        Args:
            growth: That of a kernel which has grown to this graph: it is then the same as that one, to the bit.
        """
        kept = self.growth() if growth is None else growth
        out = copy(self)
        out._growing = GrowingRows(self._both()[1], kept["degrees"], normalised=self.normalised)
        out._matrices, out._room = (None, None), Room()
        out._hubs_wait, out.shape, out.reach = "hubs" in kept, np.array(kept["shape"]), np.array(kept["reach"])
        out._hubs = Hubs(out._growing, self.ridge, kept["hubs"]) if "hubs" in kept else None
        out._span = kept["smallest"], kept["largest"]
        out._read()
        out.null = out._null(out._degrees)
        out.diagonal = out._diagonal_at(np.arange(len(out.shape)))
        return out

    @property
    def has_grown(self) -> bool:
        """Whether this kernel was made by `growing`."""
        return self._growing is not None

    def mismatch(self) -> float:
        """Returns how far degrees, shape and reach are from those of the graph; infinity if residuals are not bounded.

        A kernel that has not grown was made from the graph.
        """
        if not self.has_grown:
            return 0.0
        weights, plain = self._both()
        lifted = self.diagonal * self.reach - weights @ self.reach
        if not np.all((self.shape > 0) & (lifted >= (1 - NEARLY) * self.shape)) or self._span[0] > self._span[1]:
            return inf
        hubs, null = self._hubs, self._null(self._degrees)
        share, ratio = (1.0, 1 / self.ridge) if hubs is None else (hubs.share, hubs.ratio)
        of_lift = 0.0 if hubs is None else gap_of_matrices(hubs.lift, self._degrees * ratio - plain @ ratio)
        of_shape = max(gap(self.shape, null * share), gap(self.reach, null * ratio))
        return max(of_lift, of_shape, gap(self._degrees, np.asarray(plain.sum(axis=1)).ravel()))

    def growth(self) -> dict[str, Any]:
        """Returns what a kernel made from the same graph may not have to the bit."""
        smallest, largest = self._span if self.has_grown else (float(self.shape.min()), float(self.shape.max()))
        hubs = {"hubs": self._waiting_hubs()} if self._hubs_wait else {}
        kept = {"degrees": self._degrees, "shape": self.shape, "reach": self.reach}
        return {"smallest": smallest, "largest": largest, **kept, **hubs}

    def _waiting_hubs(self) -> dict[str, Any]:
        if self._hubs is not None:
            return self._hubs.state()
        null, plain = self._null(self._degrees), self._both()[1]
        ratio, share = self.reach / null, self.shape / null
        return {"ratio": ratio, "share": share, "lift": self._degrees * ratio - plain @ ratio}

    def follow(self, change: Difference) -> Growth:
        """Takes newcomers and changed edges, in place; only for a kernel made by `growing`.

        Amortised O(1) for an edge to a newcomer, else O(degree) within numpy; all edges of both ends change with their
        degrees where the Laplacian is normalised. O(users) at most once, where hubs waited and no longer can.
        """
        assert self._growing is not None
        n_users = len(self.diagonal) + change.newcomers
        self._growing.lengthen(n_users)
        self._room.lengthen(self, n_users, diagonal=self.ridge, shape=1.0, reach=1 / self.ridge, null=1.0)
        before = {end: float(self.diagonal[end]) for edit in change.edges for end in (edit.row, edit.other)}
        entries = [each for edit in change.edges for each in self._growing.set_edge(edit.row, edit.other, edit.new)]
        self._read()
        ends = np.array(list(before), dtype=np.intp)
        self.diagonal[ends] = self._diagonal_at(ends)
        diagonal = {end: float(self.diagonal[end]) - old for end, old in before.items()}
        shrinks = all(edit.new >= edit.old and not self.normalised for edit in change.edges)
        reshaped = self._whose_shape(ends, change)
        squares = self._renull(ends) if self.normalised else {}
        return Growth(tuple(entries), diagonal, not shrinks, reshaped, squares, self._reshape(reshaped))

    def _renull(self, users: Index) -> dict[int, float]:
        """Takes `null` of these users as it is by now, and returns by how much its squares have grown."""
        before, self.null[users] = self.null[users] ** 2, self._null(self._degrees[users])
        return dict(zip(users.tolist(), (self.null[users] ** 2 - before).tolist(), strict=True))

    def _read(self) -> None:
        assert self._growing is not None
        self.rows, self._degrees = self._growing.rows, self._growing.degrees

    def _whose_shape(self, ends: Index, change: Difference) -> Index | None:
        """Returns whose shape and reach may have to change; none for everybody, where hubs cannot wait any longer."""
        if self._hubs is None:
            return ends
        touched = self._hubs.follow(len(self.diagonal), change.edges)
        if touched is not None:
            return np.array(sorted(touched), dtype=np.intp)
        self._hubs, self._hubs_wait = None, False
        return None

    def _reshape(self, users: Index | None) -> float:
        """Takes shape and reach of these users as they must be by now; without hubs L_rho null = ridge null does.

        Returns:
            How uneven shapes were if one fell, else 1.
        """
        whom = np.arange(len(self.diagonal)) if users is None else users
        if len(whom) == 0:
            return 1.0
        null, hubs = self._null(self._degrees[whom]), self._hubs
        fresh = null if hubs is None else null * hubs.share[whom]
        fell = bool(np.any(fresh < self.shape[whom]))
        self.shape[whom] = fresh
        self.reach[whom] = null / self.ridge if hubs is None else null * hubs.ratio[whom]
        self._span = min(self._span[0], float(fresh.min())), max(self._span[1], float(fresh.max()))
        return self._span[1] / self._span[0] if fell else 1.0

    def _diagonal_at(self, users: Index) -> Array:
        degrees = self._degrees[users]
        return np.asarray(((degrees > 0) if self.normalised else degrees) + self.ridge)

    def _null(self, degrees: Array) -> Array:
        """Returns the vector with L_rho null = ridge null: all ones, or the roots of the degrees."""
        return np.sqrt(np.where(degrees > 0, degrees, 1.0)) if self.normalised else np.ones(len(degrees))


def shape_and_reach(precision: Any, null: Array, ridge: float) -> tuple[Array, Array]:
    """Returns the residuals' tolerances, larger at hubs, and a supersolution: L_rho reach >= shape. O(edges).

    Above HUB times the median of the diagonal a user's share grows with theirs. What is left of the solve for it is
    made up for by a multiple of `null`, so the inequality holds however far the solve came. Where hubs would make
    the reach of somebody longer by more than half, their tolerance is that of others.
    """
    diagonal = precision.diagonal()
    more = null * np.maximum(diagonal / (HUB * np.median(diagonal)) - 1.0, 0.0)
    if not more.any():
        return null, null / ridge
    found = cg(precision, more, rtol=1e-6, maxiter=MOST_STEPS, M=sp.diags_array(1 / diagonal))[0]
    left = max(float(np.max((more - precision @ found) / null)), 0.0)
    reach = (null * (1 + left)) / ridge + found
    if np.all(reach <= 1.5 * null / ridge) and np.all(reach > 0):
        return null + more, reach
    return null, null / ridge


def graph_kernel(
    graph: UserGraph,
    arm_kernel: ArmKernel,
    pool: ArmPool,
    *,
    laplacian_ridge: float = 0.1,
    normalised: bool = False,
    feature_error: float = FEATURE_ERROR,
    max_features: int = MAX_FEATURES,
) -> GraphKernel:
    """Returns the kernel of engine "sparse": the paper's user kernel times an arm kernel, by features of the pool.

    Args:
        graph: The users and who is near whom.
        arm_kernel: How alike two arms are.
        pool: The arms.
        laplacian_ridge: The paper's rho, > 0.
        normalised: Whether the Laplacian is the normalised one.
        feature_error: How much of an arm's prior variance may be lost, as a share of the largest one; 0 for none.
        max_features: How many features there are at most, for a kernel that is not linear; where more would be needed
            the error is larger, and `GraphKernel.feature_error` says how large.

    Examples:
        >>> from coterie.kernels.arm import SquaredExponential
        >>> pool = ArmPool(np.linspace(0, 1, 50)[:, None])
        >>> graph_kernel(UserGraph.from_edges([("ana", "bo")]), SquaredExponential(1.0), pool).features.shape
        (50, 3)
    """
    features, lost = arm_features(arm_kernel, pool, feature_error, max_features)
    return GraphKernel(graph, features, laplacian_ridge=laplacian_ridge, normalised=normalised, feature_error=lost)


def _off_diagonal(precision: Any) -> Any:
    """Returns the entries beside the diagonal, their sign changed."""
    weights = -precision
    weights.setdiag(0.0)
    weights.eliminate_zeros()
    for array in (weights.data, weights.indices, weights.indptr):
        array.flags.writeable = False  # as those of a graph are: compiled code has a type for each
    return weights
