"""The user similarities of cooperative kernel bandits: fixed ones by name, and one learned from the arms chosen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform

from coterie.contracts import Array
from coterie.kernels import AllOnes, Green, Heat, Independent, SpectralRBF, UserKernel
from coterie.models import History, Model
from coterie.policies.adaptation.followers import features_of

# The appendix of the paper: ridge 0.1 (or the caller's), heat for time 1, eight eigenvectors with the median bandwidth.
# A learned similarity starts from users who stand alone.
SIMILARITIES: Mapping[str, Callable[[float], UserKernel]] = {
    "learned_mmd": lambda _: Independent(),
    "laplacian_inv": lambda ridge: Green(laplacian_ridge=ridge),
    "heat": lambda _: Heat(time=1.0),
    "spectral_rbf": lambda _: SpectralRBF(k=8),
    "all_ones": lambda _: AllOnes(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedSimilarity:
    """K(u, v) = exp(-|psi_u - psi_v|^2 / (2 s^2)), psi_u the mean embedding of the arms chosen for u so far.

    The embedding is by random Fourier features of a squared exponential kernel; s is the median distance between
    embedded users. Users with fewer than `least` observations stand alone. The model is rebuilt at every refresh.

    Attributes:
        lengthscale: Of the kernel that embeds the arms.
        pool: The features of the arms, one row each; None where arms are vectors already.
        every: Rounds between refreshes.
        least: Observations of a user before they take part.
        n_random: Number of random features.
        seed: Fixes the random features.
    """

    lengthscale: float
    pool: Array | None = None
    every: int = 200
    least: int = 5
    n_random: int = 256
    seed: int = 0

    def follow(self, model: Model, t: int, user: int, arm: Any, reward: float) -> None:  # noqa: ARG002 - the model knows
        """Refreshes the model's user covariance if t observations call for it."""
        if t % self.every == 0:
            model.set_user_cov(self.matrix(model.history, model.n_users))

    def matrix(self, history: History, n_users: int) -> Array:
        """Returns the similarity of the users from what was chosen for them. O(n^2 n_random)."""
        out = np.eye(n_users)
        if not len(history):
            return out
        users, counts = history.user_array(), history.count_array()
        embedded = self._embed(features_of(self.pool, history.arm_array())) * counts[:, None]
        sums, seen = np.zeros((n_users, self.n_random)), np.zeros(n_users)
        np.add.at(sums, users, embedded)
        np.add.at(seen, users, counts)
        known = np.flatnonzero(seen >= self.least)
        distances = pdist(sums[known] / seen[known, None])
        if len(distances):
            width = float(np.median(distances)) or 1.0
            out[np.ix_(known, known)] = np.exp(-squareform(distances**2) / (2 * width**2))
        return out

    def _embed(self, features: Array) -> Array:
        rng = np.random.default_rng(self.seed)
        frequencies = rng.standard_normal((features.shape[1], self.n_random)) / self.lengthscale
        phases = rng.uniform(0, 2 * np.pi, self.n_random)
        return np.asarray(np.sqrt(2 / self.n_random) * np.cos(features @ frequencies + phases))
