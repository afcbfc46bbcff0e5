"""Upper bounds of variances by local solves whose error is of second order.

With A z = b - r solved only so far, b' A^-1 b = b'z + z'r + r' A^-1 r, and 0 <= r' A^-1 r <= |r|^2 / ridge.
"""

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models.engines.sparse.limits import Limits
from coterie.models.engines.sparse.solves import LocalSolve
from coterie.models.engines.sparse.user_blocks import NONE, DataBlocks, UserBlocks, symmetric

FIRST_THRESHOLD = 0.05
FINER = 0.25
WORTH_A_BLOCK = 2.0  # times the accuracy, of the trace


class VarianceBounds:
    """Bounds of the variances of one user, on one graph.

    Args:
        kernel: The graph, and the arms' features.
        limits: What a solve may take.
        accuracy: How far above the truth a bound may be, as a share of it, if so much work reaches so far.
        most: The work of one solve, at most; with a block of right-hand sides it is as much less as that is wide.
    """

    def __init__(self, kernel: GraphKernel, limits: Limits, *, accuracy: float, most: int) -> None:
        self._kernel, self._accuracy, self._most = kernel, accuracy, most
        self._width = kernel.features.shape[1]
        self._scalar = LocalSolve(kernel, (1,))
        self._block = LocalSolve(kernel, (self._width, self._width), most_bytes=limits.solve_bytes)
        self._nobody = UserBlocks(kernel.n_users, 1, limits, inverse=(1, 1))

    def lengthen(self, n_users: int, accuracy: float) -> None:
        """Makes room for newcomers, among whom this accuracy is asked for."""
        self._accuracy = accuracy
        for part in (self._nobody, self._scalar, self._block):
            part.lengthen(n_users)

    def warm_up(self, data: DataBlocks) -> None:
        """Calls what is compiled with nothing to do."""
        self._scalar.start(0, 0.0)
        self._scalar.run(self._nobody, 1.0, 1)
        self._block.start(0, 0.0)
        self._block.run(data, 1.0, 1)

    def prior_variance(self, user: int) -> float:
        """Returns an upper bound of [L_rho^-1]_uu, within the accuracy."""
        self._scalar.start(user, 1.0)
        lower, slack = self._refine(self._scalar, self._nobody, FIRST_THRESHOLD / self._kernel.shape[user], self._most)
        return min(lower + slack, 1 / self._kernel.ridge)

    def marginal(self, user: int, data: DataBlocks) -> tuple[Array, float]:
        """Returns an upper bound of [A^-1]_uu, and how much of its trace others' data may have to take off still.

        It is that of the user's own data alone, unless others' seem to matter and make it lower.
        """
        own = self.by_own_data(user, data)
        missed = self._known_by_others(data)
        if missed <= WORTH_A_BLOCK * self._accuracy * np.trace(own):
            return own, missed
        found = self._by_all_data(user, data)
        return (found if np.trace(found) < np.trace(own) else own), 0.0

    def by_own_data(self, user: int, data: DataBlocks) -> Array:
        """Returns an upper bound of [A^-1]_uu: what their prior and their own rewards alone leave."""
        prior, eye = self.prior_variance(user), np.eye(self._width)
        if data.slot[user] == NONE:
            return prior * eye
        return symmetric(np.asarray(np.linalg.inv(eye / prior + data.precision(user))))

    def _known_by_others(self, data: DataBlocks) -> float:
        """Returns about how much of the trace the data of those reached by the last solve take off, itself left out.

        One direction that is known well of a neighbour takes off g^2 diagonal, with g their covariance with the user.
        """
        solve = self._scalar
        nodes = solve.nodes[1 : solve.count]
        with_data = data.slot[nodes] != NONE
        known = self._kernel.diagonal[nodes[with_data]] * data.known_of(nodes[with_data])
        return float(np.sum(solve.solution[1 : solve.count, 0][with_data] ** 2 * known))

    def _by_all_data(self, user: int, data: DataBlocks) -> Array:
        """Returns an upper bound of [A^-1]_uu: solves A z = e_u (x) I until it is close, or work runs out."""
        solve, threshold = self._block, FIRST_THRESHOLD * np.sqrt(self._width) / self._kernel.shape[user]
        solve.start(user, np.eye(self._width))
        self._refine(solve, data, threshold, max(self._most // self._width, 1))
        z, r = (each[: solve.count].reshape(-1, self._width) for each in (solve.solution, solve.residual))
        return symmetric(solve.solution[0] + z.T @ r + (r.T @ r) / self._kernel.ridge)

    def _refine(self, solve: LocalSolve, blocks: UserBlocks, threshold: float, most: int) -> tuple[float, float]:
        """Makes a solve finer until its trace is known within the accuracy, or work runs out.

        Returns:
            A lower bound of the trace of the user's own block, and how far above it that is at most.
        """
        while True:
            converged = solve.run(blocks, threshold, most)
            cross, rest = solve.products()
            own, slack = solve.solution[0], rest / self._kernel.ridge
            lower = float(own[0] if own.ndim == 1 else np.trace(own)) + cross
            if slack <= self._accuracy * lower or not converged:
                return lower, slack
            threshold *= FINER
            solve.resume(threshold)
