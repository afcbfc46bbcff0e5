"""Bounds of the mean and the variance of one arm from both sides, by a solve that can be made finer.

With A z = b - r solved only so far, b = e_u (x) row, and R the residual of the weights' own equations, A w = rhs - R:
b' A^-1 b lies between b'z + z'r and that + |r|^2 / ridge, and the mean is b'w + z'R, off by at most sum_v |r_v| reach_v
times the bound of R. All errors shrink with r, so a finer solve settles what a coarse one leaves open.
"""

from typing import NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models.engines.sparse.compiling import load_push
from coterie.models.engines.sparse.global_solve import PosteriorPrecision
from coterie.models.engines.sparse.local_solve import LocalSolve
from coterie.models.engines.sparse.posterior_weights import FEW, PosteriorWeights, work_before_global_solve
from coterie.models.engines.sparse.user_blocks import DataBlocks

FIRST_THRESHOLD = 0.02
FINER = 0.25
FINEST = 1e-10
ROUNDING = 1e-12


class ArmBounds(NamedTuple):
    """Bounds of one arm by a solve: a mean, its error bound, and two bounds of the variance."""

    mean: float
    error: float
    lower: float
    upper: float


class RefinableSolve:
    """One solve A z = e_u (x) row, that can be made finer; among few users all at once, where pushes go round."""

    def __init__(self, kernel: GraphKernel) -> None:
        self._kernel, self._read_solution = kernel, load_push().read_solution
        self._local = LocalSolve(kernel, (kernel.features.shape[1],))
        self.start(0, np.zeros(kernel.features.shape[1]))

    def start(self, user: int, row: Array) -> None:
        """Forgets the last solve, and begins one for this user and row."""
        self._user, self._row, self._size = user, row, float(np.linalg.norm(row))
        self._threshold = FIRST_THRESHOLD * self._size / float(self._kernel.shape[user])
        self._whole: tuple[Array, Array] | None = None
        self._is_started = False
        self._most_pushes = work_before_global_solve(self._kernel) if self._kernel.n_users <= FEW else None
        self._local.start(user, row)

    def lengthen(self, n_users: int) -> None:
        """Makes room for newcomers; the last solve is over."""
        self._local.lengthen(n_users)

    @property
    def finished(self) -> bool:
        """Whether a finer solve would say no more."""
        least = FINEST * self._size / float(self._kernel.shape[self._user])
        return self._whole is not None or self._threshold <= least  # a row of zeros is, at once

    def refine(self, data: DataBlocks, most: int) -> int:
        """Solves further, with so much work at most, and returns the work done."""
        before, allowed = self._local.work, most if self._most_pushes is None else min(most, self._most_pushes)
        if self._is_started:
            self._threshold *= FINER
            self._local.resume(self._threshold)
        self._is_started = True
        converged = self._local.run(data, self._threshold, before + allowed)
        if self._most_pushes is not None and (not converged or self._local.work > self._most_pushes):
            self._solve_globally(data)
        return self._local.work - before

    def _solve_globally(self, data: DataBlocks) -> None:
        right, precision = np.zeros((self._kernel.n_users, len(self._row))), PosteriorPrecision(self._kernel, data)
        right[self._user] = self._row
        found = precision.solve(right.copy(), FINEST * self._size)
        self._whole = found, right - precision.times(found)

    def read(self, posterior: PosteriorWeights) -> ArmBounds:
        """Returns what is known of the row by now."""
        work, ridge = self._local, self._kernel.ridge
        nodes, count, solution, residual = work.nodes, work.count, work.solution, work.residual
        own = solution[0]
        if self._whole is not None:
            solution, residual = self._whole
            nodes, count, own = np.arange(len(residual)), len(residual), solution[self._user]
        held = posterior.residual, self._kernel.reach
        cross, rest, shift, mass = self._read_solution(nodes, count, solution, residual, *held)
        about = float(self._row @ own) + cross
        slack = ROUNDING * self._size**2 / ridge
        mean = float(self._row @ posterior.weights[self._user]) + shift
        rounding = float(self._kernel.reach[self._user]) * self._size * posterior.rounding
        error = mass * posterior.residual_bound() + rounding
        return ArmBounds(mean, error + ROUNDING * abs(mean), max(about - slack, 0.0), about + rest / ridge + slack)
