"""One step of all users and the common weights together, after which nothing is left of what all have in common.

Moving all g by q_u c, q the null vector of the Laplacian, and the common weights by k changes the residual of user u by
q_u ridge c + C_u (q_u c + k), whatever c and k are, so it stays exact. They are those with which neither sum_u q_u
residual_u nor the border of the equations keeps anything: twice as many numbers as there are features.
"""

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph import GraphKernel
from coterie.kernels.growing import Growth
from coterie.models.engines.sparse.blocks import DataBlocks
from coterie.models.engines.sparse.everywhere import Everywhere


class Balance:
    """The step, and what it needs to know.

    Attributes:
        between: sum_u q_u C_u, or None where it is to be computed anew.
    """

    def __init__(self, kernel: GraphKernel) -> None:
        width = kernel.features.shape[1]
        self._kernel = kernel
        self.between: Array | None = np.zeros((width, width))

    def add(self, user: int, row: Array, noise: float) -> None:
        """Takes note of a reward that a user's block has grown by."""
        if self.between is not None:
            self.between += np.outer(row, row * (float(self._kernel.null[user]) / noise))

    def follow(self, kernel: GraphKernel, growth: Growth) -> None:
        """Takes a graph that has changed."""
        self._kernel = kernel
        if growth.null_squares:
            self.between = None

    def step(
        self, data: DataBlocks, squares: Array, total: Array, together: Array, border: Array
    ) -> tuple[Array, Array]:
        """Returns c and k. O(features^3).

        Args:
            data: The users' blocks.
            squares: sum_u q_u^2 C_u, or a little more.
            total: sum_u C_u.
            together: sum_u q_u residual_u.
            border: What is left of the equation of the common weights.
        """
        kernel, eye = self._kernel, np.eye(len(total))
        if self.between is None:
            self.between = self._computed(data)
        mass = kernel.ridge * float(kernel.null @ kernel.null)
        matrix = np.block([[mass * eye + squares, self.between], [self.between, eye / kernel.common + total]])
        found = np.linalg.solve(matrix, np.concatenate([together, border]))
        return found[: len(total)], found[len(total) :]

    def _computed(self, data: DataBlocks) -> Array:
        everywhere = Everywhere(self._kernel, data)
        fields = (np.multiply.outer(self._kernel.null, unit) for unit in np.eye(data.width))
        return np.array([everywhere.blocks_times(field).sum(axis=0) for field in fields])
