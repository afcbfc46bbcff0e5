"""Bounds of variances where users' weights have an own and a common part beside that of the graph."""

from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.models.engines.sparse.blocks import NONE, DataBlocks, symmetric
from coterie.models.engines.sparse.bounds import WORTH_A_BLOCK, Bounds
from coterie.models.engines.sparse.common import Common
from coterie.models.engines.sparse.everywhere import Everywhere
from coterie.models.engines.sparse.own import OwnParts
from coterie.models.engines.sparse.residual import FEW


class MixedBounds(Bounds):
    """Bounds of a user's whole weights w_u = g_u + k + o_u; `attach` gives what is known of the parts."""

    own: OwnParts | None
    common: Common | None

    def attach(self, own: OwnParts | None, common: Common | None) -> None:
        """Takes the parts that its bounds are of, or None where there is no such part."""
        self.own, self.common = own, common

    def prior_variance(self, user: int) -> float:
        """Returns an upper bound of the prior variance of a user's weights, within the accuracy."""
        return super().prior_variance(user) + self._kernel.own + self._kernel.common

    def lowest(self, user: int, data: DataBlocks) -> Array:
        """Returns a lower bound of Cov(w_u): what is left once everything of others is known."""
        eye = np.eye(self._width) / float(self._kernel.diagonal[user])
        return self._whole(user, eye if data.slot[user] == NONE else data.inverse_of(user))

    def marginal(self, user: int, data: DataBlocks) -> tuple[Array, float]:
        """Returns an upper bound of Cov(w_u), and how much of its trace others' data may have to take off still."""
        best = self.by_own_data(user, data)
        missed = self._known_by_others(data)
        if self.common is not None:
            graph = super().prior_variance(user)
            best = min([best, *self._by_common_data(user, graph, self.common, data)], key=self._shown)
            missed += self._gain_of_solving(user, graph, self.common, best, data)
        if missed <= WORTH_A_BLOCK * self._accuracy * np.trace(best):
            return best, missed
        found = self._by_all_data(user, data)
        return (found if np.trace(found) < np.trace(best) else best), 0.0

    def _shown(self, matrix: Array) -> float:
        """Returns the mean variance of the pool's arms: what a covariance is worth, whatever it says of other rows."""
        return float(np.sum(matrix * self._kernel.arm_moment))

    def _by_common_data(self, user: int, graph: float, common: Common, data: DataBlocks) -> list[Array]:
        """Returns bounds by what everybody's data say of the common part, without a solve.

        Cov(g_u + k) = [A^-1]_uu + J_u Cov(k) J_u', and |J_u| is bounded. Besides, given others' data, it is at most
        (1 + t) Cov(g_u) + (1 + 1/t) Cov(k) however the two depend on each other; then the user's own data come on top.
        """
        eye, is_new = np.eye(self._width), data.slot[user] == NONE
        alone = graph * eye if is_new else np.linalg.inv(eye / graph + data.block(user))
        found = [self._whole(user, alone + common.size * float(common.spread[user]) ** 2 * eye)]
        if is_new or self._kernel.n_users > FEW:
            known = common.covariance if self._kernel.n_users <= FEW else common.without(user)
            share = np.sqrt(self._shown(known) / max(self._shown(graph * eye), np.finfo(float).tiny))
            shared = (1 + share) * graph * eye + (1 + 1 / share) * known + self._kernel.own * eye
            found.append(shared if is_new else np.asarray(np.linalg.inv(np.linalg.inv(shared) + data.precision(user))))
        return [symmetric(np.asarray(each)) for each in found]

    def _gain_of_solving(self, user: int, graph: float, common: Common, best: Array, data: DataBlocks) -> float:
        """Returns about by how much a solve on the whole graph would lower the trace; only few users can afford it."""
        if self._kernel.n_users > FEW:
            return 0.0
        prior = (graph + self._kernel.own) * np.eye(self._width) + common.covariance
        hoped = np.trace(np.linalg.inv(np.linalg.inv(prior) + data.precision(user)))
        return max(float(np.trace(best) - hoped), 0.0)

    def _whole(self, user: int, shared: Array) -> Array:
        return shared if self.own is None else self.own.whole(user, shared)

    def _by_all_data(self, user: int, data: DataBlocks) -> Array:
        if self.common is not None and self._kernel.n_users <= FEW:
            shared = self._shared(user, np.arange(self._kernel.n_users), *self._everywhere(user, data))
        else:
            self._reach_others(user, data)
            work = self._together
            fields = work.solution[: work.count], work.residual[: work.count]
            shared = self._shared(0, work.nodes[: work.count], *fields)
        return self._whole(user, shared)

    def _everywhere(self, user: int, data: DataBlocks) -> tuple[Array, Array]:
        """Returns A^-1 (e_u (x) I) on the whole graph and what is left of it, for few users."""
        assert self.common is not None
        n_users, width = self._kernel.n_users, self._width
        lower = width / float(self._kernel.diagonal[user])
        if data.slot[user] != NONE:
            lower = float(np.trace(data.inverse_of(user)))
        allowed = np.sqrt(0.5 * self._accuracy * lower / width)
        loss = self.common.spread.max() * n_users * np.sqrt(self.common.size), np.sqrt(n_users / self._kernel.ridge)
        threshold = allowed / max(loss) / np.sqrt(width) / float(self._kernel.shape.max())
        solver, solution, residual = Everywhere(self._kernel, data), [], []
        for column in range(width):
            right = np.zeros((n_users, width))
            right[user, column] = 1.0
            solution.append(solver.solve(right.copy(), threshold))
            residual.append(right - solver.times(solution[-1]))
        return np.stack(solution, axis=2), np.stack(residual, axis=2)

    def _shared(self, here: int, nodes: Any, solution: Array, residual: Array) -> Array:
        """Returns an upper bound of Cov(g_u + k) by a solve with identity at the row `here`; nodes are its rows."""
        graph = self._closed(here, solution, residual)
        if self.common is None:
            return graph
        size, eye = self.common.size, np.eye(self._width)
        mean = np.tensordot(self.common.pull[nodes], solution, axes=1)
        off = float(self.common.spread[nodes] @ np.linalg.norm(residual, axis=(1, 2)))
        part = mean.T @ self.common.covariance @ mean
        share = off * np.sqrt(self._width * size / max(float(np.trace(part)), np.finfo(float).tiny))
        more = 0.0 if off == 0 else (1 + 1 / share) * off * off * size
        near, far = (1 + share) * part + more * eye, size * float(self.common.spread[nodes[here]]) ** 2 * eye
        return symmetric(graph + (near if np.trace(near) < np.trace(far) else far))
