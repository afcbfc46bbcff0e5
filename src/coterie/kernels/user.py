"""How alike are two users: spectral transfer functions of the Laplacian (Smola and Kondor), and a few others."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import pdist

from coterie.contracts import Array
from coterie.errors import FactorisationError, KernelError
from coterie.graphs import UserGraph
from coterie.kernels.arm import SquaredExponential
from coterie.kernels.joint import checked_psd

MOST_DEGREE = 1e10  # in units of the ridge: the inverse of L + ridge I is then within about 1e-5


def _positive(name: str, value: Any, *, why: str = "") -> None:
    if not (isinstance(value, int | float | np.number) and np.isfinite(value) and value > 0):
        raise KernelError(f"{name} is {value!r}", f"it must be a finite number > 0{why}", "Choose, say, 0.1")


def _whole(name: str, value: Any) -> None:
    if not (isinstance(value, int | np.integer) and value >= 1):
        raise KernelError(f"{name} is {value!r}", "it must be a whole number >= 1", "Choose, say, 2")


class UserKernel(ABC):
    """Anything that turns a graph into a positive semi-definite matrix over its users."""

    def matrix(self, graph: UserGraph) -> Array:
        """Returns the n x n user covariance, in the order of `graph.users`."""
        if not isinstance(graph, UserGraph):
            remedy = "Use UserGraph.from_networkx, from_edges, from_matrix or from_table"
            raise KernelError(f"the graph is a {type(graph).__name__}", "it must be a UserGraph", remedy)
        return self._matrix(graph)

    @abstractmethod
    def _matrix(self, graph: UserGraph) -> Array:
        """Returns the n x n user covariance."""


class SpectralKernel(UserKernel):
    """sum_i r(eigenvalue_i) q_i q_i' over the eigenpairs of the Laplacian; a subclass gives r >= 0. O(n^3)."""

    normalised: bool

    @abstractmethod
    def transfer(self, eigenvalues: Array) -> Array:
        """Returns r at each eigenvalue, all >= 0."""

    def _matrix(self, graph: UserGraph) -> Array:
        spectrum = graph.spectrum(normalised=self.normalised)
        gains = self.transfer(spectrum.values)
        if not np.all(gains >= 0):
            raise KernelError(
                f"the transfer function is {float(np.min(gains)):.3g} at an eigenvalue of the Laplacian",
                "it must be >= 0 and not NaN on the whole spectrum",
                "Change the kernel's parameters",
            )
        half = spectrum.vectors * np.sqrt(gains)
        return np.asarray(half @ half.T)


@dataclass(frozen=True, slots=True, kw_only=True)
class Green(SpectralKernel):
    """r(x) = (x + laplacian_ridge)^-power; power 1 is the paper's [L_rho^-1] and the default.

    Attributes:
        laplacian_ridge: The paper's rho, > 0; the smaller, the farther users share. It is one over the prior variance
            of a user without neighbours.
        power: How steeply rough directions are damped.
        normalised: Whether x are eigenvalues of the normalised Laplacian.

    Examples:
        >>> Green(laplacian_ridge=0.5).matrix(UserGraph.from_edges([("ana", "bo")])).round(3)
        array([[1.2, 0.8],
               [0.8, 1.2]])
    """

    laplacian_ridge: float = 0.1
    power: float = 1.0
    normalised: bool = False

    def __post_init__(self) -> None:
        _positive("laplacian_ridge", self.laplacian_ridge, why=", because a graph Laplacian is always singular")
        _positive("power", self.power)

    def transfer(self, eigenvalues: Array) -> Array:
        """Returns (x + laplacian_ridge)^-power."""
        return np.asarray((eigenvalues + self.laplacian_ridge) ** -self.power)

    def _matrix(self, graph: UserGraph) -> Array:
        check_ridge(self.laplacian_ridge, graph.laplacian(normalised=self.normalised).diagonal())
        if self.power != 1.0:
            return SpectralKernel._matrix(self, graph)
        precision = graph.regularised_laplacian(self.laplacian_ridge, normalised=self.normalised).toarray()
        inverse = cho_solve(cho_factor(precision), np.eye(graph.n_users))
        return np.asarray((inverse + inverse.T) / 2)


def check_ridge(ridge: float, degrees: Array) -> None:
    """Raises if L + ridge I cannot be inverted accurately: rounding of a degree must stay far below the ridge."""
    largest = float(np.max(degrees, initial=0.0))
    if not (np.isfinite(largest) and largest <= MOST_DEGREE * ridge):
        raise FactorisationError(
            f"the heaviest user has degree {largest:.3g}, and the ridge is {ridge:.3g}",
            f"a degree may be at most {MOST_DEGREE:.0e} times the ridge, or the covariance would be lost in rounding",
            "Make the heaviest edges lighter, or raise laplacian_ridge if the policy has it as an option",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat(SpectralKernel):
    """r(x) = exp(-time x): heat that spreads along the edges for this long.

    Attributes:
        time: How long, > 0; the longer, the farther users share.
        normalised: Whether x are eigenvalues of the normalised Laplacian.
    """

    time: float = 1.0
    normalised: bool = False

    def __post_init__(self) -> None:
        _positive("time", self.time)

    def transfer(self, eigenvalues: Array) -> Array:
        """Returns exp(-time x)."""
        return np.asarray(np.exp(-self.time * eigenvalues))


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomWalk(SpectralKernel):
    """r(x) = (reach - x)^steps: users met by a walk of this many steps; reach must be at least the largest eigenvalue.

    On the normalised Laplacian, the default here, eigenvalues are at most 2, so reach 2 is always enough.

    Attributes:
        steps: Length of the walk.
        reach: At least the largest eigenvalue.
        normalised: Whether x are eigenvalues of the normalised Laplacian.
    """

    steps: int = 2
    reach: float = 2.0
    normalised: bool = True

    def __post_init__(self) -> None:
        _positive("reach", self.reach)
        _whole("steps", self.steps)

    def transfer(self, eigenvalues: Array) -> Array:
        """Returns (reach - x)^steps."""
        slack = self.reach - eigenvalues
        if slack.min(initial=0.0) < -1e-9 * self.reach:
            raise KernelError(
                f"reach is {self.reach!r}, and the Laplacian has the eigenvalue {float(eigenvalues.max()):.6g}",
                "reach must be at least the largest eigenvalue",
                "Raise reach, or use normalised=True",
            )
        return np.asarray(np.maximum(slack, 0.0) ** self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class BandPass(SpectralKernel):
    """r(x) = exp(-(x - centre)^2 / (2 bandwidth^2)): tastes that vary along the graph at one frequency.

    Attributes:
        centre: The eigenvalue that counts most, >= 0.
        bandwidth: How far from it others count, > 0.
        normalised: Whether x are eigenvalues of the normalised Laplacian.
    """

    centre: float
    bandwidth: float
    normalised: bool = False

    def __post_init__(self) -> None:
        _positive("bandwidth", self.bandwidth)
        if self.centre != 0:
            _positive("centre", self.centre, why=" or 0")

    def transfer(self, eigenvalues: Array) -> Array:
        """Returns the Gaussian bump."""
        return np.asarray(np.exp(-0.5 * ((eigenvalues - self.centre) / self.bandwidth) ** 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class HighPass(SpectralKernel):
    """r(x) = x / (x + cutoff): neighbours tend to differ (heterophily).

    A user without neighbours has prior variance 0 under this kernel: nothing can be learned of them.

    Attributes:
        cutoff: Where r reaches a half, > 0.
        normalised: Whether x are eigenvalues of the normalised Laplacian.
    """

    cutoff: float = 1.0
    normalised: bool = False

    def __post_init__(self) -> None:
        _positive("cutoff", self.cutoff)

    def transfer(self, eigenvalues: Array) -> Array:
        """Returns x / (x + cutoff)."""
        return np.asarray(eigenvalues / (eigenvalues + self.cutoff))


@dataclass(frozen=True, slots=True)
class Independent(UserKernel):
    """The identity: every user learns alone."""

    def _matrix(self, graph: UserGraph) -> Array:
        return np.eye(graph.n_users)


@dataclass(frozen=True, slots=True)
class AllOnes(UserKernel):
    """All ones: one pooled learner for everybody."""

    def _matrix(self, graph: UserGraph) -> Array:
        return np.ones((graph.n_users, graph.n_users))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchangeable(UserKernel):
    """share 11' + (1 - share) I: every user is like every other to the same degree, whatever the graph.

    Attributes:
        share: The correlation of two users, from 0 (alone) to 1 (pooled).
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        if not (isinstance(self.share, int | float | np.number) and 0 <= self.share <= 1):
            raise KernelError(f"share is {self.share!r}", "it lies between 0 and 1", "Choose, say, 0.5")

    def _matrix(self, graph: UserGraph) -> Array:
        return np.full((graph.n_users, graph.n_users), self.share) + (1 - self.share) * np.eye(graph.n_users)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectralRBF(UserKernel):
    """exp(-|z_u - z_v|^2 / (2 bandwidth^2)), z the k lowest eigenvectors after the constant one.

    Attributes:
        k: How many eigenvectors embed a user; at most n - 1 are used.
        bandwidth: A positive number, or "median" of the distances between the embedded users.
    """

    k: int = 8
    bandwidth: float | str = "median"
    normalised: bool = False

    def __post_init__(self) -> None:
        _whole("k", self.k)
        if isinstance(self.bandwidth, str):
            if self.bandwidth != "median":
                raise KernelError(
                    f"bandwidth is {self.bandwidth!r}", 'it is a number > 0 or "median"', "Use one of these"
                )
        else:
            _positive("bandwidth", self.bandwidth)

    def _matrix(self, graph: UserGraph) -> Array:
        embedded = self._embedding(graph)
        if embedded.shape[1] == 0:
            return np.ones((graph.n_users, graph.n_users))
        width = _median_spread(embedded) if isinstance(self.bandwidth, str) else self.bandwidth
        return SquaredExponential(width).gram(embedded)

    def _embedding(self, graph: UserGraph) -> Array:
        """Returns one row for each user.

        Eigenvalue 0 comes once for each component, with no basis of its eigenvectors better than another. Their part
        of the distance is the same in all of them, and it is that of the components' indicators: those stand in.
        """
        n_components = graph.n_components
        rest = slice(n_components, n_components + max(self.k - (n_components - 1), 0))
        smooth = graph.spectrum(normalised=self.normalised).vectors[:, rest]
        if n_components == 1:
            return smooth
        member = graph.component_labels[:, None] == np.arange(n_components)
        return np.hstack([member / np.sqrt(member.sum(axis=0)), smooth])


def _median_spread(embedded: Array) -> float:
    """Returns the median distance, of those that are not rounding if most are."""
    distances = pdist(embedded)
    apart = distances[distances > 1e-9 * distances.max(initial=0.0)]
    if len(apart) == 0:
        return 1.0
    return float(np.median(distances if 2 * len(apart) > len(distances) else apart))


class GivenMatrix(UserKernel):
    """Any symmetric positive semi-definite matrix over the users, in the order of `graph.users`; checked.

    Examples:
        >>> GivenMatrix([[1.0, 2.0], [2.0, 1.0]])
        Traceback (most recent call last):
        coterie.errors.KernelMatrixError: the user matrix has the negative eigenvalue -1; ...
    """

    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        self.values = checked_psd(values, None, what="user matrix")

    def _matrix(self, graph: UserGraph) -> Array:
        return checked_psd(self.values, graph.n_users, what="user matrix")
