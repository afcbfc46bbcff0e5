"""The kernels that `auto` learns, on graphs and pools of any size: no matrix over all users or all arms is ever made.

    Ku = scale (L + ridge I)^-1 + own I + common 11' + traits,     Kx any arm kernel, evaluated where it is asked for

`EvaluatedPool` has a matrix over users, and none over arms; `AdditiveKernel` has neither, and neither has
`AdditiveInputs`, whose arms are inputs. A decision needs the covariance of a few users who are close to one another.
Among them the graph part is that of the whole graph with the users one step beyond eliminated, and those farther away
held at zero. What follows users' own features, the traits, goes by a few features of these (Nystrom); what they miss of
a user's variance is the user's own.
"""

from collections.abc import Collection
from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from coterie.algebra import mirror
from coterie.algebra.ranking import falling_order
from coterie.contracts import Array, Index
from coterie.errors import KernelError
from coterie.graphs import UserGraph
from coterie.kernels.arm import ArmKernel
from coterie.kernels.inputs import InputKernel, OnInputs
from coterie.kernels.joint import Neighbourhood, NoUserMatrix, OnPool, checked_psd

MOST_USERS = 64  # in a neighbourhood
MOST_RINGS = 3
MOST_BEYOND = 1024  # users beyond a neighbourhood who are eliminated; where there are more, all are held at zero


class UserParts(NamedTuple):
    """What the users' covariance is made of.

    Attributes:
        scale: What (L + ridge I)^-1 is multiplied by.
        ridge: The paper's rho.
        own: The variance of what is each user's own.
        common: The variance of what all users have in common.
        normalised: Whether L is the normalised Laplacian.
    """

    scale: float
    ridge: float
    own: float
    common: float
    normalised: bool


class TraitPart(NamedTuple):
    """What follows users' own features.

    Attributes:
        variance: Of each user.
        features: A row for each user whose products are their correlations, nearly; no square of a row exceeds 1.
    """

    variance: float
    features: Array

    def of(self, users: Any) -> Array:
        """Returns the features of some users, with their variance."""
        return np.asarray(np.sqrt(self.variance) * self.features[users])

    def among(self, users: Index) -> Array:
        """Returns the covariance among a few users; what features miss of a variance is the user's own."""
        at = self.of(users)
        out = at @ at.T
        np.fill_diagonal(out, self.variance)
        return np.asarray(out)


class EvaluatedPool(OnPool):
    """A joint kernel on a pool whose arm kernel is evaluated where it is asked for: no matrix over all arms.

    Args:
        user_cov: One row and column for each user.
        arm_kernel: How alike two arms are, with numbers for its length-scales.
        features: One row for each arm.

    Examples:
        >>> from coterie.kernels.arm import Linear
        >>> kernel = EvaluatedPool(np.eye(2), Linear(), np.array([[1.0], [2.0]]))
        >>> kernel.cross(np.array([0]), np.array([1]), np.array([0, 1]), np.array([0, 1]))
        array([[2., 0.]])
    """

    only_engine = "local"
    why_only = "no matrix over all users or arms is to be made"

    def __init__(self, user_cov: Array, arm_kernel: ArmKernel, features: Array) -> None:
        self.user_cov = user_cov
        self._take_arms(arm_kernel, features)

    def _take_arms(self, arm_kernel: ArmKernel, features: Array) -> None:
        self.arm_kernel, self._features, self.n_arms = arm_kernel, features, len(features)
        self._arm_variance = arm_kernel._diag(features)

    def with_user_cov(self, user_cov: Array) -> "EvaluatedPool":
        """Returns the same kernel with other user covariances."""
        checked = checked_psd(user_cov, self.n_users, what="user covariance")
        return EvaluatedPool(checked, self.arm_kernel, self._features)

    def arm_cross(self, arms: Index, others: Index) -> Array:
        """Returns K_x between two lists of rows."""
        return self.arm_kernel._cross(self._features.take(arms, axis=0), self._features.take(others, axis=0))


class AdditiveUsers(NoUserMatrix):
    """The users' side: scale [(L + ridge I)^-1]_uv + own [u = v] + common + traits, never written out.

    Attributes:
        graph: The users.
        parts: What their covariance is made of.
        traits: What follows their own features; None where they have none.
    """

    only_engine = "local"
    why_only = "no matrix over all users or arms is to be made"
    traits: TraitPart | None = None

    def _take_users(self, graph: UserGraph, parts: UserParts) -> None:
        self.graph, self.parts = graph, parts
        self._degrees = np.asarray(graph.degrees)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.graph.n_users

    @property
    def common(self) -> float:
        """What all users' tastes vary by together."""
        return self.parts.common

    def user_variance(self, user: int) -> float:
        """Returns a lower bound of a user's prior variance: that of the graph part is 1 / (degree + ridge). O(1)."""
        diagonal = self._diagonal(self._degrees[user])
        return float(self.parts.scale / diagonal + self.parts.own + self.parts.common + self._trait_variance)

    @property
    def _trait_variance(self) -> float:
        return 0.0 if self.traits is None else self.traits.variance

    def max_variance(self, met: list[Any]) -> float:
        """Returns an upper bound of the largest prior variance of a pair; a user without edges reaches it."""
        users = self.parts.scale / self.parts.ridge + self.parts.own + self.parts.common + self._trait_variance
        return users * self._largest_arm_variance(met)

    def shared_features(self, users: Any) -> Array:
        """Returns features of what all users have in common, and of what follows their own features."""
        common = np.full((*np.shape(users), 1), np.sqrt(self.parts.common))
        return common if self.traits is None else np.concatenate([common, self.traits.of(users)], axis=-1)

    def cross(self, users: Index, arms: Any, other_users: Index, other_arms: Any) -> Array:
        """Returns the covariances between two lists of pairs, their users taken as one neighbourhood."""
        known, places = np.unique(np.concatenate([users, other_users]), return_inverse=True)
        cov = self.user_block(known)
        out = self.arm_cross(arms, other_arms)
        out *= cov[np.ix_(places[: len(users)], places[len(users) :])]
        return out

    def cross_of_user(self, user: int, arms: Any, other_users: Index, other_arms: Any) -> Array:
        """Returns the covariances of one user's arms with a list of pairs."""
        return self.cross(np.full(len(arms), user), arms, other_users, other_arms)

    def diag(self, users: Index, arms: Any) -> Array:
        """Returns the prior variances of a list of pairs, each user's as in a neighbourhood of their own."""
        known, places = np.unique(users, return_inverse=True)
        own = np.array([self.user_block(np.array([user]))[0, 0] for user in known.tolist()])
        return np.asarray(own[places] * self.arm_diag(arms))

    def neighbourhood(self, user: int, n_rows: Index, enough: int, seen: Collection[int] = ()) -> Neighbourhood:
        """Returns the user, then those nearest with rewards, until they have enough rows; or all, if few have any."""
        users = self._ball(user, n_rows, enough)
        if len(seen) <= self.most_together < inf:
            users = np.concatenate([users, np.setdiff1d(np.fromiter(seen, np.intp, len(seen)), users)])
        cov = self.user_block(users)
        order = falling_order(cov[0, 1:]) + 1  # its own comes first, whatever it is
        order = np.concatenate([[0], order[n_rows[users[order]] > 0]])
        return Neighbourhood(users[order], cov[0, order], lambda places: cov[np.ix_(order[places], order[places])])

    def _ball(self, user: int, n_rows: Index, enough: int) -> Index:
        """Returns a user with others around, ring by ring, those with rewards first; the first ring without, too."""
        weights = self.graph.weights
        starts, near, strength = weights.indptr, weights.indices, weights.data
        ball, rows = [user], int(n_rows[user])
        ring, met = [user], {user}
        for depth in range(MOST_RINGS):
            found: dict[int, float] = {}
            for each in ring:
                part = slice(starts[each], starts[each + 1])
                ids, heavy = near[part], strength[part]
                if depth or len(ids) > MOST_USERS:  # those without rewards are there to connect, close by only
                    known = n_rows[ids] > 0
                    if depth == 0 and np.count_nonzero(known) < MOST_USERS:
                        known[np.argsort(-heavy, kind="stable")[:MOST_USERS]] = True
                    ids, heavy = ids[known], heavy[known]
                for other, weight in zip(ids.tolist(), heavy.tolist(), strict=True):
                    if other not in met:
                        found[other] = found.get(other, 0.0) + weight
            ring = sorted(found, key=lambda other: (n_rows[other] == 0, -found[other], other))
            ring = ring[: MOST_USERS - len(ball)]
            ball += ring
            met.update(ring)
            rows += int(n_rows[ring].sum()) if ring else 0
            if not ring or rows >= enough or len(ball) >= MOST_USERS:
                break
        return np.array(ball, dtype=np.intp)

    def user_block(self, users: Index) -> Array:
        """Returns the covariance among a few users, those beyond eliminated. O(users^3 + their edges)."""
        precision = self._precision(users)
        factor, failed = lapack.dpotrf(precision, lower=1)
        if failed:
            raise KernelError(
                "the Laplacian of a neighbourhood has no Cholesky factor", "a ridge is large enough", "Raise the ridge"
            )
        inverse, _ = lapack.dpotri(factor, lower=1)
        cov = self.parts.scale * mirror(inverse) + self.parts.common
        cov[np.diag_indices_from(cov)] += self.parts.own
        if self.traits is not None:
            cov += self.traits.among(users)
        return np.asarray(cov)

    def _diagonal(self, degrees: Any) -> Any:
        """Returns the diagonal of L + ridge I for users of these degrees."""
        return (np.asarray(degrees > 0, dtype=float) if self.parts.normalised else degrees) + self.parts.ridge

    def _precision(self, users: Index) -> Array:
        """Returns L + ridge I among some users, the users one step beyond eliminated as far as they are few."""
        weights, size = self.graph.weights, len(users)
        starts, ends = weights.indptr[users], weights.indptr[users + 1]
        lengths = ends - starts
        out = np.zeros((size, size), order="F")
        out[np.diag_indices(size)] = self._diagonal(self._degrees[users])
        total = int(lengths.sum())
        if total == 0:
            return out
        first = np.cumsum(lengths) - lengths
        places = np.arange(total) - np.repeat(first - starts, lengths)
        rows, near, entries = np.repeat(np.arange(size), lengths), weights.indices[places], weights.data[places]
        if self.parts.normalised:
            entries = entries / np.sqrt(self._degrees[near] * self._degrees[users][rows])
        order = np.argsort(users, kind="stable")
        at = np.minimum(np.searchsorted(users, near, sorter=order), size - 1)
        columns = order[at]
        inside = users[columns] == near
        out[rows[inside], columns[inside]] -= entries[inside]
        beyond, where = np.unique(near[~inside], return_inverse=True)
        if 0 < len(beyond) <= MOST_BEYOND:
            through = np.zeros((size, len(beyond)))
            through[rows[~inside], where] = entries[~inside] / np.sqrt(self._diagonal(self._degrees[beyond]))[where]
            out -= through @ through.T
        return out


class AdditiveKernel(AdditiveUsers, EvaluatedPool):
    """(scale [(L + ridge I)^-1]_uv + own [u = v] + common) Kx(x, x'), never written out.

    Args:
        graph: The users.
        parts: What their covariance is made of.
        arm_kernel: How alike two arms are, with numbers for its length-scales.
        features: One row for each arm.

    Examples:
        >>> from coterie.kernels.arm import Linear
        >>> graph, parts = UserGraph.from_edges([("ana", "bo")]), UserParts(1.0, 0.5, 0.0, 1.0, normalised=False)
        >>> kernel = AdditiveKernel(graph, parts, Linear(), np.array([[1.0], [2.0]]))
        >>> kernel.cross(np.array([0]), np.array([1]), np.array([0, 1]), np.array([1, 1]))
        array([[8.8, 7.2]])
    """

    def __init__(self, graph: UserGraph, parts: UserParts, arm_kernel: ArmKernel, features: Array) -> None:
        self._take_users(graph, parts)
        self._take_arms(arm_kernel, features)


class AdditiveInputs(AdditiveUsers, OnInputs):
    """The same for inputs: (scale [(L + ridge I)^-1]_uv + own [u = v] + common + traits) Kin, never written out.

    Args:
        graph: The users.
        parts: What their covariance is made of.
        arm_kernel: How alike two inputs are.
        traits: What follows users' own features, if they have any.
    """

    most_together = MOST_USERS

    def __init__(
        self, graph: UserGraph, parts: UserParts, arm_kernel: InputKernel, *, traits: TraitPart | None = None
    ) -> None:
        self._take_users(graph, parts)
        self.arm_kernel, self.traits = arm_kernel, traits
