"""Exact while observations are few, the recursion afterwards: the paper's hybrid implementation."""

import sys
from copy import copy
from typing import Any

from coterie.contracts import Array, Drift, Index
from coterie.errors.checks import check_whole
from coterie.kernels.joint import JointKernel, PoolKernel
from coterie.kernels.links import Link
from coterie.models.base import DRIFT_TOLERANCE
from coterie.models.conditioned import ConditionedModel
from coterie.models.engines.exact import ExactModel
from coterie.models.engines.grid import GridModel, merged, require_grid_memory
from coterie.models.requirements import require_pool


def integer_cube_root(value: int) -> int:
    """Returns the largest integer whose cube is at most `value`, by integer arithmetic.

    Examples:
        >>> integer_cube_root(26), integer_cube_root(27)
        (2, 3)
    """
    root: int = round(value ** (1 / 3))
    while root**3 > value:
        root -= 1
    while (root + 1) ** 3 <= value:
        root += 1
    return root


def paper_switch(kernel: PoolKernel) -> int:
    """Returns t_star = min(1500, floor(n^(1/3)) m), the round after which the paper switches."""
    return min(1500, integer_cube_root(kernel.n_users) * kernel.n_arms)


class HybridModel(ConditionedModel):
    """`exact` for the first `switch_after` observations, then `grid`; both equal the batch posterior.

    A run that ends early never pays for the (n m)^2 matrix.

    Examples:
        >>> import numpy as np
        >>> model = HybridModel(PoolKernel(np.eye(1), np.eye(2)), noise_var=1.0, switch_after=1)
        >>> for arm in (0, 1, 1): model.update(0, arm, 1.0)
        >>> model.predict(0)[0].round(3), model.stage
        (array([0.5  , 0.667]), 'grid')
    """

    engine = "hybrid"
    kernel: PoolKernel

    def __init__(
        self,
        kernel: JointKernel,
        *,
        noise_var: float = 0.01,
        switch_after: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        pool = require_pool(kernel, self.engine)
        super().__init__(pool, noise_var=noise_var)
        if switch_after is not None:
            check_whole("switch_after", switch_after, least=0)
        self.switch_after = paper_switch(pool) if switch_after is None else switch_after
        self._memory_limit = memory_limit
        require_grid_memory(merged(pool)[1], memory_limit)
        self._inner: ConditionedModel = self._adopted(ExactModel(pool, noise_var=noise_var))

    def _belief(self) -> dict[str, Any]:
        return {
            "switch_after": self.switch_after,
            "memory_limit": self._memory_limit,
            "stage": self.stage,
            "inner": self._inner._belief(),
        }

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        super()._restore(state, kernel)
        self.switch_after, self._memory_limit = state["switch_after"], state["memory_limit"]
        stage = GridModel if state["stage"] == GridModel.engine else ExactModel
        self._inner = self._adopted(stage.restored(state | state["inner"], kernel))

    @property
    def stage(self) -> str:
        """The engine in use: "exact" or "grid"."""
        return self._inner.engine

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        return self._inner.nbytes

    def describe(self) -> str:
        """Returns in words which engine this is, why, and at which stage it is."""
        if self._switch_is_due():  # all was learned at once: after a change of users or arms
            stage = f"Now 'exact'; beyond {self.switch_after} observations 'grid' takes over, with the next one."
        elif self.stage == "exact":
            stage = f"Now 'exact'; 'grid' takes over after {self.switch_after} observations."
        else:
            stage = f"Now 'grid', as there are more than {self.switch_after} observations."
        return f"{super().describe()} {stage}"

    def check(self, tolerance: float = DRIFT_TOLERANCE) -> Drift:
        """Returns how far the belief is from a recomputed one; a switch that a relearned history made due comes first.

        The two stages would be compared at different pairs.
        """
        if self._switch_is_due():
            self._renew()
        return super().check(tolerance)

    def _switch_is_due(self) -> bool:
        return self.stage == "exact" and self.n_observations > self.switch_after

    def _renewal_is_due(self) -> bool:
        return self._switch_is_due() or self._inner._renewal_is_due()

    def _detach(self) -> None:
        if self._switch_is_due():
            # Memory was asked for at construction: a reward that was accepted is never refused by the switch.
            self._inner = self._adopted(GridModel(self.kernel, noise_var=self.noise_var, memory_limit=sys.maxsize))
        else:
            self._inner = copy(self._inner)
            self._inner._detach()

    def _adopted(self, inner: ConditionedModel) -> ConditionedModel:
        inner.history = self.history
        inner.jitter = self.jitter
        return inner

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        require_grid_memory(merged(require_pool(kernel, self.engine))[1], self._memory_limit)
        super()._configure(kernel, noise_var)
        self._inner._configure(kernel, noise_var)

    def _reset(self) -> None:
        self._adopted(self._inner)._reset()  # the history may be another one by now

    def read(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std."""
        return self._inner.read(user, arms)

    def peek(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std, and leaves no trace."""
        return self._inner.peek(user, arms)

    def read_many(self, users: Index, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std for several users."""
        return self._inner.read_many(users, arms)

    def read_covariance(self, user: int, arms: Index) -> Array:
        """Returns the joint covariance."""
        return self._inner.read_covariance(user, arms)

    def _mismatch(self) -> float:
        return self._inner._mismatch()

    def _surprise(self) -> float:
        return self._inner._surprise()

    def _condition_one(self, user: int, arm: int, reward: float) -> tuple[float, float]:
        return self._inner._condition_one(user, arm, reward)

    def _condition(self, users: Index, arms: Any, values: Array, noise: Array) -> tuple[float, float]:
        return self._inner._condition(users, arms, values, noise)

    def _move(self, user: int, arm: int, change: float) -> tuple[float, float] | None:
        return self._inner._move(user, arm, change)

    def _relink(self, link: Link) -> tuple[float, float] | None:
        found = self._inner._relink(link)
        self.kernel = require_pool(self._inner.kernel, self.engine)
        return found

    def _belief_at_rows(self) -> tuple[Array, Array]:
        return self._inner._belief_at_rows()

    def _prior_variance_at_rows(self) -> Array:
        return self._inner._prior_variance_at_rows()
