"""What the learned kernel is made of, and its hyperparameters.

    reward = centre + f(u, x) + noise,   f ~ GP(0, Ku o Kx)
    Ku = graph G + own I + common 11',   G = U diag(g / mean g) U',  g = 1 / (eigenvalue + ridge),
    Kx = (1 - w) SE(lengthscale) + w linear + offset

with eigenvalues and eigenvectors U of the Laplacian: the combinatorial one, or the normalised one where degrees are
uneven (`is_uneven`). G, SE and linear have unit mean diagonal, so that the shares of graph, own and common can be read
off. The offset lets the level of the rewards differ from user to user as their tastes do: a constant that Ku spreads
over users.
"""

from dataclasses import dataclass
from math import exp
from typing import Any, NamedTuple, Protocol

import numpy as np

from coterie.contracts import Array
from coterie.kernels import PoolKernel
from coterie.kernels.arithmetic import squared_distances
from coterie.kernels.user import check_ridge


class Hyper(NamedTuple):
    """The hyperparameters on the scale they are learned on: logarithms, and a logit for the linear share.

    Attributes:
        graph: Log variance of the part that follows the graph.
        own: Log variance of the part that is each user's own.
        common: Log variance of the part that all users have in common.
        ridge: Log of the graph part's Laplacian ridge.
        lengthscale: Log length-scale.
        linear: Logit of the share of the linear arm kernel.
        offset: Log variance of the users' levels, in units of the arm kernel.
        noise: Log noise variance.
    """

    graph: float
    own: float
    common: float
    ridge: float
    lengthscale: float
    linear: float
    offset: float
    noise: float

    @property
    def noise_var(self) -> float:
        """The noise variance."""
        return exp(self.noise)

    @property
    def linear_share(self) -> float:
        """The share of the linear arm kernel, between 0 and 1."""
        return 1 / (1 + exp(-self.linear))

    def shares(self) -> dict[str, float]:
        """Returns which part of the users' variance follows the graph, is their own, and common to all."""
        parts = {"graph": exp(self.graph), "own": exp(self.own), "common": exp(self.common)}
        return {name: value / sum(parts.values()) for name, value in parts.items()}


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


@dataclass(frozen=True, slots=True)
class Parts:
    """One eigendecomposition of the graph and one table of the arms serve all hyperparameters.

    The eigenvectors may have rows for some of the users only. Where the graph itself is a part of a larger one,
    `density` is that of all.

    Attributes:
        eigenvalues: Of the Laplacian.
        eigenvectors: A row for each user.
        squared_distance: Between arms.
        products: Of arms, over their mean square.
        mean_degree: The mean of the Laplacian's diagonal.
        median_distance: Between arms.
        density: How the eigenvalues of the whole graph are spread, where this is a part of it.
        normalised: Whether the Laplacian is the normalised one.
    """

    eigenvalues: Array
    eigenvectors: Array
    squared_distance: Array
    products: Array
    mean_degree: float
    median_distance: float
    density: Density | None = None
    normalised: bool = False

    @classmethod
    def made(cls, laplacian: Array, features: Array, *, mean_square: float | None = None, **rest: Any) -> "Parts":
        """Returns the parts for a Laplacian and arms' features; `mean_square` is that of all arms."""
        values, vectors = np.linalg.eigh(laplacian)
        products = features @ features.T
        scale = float(products.diagonal().mean()) if mean_square is None else mean_square
        products = products / scale if scale > 0 else products
        return cls(np.maximum(values, 0.0), vectors, squared_distances(features), products, **rest)

    @property
    def n_users(self) -> int:
        """How many users there are rows for."""
        return len(self.eigenvectors)

    def graph_part(self, ridge: float) -> tuple[Array, Array]:
        """Returns G for this log ridge, and the derivative of its spectrum in the log ridge."""
        g = 1 / (self.eigenvalues + exp(ridge))
        slope = -exp(ridge) * g * g
        mean, mean_slope = (g.mean(), slope.mean()) if self.density is None else self.density.gain(exp(ridge))
        spectrum, change = g / mean, slope / mean - (g / mean) * (mean_slope / mean)
        return (self.eigenvectors * spectrum) @ self.eigenvectors.T, change

    def smooth_part(self, lengthscale: float) -> Array:
        """Returns SE for this log length-scale."""
        return np.asarray(np.exp(self.squared_distance * (-0.5 * exp(-2 * lengthscale))))

    def kernel(self, hyper: Hyper) -> PoolKernel:
        """Returns the joint kernel; raises where a ridge of another graph is nothing beside the edges of this one."""
        check_ridge(exp(hyper.ridge), self.eigenvalues)
        user_cov = exp(hyper.graph) * self.graph_part(hyper.ridge)[0] + exp(hyper.common)
        user_cov[np.diag_indices_from(user_cov)] += exp(hyper.own)
        w = hyper.linear_share
        arm_cov = (1 - w) * self.smooth_part(hyper.lengthscale) + w * self.products + exp(hyper.offset)
        return PoolKernel((user_cov + user_cov.T) / 2, (arm_cov + arm_cov.T) / 2)
