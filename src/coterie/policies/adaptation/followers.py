"""What changes a model's settings as the rewards come in: the seam, and the noise variance that follows a schedule."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from coterie.contracts import Array
from coterie.models import Model
from coterie.policies.adaptation.schedules import SpectralSchedule


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
