"""What the learned kernel is made of.

    reward = centre + f(u, x) + noise,   f ~ GP(0, Ku o Kx)
    Ku = graph G + own I + common 11',   G = U diag(g / mean g) U',  g = 1 / (eigenvalue + ridge),
    Kx = (1 - w) SE(lengthscale) + w linear + offset

with eigenvalues and eigenvectors U of the Laplacian: the combinatorial one, or the normalised one where degrees are
uneven (`is_uneven`). G, SE and linear have unit mean diagonal, so that the shares of graph, own and common can be read
off. The offset lets the level of the rewards differ from user to user as their tastes do: a constant that Ku spreads
over users.
"""

from dataclasses import dataclass
from math import exp, sqrt
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.csgraph import connected_components

from coterie.contracts import Array, Index
from coterie.kernels import PoolKernel
from coterie.kernels.arithmetic import squared_distances
from coterie.kernels.user import check_ridge
from coterie.policies.auto.hyper import Hyper

LANCZOS_STEPS, ENOUGH_ENTRIES = 60, 20_000


class Scales(Protocol):
    """The scales of graph and arms, which priors go by."""

    @property
    def mean_degree(self) -> float:
        """The mean of the Laplacian's diagonal."""
        ...

    @property
    def median_distance(self) -> float:
        """The median distance between two arms."""
        ...


class Density(NamedTuple):
    """How the eigenvalues of a Laplacian are spread, as a few of them that stand for all.

    Attributes:
        nodes: The eigenvalues.
        weights: Which share of all each stands for; they sum to 1.
    """

    nodes: Array
    weights: Array

    def gain(self, ridge: float) -> tuple[float, float]:
        """Returns the mean of 1 / (eigenvalue + ridge), and its derivative in the log ridge.

        Examples:
            >>> Density(np.array([0.0, 3.0]), np.array([0.5, 0.5])).gain(1.0)
            (0.625, -0.53125)
        """
        g = 1 / (self.nodes + ridge)
        return float(self.weights @ g), -float(self.weights @ (ridge * g * g))


class SpectrumParts(NamedTuple):
    """Eigenvalues and eigenvectors of a Laplacian.

    Attributes:
        eigenvalues: In rising order.
        eigenvectors: A row for each user that is looked at.
    """

    eigenvalues: Array
    eigenvectors: Array

    @classmethod
    def of(cls, laplacian: Array) -> Self:
        """Returns the spectrum of a Laplacian. O(users^3)."""
        values, vectors = np.linalg.eigh(laplacian)
        return cls(np.maximum(values, 0.0), vectors)

    def at(self, users: Index) -> Self:
        """Returns the same with the rows of these users."""
        return self._replace(eigenvectors=self.eigenvectors[users])


@dataclass(frozen=True, slots=True)
class Parts:
    """One eigendecomposition of a graph and one table of arms serve all hyperparameters.

    Attributes:
        spectrum: Of the Laplacian, or of that of a part of the graph.
        density: How the eigenvalues of the whole graph are spread.
        squared_distance: Between arms.
        products: Of arms, over the mean square of all.
    """

    spectrum: SpectrumParts
    density: Density
    squared_distance: Array
    products: Array

    @classmethod
    def made(cls, spectrum: SpectrumParts, density: Density, features: Array, mean_square: float) -> Self:
        """Returns the parts for some users and the features of some arms; `mean_square` is that of all arms."""
        products = features @ features.T
        products = products / mean_square if mean_square > 0 else products
        return cls(spectrum, density, squared_distances(features), products)

    @property
    def n_users(self) -> int:
        """How many users there are rows for."""
        return len(self.spectrum.eigenvectors)

    def graph_part(self, ridge: float) -> tuple[Array, Array]:
        """Returns G for this log ridge, and the derivative of its spectrum in the log ridge."""
        return graph_part(self.spectrum, self.density, ridge)

    def smooth_part(self, lengthscale: float) -> Array:
        """Returns SE for this log length-scale."""
        return np.asarray(np.exp(self.squared_distance * (-0.5 * exp(-2 * lengthscale))))

    def kernel(self, hyper: Hyper) -> PoolKernel:
        """Returns the joint kernel; raises where a ridge of another graph is nothing beside the edges of this one."""
        check_ridge(exp(hyper.ridge), self.spectrum.eigenvalues)
        user_cov = exp(hyper.graph) * self.graph_part(hyper.ridge)[0] + exp(hyper.common)
        user_cov[np.diag_indices_from(user_cov)] += exp(hyper.own)
        w = hyper.linear_share
        arm_cov = (1 - w) * self.smooth_part(hyper.lengthscale) + w * self.products + exp(hyper.offset)
        return PoolKernel((user_cov + user_cov.T) / 2, (arm_cov + arm_cov.T) / 2)


def graph_part(spectrum: SpectrumParts, density: Density, ridge: float) -> tuple[Array, Array]:
    """Returns G for this log ridge among the users of a spectrum, and the derivative of its eigenvalues in it."""
    values, vectors = spectrum
    g = 1 / (values + exp(ridge))
    slope = -exp(ridge) * g * g
    mean, mean_slope = density.gain(exp(ridge))
    scaled, change = g / mean, slope / mean - (g / mean) * (mean_slope / mean)
    return (vectors * scaled) @ vectors.T, change


def lanczos_density(laplacian: Any, *, seed: int, null: Array | None = None) -> Density:
    """Returns how the eigenvalues of a large sparse Laplacian are spread, by Lanczos quadrature. O(steps x edges).

    The null vectors, one for each component, are counted and kept out; random signs do for the rest: the more users
    there are, the fewer draws it takes.

    Args:
        laplacian: In CSR.
        seed: Fixes the draws.
        null: The entries of the null vectors: all ones, unless given.
    """
    n = laplacian.shape[0]
    n_components, labels = connected_components(laplacian, directed=False)
    null = np.ones(n) if null is None else null
    sizes = np.bincount(labels, null * null)
    draws = max(1, ENOUGH_ENTRIES // n)
    rng = np.random.default_rng([seed, n])
    nodes, weights = [np.zeros(1)], [np.array([n_components / n])]
    for _ in range(draws):
        start = rng.choice([-1.0, 1.0], size=n)
        start -= null * (np.bincount(labels, null * start) / sizes)[labels]
        mass = float(start @ start)
        if mass <= 1e-12 * n:
            continue
        values, shares = _ritz(laplacian, start / sqrt(mass))
        nodes.append(np.maximum(values, 0.0))
        weights.append(shares * ((1 - n_components / n) / draws))
    together = np.concatenate(weights)
    return Density(np.concatenate(nodes), together / together.sum())


def _ritz(matrix: Any, start: Array) -> tuple[Array, Array]:
    """Returns the eigenvalues that a Krylov space sees from a unit vector, and the vector's shares in them."""
    diagonal, beside = [], []
    before, now, size = np.zeros_like(start), start, 0.0
    for _ in range(LANCZOS_STEPS):
        following = matrix @ now - size * before
        diagonal.append(float(now @ following))
        following -= diagonal[-1] * now
        size = float(np.linalg.norm(following))
        if size <= 1e-10 * max(abs(diagonal[0]), 1e-300):
            break
        beside.append(size)
        before, now = now, following / size
    values, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside[: len(diagonal) - 1]))
    return values, vectors[0] ** 2
