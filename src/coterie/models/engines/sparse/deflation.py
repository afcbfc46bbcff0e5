"""Deflation: one step for all users along the Laplacian's null vector, which pushes settle by the ridge alone.

The null vector q of the Laplacian (all ones, or the roots of the degrees) has L_rho q = ridge q. Moving all weights by
q_u c changes the residual of user u by q_u (ridge I + B_u) c, whatever c is, so the residual stays exact. With c such
that sum_u q_u residual_u vanishes, nothing is left of it for pushes to carry round the graph.
"""

from typing import NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel, Growth
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
    """When to move all users' weights along the null vector, and how far.

    A step is due once pushes have cost eight times as much, where it does not exceed half the work of one solve: on a
    graph so large that it does, what users have in common is little beside what they have not.

    Attributes:
        work_since: The work of pushes since the last step.
        data_precision: sum_u q_u^2 B_u, the data's part of the precision along q, with B_u that of a user's rewards.
    """

    def __init__(self, kernel: GraphKernel) -> None:
        width = kernel.features.shape[1]
        self._kernel, self.work_since, self.data_precision = kernel, 0, np.zeros((width, width))

    def add(self, user: int, row: Array, noise: float) -> None:
        """Takes note of a reward."""
        self.data_precision += np.outer(row, row * (float(self._kernel.null[user]) ** 2 / noise))

    def recompute(self, data: DataBlocks) -> None:
        """Takes note of all rewards that the table holds, and of none besides."""
        table, features = data.table, self._kernel.features
        weights = table.counts * self._kernel.null[table.users] ** 2 / data.noise_var
        by_arm = np.bincount(table.arms, weights, len(features))
        self.work_since, self.data_precision = 0, (features * by_arm[:, None]).T @ features

    def follow(self, kernel: GraphKernel, growth: Growth, data: DataBlocks) -> None:
        """Takes a graph that has changed."""
        self._kernel = kernel
        for user, more in growth.null_squares.items():
            if data.slot[user] != NONE:
                self.data_precision += more * data.precision(user)

    def work_until_due(self, n_rows: int, most: int) -> int:
        """Returns how much work pushes may do until the next step: none if it is due now, `most` if it never is."""
        cost = A_USER * len(self._kernel.null) + A_ROW * n_rows
        return most if cost > MOST_SHARE * most else max(PATIENCE * cost - self.work_since, 0)

    def step(self, data: DataBlocks, residual: Array, threshold: float) -> DeflationStep | None:
        """Returns the next step, or nothing if little is left along q. O(users + rows) x features."""
        self.work_since = 0
        null, ridge = self._kernel.null, self._kernel.ridge
        along = null @ residual
        if np.linalg.norm(along) <= WORTH_IT * threshold * float(null @ self._kernel.shape):
            return None
        precision = ridge * float(null @ null) * np.eye(len(along)) + self.data_precision
        field = np.multiply.outer(null, np.linalg.solve(precision, along))
        return DeflationStep(field, ridge * field + PosteriorPrecision(self._kernel, data).blocks_times(field))
