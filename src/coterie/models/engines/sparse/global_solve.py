"""One solve on the whole graph: for few users, where pushes would go round too often, and for many rewards."""

from math import log

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models.base import SolveProgress
from coterie.models.conditioned import LOG_2PI
from coterie.models.engines.sparse.user_blocks import DataBlocks

MOST_STEPS = 1000


class PosteriorPrecision:
    """The precision A = L_rho (x) I + blocks of all users' weights as a linear map; A w = b for the posterior mean.

    The blocks come from the rows of rewards, so no user needs a matrix. O(edges + rows) x features each product, and
    rows^2 of a user (features^2 where these are fewer) for the preconditioner.
    """

    def __init__(self, kernel: GraphKernel, data: DataBlocks) -> None:
        self._kernel, self._data, self._compiled = kernel, data, data.table.compiled
        self._graph = (*kernel.rows, kernel.diagonal)
        self._rows = (*data.table.chains, kernel.features, data.noise_var)
        self.n_steps = 0  # of the last solve

    def times(self, weights: Array, out: Array | None = None) -> Array:
        """Returns A w, written to `out` if that is given."""
        out = np.empty_like(weights) if out is None else out
        self._compiled.times_all(*self._graph, *self._rows, weights, out)
        return out

    def blocks_times(self, weights: Array) -> Array:
        """Returns every user's data block times their weights, without the graph."""
        nobody, nothing = np.zeros(len(weights), self._graph[0].dtype), np.zeros(len(weights))
        nobody.flags.writeable = self._graph[0].flags.writeable  # compiled code tells the two apart
        out = np.empty_like(weights)
        self._compiled.times_all(nobody, nobody, *self._graph[2:4], nothing, *self._rows, weights, out)
        return out

    def preconditioned(self, residual: Array, out: Array) -> Array:
        """Writes the inverses of the users' diagonal blocks times their rows, and returns them."""
        blocks = self._data.slot, self._data.inverse
        self._compiled.precondition_all(self._kernel.diagonal, *self._rows, *blocks, residual, out)
        return out

    def add_targets(self, out: Array) -> Array:
        """Adds every user's b, the sum of features * reward / noise, and returns it all."""
        table = self._data.table
        amounts = table.counts * table.means / self._data.noise_var
        self._compiled.add_targets(table.users, table.arms, amounts, self._kernel.features, out)
        return out

    def residual_of(self, weights: Array) -> Array:
        """Returns b - A w."""
        out = self.times(weights)
        np.negative(out, out=out)
        return self.add_targets(out)

    def solve(
        self, right: Array, threshold: float, progress: SolveProgress | None = None, *, onto: Array | None = None
    ) -> Array:
        """Returns w, once no row of right - A w exceeds threshold * shape; `right` becomes the residual.

        A warm start adds to the weights `onto`, and `right` is their residual.
        """
        from coterie.algebra.pcg import pcg  # only here, for it imports numba

        def is_small(step: int, residual: Array) -> bool:
            level = float(np.max(np.sqrt(np.einsum("ij,ij->i", residual, residual)) / self._kernel.shape))
            if progress is not None:
                progress(step, level / threshold)
            return level <= threshold

        weights = np.zeros_like(right) if onto is None else onto
        self.n_steps = pcg(self.times, self.preconditioned, right, weights, is_small=is_small, most_steps=MOST_STEPS)
        return weights

    def info_gain_bound(self) -> float:
        """Returns a lower bound of the information gain of all rewards.

        L_rho <= diag(diagonal + sums of weights), so every user's prior is at least that of a user alone with this
        precision, and the gain is at least the sum of theirs.
        """
        alone = 1 / (self._kernel.diagonal + np.asarray(self._kernel.weights.sum(axis=1)).ravel())
        return float(self._compiled.log_dets(alone, *self._rows))

    def log_likelihood(self, weights: Array, info_gain: float) -> float:
        """Returns about log p(rewards), given solved weights: y' M^-1 y = y' y / noise - b' A^-1 b."""
        table, noise_var = self._data.table, self._data.noise_var
        means, counts = table.means, table.counts
        predicted = self._compiled.predictions(table.users, table.arms, weights, self._kernel.features)
        fit = float(np.sum(counts * means * (means - predicted))) / noise_var
        rest = float(np.sum((counts - 1) * (LOG_2PI + log(noise_var)) + np.log(counts) + table.scatters / noise_var))
        single = float(np.sum(LOG_2PI + np.log(noise_var / counts)))
        return -0.5 * (fit + info_gain + single + rest)

    def warm_up(self) -> None:
        """Calls what is compiled for nobody, and what the table needs of it."""
        from coterie.algebra.pcg import add_scaled, scale_and_add

        nobody, compiled = self._kernel.diagonal[:0], self._compiled
        nothing, more = (np.zeros((0, self._kernel.features.shape[1])) for _ in range(2))
        compiled.times_all(*self._graph[:4], nobody, *self._rows, nothing, more)
        compiled.precondition_all(nobody, *self._rows, self._data.slot, self._data.inverse, nothing, more)
        add_scaled(0.0, nothing, more)
        scale_and_add(0.0, nothing, more)
        self._data.table.place(0, 0)
        self._data.table.of_user(0)
        self._data.precision(0)
        self._data.fresh_inverse(0)
