"""The trend: the part of the kernel that a few features, shared by all pairs, account for.

With eigenpairs of Ku over the users seen and of Kx over some of the arms, both weighted by how often they came, the
products of two eigenfunctions are orthonormal in the joint RKHS. The trend has those whose products of eigenvalues are
largest: of all sets of as many features none accounts for more variance where the data are. What is left, K - F F', is
a kernel again (a projection taken off), so nothing is counted twice.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from coterie.algebra import JitterLog, cholesky, solve_lower
from coterie.algebra.ranking import falling_order
from coterie.contracts import Array, Index
from coterie.kernels.inputs import OnInputs
from coterie.kernels.joint import OnPool

MOST_INDUCING = 256  # users, and arms, whose eigenfunctions are computed
ARMS_A_ROW = 2  # arms whose eigenfunctions are computed, for each row: more are not worth few rows
MOST_MODES = 96  # of users, and of arms
MOST_INDUCING_INPUTS = 512
INPUTS_LOOKED_AT = 1024  # inputs seen, of which inducing ones are chosen
INDUCING_SHARE = 1e-6  # of the largest variance of an input; where less is left, no more inducing inputs are needed
LEAST_SHARE = 1e-9  # of the largest eigenvalue; below it a mode is rounding
TINY = 1e-300
MOST_TABLED = 20_000  # arms whose modes are kept; those of more are computed when they are asked for
SEEN_SHARE = 0.5  # of the arms' weights: how often they came; the rest is the same for all of the pool


class LeftOut(NamedTuple):
    """What features leave out of the prior variance of the pairs seen, as shares.

    Attributes:
        largest: Of any pair.
        mean: Of all.
    """

    largest: float
    mean: float

    def in_words(self) -> str:
        """Returns it as a sentence.

        Examples:
            >>> LeftOut(0.25, 0.02).in_words()
            'The features leave out 0.02 of the prior variance of the pairs seen, and at most 0.25 of one.'
        """
        return (
            f"The features leave out {self.mean:.2g} of the prior variance of the pairs seen, and at most "
            f"{self.largest:.2g} of one."
        )


class Trend(NamedTuple):
    """Which features pairs have: each is the product of a mode of the users and one of the arms.

    Attributes:
        user_modes: A row for each user; one row where all users have the same; none where they go by `user_map`.
        user_map: What users' shared features are multiplied by, where no matrix over users is to be had.
        inducing: The arms, or prepared inputs, whose kernel with an arm gives its modes.
        arm_map: What that kernel is multiplied by.
        arm_modes: A row for each arm, or none where arms are too many.
        users: For each feature, the column of its user mode.
        arms: For each feature, the column of its arm mode.
    """

    user_modes: Array | None
    user_map: Array | None
    inducing: Any
    arm_map: Array
    arm_modes: Array | None
    users: Index
    arms: Index

    @property
    def size(self) -> int:
        """How many features."""
        return len(self.users)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(sum(each.nbytes for each in self if each is not None))

    @classmethod
    def chosen(cls, kernel: OnPool | OnInputs, users: Index, arms: Any, counts: Array, most: int) -> Self:
        """Returns the features that account for most of the kernel where the data are.

        Args:
            kernel: Of the pairs.
            users: Of the rows.
            arms: Of the rows, prepared.
            counts: Rewards of each row.
            most: How many features.
        """
        user_values, user_modes, user_map = _user_modes(kernel, users, counts)
        if isinstance(kernel, OnInputs):
            arm_values, inducing, arm_map = _input_modes(kernel, arms, counts)
        else:
            arm_values, inducing, arm_map = _arm_modes(kernel, arms, counts)
        products = np.multiply.outer(user_values, arm_values).ravel()
        best = falling_order(products)[:most]
        best = best[products[best] > LEAST_SHARE * products.max(initial=0.0)]
        i, j = np.unravel_index(best, (len(user_values), len(arm_values)))
        modes = None
        if isinstance(kernel, OnPool) and kernel.n_arms <= MOST_TABLED:
            modes = kernel.arm_cross(np.arange(kernel.n_arms), inducing) @ arm_map
        return cls(user_modes, user_map, inducing, arm_map, modes, np.asarray(i, np.intp), np.asarray(j, np.intp))


def _user_modes(kernel: OnPool | OnInputs, users: Index, counts: Array) -> tuple[Array, Array | None, Array | None]:
    """Returns eigenvalues of the users' covariance, weighted by their rewards, and their eigenfunctions at all users.

    Where no matrix over users is to be had, the modes are those of what users share however far apart they are: one,
    the same for all, where that is what is common to all; else a map from their shared features.
    """
    seen, places = np.unique(users, return_inverse=True)
    visits = np.bincount(places, weights=counts)
    shared = kernel.shared_features(seen)
    if shared is not None and shared.shape[1] == 1:
        common = kernel.common  # type: ignore[union-attr] # what has no matrix over users says what is common
        return np.array([common]), np.full((1, 1), np.sqrt(common)), None
    if shared is not None:
        values, vectors = np.linalg.eigh((shared.T * (visits / visits.sum())) @ shared)
        kept = values > LEAST_SHARE * max(values[-1], TINY)
        return values[kept][::-1], None, vectors[:, kept][:, ::-1]
    if len(seen) > MOST_INDUCING:
        most = np.sort(np.argsort(-visits, kind="stable")[:MOST_INDUCING])
        seen, visits = seen[most], visits[most]
    values, functions = _modes(kernel.user_block(seen), np.asarray(visits, dtype=np.float64))
    return values, kernel.user_cov[:, seen] @ functions, None


def _arm_modes(kernel: OnPool, arms: Index, counts: Array) -> tuple[Array, Index, Array]:
    """Returns eigenvalues of the arm kernel, the arms it was looked at, and the map to the eigenfunctions."""
    n_arms = kernel.n_arms
    visits = np.bincount(arms, weights=counts, minlength=n_arms)
    weights = SEEN_SHARE * visits / visits.sum() + (1 - SEEN_SHARE) / n_arms
    inducing, most = np.arange(n_arms), min(MOST_INDUCING, ARMS_A_ROW * len(arms))
    if n_arms > most:
        half = most // 2
        often = np.argsort(-visits, kind="stable")[:half]
        spaced = np.linspace(0, n_arms - 1, most - half).astype(np.intp)
        inducing = np.union1d(often, spaced)
        weights = np.maximum(weights[inducing], 1 / n_arms)
    values, functions = _modes(kernel.arm_cross(inducing, inducing), weights)
    return values, inducing, functions


def _input_modes(kernel: OnInputs, inputs: Array, counts: Array) -> tuple[Array, Any, Array]:
    """Returns eigenvalues of the kernel over prepared inputs, inducing ones, and the map to the eigenfunctions.

    With L L' the kernel of the inducing inputs, the functions k(., inducing) L'^-1 are orthonormal in the RKHS. Turned
    by the eigenvectors of their second moments over the inputs seen, they are those that account for most variance.
    """
    spaced = np.unique(np.linspace(0, len(inputs) - 1, INPUTS_LOOKED_AT).astype(np.intp))
    seen, weights = inputs[spaced], counts[spaced] / counts[spaced].sum()
    places = inducing_places(kernel, seen, MOST_INDUCING_INPUTS)
    inducing = seen[places]
    cross = kernel.prepared_cross(inducing, seen)
    factor = cholesky(cross[:, places] + LEAST_SHARE * np.diag(kernel.prepared_diag(inducing)), JitterLog())
    half = solve_lower(factor, cross)
    values, vectors = np.linalg.eigh((half * weights) @ half.T)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    return values, inducing, np.asarray(solve_lower(factor, np.eye(len(factor))).T @ vectors)


def inducing_places(kernel: OnInputs, inputs: Array, most: int) -> Index:
    """Returns the inputs to condition on, one after another that of the largest variance given those before it.

    This is a Cholesky factorisation with pivots; it ends where less than `INDUCING_SHARE` of the largest variance is
    left anywhere.
    """
    left = kernel.prepared_diag(inputs).copy()
    least, size = INDUCING_SHARE * float(left.max()), min(most, len(inputs))
    columns, places = np.empty((size, len(inputs))), list[int]()
    for step in range(size):
        place = int(np.argmax(left))
        if left[place] <= least:
            break
        known = columns[:step, place] @ columns[:step]
        columns[step] = (kernel.prepared_cross(inputs, inputs[place : place + 1])[:, 0] - known) / np.sqrt(left[place])
        left -= columns[step] ** 2
        left[place] = 0.0
        places.append(place)
    return np.array(places, dtype=np.intp)


def _modes(cov: Array, weights: Array) -> tuple[Array, Array]:
    """Returns the largest eigenvalues of a weighted covariance, and what maps covariances to its eigenfunctions.

    With W the weights, W^1/2 C W^1/2 = V w V'; the eigenfunctions are c(., points) W^1/2 V w^-1/2, of unit norm.
    """
    root = np.sqrt(weights / weights.sum())
    values, vectors = np.linalg.eigh(root[:, None] * cov * root)
    values, vectors = values[::-1][:MOST_MODES], vectors[:, ::-1][:, :MOST_MODES]
    kept = values > LEAST_SHARE * max(values[0], TINY)
    return values[kept], root[:, None] * vectors[:, kept] / np.sqrt(values[kept])
