"""How wide to explore: a constant, any function of (round, model), or the theory's beta_t."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from coterie.contracts import Array, Belief
from coterie.errors import ParameterError
from coterie.errors.checks import is_number

Width = float | Callable[[int, Any], float]
WidthRule = Callable[[Any, Any, Any, Array], Array]  # of the model, users' rows, arms and their stds: factors


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoryWidth:
    """beta_t = B + sqrt(sigma^2 / lambda * (2 log(1/delta) + log det(I + K_{t-1}/lambda))), Theorem 2 of the paper.

    With probability 1 - failure_prob the truth stays within beta_t std of the mean, at all times and everywhere.

    Attributes:
        norm_bound: B_rho, a bound on the truth's norm in the joint RKHS (the square root of `joint_penalty`).
        noise_std: sigma, the sub-Gaussian scale of the rewards' noise; need not be the model's.
        failure_prob: delta.
    """

    norm_bound: float
    noise_std: float
    failure_prob: float = 0.05

    def __post_init__(self) -> None:
        for name, value in (("norm_bound", self.norm_bound), ("noise_std", self.noise_std)):
            if not (is_number(value) and value >= 0):
                raise ParameterError(
                    f"{name} is {value!r}", "it is a finite number >= 0", "Give a bound you believe in"
                )
        if not (isinstance(self.failure_prob, float | np.floating) and 0 < self.failure_prob < 1):
            raise ParameterError(
                f"failure_prob is {self.failure_prob!r}", "it lies between 0 and 1", "Choose, say, 0.05"
            )

    def __call__(self, t: int, model: Belief) -> float:  # noqa: ARG002 - the model's log det knows the round
        """Returns beta_t from what the model has seen before this round."""
        scale = self.noise_std**2 / model.noise_var
        return self.norm_bound + sqrt(scale * (2 * log(1 / self.failure_prob) + model.info_gain))


def checked_width(width: Any) -> Width:
    """Returns the width if it is a finite number >= 0 or callable, and raises otherwise."""
    if callable(width) and not isinstance(width, type):
        function: Callable[[int, Any], float] = width
        return function
    if is_number(width) and width >= 0:
        return float(width)
    raise ParameterError(f"width is {width!r}", "it is a number >= 0 or a function of (t, model)", "Choose, say, 1.0")


def width_at(width: Callable[[int, Any], float], t: int, model: Any) -> float:
    """Returns the width of a round, or raises if the function gives something that is not a number >= 0."""
    value = width(t, model)
    if isinstance(value, int | float | np.number) and value >= 0:
        return float(value)
    raise ParameterError(
        f"the width of round {t} is {value!r}", "it is a number >= 0", "Mend the function given as width"
    )
