"""How well hyperparameters explain the rewards: log evidence of the observed pairs, with its gradient."""

from math import exp, log, pi

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from coterie.contracts import Array
from coterie.models import History
from coterie.policies.auto.parts import Hyper, Parts

LOG_2PI = log(2 * pi)

Index = NDArray[np.intp]


class Evidence:
    """Log p(rewards) of a collapsed history as a function of the hyperparameters. O(k^3) for k distinct pairs.

    With M = Ku o Kx on the pairs + diag(noise / count), a = M^-1 means and W = a a' - M^-1, the sums of W o Kx over the
    pairs of two users, and of W o Ku over the pairs of two arms, give every derivative. Pairs are distinct, so the part
    of a a' is a product of small tables.
    """

    def __init__(self, parts: Parts, history: History, *, rows: Index | None = None) -> None:
        keep = np.arange(len(history)) if rows is None else rows
        users = history.user_array()[keep]
        order = keep[np.argsort(users, kind="stable")]
        self.parts = parts
        self._users, self._arms = history.user_array()[order], history.arm_array()[order]
        self._means, self._counts = history.mean_array()[order], history.count_array()[order]
        self._scatter = float(np.array(history.scatters)[order].sum())
        self._repeats = float(self._counts.sum()) - len(order)
        self._by_user = _Blocks(self._users)
        self._by_arm = _Blocks(self._arms)
        n_users, n_arms = parts.n_users, len(parts.products)
        self._user_places = (self._users[:, None] * n_users + self._users).ravel()
        self._arm_places = (self._arms[:, None] * n_arms + self._arms).ravel()
        self._room = np.empty((3, len(order), len(order)))  # used again and again: fresh pages cost as much as the work

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Returns the log evidence and its gradient; minus infinity where the matrix cannot be factored."""
        h, parts = Hyper(*point), self.parts
        n_users, n_arms = parts.n_users, len(parts.products)
        graph, change = parts.graph_part(h.ridge)
        smooth, w = parts.smooth_part(h.lengthscale), h.linear_share
        user_cov = exp(h.graph) * graph + exp(h.common)
        user_cov[np.diag_indices(n_users)] += exp(h.own)
        arm_cov = (1 - w) * smooth + w * parts.products + exp(h.offset)
        on_users, on_arms, both = self._room
        user_cov.take(self._user_places, out=on_users.reshape(-1), mode="clip")
        arm_cov.take(self._arm_places, out=on_arms.reshape(-1), mode="clip")
        noise = h.noise_var / self._counts
        half, log_det = _half_inverse(np.multiply(on_users, on_arms, out=both), noise)
        if half is None:
            return -np.inf, np.zeros(len(point))
        weights = half @ self._means + self._means @ half
        value = self._means @ weights + log_det + (len(self._means) + self._repeats) * LOG_2PI
        value += self._repeats * h.noise + self._scatter / h.noise_var + float(np.log(self._counts).sum())
        table = np.zeros((n_arms, n_users))
        table[self._arms, self._users] = weights
        users = table.T @ arm_cov @ table - _both(self._by_user.sums(np.multiply(half, on_arms, out=on_arms), n_users))
        arms = table @ user_cov @ table.T - _both(self._by_arm.sums(np.multiply(half, on_users, out=on_users), n_arms))
        turned = np.einsum("ij,ij->j", parts.eigenvectors, users @ parts.eigenvectors)
        gradient = np.array(
            [
                exp(h.graph) * float(np.vdot(users, graph)),
                exp(h.own) * float(users.trace()),
                exp(h.common) * float(users.sum()),
                exp(h.graph) * float(turned @ change),
                (1 - w) * exp(-2 * h.lengthscale) * float(np.vdot(arms, smooth * parts.squared_distance)),
                w * (1 - w) * float(np.vdot(arms, parts.products - smooth)),
                exp(h.offset) * float(arms.sum()),
                self._scatter / h.noise_var - self._repeats + float((weights * weights - 2 * half.diagonal()) @ noise),
            ]
        )
        return -0.5 * float(value), 0.5 * gradient


class _Blocks:
    """Sums of a matrix over the rows and columns that belong to the same thing."""

    def __init__(self, labels: Index) -> None:
        self._order = np.argsort(labels, kind="stable")
        ordered = labels[self._order]
        self._starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        self._seen = ordered[self._starts]
        self._sorted = bool((self._order == np.arange(len(labels))).all())

    def sums(self, matrix: Array, size: int) -> Array:
        """Returns the sums, a row and a column for each of `size` things."""
        rows = np.add.reduceat(matrix if self._sorted else matrix[self._order], self._starts, axis=0)
        columns = rows if self._sorted else rows[:, self._order]
        out = np.zeros((size, size))
        out[np.ix_(self._seen, self._seen)] = np.add.reduceat(columns, self._starts, axis=1)
        return out


def _both(half: Array) -> Array:
    return np.asarray(half + half.T)


def _half_inverse(matrix: Array, noise: Array) -> tuple[Array | None, float]:
    """Returns H with H + H' the inverse, and the log determinant, of a covariance plus noise; none if it fails.

    H is the lower triangle with half of the diagonal: whatever is summed over the inverse can be summed over it, and
    no matrix is mirrored.
    """
    matrix[np.diag_indices_from(matrix)] += noise
    factor, failed = lapack.dpotrf(matrix.T, lower=0, overwrite_a=1)  # symmetric: its transpose is in Fortran order
    if failed:
        return None, 0.0
    log_det = 2 * float(np.log(factor.diagonal()).sum())
    upper, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
    upper[np.diag_indices_from(upper)] *= 0.5
    return np.asarray(upper.T), log_det
