"""Learned kernels on graphs that are too large for a matrix over their users: fits look at some neighbourhoods.

A fit needs the covariance of the users whose rewards it looks at. These are drawn so that neighbours come together; the
Laplacian among them is that of the whole graph, what lies one step beyond them eliminated and what lies farther held at
zero. The scale of the graph part, mean g, is that of the whole graph, by Lanczos quadrature.
"""

from collections.abc import Mapping
from functools import cached_property
from math import exp, sqrt
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.graphs import UserGraph
from coterie.kernels import ArmKernel, ArmPool, Linear, SquaredExponential
from coterie.kernels.arm import median_distance
from coterie.kernels.graph import FEATURE_ERROR, MAX_FEATURES, GraphKernel, arm_features
from coterie.models import History
from coterie.policies.auto.evidence import Evidence
from coterie.policies.auto.lengthscales import shortest_lengthscale
from coterie.policies.auto.levels import is_uneven
from coterie.policies.auto.parts import Density, Hyper, Parts
from coterie.policies.auto.sampling import WHOLE, Index, Sample, draw_sample, neighbourhood_laplacian
from coterie.policies.auto.spectra import lanczos_density

# Below so many users x ridge, what all users have in common is more than a hundredth of what the graph part varies by:
# that is for the common part to say, and solves on the graph would take long over it.
LEAST_SPREAD = 100
FEW = 500  # users up to whom everything is as on exact engines
TRACE = 1e-4
SOME_FEATURES = 32  # of an arm, or as many as it comes with: more would say little of users who hardly come again


class Neighbourhoods:
    """What the kernel of `auto` is made of on a graph of any size; the kernel is a `GraphKernel`.

    Args:
        graph: The users.
        arms: The pool.
        seed: Fixes which users fits look at.
        features: How many features arms may have and how much they may miss, as `graph_kernel` takes it.
        normalised: Whether the Laplacian is the normalised one; None for what the degrees call for.
    """

    def __init__(
        self,
        graph: UserGraph,
        arms: ArmPool,
        *,
        seed: int = 0,
        features: Mapping[str, Any] | None = None,
        normalised: bool | None = None,
    ) -> None:
        self.graph, self._arms, self._seed = graph, arms, seed
        self.normalised = is_uneven(graph.degrees) if normalised is None else normalised
        self.dimension = arms.dimension
        self._last: tuple[Any, tuple[Array, float]] | None = None
        most = max(SOME_FEATURES, min(arms.dimension + 1, MAX_FEATURES)) if graph.n_users > FEW else MAX_FEATURES
        self._features = {"feature_error": FEATURE_ERROR, "max_features": most} | dict(features or {})
        self.mean_degree = float(np.mean(graph.degrees > 0 if self.normalised else graph.degrees))
        self.least_ridge = LEAST_SPREAD / graph.n_users if graph.n_users > FEW else 0.0
        self.median_distance = median_distance(arms.features)
        self._mean_square = float(np.einsum("ij,ij->i", arms.features, arms.features).mean())
        self.shortest = shortest_lengthscale(arms.features, self.median_distance, self._features["max_features"])

    def on(self, graph: UserGraph, *, normalised: bool | None = None) -> "Neighbourhoods":
        """Returns the same for another graph; the Laplacian stays of the same kind, unless another is named."""
        kind = self.normalised if normalised is None else normalised
        return Neighbourhoods(graph, self._arms, seed=self._seed, features=self._features, normalised=kind)

    @cached_property
    def density(self) -> Density:
        """How the Laplacian's eigenvalues are spread."""
        if self._whole is not None:
            n = len(self._whole.eigenvalues)
            return Density(self._whole.eigenvalues, np.full(n, 1 / n))
        degrees = self.graph.degrees
        null = np.sqrt(np.where(degrees > 0, degrees, 1.0)) if self.normalised else None
        return lanczos_density(self.graph.laplacian(normalised=self.normalised), seed=self._seed, null=null)

    @cached_property
    def _whole(self) -> Parts | None:
        """The parts of the whole graph, where it is small, without arms."""
        if self.graph.n_users > WHOLE:
            return None
        laplacian = self.graph.laplacian(normalised=self.normalised).toarray()
        return self._parts(laplacian, np.zeros((1, self._arms.dimension)), density=None)

    def mean_gain(self, ridge: float) -> float:
        """Returns the mean of g for this log ridge: what G is divided by."""
        return self.density.gain(exp(ridge))[0]

    def scale(self, hyper: Hyper) -> float:
        """Returns what (L + ridge I)^-1 is multiplied by: a trace of it where the graph has no part in the kernel."""
        least = TRACE * (exp(hyper.own) + exp(hyper.common))
        return max(exp(hyper.graph), least) / self.mean_gain(hyper.ridge)

    def evidence(self, history: History, t: int, shift: float = 0.0) -> Evidence:
        """Returns the evidence of rewards, less a number, of some neighbourhoods, drawn anew for each number t."""
        rng = np.random.default_rng([self._seed, t])
        return self.sampled_evidence(history, draw_sample(self.graph, history, rng), shift)

    def sampled_evidence(self, history: History, sample: Sample, shift: float = 0.0) -> Evidence:
        """Returns the evidence of the rewards of a sample, less a number."""
        arms, columns = np.unique(history.arm_array()[sample.rows], return_inverse=True)
        features = self._arms.features[arms]
        if self._whole is not None:
            parts = self._parts_like(self._whole, sample.users, features)
        else:
            laplacian = neighbourhood_laplacian(self.graph, sample.users, normalised=self.normalised)
            parts = self._parts(laplacian, features, density=self.density)
        return Evidence(parts, _renumbered(history, sample, columns, shift))

    def kernel(self, hyper: Hyper) -> GraphKernel:
        """Returns the joint kernel: the graph part has weight 1, its scale is in the features."""
        return GraphKernel(self.graph, **self.settings(hyper))

    def settings(self, hyper: Hyper, scale: float | None = None) -> dict[str, Any]:
        """Returns what the kernel is made with on the graph, by name, with this scale of the graph part if given."""
        scale = self.scale(hyper) if scale is None else scale
        features, lost = self._arm_features(hyper)
        level = np.full((len(features), 1), exp(hyper.offset / 2))
        return {
            "features": sqrt(scale) * np.hstack([features, level]),
            "laplacian_ridge": exp(hyper.ridge),
            "normalised": self.normalised,
            "feature_error": lost,
            "own": exp(hyper.own) / scale,
            "common": exp(hyper.common) / scale,
        }

    def noise_var(self, hyper: Hyper) -> float:
        """Returns the noise variance, and what the features miss of an arm's variance on average, noise to them."""
        features, _ = self._arm_features(hyper)
        whole = self._arm_kernel(hyper).diag(self._arms.features)
        missed = float(np.mean(np.maximum(whole - np.einsum("ij,ij->i", features, features), 0.0)))
        return hyper.noise_var + missed * (exp(hyper.graph) + exp(hyper.own) + exp(hyper.common))

    def _arm_kernel(self, hyper: Hyper) -> ArmKernel:
        w = hyper.linear_share
        smooth = (1 - w) * SquaredExponential(exp(hyper.lengthscale))
        return smooth + (w / self._mean_square) * Linear() if self._mean_square > 0 else smooth

    def _arm_features(self, hyper: Hyper) -> tuple[Array, float]:
        """Returns the arms' features but for the level, and what they miss; the last ones are remembered."""
        asked, last = (hyper.lengthscale, hyper.linear), self._last  # read once: a fit may go on in a thread
        if last is None or last[0] != asked:
            self._last = last = asked, arm_features(self._arm_kernel(hyper), self._arms, **self._features)
        return last[1]

    def _parts(self, laplacian: Array, features: Array, *, density: Density | None) -> Parts:
        return Parts.made(
            laplacian,
            features,
            mean_square=self._mean_square,
            mean_degree=self.mean_degree,
            median_distance=self.median_distance,
            density=density,
            normalised=self.normalised,
        )

    def _parts_like(self, whole: Parts, users: Index, features: Array) -> Parts:
        """Returns the parts of the whole graph for some of its users, with other arms."""
        arms = self._parts(np.zeros((1, 1)), features, density=None)
        return Parts(
            whole.eigenvalues,
            whole.eigenvectors[users],
            arms.squared_distance,
            arms.products,
            self.mean_degree,
            self.median_distance,
            normalised=self.normalised,
        )


def _renumbered(history: History, sample: Sample, columns: Index, shift: float) -> History:
    """Returns the rows of a sample, their rewards less a number, as a history of its own numbers of users and arms."""
    out = History()
    taken = sample.rows.tolist()
    for place, column, row in zip(sample.places.tolist(), columns.tolist(), taken, strict=True):
        out.add((place, column), place, column, history.means[row] - shift, weight=history.counts[row])
        out.scatters[-1] = history.scatters[row]
    return out
