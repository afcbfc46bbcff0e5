"""What a log's rewards are, and who had a good one with what."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from coterie.errors import InputError
from coterie.logs.log import Floats, Ints, Log

LEAST_EVENTS = 20

Kind: TypeAlias = Literal["one-class", "binary", "real"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """The mean reward of each pair of user and arm that the log holds.

    Attributes:
        kind: "one-class" if every event has the same reward, "binary" if rewards are 0 and 1, else "real".
        user: The users of the pairs.
        arm: Their arms.
        reward: Their mean rewards.
        count: How many events each has.
        scatter: The sum of squares of its rewards about their mean.
        level: A pair is a positive if its mean reward is above this.
        n_users: How many users there are, also those without events.
        n_arms: How many arms there are.
    """

    kind: Kind
    user: Ints
    arm: Ints
    reward: Floats
    count: Floats
    scatter: Floats
    level: float
    n_users: int
    n_arms: int

    def table(self, values: Floats) -> sp.csr_array:
        """Returns users x arms with a value for each pair."""
        return sp.csr_array((values, (self.user, self.arm)), shape=(self.n_users, self.n_arms))

    @property
    def positive(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which pairs are positives."""
        return np.asarray(self.reward > self.level)


def outcomes_of(log: Log) -> Outcomes:
    """Returns the outcomes of a log, or raises if there are too few, or if all rewards are 0."""
    events = log.events
    if len(events) < LEAST_EVENTS:
        rule = f"a diagnosis needs at least {LEAST_EVENTS}, and says more with thousands"
        raise InputError(f"the log has {len(events)} events", rule, "Come back with a longer log")
    n_arms = len(log.arm_ids)
    keys, place, count = np.unique(events.user * n_arms + events.arm, return_inverse=True, return_counts=True)
    mean = np.bincount(place, events.reward) / count
    kind, level = _kind_and_level(events.reward)
    return Outcomes(
        kind=kind,
        user=keys // n_arms,
        arm=keys % n_arms,
        reward=mean,
        count=count.astype(float),
        scatter=np.bincount(place, (events.reward - mean[place]) ** 2).astype(float),
        level=level,
        n_users=log.graph.n_users,
        n_arms=n_arms,
    )


def _kind_and_level(reward: Floats) -> tuple[Kind, float]:
    values = np.unique(reward)
    if len(values) == 1 and values[0] <= 0:
        rule = "rewards tell something where some are above others, or where all are above 0"
        raise InputError(f"every reward is {values[0]:g}", rule, "Check the column reward")
    if len(values) == 1:
        return "one-class", 0.0
    return ("binary", 0.0) if set(values.tolist()) == {0.0, 1.0} else ("real", float(reward.mean()))
