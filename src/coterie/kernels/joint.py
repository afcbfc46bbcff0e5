"""How alike are two (user, arm) pairs: the user's covariance times the arm kernel (Theorem 1 of the paper)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable
from math import inf
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np

from coterie.algebra.ranking import falling_order, places_of_largest
from coterie.contracts import Array, Index
from coterie.errors import ArmError, DimensionError, KernelError, KernelMatrixError
from coterie.errors.checks import is_whole
from coterie.graphs import UserGraph
from coterie.kernels.arm import ArmKernel
from coterie.kernels.pool import ArmPool, as_rows, check_range


def as_numbers(values: Any, *, what: str) -> Array:
    """Returns a float64 copy, or raises if the values are not finite numbers in a regular table."""
    try:
        out = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise KernelMatrixError(f"the {what} is not a table of numbers", "all entries are finite", "Mend it") from None
    if not np.isfinite(out).all():
        raise KernelMatrixError(f"the {what} holds NaN or infinite values", "all entries are finite", "Mend it")
    return out


def checked_psd(matrix: Any, size: int | None, *, what: str) -> Array:
    """Returns the matrix as float64, or raises if it is not symmetric positive semi-definite of this size. O(n^3)."""
    out = as_numbers(matrix, what=what)
    if out.ndim != 2 or out.shape[0] != out.shape[1] or len(out) == 0 or (size is not None and len(out) != size):
        expected = "square" if size is None else f"({size}, {size})"
        raise DimensionError(
            f"the {what} has shape {out.shape}", f"it must be {expected}", "Pass one row for each of them"
        )
    scale = float(np.abs(out).max(initial=0.0))
    gap = float(np.abs(out - out.T).max(initial=0.0))
    if gap > 1e-10 * scale:
        raise KernelMatrixError(
            f"the {what} is asymmetric by {gap:.3g}", "a kernel matrix is symmetric", "Use (M + M') / 2"
        )
    out = (out + out.T) / 2
    smallest = float(np.linalg.eigvalsh(out)[0])
    if smallest < -1e-10 * max(scale, np.finfo(float).tiny) * len(out):
        raise KernelMatrixError(
            f"the {what} has the negative eigenvalue {smallest:.3g}",
            "a kernel matrix is positive semi-definite",
            "Clip its spectrum at zero, or use another kernel",
        )
    return out


class Neighbourhood(NamedTuple):
    """A user and those nearest to them.

    Attributes:
        users: The user first, then the others, the nearest first.
        cov: The covariance of the user with each of them.
        among: Returns the covariance among those at some places of `users`.
    """

    users: Index
    cov: Array
    among: Callable[[Index], Array]


class JointKernel(ABC):
    """K((x, u), (x', u')) = user_cov[u, u'] * K_x(x, x'), on arrays of users and arms.

    Arms are whatever the subclass indexes by: rows of a pool, or feature vectors.

    Attributes:
        only_engine: The one engine that can use it, where there is only one.
        why_only: Why that is so.
        has_user_cov: Whether there is a matrix over all users; else only neighbourhoods are known.
        has_inputs: Whether arms are inputs: rows of numbers that a context is part of.
        most_together: How many users with rewards are near one another, whoever they are, where there are no more.
    """

    only_engine: ClassVar[str | None] = None
    why_only: ClassVar[str] = ""
    has_user_cov: ClassVar[bool] = True
    has_inputs: ClassVar[bool] = False
    most_together: ClassVar[float] = inf
    user_cov: Array

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.user_cov)

    def user_variance(self, user: int) -> float:
        """Returns the scale of a user's variance before any reward, or a lower bound of it. O(1)."""
        return float(self.user_cov[user, user])

    def max_variance(self, met: list[Any]) -> float:
        """Returns the largest prior variance of a pair, K_max in the paper; `met` are the arms observed so far."""
        return float(self.user_cov.diagonal().max()) * self._largest_arm_variance(met)

    @abstractmethod
    def _largest_arm_variance(self, met: list[Any]) -> float:
        """Returns the largest K_x(x, x), over the pool if there is one and else over the arms met."""

    @abstractmethod
    def with_user_cov(self, user_cov: Array) -> Self:
        """Returns the same kernel with other user covariances."""

    @abstractmethod
    def checked_arm(self, arm: Any) -> Any:
        """Returns one arm in the form this kernel indexes by, or raises a typed error."""

    @abstractmethod
    def checked_arms(self, arms: Any) -> Any:
        """Returns an array of arms in the form this kernel indexes by, or raises a typed error."""

    def no_arms(self) -> Any:
        """Returns an array of no arms, in the form this kernel indexes by."""
        return np.empty(0, dtype=np.intp)

    @abstractmethod
    def key(self, user: int, arm: Any) -> Hashable:
        """Returns a hashable that two observations share if and only if they are of the same pair."""

    @abstractmethod
    def arm_cross(self, arms: Any, others: Any) -> Array:
        """Returns K_x between two arrays of arms."""

    @abstractmethod
    def arm_diag(self, arms: Any) -> Array:
        """Returns K_x(x, x) of these arms."""

    def prepared(self, arms: Any) -> Any:
        """Returns arms as `prepared_cross` takes them, with all that is the same whatever they are compared with."""
        return arms

    def prepared_cross(self, arms: Any, others: Any) -> Array:
        """Returns K_x between two arrays of prepared arms."""
        return self.arm_cross(arms, others)

    def prepared_diag(self, arms: Any) -> Array:
        """Returns K_x(x, x) of prepared arms."""
        return self.arm_diag(arms)

    def cross(self, users: Index, arms: Any, other_users: Index, other_arms: Any) -> Array:
        """Returns the b x t covariances between two lists of pairs. O(b t) once K_x is there."""
        out = self.arm_cross(arms, other_arms)
        out *= self.user_cov[np.ix_(users, other_users)]
        return out

    def cross_of_user(self, user: int, arms: Any, other_users: Index, other_arms: Any) -> Array:
        """Returns the covariances of one user's arms with a list of pairs."""
        out = self.arm_cross(arms, other_arms)
        out *= self.user_cov[user].take(other_users)
        return out

    def diag(self, users: Index, arms: Any) -> Array:
        """Returns the prior variances of a list of pairs."""
        return np.asarray(self.user_cov[users, users] * self.arm_diag(arms))

    def user_block(self, users: Index) -> Array:
        """Returns the covariance among a few users."""
        return np.asarray(self.user_cov[np.ix_(users, users)])

    def shared_features(self, users: Any) -> Array | None:  # noqa: ARG002 - only some have them
        """Returns features of users whose products are what users share however far apart they are, a row each.

        None where there is a matrix over users, which says more.
        """
        return None

    def neighbourhood(self, user: int, n_rows: Index, enough: int, seen: Collection[int] = ()) -> Neighbourhood:  # noqa: ARG002 - see below
        """Returns the user, then those who covary most with them and have rows, until there are enough.

        Args:
            user: Whose neighbourhood.
            n_rows: How many rows each user has.
            enough: How many rows the others are wanted for.
            seen: Who has rows, for kernels that look elsewhere only if these are many.
        """
        known = np.flatnonzero(n_rows)
        known = known[known != user]
        if len(known) > enough:  # each has a row, so that more are never wanted; a partition is cheaper than a sort
            known = known[places_of_largest(self.user_cov[user].take(known), enough)]
        nearest = known[falling_order(self.user_cov[user].take(known))]
        wanted = int(np.searchsorted(np.cumsum(n_rows[nearest]), enough - int(n_rows[user]))) + 1
        users = np.concatenate([[user], nearest[:wanted]])
        return Neighbourhood(users, self.user_cov[user].take(users), lambda places: self.user_block(users[places]))


class OnPool(JointKernel):
    """A joint kernel on a finite pool: arms are integers, the rows of the pool."""

    n_arms: int
    _arm_variance: Array

    def _largest_arm_variance(self, met: list[Any]) -> float:  # noqa: ARG002 - the pool bounds every arm
        return float(self._arm_variance.max())

    def arm_diag(self, arms: Index) -> Array:
        """Returns K_x(x, x) of these rows."""
        return self._arm_variance.take(arms)

    def no_arms(self) -> Any:
        """Returns an array of no rows."""
        return np.empty(0, dtype=np.intp)

    def checked_arm(self, arm: Any) -> int:
        """Returns the arm's row in the pool."""
        if is_whole(arm, 0, self.n_arms - 1):
            return int(arm)
        raise DimensionError(
            f"arm index {arm!r} is out of range", f"rows are 0 to {self.n_arms - 1}", "Use a row of the pool"
        )

    def checked_arms(self, arms: Any) -> Index:
        """Returns the arms' rows in the pool; None means all of them."""
        if arms is None:
            return np.arange(self.n_arms)
        rows = np.asarray(arms)
        whole = rows.dtype.kind in "iu" or rows.size == 0
        if rows.ndim != 1 or not whole or (rows.size and (rows.min() < 0 or rows.max() >= self.n_arms)):
            raise DimensionError(
                f"arm indices {rows.tolist()!r} are out of range",
                f"rows are 0 to {self.n_arms - 1}",
                "Use rows of the pool",
            )
        return rows.astype(np.intp, copy=False)

    def key(self, user: int, arm: int) -> int:
        """Returns the pair's number, user by user."""
        return user * self.n_arms + arm


class NoUserMatrix(JointKernel):
    """A joint kernel for so many users that their covariance is never written out."""

    has_user_cov = False
    instead_of_matrix: ClassVar[str] = "its graph stands for it"

    @property
    @abstractmethod
    def n_users(self) -> int:
        """Number of users."""

    @property
    def user_cov(self) -> NoReturn:  # type: ignore[override] # the base keeps an array here
        """Never there: raises."""
        raise KernelError(
            f"the covariance of all {self.n_users} users was asked for",
            f"{type(self).__name__} never writes it out",
            f"Use engine {self.only_engine!r}, or a kernel with a matrix where users are few",
        )

    def with_user_cov(self, user_cov: Array) -> NoReturn:  # noqa: ARG002 - refused, whatever it is
        """Never possible: raises."""
        raise KernelError(
            f"another user covariance was given to {type(self).__name__}",
            self.instead_of_matrix,
            "Make another kernel",
        )


class PoolKernel(OnPool):
    """The joint kernel on a finite pool: arms are integers, K_x is a matrix kept at hand.

    Examples:
        >>> kernel = PoolKernel(np.eye(2), np.array([[1.0, 0.5], [0.5, 1.0]]))
        >>> kernel.cross(np.array([0]), np.array([1]), np.array([0, 1]), np.array([0, 1]))
        array([[0.5, 0. ]])
    """

    def __init__(self, user_cov: Array, arm_cov: Array) -> None:
        self.user_cov = np.ascontiguousarray(user_cov)
        self.arm_cov = np.ascontiguousarray(arm_cov)
        self.n_arms = len(arm_cov)
        self._arm_variance = self.arm_cov.diagonal().copy()

    @property
    def n_pairs(self) -> int:
        """Number of (user, arm) pairs."""
        return self.n_users * self.n_arms

    @property
    def shares_nothing(self) -> bool:
        """Whether no two users have anything in common: a diagonal user covariance."""
        return int(np.count_nonzero(self.user_cov)) == int(np.count_nonzero(self.user_cov.diagonal()))

    def with_user_cov(self, user_cov: Array) -> "PoolKernel":
        """Returns the same kernel with other user covariances."""
        return PoolKernel(checked_psd(user_cov, self.n_users, what="user covariance"), self.arm_cov)

    def arm_cross(self, arms: Index, others: Index) -> Array:
        """Returns K_x between two lists of rows."""
        if 2 * len(others) < self.n_arms:  # or whole rows would be copied
            return self.arm_cov.take(arms[:, None] * self.n_arms + others)
        return self.arm_cov[arms].take(others, axis=1)

    def fill(self, out: Array) -> None:
        """Writes the prior covariance of all pairs into `out`, a Fortran-ordered N x N array."""
        n, m = self.n_users, self.n_arms
        view = out.T.reshape(n, m, n, m)
        np.multiply(self.user_cov[:, None, :, None], self.arm_cov[None, :, None, :], out=view)

    def pair_variances(self) -> Array:
        """Returns the prior variances of all pairs, user by user."""
        return np.asarray(np.multiply.outer(self.user_cov.diagonal(), self._arm_variance)).ravel()


class OnVectors(JointKernel):
    """A joint kernel whose arms are vectors: of features, or of whatever its arm kernel compares."""

    arm_kernel: ArmKernel

    def _largest_arm_variance(self, met: Any) -> float:
        return float(self.arm_diag(np.asarray(met)).max()) if len(met) else 0.0

    def checked_arm(self, arm: Any) -> Array:
        """Returns the arm's vector."""
        if np.ndim(arm) != 1:
            shape = np.shape(arm)
            raise DimensionError(f"an arm of shape {shape}", "an arm is one vector", "Pass one row of the candidates")
        return np.asarray(self.checked_arms([arm])[0])

    def checked_arms(self, arms: Any) -> Array:
        """Returns the arms' vectors, one a row."""
        if arms is None:
            raise ArmError(
                "no arms were given", "without a pool there is no list of all arms", "Pass an array of vectors"
            )
        rows = as_rows(arms, what="candidates")
        check_range(rows, whose="candidate {}".format)
        self.arm_kernel.check_dimension(rows.shape[1])
        return rows

    def key(self, user: int, arm: Array) -> tuple[int, bytes]:
        """Returns the user and the vector's bytes; adding zero makes -0.0 and 0.0 the same."""
        return vector_key(user, arm)

    def arm_cross(self, arms: Array, others: Array) -> Array:
        """Returns K_x between two lists of vectors."""
        return self.arm_kernel._cross(arms, others)

    def arm_diag(self, arms: Array) -> Array:
        """Returns K_x(x, x) of these vectors."""
        return self.arm_kernel._diag(arms)


class FreeKernel(OnVectors):
    """The joint kernel on feature vectors, for arm sets that are not known beforehand.

    Examples:
        >>> from coterie.kernels.arm import Linear
        >>> kernel = FreeKernel(np.eye(1), Linear())
        >>> kernel.arm_cross(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
        array([[11.]])
    """

    def __init__(self, user_cov: Array, arm_kernel: ArmKernel) -> None:
        self.user_cov = np.ascontiguousarray(user_cov)
        self.arm_kernel = arm_kernel

    def with_user_cov(self, user_cov: Array) -> "FreeKernel":
        """Returns the same kernel with other user covariances."""
        return FreeKernel(checked_psd(user_cov, self.n_users, what="user covariance"), self.arm_kernel)


def vector_key(user: int, arm: Array) -> tuple[int, bytes]:
    """Returns what two observations share that have user and vector in common."""
    return user, (arm + 0.0).tobytes()


def pool_kernel(user_cov: Array, arm_kernel: ArmKernel, pool: ArmPool) -> PoolKernel:
    """Returns the joint kernel on a pool, with every "median" lengthscale set from it.

    Args:
        user_cov: One row and column for each user, for instance `Green().matrix(graph)`.
        arm_kernel: How alike two arms are.
        pool: The arms.
    """
    if not isinstance(pool, ArmPool):
        raise KernelError(f"the pool is a {type(pool).__name__}", "it must be an ArmPool", "Pass ArmPool(features)")
    users = as_numbers(user_cov, what="user covariance")
    if users.ndim != 2 or users.shape[0] != users.shape[1]:
        raise DimensionError(f"a user covariance of shape {users.shape}", "it is square", "Pass one row for each user")
    gram = arm_kernel.resolve(pool.features).gram(pool.features)
    return PoolKernel(users, checked_psd(gram, len(pool), what="arm kernel on the pool"))


def joint_penalty(
    coefficients: Any, *, graph: UserGraph, arms: ArmPool, arm_kernel: ArmKernel, laplacian_ridge: float = 0.1
) -> float:
    """Returns PEN(f; rho) of the paper for f_u = sum_a coefficients[u, a] K_x(., x_a). O(n^2 m + n m^2).

    PEN = 1/2 sum_ij w_ij |f_i - f_j|^2 + rho sum_i |f_i|^2, the norms those of the arm kernel's RKHS. By Theorem 1 it
    is the squared norm of f in the joint RKHS.

    Examples:
        >>> from coterie.kernels.arm import Linear
        >>> graph = UserGraph.from_edges([("ana", "bo")])
        >>> pool = ArmPool([[1.0]])
        >>> joint_penalty([[2.0], [1.0]], graph=graph, arms=pool, arm_kernel=Linear(), laplacian_ridge=0.5)
        3.5
    """
    weights = as_numbers(coefficients, what="coefficients")
    if weights.shape != (graph.n_users, len(arms)):
        raise DimensionError(
            f"coefficients of shape {weights.shape}",
            f"one row for each of {graph.n_users} users and one column for each of {len(arms)} arms",
            "Reshape them",
        )
    gram = arm_kernel.resolve(arms.features).gram(arms.features)
    smoothed = graph.regularised_laplacian(laplacian_ridge) @ weights
    return float(np.sum(smoothed * (weights @ gram)))
