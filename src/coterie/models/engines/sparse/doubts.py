"""How far means can be off where users have a common part, as things stand between two changes."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph import GraphKernel
from coterie.models.engines.sparse.blocks import DataBlocks
from coterie.models.engines.sparse.common import ROUNDING, Common
from coterie.models.engines.sparse.joint import Joint
from coterie.models.engines.sparse.residual import Residual

CLOSELY = 0.1  # of eps: what the solve may leave


class Ahead(NamedTuple):
    """What a solve for everybody would still change, and how far means can be off after it.

    Attributes:
        more: Of every user's weights, with that of the common ones below.
        level: The largest residual after it, in units of shape.
        doubt: How far the common weights can be off after it.
    """

    more: Array
    level: float
    doubt: float


class Doubts:
    """Bounds of what all have in common, each computed once, when it is first asked for.

    Args:
        kernel: The graph, and the variance of the common weights.
        common: These as they are applied.
        residual: The weights of all users, and what is left of their equations.
        data: The users' blocks.
    """

    def __init__(self, kernel: GraphKernel, common: Common, residual: Residual, data: DataBlocks) -> None:
        self._kernel, self._common, self._residual, self._data = kernel, common, residual, data

    @cached_property
    def shared(self) -> float:
        """How far the common weights can be off, all residuals added up. O(users x features)."""
        return self._common.doubt(self._residual)

    @cached_property
    def strain(self) -> float:
        """By how much of its std a mean can be off; no bound but where users are slow to settle, who are kept to it."""
        return self._common.strain(self._residual) if self._residual.slow else np.inf

    @cached_property
    def ahead(self) -> Ahead:
        """What a solve for everybody would change; nothing is kept. O((edges + rewards) x features) for each step."""
        kernel, common, residual = self._kernel, self._common, self._residual
        right = np.vstack([residual.left, common.border(residual)])
        stop = common.limits_of(residual, common.spread, CLOSELY)
        more, left = Joint(kernel, self._data, common.precision_above()).solve(right, stop)
        rows, moved = left[:-1], np.linalg.norm(more[:-1], axis=1) + np.linalg.norm(more[-1])
        heaviest = kernel.diagonal + self._data.heaviest
        sizes = np.linalg.norm(rows, axis=1) + residual.rounding * kernel.shape + ROUNDING * heaviest * moved
        doubt = common.doubt_of(residual, left[-1] - rows.sum(axis=0), sizes)
        return Ahead(more, float(np.max(sizes / kernel.shape)), doubt)

    def closely(self, user: int, rows: Array, sizes: Array) -> Array:
        """Returns how far means can be off: by what the solve would change, and by what it would leave.

        Args:
            user: Whose means.
            rows: Features of the arms, as far as graph and common weights are multiplied by them.
            sizes: Their lengths.
        """
        more, level, doubt = self.ahead
        left = level * self._kernel.reach[user] + doubt * self._common.spread[user]
        return np.asarray(np.abs(rows @ (more[user] + more[-1])) + left * sizes)
