"""What changes a model's settings as the rewards come in: the seam, and the noise variance that follows a schedule."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

import numpy as np

from coterie.contracts import Array
from coterie.errors import ParameterError
from coterie.errors.checks import check_whole
from coterie.models import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectralSchedule:
    """lambda_t = base * S_spec * horizon / (horizon + t), clipped, changed at t = 200, 400, 800, ... if by over 20 %.

    S_spec is the smallest non-zero eigenvalue of the Laplacian over the largest (`graph.spectral_ratio`).

    Examples:
        >>> schedule = SpectralSchedule(base=0.05, horizon=1000)
        >>> round(schedule.value(1000, spectral_ratio=0.2), 6)
        0.005
        >>> schedule.is_epoch(400), schedule.is_epoch(500)
        (True, False)
    """

    base: float
    horizon: int
    floor: float = 1e-6
    ceiling: float = 1e-1
    first_epoch: int = 200
    least_change: float = 0.2

    def __post_init__(self) -> None:
        for name, value in (("base", self.base), ("floor", self.floor), ("ceiling", self.ceiling)):
            if not (isinstance(value, int | float | np.number) and isfinite(value) and value > 0):
                raise ParameterError(f"{name} is {value!r}", "it is a finite number > 0", "Choose, say, 0.01")
        check_whole("horizon", self.horizon)
        check_whole("first_epoch", self.first_epoch)
        if not (isinstance(self.least_change, int | float) and self.least_change >= 0):
            raise ParameterError(f"least_change is {self.least_change!r}", "it is a number >= 0", "The paper uses 0.2")
        if not self.floor <= self.ceiling:
            raise ParameterError(
                f"floor is {self.floor!r} and ceiling {self.ceiling!r}",
                "the floor is not above the ceiling",
                "Exchange or raise them",
            )

    def value(self, t: int, *, spectral_ratio: float) -> float:
        """Returns lambda_t."""
        raw = self.base * spectral_ratio * self.horizon / (self.horizon + t)
        return min(max(raw, self.floor), self.ceiling)

    def is_epoch(self, t: int) -> bool:
        """Whether lambda may change after t observations: t = first_epoch times a power of two."""
        ratio, rest = divmod(t, self.first_epoch)
        return rest == 0 and ratio > 0 and ratio & (ratio - 1) == 0

    def moves(self, current: float, new: float) -> bool:
        """Whether the change is worth a rebuild."""
        return abs(new - current) > self.least_change * current


class Follower(Protocol):
    """Sees every reward after the model has learned it, in order, and changes the model's settings when it is time."""

    def follow(self, model: Model, t: int, user: int, arm: Any, reward: float) -> None:
        """Takes note of reward number t and makes the change that is due, if any."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledNoise:
    """Lets the noise variance follow a schedule.

    Attributes:
        schedule: The schedule.
        spectral_ratio: The graph's, which the schedule scales with.
    """

    schedule: SpectralSchedule
    spectral_ratio: float

    def follow(self, model: Model, t: int, user: int, arm: Any, reward: float) -> None:  # noqa: ARG002 - only t counts
        """Changes the noise variance if the schedule calls for it after t rewards."""
        if self.schedule.is_epoch(t):
            noise_var = self.schedule.value(t, spectral_ratio=self.spectral_ratio)
            if self.schedule.moves(model.noise_var, noise_var):
                model.set_noise_var(noise_var)


def features_of(pool: Array | None, arms: Any) -> Array:
    """Returns the features of arms as a model knows them: rows of the pool's features, or vectors already."""
    return np.asarray(arms if pool is None else pool[arms])
