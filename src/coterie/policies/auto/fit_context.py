"""What the kernel of `auto` is made of on a graph and a pool of any size, and the evidence of a sample of the rewards.

A fit needs the covariance of the users whose rewards it looks at. These are drawn so that neighbours come together. It
is computed on the whole graph where that is small, and else on the users around them, what lies one step beyond those
eliminated and what lies farther held at zero. The scale of the graph part, mean g, is that of the whole graph, by
Lanczos quadrature.
"""

from collections.abc import Hashable, Mapping
from copy import copy
from functools import cached_property
from math import exp
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import lapack

from coterie.algebra import mirror
from coterie.algebra.giving_way import rest
from coterie.contracts import Array, Index
from coterie.errors import FactorisationError
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, JointKernel, PoolKernel
from coterie.kernels.additive import AdditiveKernel, EvaluatedPool, UserParts
from coterie.kernels.arm import median_distance
from coterie.kernels.user import check_ridge
from coterie.models import History
from coterie.policies.auto.arm_kernel import SmoothAndLinear, standardised
from coterie.policies.auto.evidence import Evidence, share_of
from coterie.policies.auto.parts import Density, Parts, SpectrumParts, lanczos_density
from coterie.policies.auto.prior import Prior
from coterie.policies.auto.sampling import (
    WHOLE,
    PairSample,
    draw_samples,
    neighbourhood_laplacian,
    surroundings,
)
from coterie.policies.auto.statistics import centre_and_variance

MOST_USERS = 2_000  # of whom a covariance matrix is made; beyond, only among those near one another
MOST_ARMS = 1_000  # of which a covariance matrix is made
UNEVEN = 0.75  # the spread of degrees over their mean, from which on the Laplacian is normalised


class FitContext:
    """What the kernel of `auto` is made of, on a graph and a pool of any size.

    Args:
        graph: The users.
        arms: The pool; its features are standardised.
        seed: Fixes which users fits look at.
        normalised: Whether the Laplacian is the normalised one; None for what the degrees call for.
        matrices: Whether kernels have matrices over users and arms whatever their number.
        features: What the arm kernel sees of the arms; the pool's features, standardised, unless given.

    Attributes:
        climb: How `fit` climbs the evidence, where not as by default.
    """

    climb: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        graph: UserGraph,
        arms: ArmPool,
        *,
        seed: int = 0,
        normalised: bool | None = None,
        matrices: bool = False,
        features: Array | None = None,
    ) -> None:
        self.graph, self._arms, self._seed, self._matrices = graph, arms, seed, matrices
        self.normalised = is_uneven(graph.degrees) if normalised is None else normalised
        self.features = standardised(arms.features) if features is None else features
        self.mean_degree = mean_of_diagonal(graph, normalised=self.normalised)
        self._mean_square = float(np.einsum("ij,ij->i", self.features, self.features).mean())
        self._last_green: tuple[float, Array] | None = None
        self._last_users: tuple[UserParts, Array] | None = None
        self._last_arms: tuple[SmoothAndLinear, Array] | None = None

    def on(self, graph: UserGraph, *, normalised: bool | None = None) -> Self:
        """Returns the same for another graph; the Laplacian stays of the same kind, unless another is named."""
        out = copy(self)
        for name in ("density", "_spectrum", "parts"):
            out.__dict__.pop(name, None)
        out.graph, out.normalised = graph, self.normalised if normalised is None else normalised
        out.mean_degree = mean_of_diagonal(graph, normalised=out.normalised)
        out._last_green = out._last_users = None
        return out

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return len(self.features)

    def key(self, user: int, arm: Any) -> Hashable:
        """Returns a pair's number."""
        return user * len(self.features) + arm  # type: ignore[no-any-return]

    def prior(self, variance: float, noise_share: float | None = None) -> Prior[Any]:
        """Returns the prior of the hyperparameters, for rewards of this variance of which so much is noise."""
        return Prior.of(self, variance, noise_share=noise_share)

    def level_prior(self, history: History) -> tuple[float, float]:
        """Returns mean and variance of the level before evidence: it varies about the rewards' mean as they do."""
        return centre_and_variance(history)

    def rescaled(self, history: History) -> Self:  # noqa: ARG002 - features of a pool stay as they are
        """Returns the same with features in units of the spread that they have in a history."""
        return self

    def scales(self) -> dict[str, Any]:
        """Returns what features are measured from and in, as far as that is learned, for `with_scales`."""
        return {}

    def with_scales(self, scales: Mapping[str, Any]) -> Self:  # noqa: ARG002 - features of a pool stay as they are
        """Returns the same with features measured as another one did."""
        return self

    @cached_property
    def median_distance(self) -> float:
        """The median distance of two arms. O(arms^2) once."""
        return median_distance(self.features)

    @cached_property
    def parts(self) -> Parts:
        """The parts of the whole graph and all arms. O(users^3 + arms^2)."""
        return self._parts(self._spectrum, self.features)

    @cached_property
    def density(self) -> Density:
        """How the Laplacian's eigenvalues are spread."""
        if self.graph.n_users <= WHOLE:
            values = self._spectrum.eigenvalues
            return Density(values, np.full(len(values), 1 / len(values)))
        degrees = self.graph.degrees
        null = np.sqrt(np.where(degrees > 0, degrees, 1.0)) if self.normalised else None
        return lanczos_density(self.graph.laplacian(normalised=self.normalised), seed=self._seed, null=null)

    @cached_property
    def _spectrum(self) -> SpectrumParts:
        """Eigenvalues and eigenvectors of the whole graph. O(users^3)."""
        return SpectrumParts.of(self.graph.laplacian(normalised=self.normalised).toarray())

    def mean_gain(self, ridge: float) -> float:
        """Returns the mean of g for this log ridge: what G is divided by."""
        return self.density.gain(exp(ridge))[0]

    def scale(self, hyper: Any) -> float:
        """Returns what (L + ridge I)^-1 is multiplied by."""
        return exp(hyper.graph) / self.mean_gain(hyper.ridge)

    def evidences(self, history: History, t: int, shift: float = 0.0, *, level_var: float = 0.0) -> list[Evidence]:
        """Returns the evidence of rewards, less a number, of some samples of users, which t and the seed fix."""
        samples = draw_samples(self.graph, history, np.random.default_rng([self._seed, t]))
        out = []
        for each in samples:
            rest()
            out.append(self.sampled_evidence(history, each, shift, level_var=level_var))
        return out

    def sampled_evidence(
        self, history: History, sample: PairSample, shift: float = 0.0, *, level_var: float = 0.0
    ) -> Evidence:
        """Returns the evidence of the rewards of a sample, less a number; the level varies by `level_var` about it."""
        arms, columns = np.unique(history.arm_array()[sample.rows], return_inverse=True)
        spectrum = self._spectrum_of(sample, len(history))
        parts, seen = self._parts(spectrum, self.features[arms]), renumbered(history, sample, columns, shift)
        return Evidence(parts, seen, level_var=level_var)

    def _spectrum_of(self, sample: PairSample, n_rows: int) -> SpectrumParts:
        """Returns the spectrum of the graph, or of the part of it around a sample, at the users of the sample."""
        around = surroundings(self.graph, sample.users, n_rows)
        if around is None:
            return self._spectrum.at(sample.users)
        laplacian = neighbourhood_laplacian(self.graph, around, normalised=self.normalised)
        return SpectrumParts.of(laplacian).at(np.arange(len(sample.users)))

    def kernel(self, hyper: Any, scale: float | None = None) -> JointKernel:
        """Returns the joint kernel, with this scale of the graph part if given; matrices only where they are small.

        Users have unit variance and arms that of all, so that the matrix of the users stays the same while the first
        rewards tell only how large rewards are.

        Raises where the ridge, learned on another graph perhaps, is nothing beside the edges of this one.
        """
        parts, variance = self._user_parts(hyper, scale), hyper.variance
        w, slope = hyper.linear_share, 1 / self._mean_square if self._mean_square > 0 else 0.0
        unit = SmoothAndLinear(exp(hyper.lengthscale), 1 - w, w * slope, exp(hyper.offset))
        if self.graph.n_users > MOST_USERS and not self._matrices:
            return AdditiveKernel(self.graph, parts, unit.times(variance), self.features)
        users = self._user_cov(parts)
        if len(self.features) > MOST_ARMS and not self._matrices:
            return EvaluatedPool(users, unit.times(variance), self.features)
        return PoolKernel(users, variance * self._arm_cov(unit))

    def _user_parts(self, hyper: Any, scale: float | None) -> UserParts:
        """Returns what the users' covariance is made of, in units of their variance; raises as `kernel` does."""
        check_ridge(exp(hyper.ridge), np.ones(1) if self.normalised else self.graph.degrees)
        scale, variance = self.scale(hyper) if scale is None else scale, hyper.variance
        graph, own, common = (rounded(each / variance) for each in (scale, exp(hyper.own), exp(hyper.common)))
        return UserParts(graph, exp(hyper.ridge), own, common, self.normalised)

    def _user_cov(self, parts: UserParts) -> Array:
        """Returns the covariance of all users. O(users^2) beside `_green`, or nothing for the last parts."""
        last = self._last_users  # read once: a fit may go on in a thread
        if last is None or last[0] != parts:
            cov = parts.scale * self._green(parts.ridge)
            cov += parts.common
            cov[np.diag_indices_from(cov)] += parts.own
            self._last_users = last = parts, cov
        return last[1]

    def _arm_cov(self, arms: SmoothAndLinear) -> Array:
        """Returns the covariance of all arms. O(arms^2), or nothing for the kernel of the last time."""
        last = self._last_arms  # read once: a fit may go on in a thread
        if last is None or last[0] != arms:
            self._last_arms = last = arms, arms._gram(self.features)
        return last[1]

    def _green(self, ridge: float) -> Array:
        """Returns (L + ridge I)^-1. O(users^3), or nothing for the last ridge."""
        last = self._last_green  # read once: a fit may go on in a thread
        if last is None or last[0] != ridge:
            self._last_green = last = ridge, self._inverse(ridge)
        return last[1]

    def _inverse(self, ridge: float) -> Array:
        precision = self.graph.laplacian(normalised=self.normalised).toarray()
        precision[np.diag_indices_from(precision)] += ridge
        factor, failed = lapack.dpotrf(precision.T, lower=1, overwrite_a=1)
        if failed:
            raise FactorisationError(
                f"a ridge of {ridge:.3g} drowns beside the edges", "L + ridge I has a factor", "Fit again later"
            )
        return mirror(lapack.dpotri(factor, lower=1, overwrite_c=1)[0]).T  # symmetric: in the order of rows

    def _parts(self, spectrum: SpectrumParts, features: Array) -> Parts:
        return Parts.made(spectrum, self.density, features, self._mean_square)


def is_uneven(degrees: Array) -> bool:
    """Returns whether degrees spread by more than three quarters of their mean: the Laplacian is then normalised.

    Under the combinatorial Laplacian the prior variance of a user is about 1 / (degree + ridge). Where a few have a
    hundred friends and many have two, as on social graphs, that of the many is fifty times that of the few. Rewards do
    not bear that out: on Last.fm evidence would rather do without the graph. Under the normalised Laplacian variances
    are about alike. Where degrees hardly differ the two are the same but for a factor.

    Examples:
        >>> is_uneven(np.array([2.0, 3.0, 4.0])), is_uneven(np.array([1.0, 1.0, 1.0, 9.0]))
        (False, True)
    """
    return bool(np.std(degrees) > UNEVEN * np.mean(degrees))


def mean_of_diagonal(graph: UserGraph, *, normalised: bool) -> float:
    """Returns the mean of the Laplacian's diagonal."""
    return float(np.mean(graph.degrees > 0 if normalised else graph.degrees))


def renumbered(history: History, sample: PairSample, columns: Index, shift: float) -> History:
    """Returns the rows of a sample, their rewards less a number, as a history of its own numbers of users and arms."""
    out = History()
    taken = sample.rows.tolist()
    for place, column, row in zip(sample.places.tolist(), columns.tolist(), taken, strict=True):
        out.add((place, column), place, column, history.means[row] - shift, weight=history.counts[row])
        out.scatters[-1] = history.scatters[row]
    out.spare = history.spare * share_of(history, sample.rows)
    return out


def rounded(number: float) -> float:
    """Returns it to twelve digits, so that the same shares of two variances are the same numbers."""
    return float(f"{number:.11e}")
