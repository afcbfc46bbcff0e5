"""The joint kernel of a graph that is too large for a matrix over its users: the graph itself stands for it."""

from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg

from coterie.contracts import Array
from coterie.errors import KernelError, ParameterError
from coterie.graphs import UserGraph
from coterie.kernels.arm import ArmKernel, Linear
from coterie.kernels.feature_pool import OnFeatures
from coterie.kernels.growing import OnGraph
from coterie.kernels.growing_rows import rows_of
from coterie.kernels.joint import checked_psd
from coterie.kernels.landmarks import fewest_features, landmark_features
from coterie.kernels.pool import ArmPool

FEATURE_ERROR = 1e-3
MAX_FEATURES = 64
MOST_EIGEN = 2000
HUB = 2.0
MOST_STEPS = 200


class GraphKernel(OnGraph, OnFeatures):
    """[(L + ridge I)^-1]_uv (features_a . features_b), never written out. O(edges + arms x D).

    L_rho = diag(diagonal) - weights is an M-matrix, so where L_rho reach >= shape > 0, no solution of L_rho x = r
    exceeds reach_u max_v |r_v| / shape_v at user u: errors are bounded by residuals.

    Attributes:
        weights: The off-diagonal entries of L_rho, their sign changed, in CSR.
        rows: The same as compiled code takes them: where each row starts and ends, neighbours, and entries.
        diagonal: The diagonal of L_rho.
        shape: The tolerance of each user's residual beside others'; larger at hubs, whose pushes are dear.
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
    def user_cov(self) -> NoReturn:  # type: ignore[override] # the base keeps an array here; this kernel has none
        """Never there: raises."""
        raise KernelError(
            f"the covariance of all {self.n_users} users was asked for",
            "a GraphKernel never writes it out",
            "Use engine 'sparse', or a PoolKernel where the graph is small",
        )

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.diagonal)

    @property
    def shares_nothing(self) -> bool:
        """Whether no two users have anything in common: a graph without edges."""
        return int(self.weights.nnz) == 0

    @cached_property
    def arm_moment(self) -> Array:
        """The mean over the pool of phi_a phi_a', so that the mean variance of arms costs nothing of their number."""
        return np.asarray(self.features.T @ self.features) / len(self.features)

    def user_variances(self) -> Array:
        """Returns a lower bound of each user's prior variance, 1 / (degree + ridge)."""
        return np.asarray(1.0 / self.diagonal)

    def user_variance(self, user: int) -> float:
        """Returns that of one user. O(1)."""
        return float(1.0 / self.diagonal[user])

    def max_variance(self, met: list[Any]) -> float:
        """Returns an upper bound of the largest prior variance of a pair; a user without edges reaches it."""
        return self._largest_arm_variance(met) / self.ridge

    def with_user_cov(self, user_cov: Array) -> NoReturn:  # noqa: ARG002 - refused, whatever it is
        """Never possible: raises."""
        raise KernelError(
            "another user covariance was given to a GraphKernel", "its graph stands for it", "Make a kernel anew"
        )


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


def arm_features(
    arm_kernel: ArmKernel, pool: ArmPool, feature_error: float, max_features: int = MAX_FEATURES
) -> tuple[Array, float]:
    """Returns features whose products are the arm kernel on the pool, and the share of the variance they miss.

    Those of a linear kernel are the arms' own; otherwise as many eigen-features of the pool as are needed, O(m^3), or
    of landmarks among more than 2,000 arms.
    """
    if not (isinstance(feature_error, int | float | np.number) and 0 <= feature_error < 1):
        raise ParameterError(f"feature_error is {feature_error!r}", "it is a share, 0 <= share < 1", "Choose 1e-3")
    if isinstance(max_features, bool) or not isinstance(max_features, int | np.integer) or max_features < 1:
        raise ParameterError(f"max_features is {max_features!r}", "it is a whole number >= 1", "Choose 64")
    if isinstance(arm_kernel, Linear) and pool.dimension < len(pool):
        offset = np.full((len(pool), 1 if arm_kernel.offset else 0), arm_kernel.offset)
        return np.hstack([pool.features, offset]), 0.0
    kernel = arm_kernel.resolve(pool.features)
    if len(pool) > MOST_EIGEN:
        return landmark_features(kernel, pool.features, feature_error, max_features)
    gram = checked_psd(kernel.gram(pool.features), len(pool), what="arm kernel on the pool")
    values, vectors = np.linalg.eigh(gram)
    scaled = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    return fewest_features(scaled, gram.diagonal(), feature_error, max_features)


def _off_diagonal(precision: Any) -> Any:
    """Returns the entries beside the diagonal, their sign changed."""
    weights = -precision
    weights.setdiag(0.0)
    weights.eliminate_zeros()
    for array in (weights.data, weights.indices, weights.indptr):
        array.flags.writeable = False  # as those of a graph are: compiled code tells the two apart
    return weights
