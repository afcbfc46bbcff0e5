"""How well hyperparameters explain the rewards: log evidence of the observed pairs, with its gradient."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import exp, log, pi
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import blas, lapack

from coterie.contracts import Array, Index
from coterie.models import History
from coterie.policies.auto.hyper import Hyper
from coterie.policies.auto.parts import Parts

LOG_2PI = log(2 * pi)


class Explaining(Protocol):
    """Anything that says how well hyperparameters explain the rewards."""

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Returns the log evidence and its gradient."""
        ...


class Evidence:
    """Log p(rewards) of a collapsed history as a function of the hyperparameters. O(k^3) for k distinct pairs.

    With M = Ku o Kx on the pairs + diag(noise / count), a = M^-1 (means - level) and W = M^-1 - a a', sums of W o Kx
    over the pairs of two users, and of W o Ku o the derivative of Kx over all pairs, give every derivative.

    The level is the prior mean of all rewards. The mean of the rewards is no estimate of it: whoever chooses well sees
    more than the average arm pays. Its most likely value is that of generalised least squares,
    1' M^-1 means / (1' M^-1 1 + 1 / level_var), and since it maximises evidence, the gradient is that at a fixed level.

    Args:
        parts: What the kernel is made of.
        history: The rewards.
        rows: Which of its rows; all, unless given.
        level_var: The prior variance of the level about 0; 0 for a level of 0.
    """

    def __init__(self, parts: Parts, history: History, *, rows: Index | None = None, level_var: float = 0.0) -> None:
        keep = np.arange(len(history)) if rows is None else rows
        order = keep[np.argsort(history.user_array()[keep], kind="stable")]
        self._take_rows(parts, history, order, level_var)
        self._arms = history.arm_array()[order]

    def _take_rows(self, parts: Any, history: History, order: Index, level_var: float) -> None:
        """Takes rows of a history, those of a user one after another."""
        self.parts, self.level_var = parts, level_var
        self._users = history.user_array()[order]
        self._means, self._counts = history.mean_array()[order], history.count_array()[order]
        self._scatters = np.array(history.scatters)[order]
        self._spare = history.spare * share_of(history, order)
        self._repeats = float(self._counts.sum()) - len(order) + self._spare
        self._by_user = _Blocks(self._users)

    # What follows is made when it is first used, so that evidence on its way to another process is small.

    @cached_property
    def _room(self) -> Array:
        """Room for three matrices on pairs, used again and again: fresh pages cost as much as the work."""
        return np.empty((3, len(self._users), len(self._users)))

    @cached_property
    def _user_places(self) -> Index:
        return np.asarray((self._users[:, None] * self.parts.n_users + self._users).ravel())

    @cached_property
    def _arm_places(self) -> Index:
        return np.asarray((self._arms[:, None] * len(self.parts.products) + self._arms).ravel())

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Returns the log evidence and its gradient; minus infinity where the matrix cannot be factored."""
        h = self._hyper(point)
        shared, noise = self._covariances(h), h.noise_var / self._counts
        half, log_det = _half_inverse(self._on_pairs(shared), noise)
        if half is None:
            return -np.inf, np.zeros(len(point))
        level, weights = self._levelled(half)
        value = (self._means - level) @ weights + log_det + self._within_pairs(np.full(len(self._means), h.noise_var))
        value += level * level / self.level_var if self.level_var else 0.0
        return -0.5 * float(value), -0.5 * self._gradient(h, shared, _less_product(half, weights), noise)

    def _hyper(self, point: Array) -> Any:
        """Returns the hyperparameters at a point."""
        return Hyper(*point)

    def _gradient(self, h: Any, shared: Any, half: Array, noise: Array) -> Array:
        """Returns the gradient of -2 log evidence, with H + H' = W; the room of the pairs' covariances is used up."""
        parts, (on_users, on_arms, _) = self.parts, self._room
        _, _, graph, change, smooth = shared
        n_users, w = parts.n_users, h.linear_share
        users = both_halves(self._by_user.sums(np.multiply(half, on_arms, out=on_arms), n_users))
        on_users *= half
        vectors = parts.spectrum.eigenvectors
        turned = np.einsum("ij,ij->j", vectors, users @ vectors)
        return np.array(
            [
                exp(h.graph) * float(np.vdot(users, graph)),
                exp(h.own) * float(users.trace()),
                exp(h.common) * float(users.sum()),
                exp(h.graph) * float(turned @ change),
                2 * (1 - w) * exp(-2 * h.lengthscale) * self._sum(on_users, smooth * parts.squared_distance, on_arms),
                2 * w * (1 - w) * self._sum(on_users, parts.products - smooth, on_arms),
                2 * exp(h.offset) * float(on_users.sum()),
                2 * float(half.diagonal() @ noise) + self._repeats - float(self._scatters.sum()) / h.noise_var,
            ]
        )

    def level_information(self, hyper: Any) -> tuple[float, float]:
        """Returns 1' M^-1 means and 1' M^-1 1: what the rewards say of the level."""
        half, _ = _half_inverse(self._on_pairs(self._covariances(hyper)), hyper.noise_var / self._counts)
        if half is None:
            return 0.0, 0.0
        ones = _times(half, np.ones(len(self._means)))
        return float(ones @ self._means), float(ones.sum())

    def _levelled(self, half: Array) -> tuple[float, Array]:
        """Returns the level, and M^-1 (means - level)."""
        weights = _times(half, self._means)
        if not self.level_var:
            return 0.0, weights
        ones = _times(half, np.ones(len(self._means)))
        level = float(weights.sum() / (ones.sum() + 1 / self.level_var))
        return level, weights - level * ones

    def _sum(self, on_pairs: Array, on_arms: Array, room: Array) -> float:
        """Returns the sum over all pairs of a matrix on pairs times one on arms."""
        on_arms.take(self._arm_places, out=room.reshape(-1), mode="clip")
        return float(np.vdot(on_pairs, room))

    def _covariances(self, h: Any) -> Any:
        """Returns what users and arms covary by."""
        graph, change = self.parts.graph_part(h.ridge)
        smooth, w = self.parts.smooth_part(h.lengthscale), h.linear_share
        arm_cov = (1 - w) * smooth + w * self.parts.products + exp(h.offset)
        user_cov = exp(h.graph) * graph + exp(h.common)
        user_cov[np.diag_indices_from(user_cov)] += exp(h.own)
        return _Covariances(user_cov, arm_cov, graph, change, smooth)

    def _on_pairs(self, shared: Any) -> Array:
        """Returns the covariance of the pairs, in the room for it; the other two hold those of users and arms."""
        on_users, on_arms, both = self._room
        shared.users.take(self._user_places, out=on_users.reshape(-1), mode="clip")
        shared.arms.take(self._arm_places, out=on_arms.reshape(-1), mode="clip")
        return np.asarray(np.multiply(on_users, on_arms, out=both))

    def _within_pairs(self, noise: Array) -> float:
        """Returns the part of -2 log evidence that rewards of the same pair have, and what does not change."""
        value = (len(self._means) + self._repeats) * LOG_2PI + float(np.log(self._counts).sum())
        value += self._spare * log(noise[0]) if self._spare else 0.0
        return value + float((self._counts - 1) @ np.log(noise) + self._scatters @ (1 / noise))


def share_of(history: History, rows: Index) -> float:
    """Returns how much of a history's counts these rows have."""
    counts = history.count_array()
    return float(counts[rows].sum() / counts.sum()) if history.spare else 0.0


class Together:
    """The evidence of several samples, each by itself: the sum of their logarithms."""

    def __init__(self, parts: Sequence[Explaining]) -> None:
        self.parts = parts

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Returns the log evidence and its gradient."""
        found = [each.value_and_gradient(point) for each in self.parts]
        return sum(value for value, _ in found), np.sum([gradient for _, gradient in found], axis=0)


class Holding:
    """The evidence with some hyperparameters held where they are told to be: it has no slope there.

    Args:
        whole: The evidence of all of them.
        held: Values by the names of `Hyper`; `ABSENT` for a part that is not there.
    """

    def __init__(self, whole: Explaining, held: Mapping[str, float]) -> None:
        self._whole, self._values = whole, list(held.values())
        self._places = [Hyper._fields.index(name) for name in held]

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Returns the log evidence and its gradient."""
        moved = np.array(point)
        moved[self._places] = self._values
        value, gradient = self._whole.value_and_gradient(moved)
        gradient = np.array(gradient)
        gradient[self._places] = 0.0
        return value, gradient


def level_of(samples: Sequence[Evidence], hyper: Any) -> float:
    """Returns the prior mean of all rewards that is most likely at these hyperparameters."""
    found = [each.level_information(hyper) for each in samples]
    prior = 1 / samples[0].level_var if samples[0].level_var else np.inf
    return float(sum(moment for moment, _ in found) / (sum(size for _, size in found) + prior))


class _Covariances(NamedTuple):
    """What users and arms covary by, and what that was made of: G, its spectrum's derivative, and SE."""

    users: Array
    arms: Array
    graph: Array
    change: Array
    smooth: Array


class _Blocks:
    """Sums of a matrix over the rows and columns that belong to the same thing; those of one thing come together."""

    def __init__(self, labels: Index) -> None:
        self._starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
        self._seen = labels[self._starts]

    def sums(self, matrix: Array, size: int) -> Array:
        """Returns the sums, a row and a column for each of `size` things."""
        out = np.zeros((size, size))
        rows = np.add.reduceat(matrix, self._starts, axis=0)
        out[np.ix_(self._seen, self._seen)] = np.add.reduceat(rows, self._starts, axis=1)
        return out


def _times(half: Array, vector: Array) -> Array:
    """Returns (H + H') v."""
    return np.asarray(half @ vector + vector @ half)


def both_halves(half: Array) -> Array:
    """Returns H + H'."""
    return np.asarray(half + half.T)


def _less_product(half: Array, weights: Array) -> Array:
    """Returns H - a a' / 2, in the place of H."""
    return np.asarray(blas.dger(-0.5, weights, weights, a=half.T, overwrite_a=1).T)


def _half_inverse(matrix: Array, noise: Array) -> tuple[Array | None, float]:
    """Returns H with H + H' the inverse, and the log determinant, of a covariance plus noise; none if it fails.

    H is the lower triangle with half of the diagonal: whatever is summed over the inverse can be summed over it, and
    no matrix is mirrored.
    """
    matrix[np.diag_indices_from(matrix)] += noise
    factor, failed = lapack.dpotrf(matrix.T, lower=0, overwrite_a=1)  # symmetric: its transpose is in Fortran order
    if failed:
        return None, 0.0
    log_det = _log_det(factor)
    upper, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
    upper[np.diag_indices_from(upper)] *= 0.5
    return np.asarray(upper.T), log_det


def _log_det(factor: Array) -> float:
    return 2 * float(np.log(factor.diagonal()).sum())
