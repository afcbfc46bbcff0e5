"""What the learned kernel is made of, and its hyperparameters.

    reward = centre + f(u, x) + noise,   f ~ GP(0, Ku o Kx)
    Ku = graph G + own I + common 11',   G = U diag(g / mean g) U',  g = 1 / (eigenvalue + ridge)
    Kx = (1 - w) SE(lengthscale) + w linear + offset

G, SE and linear have unit mean diagonal, so that the shares of graph, own and common can be read off. The offset lets
the level of the rewards differ from user to user as their tastes do: a constant that Ku spreads over users.
"""

from dataclasses import dataclass
from math import exp
from typing import NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, PoolKernel
from coterie.kernels.arm import median_distance
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


@dataclass(frozen=True, slots=True)
class Parts:
    """One eigendecomposition of the graph and one table of the arms serve all hyperparameters."""

    eigenvalues: Array
    eigenvectors: Array
    squared_distance: Array
    products: Array
    mean_degree: float
    median_distance: float

    @classmethod
    def of(cls, graph: UserGraph, arms: ArmPool) -> "Parts":
        """Returns the parts for a graph and a pool of arms. O(n^3 + m^2 d)."""
        values, vectors = np.linalg.eigh(graph.laplacian().toarray())
        features = arms.features
        products = features @ features.T
        norms = products.diagonal()
        distance = np.maximum(norms[:, None] + norms[None, :] - 2 * products, 0.0)
        np.fill_diagonal(distance, 0.0)
        scale = float(norms.mean())
        return cls(
            np.maximum(values, 0.0),
            vectors,
            distance,
            products / scale if scale > 0 else products,
            float(graph.degrees.mean()),
            median_distance(features),
        )

    def graph_part(self, ridge: float) -> tuple[Array, Array]:
        """Returns G for this log ridge, and the derivative of its spectrum in the log ridge."""
        shifted = self.eigenvalues + exp(ridge)
        g = 1 / shifted
        slope = -exp(ridge) * g * g
        mean = g.mean()
        spectrum, change = g / mean, slope / mean - g * (slope.mean() / mean**2)
        return (self.eigenvectors * spectrum) @ self.eigenvectors.T, change

    def mean_gain(self, ridge: float) -> float:
        """Returns the mean of g for this log ridge: what G is divided by."""
        return float((1 / (self.eigenvalues + exp(ridge))).mean())

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
