"""Every reward that was learned, in order, and the weighted history that they make."""

from array import array
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.models import History, Model

Index = NDArray[np.intp]

# Weights below this count as none, so that the rewards that count are bounded: 14 / (1 - forgetting) of them at most.
FORGOTTEN = 1e-6


@dataclass(slots=True)
class RewardEvents:
    """The rewards, one row each: user and arm as rows of graph and pool.

    Examples:
        >>> events = RewardEvents()
        >>> events.add(0, 2, 1.0), events.add(0, 2, 3.0)
        (0, 1)
        >>> events.history(np.array([1.0, 1.0])).means
        [2.0]
    """

    users: "array[int]" = field(default_factory=lambda: array("q"))
    arms: "array[int]" = field(default_factory=lambda: array("q"))
    rewards: "array[float]" = field(default_factory=lambda: array("d"))

    @classmethod
    def of(cls, users: Any, arms: Any, rewards: Any) -> "RewardEvents":
        """Returns the events of three columns of numbers."""
        out = cls()
        out.extend(users, arms, rewards)
        return out

    def __len__(self) -> int:
        return len(self.rewards)

    def add(self, user: int, arm: int, reward: float) -> int:
        """Adds a reward and returns its number."""
        self.users.append(user)
        self.arms.append(arm)
        self.rewards.append(reward)
        return len(self.rewards) - 1

    def extend(self, users: Any, arms: Any, rewards: Any) -> None:
        """Adds many rewards."""
        self.users.frombytes(np.asarray(users, np.int64).tobytes())
        self.arms.frombytes(np.asarray(arms, np.int64).tobytes())
        self.rewards.frombytes(np.asarray(rewards, np.float64).tobytes())

    def cut(self, length: int) -> None:
        """Drops all but the first rewards."""
        for column in (self.users, self.arms, self.rewards):
            del column[length:]

    def with_reward(self, event: int, reward: float) -> "RewardEvents":
        """Returns the events with another reward in the place of one; these stay as they are."""
        rewards = self.rewards[:]
        rewards[event] = reward
        return RewardEvents(self.users, self.arms, rewards)

    def history(self, weights: Array, model: Model | None = None) -> History:
        """Returns the collapsed history in which each reward counts as much as its weight says; none for weight 0.

        It has the form in which a model keeps it, if one is given.
        """
        make = History.weighted if model is None else model.new_history
        return make(self.users, self.arms, self.rewards, weights)

    def kept(self, users: dict[int, int], arms: dict[int, int]) -> tuple["RewardEvents", dict[int, int]]:
        """Returns the events in new rows, without those of users and arms that are gone, and their new places."""
        out, places = RewardEvents(), {}
        for number, (user, arm, reward) in enumerate(zip(self.users, self.arms, self.rewards, strict=True)):
            if user in users and arm in arms:
                places[number] = out.add(users[user], arms[arm], reward)
        return out, places


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much an older reward counts.

    Attributes:
        forgetting: What a reward's weight is multiplied by with each reward after it, between 0 and 1; 1 keeps all.
        window: How many of the last rewards count; none means all.

    Examples:
        >>> Memory(forgetting=0.5).weights(3)
        array([0.25, 0.5 , 1.  ])
        >>> Memory(window=2).weights(3)
        array([0., 1., 1.])
    """

    forgetting: float = 1.0
    window: int | None = None

    @property
    def fades(self) -> bool:
        """Whether older rewards count less."""
        return self.forgetting < 1.0 or self.window is not None

    @property
    def span(self) -> float:
        """How many rewards count, in effect."""
        effective = inf if self.forgetting == 1 else 1 / (1 - self.forgetting)
        return min(effective, inf if self.window is None else self.window)

    def forgets_at(self, n_events: int) -> bool:
        """Returns whether older rewards lose weight by the last of so many."""
        return self.forgetting < 1 or (self.window is not None and n_events > self.window)

    def weights(self, n_events: int) -> Array:
        """Returns the weight of each of so many rewards, the newest last."""
        ages = np.arange(n_events - 1, -1, -1, dtype=np.float64)
        weights = self.forgetting**ages
        weights[weights < FORGOTTEN] = 0.0
        if self.window is not None:
            weights[ages >= self.window] = 0.0
        return np.asarray(weights)
