"""One solve on the whole graph: for few users, where pushes would go round too often, and for many rewards."""

from collections.abc import Callable

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models.engines.sparse.user_blocks import DataBlocks

MOST_STEPS = 1000
Progress = Callable[[int, float], None]


class PosteriorPrecision:
    """A = L_rho (x) I + blocks as a linear map on the weights of all users, and its conjugate gradients.

    The blocks come from the rows of rewards, so no user needs a matrix. O(edges + rows) x features each step, and
    rows^2 of a user (features^2 where these are fewer) for the preconditioner.
    """

    def __init__(self, kernel: GraphKernel, data: DataBlocks) -> None:
        self._kernel, self._data, self._compiled = kernel, data, data.table.compiled
        self._graph = (*kernel.rows, kernel.diagonal)
        self._rows = (*data.table.chains, kernel.features, data.noise_var)
        self.n_steps = 0

    def times(self, weights: Array) -> Array:
        """Returns A w."""
        return self._times(weights, np.empty_like(weights))

    def blocks_times(self, weights: Array) -> Array:
        """Returns every user's data block times their weights, without the graph."""
        nobody, nothing = np.zeros(len(weights), self._graph[0].dtype), np.zeros(len(weights))
        nobody.flags.writeable = self._graph[0].flags.writeable  # compiled code tells the two apart
        out = np.empty_like(weights)
        self._compiled.times_all(nobody, nobody, *self._graph[2:4], nothing, *self._rows, weights, out)
        return out

    def solve(
        self, right: Array, threshold: float, progress: Progress | None = None, *, onto: Array | None = None
    ) -> Array:
        """Returns w, once no row of right - A w exceeds threshold * shape; `right` becomes what is left of it.

        Where there are weights to begin with, it adds to these, and `right` is what they leave.
        """
        weights = np.zeros_like(right) if onto is None else onto
        ready, image = np.empty_like(right), np.empty_like(right)
        along = self.preconditioned(right, ready).copy()
        size = float(np.vdot(right, ready))
        for step in range(MOST_STEPS):
            level = float(np.max(np.sqrt(np.einsum("ij,ij->i", right, right)) / self._kernel.shape))
            if progress is not None:
                progress(step, level / threshold)
            if level <= threshold:
                break
            length = size / float(np.vdot(along, self._times(along, image)))
            self._compiled.add_scaled(length, along, weights)
            self._compiled.add_scaled(-length, image, right)
            before, size = size, float(np.vdot(right, self.preconditioned(right, ready)))
            self._compiled.scale_and_add(size / before, ready, along)
            self.n_steps = step + 1
        return weights

    def warm_up(self) -> None:
        """Calls what is compiled for nobody, and what the table needs of it."""
        nobody, compiled = self._kernel.diagonal[:0], self._compiled
        nothing, more = (np.zeros((0, self._kernel.features.shape[1])) for _ in range(2))
        compiled.times_all(*self._graph[:4], nobody, *self._rows, nothing, more)
        compiled.precondition_all(nobody, *self._rows, self._data.slot, self._data.inverse, nothing, more)
        compiled.add_scaled(0.0, nothing, more)
        compiled.scale_and_add(0.0, nothing, more)
        self._data.table.place(0, 0)
        self._data.table.of_user(0)
        self._data.precision(0)
        self._data.fresh_inverse(0)

    def _times(self, weights: Array, out: Array) -> Array:
        self._compiled.times_all(*self._graph, *self._rows, weights, out)
        return out

    def preconditioned(self, left: Array, out: Array) -> Array:
        """Writes the inverses of the users' diagonal blocks times their rows, and returns them."""
        blocks = self._data.slot, self._data.inverse
        self._compiled.precondition_all(self._kernel.diagonal, *self._rows, *blocks, left, out)
        return out
