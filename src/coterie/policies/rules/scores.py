"""A score orders the candidates: pure functions of a belief, a width and the decision's own draws."""

from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np

from coterie.contracts import Array, Belief
from coterie.policies.rules.draws import Draws

ROUNDING = 1e-13  # scores this close, beside the highest, are tied


class Score(Protocol):
    """Anything that gives each candidate a number, the highest to be chosen."""

    def __call__(
        self,
        mean: Array,
        std: Array,
        width: float | Array,
        *,
        model: Belief,
        user: int,
        arms: Any,
        draws: Draws,
        number: int,
    ) -> Array:
        """Returns one score for each candidate; the width is a number, or one for each."""
        ...


def ucb(mean: Array, std: Array, width: float | Array, **_: object) -> Array:
    """Returns mean + width * std (equation 6 of the paper).

    Examples:
        >>> ucb(np.array([0.0, 1.0]), np.array([2.0, 0.5]), 1.0)
        array([2. , 1.5])
    """
    return mean + width * std


def widening_ucb(mean: Array, std: Array, width: float | Array, *, model: Belief, **_: object) -> Array:
    """Returns mean + width * sqrt(log(t + 1)) * std in round t.

    Examples:
        >>> from types import SimpleNamespace
        >>> widening_ucb(np.zeros(1), np.ones(1), 1.0, model=SimpleNamespace(n_observations=53)).round(6)
        array([2.001832])
    """
    return mean + width * sqrt(log(model.n_observations + 2)) * std


def greedy(mean: Array, std: Array, width: float | Array, **_: object) -> Array:  # noqa: ARG001 - one signature for all scores
    """Returns the mean."""
    return mean


def thompson(mean: Array, std: Array, width: float | Array, *, draws: Draws, number: int, **_: object) -> Array:
    """Returns mean + width * std * z, with z drawn for each candidate on its own (equation 7 of the paper)."""
    return mean + width * std * draws.normals(number, len(mean))


def uniform(mean: Array, std: Array, width: float | Array, *, draws: Draws, number: int, **_: object) -> Array:  # noqa: ARG001 - one signature for all scores
    """Returns random numbers: every candidate is as likely as the others."""
    return draws.normals(number, len(mean))


def epsilon_greedy(mean: Array, std: Array, width: float | Array, *, draws: Draws, number: int, **_: object) -> Array:  # noqa: ARG001 - one signature for all scores
    """Returns the mean, or with probability `width` random numbers."""
    normals = draws.normals(number, len(mean) + 1)
    explore = NormalDist().cdf(float(normals[-1])) < np.max(width)
    return normals[:-1] if explore else mean


@dataclass(frozen=True, slots=True)
class InNoiseUnits:
    """The same score with std measured in units of the noise's, as the linear methods do.

    Examples:
        >>> from types import SimpleNamespace
        >>> InNoiseUnits(ucb)(np.zeros(1), np.ones(1), 1.0, model=SimpleNamespace(noise_var=4.0))
        array([0.5])
    """

    score: Score

    def __call__(self, mean: Array, std: Array, width: float | Array, **rest: Any) -> Array:
        """Returns one score for each candidate."""
        return self.score(mean, std, width / sqrt(rest["model"].noise_var), **rest)


def joint_thompson(
    mean: Array,
    std: Array,  # noqa: ARG001 - one signature for all scores
    width: float | Array,
    *,
    model: Belief,
    user: int,
    arms: Any,
    draws: Draws,
    number: int,
) -> Array:
    """Returns mean + width * a joint draw of the candidates from the posterior.

    The symmetric square root is used: unlike a Cholesky factor it exists for a singular covariance, and unlike
    eigenvectors it has no signs to choose, so every exact engine gives the same draw. Eigenvalues that are rounding
    count as zero, or their roots would be a million times larger than what engines differ by.
    """
    values, vectors = np.linalg.eigh(model.covariance(user, arms))
    rounding = 1e-12 * float(model.prior_std(user, arms).max()) ** 2
    root = (vectors * np.sqrt(np.where(values > rounding, values, 0.0))) @ vectors.T
    return np.asarray(mean + width * (root @ draws.normals(number, len(mean))))
