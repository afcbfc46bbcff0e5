"""One solve for the weights of all users and the common ones, which border the system by as many rows as features."""

from typing import NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph import GraphKernel
from coterie.models.engines.sparse.blocks import DataBlocks
from coterie.models.engines.sparse.energy import Calm
from coterie.models.engines.sparse.everywhere import MOST_STEPS, Everywhere, Progress


class Stop(NamedTuple):
    """Where a solve ends: no row is above its own limit, nor |excess| + sum of spread * row above the goal."""

    rows: Array
    spread: Array
    goal: float

    def above(self, left: Array) -> float:
        """Returns how many times too large a residual is, its last row that of the border; 1 where it is right."""
        sizes = np.linalg.norm(left[:-1], axis=1)
        excess = float(np.linalg.norm(left[-1] - left[:-1].sum(axis=0)))
        return max(float(np.max(sizes / self.rows)), (excess + float(self.spread @ sizes)) / self.goal)


class Joint:
    """The precision of (g, k) as a linear map on users' rows with the common one below them.

    Args:
        kernel: The graph, and the variance of the common weights.
        data: The users' blocks.
        above: About the precision of the common weights, to precondition with.
    """

    def __init__(self, kernel: GraphKernel, data: DataBlocks, above: Array) -> None:
        self._kernel, self._everywhere, self._above = kernel, Everywhere(kernel, data), np.linalg.inv(above)
        self.n_steps = 0

    def times(self, rows: Array) -> Array:
        """Returns the map's value. O(edges x features + rows of rewards x features)."""
        shared = np.ascontiguousarray(rows[:-1] + rows[-1])
        out = np.empty_like(rows)
        pulled = self._everywhere.blocks_times(shared)
        out[:-1] = self._kernel.diagonal[:, None] * rows[:-1] - self._kernel.weights @ rows[:-1] + pulled
        out[-1] = rows[-1] / self._kernel.common + pulled.sum(axis=0)
        return out

    def solve(self, right: Array, stop: Stop | Calm, progress: Progress | None = None) -> tuple[Array, Array]:
        """Returns a solution and what it leaves over, by preconditioned conjugate gradients."""
        found, left = np.zeros_like(right), right.copy()
        ready = self._preconditioned(left)
        along, size = ready, float(np.vdot(left, ready))
        for step in range(MOST_STEPS):
            above = stop.above(left)
            if progress is not None:
                progress(step, above)
            if above <= 1 or size <= 0:
                break
            self.n_steps = step + 1
            image = self.times(along)
            length = size / float(np.vdot(along, image))
            found += length * along
            left -= length * image
            ready = self._preconditioned(left)
            before, size = size, float(np.vdot(left, ready))
            along = ready + (size / before) * along
        return found, right - self.times(found)

    def _preconditioned(self, left: Array) -> Array:
        out = np.empty_like(left)
        self._everywhere.preconditioned(left[:-1], out[:-1])
        out[-1] = self._above @ left[-1]
        return out
