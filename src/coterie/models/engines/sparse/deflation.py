"""One step for all users where pushes would take long: what all have in common decays by the ridge alone.

The null vector q of the Laplacian (all ones, or the roots of the degrees) has L_rho q = ridge q. Moving all weights by
q_u c changes the residual of user u by q_u (ridge I + B_u) c, whatever c is, so the residual stays exact. With c such
that sum_u q_u residual_u vanishes, nothing is left of it for pushes to carry round the graph.
"""

from typing import NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.kernels.growing import Growth
from coterie.models.engines.sparse.global_solve import PosteriorPrecision
from coterie.models.engines.sparse.user_blocks import NONE, DataBlocks

A_USER, A_ROW = 3, 2  # what a step costs beside an edge of a push
PATIENCE = 8
MOST_SHARE = 0.5
WORTH_IT = 0.05


class DeflationStep(NamedTuple):
    """By how much all weights and residuals change."""

    weights: Array
    residual: Array


class Deflation:
    """When to move all users' weights together, and how.

    A step is due once pushes have cost eight times as much, where it does not exceed half the work of one solve: on a
    graph so large that it does, what users have in common is little beside what they have not.

    Attributes:
        since: The work of pushes since the last step.
        total: sum_u q_u^2 B_u, with B_u the precision of a user's rewards.
    """

    def __init__(self, kernel: GraphKernel) -> None:
        width = kernel.features.shape[1]
        self._kernel, self.since, self.total = kernel, 0, np.zeros((width, width))

    def add(self, user: int, row: Array, noise: float) -> None:
        """Takes note of a reward."""
        self.total += np.outer(row, row * (float(self._kernel.null[user]) ** 2 / noise))

    def count(self, data: DataBlocks) -> None:
        """Takes note of all rewards that the table holds."""
        table, features = data.table, self._kernel.features
        weights = table.counts * self._kernel.null[table.users] ** 2 / data.noise_var
        by_arm = np.bincount(table.arms, weights, len(features))
        self.since, self.total = 0, (features * by_arm[:, None]).T @ features

    def follow(self, kernel: GraphKernel, growth: Growth, data: DataBlocks) -> None:
        """Takes a graph that has changed."""
        self._kernel = kernel
        for user, more in growth.null_squares.items():
            if data.slot[user] != NONE:
                self.total += more * data.precision(user)

    def turn(self, n_rows: int, most: int) -> int:
        """Returns how much work pushes may do until the next step: none if it is due now, `most` if it never is."""
        cost = A_USER * self._kernel.n_users + A_ROW * n_rows
        return most if cost > MOST_SHARE * most else max(PATIENCE * cost - self.since, 0)

    def step(self, data: DataBlocks, left: Array, threshold: float) -> DeflationStep | None:
        """Returns the next step, or nothing if little is left in common. O(users + rows) x features."""
        self.since = 0
        null, ridge = self._kernel.null, self._kernel.ridge
        together = null @ left
        if np.linalg.norm(together) <= WORTH_IT * threshold * float(null @ self._kernel.shape):
            return None
        precision = ridge * float(null @ null) * np.eye(len(together)) + self.total
        field = np.multiply.outer(null, np.linalg.solve(precision, together))
        return DeflationStep(field, ridge * field + PosteriorPrecision(self._kernel, data).blocks_times(field))
