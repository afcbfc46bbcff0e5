"""How alike are two users: spectral transfer functions of the Laplacian (Smola and Kondor), and a few others."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from coterie.contracts import Array
from coterie.errors import KernelError
from coterie.graphs import UserGraph
from coterie.kernels.arm import median_distance
from coterie.kernels.joint import checked_psd


def _positive(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise KernelError(
            f"{name} is {value!r}", "it must be a finite number > 0", f"Choose a positive {name}, say 0.1"
        )


class UserKernel(ABC):
    """Anything that turns a graph into a positive semi-definite matrix over its users."""

    @abstractmethod
    def matrix(self, graph: UserGraph) -> Array:
        """Returns the n x n user covariance."""


class SpectralKernel(UserKernel):
    """sum_i r(eigenvalue_i) q_i q_i' over the eigenpairs of the Laplacian; a subclass gives r >= 0. O(n^3)."""

    normalised: bool

    @abstractmethod
    def transfer(self, eigenvalues: Array) -> Array:
        """Returns r at each eigenvalue, all >= 0."""

    def matrix(self, graph: UserGraph) -> Array:
        """Returns the n x n user covariance."""
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

    Examples:
        >>> Green(laplacian_ridge=0.5).matrix(UserGraph.from_edges([("ana", "bo")])).round(3)
        array([[1.2, 0.8],
               [0.8, 1.2]])
    """

    laplacian_ridge: float = 0.1
    power: float = 1.0
    normalised: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.laplacian_ridge) and self.laplacian_ridge > 0):
            raise KernelError(
                f"laplacian_ridge is {self.laplacian_ridge!r}",
                "it must be > 0, because a graph Laplacian is always singular",
                "Choose a positive ridge; the paper uses 0.1",
            )
        _positive("power", self.power)

    def transfer(self, eigenvalues: Array) -> Array:
        """Returns (x + laplacian_ridge)^-power."""
        return np.asarray((eigenvalues + self.laplacian_ridge) ** -self.power)

    def matrix(self, graph: UserGraph) -> Array:
        """Returns the n x n user covariance; power 1 by one Cholesky factorisation instead of eigenvectors."""
        if self.power != 1.0:
            return SpectralKernel.matrix(self, graph)
        precision = graph.regularised_laplacian(self.laplacian_ridge, normalised=self.normalised).toarray()
        inverse = cho_solve(cho_factor(precision), np.eye(graph.n_users))
        return np.asarray((inverse + inverse.T) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat(SpectralKernel):
    """r(x) = exp(-time x): heat that spreads along the edges for this long."""

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
    """

    steps: int = 2
    reach: float = 2.0
    normalised: bool = True

    def __post_init__(self) -> None:
        _positive("reach", self.reach)
        if int(self.steps) != self.steps or self.steps < 1:
            raise KernelError(f"steps is {self.steps!r}", "it must be a whole number >= 1", "Choose, say, 2")

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
    """r(x) = exp(-(x - centre)^2 / (2 bandwidth^2)): tastes that vary along the graph at one frequency."""

    centre: float
    bandwidth: float
    normalised: bool = False

    def __post_init__(self) -> None:
        _positive("bandwidth", self.bandwidth)
        if not (np.isfinite(self.centre) and self.centre >= 0):
            raise KernelError(f"centre is {self.centre!r}", "it must be finite and >= 0", "Choose an eigenvalue's size")

    def transfer(self, eigenvalues: Array) -> Array:
        """Returns the Gaussian bump."""
        return np.asarray(np.exp(-0.5 * ((eigenvalues - self.centre) / self.bandwidth) ** 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class HighPass(SpectralKernel):
    """r(x) = x / (x + cutoff): neighbours tend to differ (heterophily)."""

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

    def matrix(self, graph: UserGraph) -> Array:
        """Returns the n x n identity."""
        return np.eye(graph.n_users)


@dataclass(frozen=True, slots=True)
class AllOnes(UserKernel):
    """All ones: one pooled learner for everybody."""

    def matrix(self, graph: UserGraph) -> Array:
        """Returns the n x n matrix of ones."""
        return np.ones((graph.n_users, graph.n_users))


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
        if int(self.k) != self.k or self.k < 1:
            raise KernelError(f"k is {self.k!r}", "it must be a whole number >= 1", "Choose, say, 8")
        if isinstance(self.bandwidth, str):
            if self.bandwidth != "median":
                raise KernelError(
                    f"bandwidth is {self.bandwidth!r}", 'it is a number > 0 or "median"', "Use one of these"
                )
        else:
            _positive("bandwidth", self.bandwidth)

    def matrix(self, graph: UserGraph) -> Array:
        """Returns the n x n user covariance."""
        embedded = graph.spectrum(normalised=self.normalised).vectors[:, 1 : 1 + self.k]
        if embedded.shape[1] == 0:
            return np.ones((graph.n_users, graph.n_users))
        width = median_distance(embedded) if isinstance(self.bandwidth, str) else self.bandwidth
        squared = np.sum(embedded**2, axis=1)
        distances = np.maximum(squared[:, None] + squared - 2 * embedded @ embedded.T, 0.0)
        np.fill_diagonal(distances, 0.0)
        return np.asarray(np.exp(-distances / (2 * width**2)))


class GivenMatrix(UserKernel):
    """Any symmetric positive semi-definite matrix over the users, in the order of `graph.users`; checked.

    Examples:
        >>> GivenMatrix([[1.0, 2.0], [2.0, 1.0]])
        Traceback (most recent call last):
        coterie.errors.KernelError: the user matrix has the negative eigenvalue -1; ...
    """

    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        self.values = checked_psd(values, None, what="user matrix")

    def matrix(self, graph: UserGraph) -> Array:
        """Returns the matrix, once it fits the graph."""
        return checked_psd(self.values, graph.n_users, what="user matrix")
