"""One solve on the whole graph, for few users, where pushes would go round it too often."""

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph import GraphKernel
from coterie.models.engines.sparse.blocks import DataBlocks

MOST_STEPS = 1000


class Everywhere:
    """A = L_rho (x) I + blocks as a linear map on the weights of all users, and its conjugate gradients."""

    def __init__(self, kernel: GraphKernel, data: DataBlocks) -> None:
        self._kernel, self._users = kernel, np.array(data.users, dtype=np.intp)
        self._precision, self._inverse = data.precision[: len(data)], data.inverse[: len(data)]

    def times(self, weights: Array) -> Array:
        """Returns A w. O(edges x features + users with data x features^2)."""
        out = self._kernel.diagonal[:, None] * weights - self._kernel.weights @ weights
        out[self._users] += _each(self._precision, weights[self._users])
        return np.asarray(out)

    def solve(self, right: Array, threshold: float) -> tuple[Array, Array]:
        """Returns w and right - A w, once no row of that exceeds threshold * shape; preconditioned by users' blocks."""
        weights, left = np.zeros_like(right), right.copy()
        ready = self._preconditioned(left)
        along, size = ready, float(np.vdot(left, ready))
        for _ in range(MOST_STEPS):
            if np.all(np.linalg.norm(left, axis=1) <= threshold * self._kernel.shape):
                break
            image = self.times(along)
            length = size / float(np.vdot(along, image))
            weights += length * along
            left -= length * image
            ready = self._preconditioned(left)
            before, size = size, float(np.vdot(left, ready))
            along = ready + (size / before) * along
        return weights, right - self.times(weights)

    def _preconditioned(self, left: Array) -> Array:
        out = left / self._kernel.diagonal[:, None]
        out[self._users] = _each(self._inverse, left[self._users])
        return np.asarray(out)


def _each(blocks: Array, rows: Array) -> Array:
    """Returns each block times its row."""
    return np.asarray(np.einsum("kij,kj->ki", blocks, rows))
