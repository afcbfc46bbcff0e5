"""Engine "features" where arms have contexts: the trend of "local", alone.

    f = F z + residual,   z ~ N(0, I),   residual ~ GP(0, K - F F')

Up to `exact_rows` pairs the posterior is exact, in a factor that grows. Beyond, z is conditioned on all rewards as in
`local`, by features that are chosen for the pairs seen whenever the posterior is rebuilt, and that is all a decision
knows:

    mean = F z,   variance = F Cov(z) F' + K - F F'

What the features leave out of a variance stays in it, however many rewards there are.
"""

from typing import Any

import numpy as np

from coterie.contracts import Array, Index
from coterie.errors.checks import check_whole
from coterie.kernels.joint import JointKernel
from coterie.models.engines.local import LocalModel
from coterie.models.requirements import require_inputs

EXACT = 512  # pairs: up to so many the grown factor of `exact` costs a decision no more than as many features do


class InputFeaturesModel(LocalModel):
    """Arms in contexts by at most so many features: a decision takes candidates x features^2 multiply-adds.

    Args:
        kernel: Of users and inputs, with a matrix over users.
        noise_var: The noise variance of the rewards.
        trend_features: How many features there are at most; by default 512.
        exact_rows: Up to how many pairs the posterior is exact; beyond half as many a rebuild chooses features.

    Examples:
        >>> from coterie.kernels.inputs import ContextPart, InputKernel, InputLayout, InputScaling, InputsKernel
        >>> arms, contexts = (InputLayout(0, 1, 0, 0), InputScaling((0.0,), (1.0,))), ContextPart(1.0, 1.0, 0.0)
        >>> inputs = InputKernel(*arms, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, contexts)
        >>> model = InputFeaturesModel(InputsKernel(np.eye(1), inputs), noise_var=1.0, exact_rows=1)
        >>> for place in (0.0, 3.0): model.update(0, [place], 2.0)
        >>> model.predict(0, [[0.0], [9.0]])[1].round(2), model.left_out().largest < 1e-6
        (array([0.71, 0.96]), True)
    """

    engine = "features"

    def __init__(
        self,
        kernel: JointKernel,
        *,
        noise_var: float = 0.01,
        trend_features: int | None = None,
        exact_rows: int = EXACT,
    ) -> None:
        check_whole("exact_rows", exact_rows)
        if trend_features is not None:
            check_whole("trend_features", trend_features)
        super().__init__(
            require_inputs(kernel, self.engine),
            noise_var=noise_var,
            near_rows=1,
            trend_features=trend_features,
            exact_rows=exact_rows,
        )

    def _sizes(self) -> dict[str, int]:
        return {"trend_features": self.trend_features, "exact_rows": self.exact_rows}

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        super()._configure(require_inputs(kernel, self.engine), noise_var)

    def _in_words(self, rows: int) -> str:
        return f"all {rows} pairs"

    def _nearest(self, user: int, arms: Any) -> tuple[Index, Array, Array, float]:
        """Returns no rows, with what `local` returns of them: beyond the exact ones only features count."""
        none = np.empty(0, dtype=np.intp)
        return none, np.empty((0, 0)), np.empty((0, len(arms))), self.kernel.user_variance(user)
