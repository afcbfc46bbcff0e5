"""A fit that goes on beside the decisions, and its model, which follows what comes in meanwhile."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

from coterie.errors import FAILURES
from coterie.models import Model
from coterie.policies.auto.background import BackgroundModel
from coterie.policies.auto.parts import Hyper

Reward = tuple[int, Any, float]
Made = Callable[[Hyper, dict[str, Any]], Model | None]


class Found(NamedTuple):
    """What a fit finds.

    Attributes:
        hyper: The hyperparameters.
        shift: The prior mean of all rewards, less the one in use: it is taken off every reward.
    """

    hyper: Hyper
    shift: float

    @classmethod
    def of(cls, numbers: Iterable[float]) -> "Found":
        """Returns it from its numbers."""
        *hyper, shift = numbers
        return cls(Hyper(*hyper), shift)

    def numbers(self) -> list[float]:
        """Returns it as a list of numbers."""
        return [*self.hyper, self.shift]


class PendingFit:
    """Hyperparameters that are being learned from the rewards up to a moment, and perhaps a model on them.

    Args:
        started: After how many rewards it began.
        due: After how many rewards it is to be taken.
        history: The rewards that it sees, as they were remembered.
        find: Computes hyperparameters and shift.
        make: Makes a model of hyperparameters and rewards, or none.
        begins: Whether it begins at once.

    Attributes:
        later: The rewards that came since, as they were remembered.
    """

    def __init__(
        self,
        started: int,
        due: int,
        history: dict[str, Any],
        find: Callable[[], Found],
        make: Made,
        *,
        begins: bool = True,
    ) -> None:
        self.started, self.due, self.history = started, due, history
        self.later: list[Reward] = []
        self._find, self._make = find, make
        self._work: BackgroundModel[Found] | None = None
        if begins:
            self.begin()

    def begin(self) -> None:
        """Lets it be computed, if it is not already."""
        if self._work is None:
            self._work = BackgroundModel(self._find, partial(_made, self._make, self.history))
            for reward in self.later:
                self._work.follow(partial(_learn, reward))

    def give(self, found: Found) -> None:
        """Takes these hyperparameters, and computes none."""
        self._find, self._work = lambda: found, None

    def follow(self, reward: Reward) -> None:
        """Lets its model know of a reward, too."""
        self.later.append(reward)
        if self._work is not None:
            self._work.follow(partial(_learn, reward))

    @property
    def is_ready(self) -> bool:
        """Whether it is computed, or has failed."""
        return self._work is not None and self._work.is_ready

    def found(self) -> Found:
        """Returns hyperparameters and shift; waits for them, and raises what went wrong."""
        return self._begun().found()

    def finish(self) -> tuple[Found, Model | None]:
        """Returns what was found and the model, which knows every reward; waits, and raises what went wrong."""
        return self._begun().finish()

    def _begun(self) -> BackgroundModel[Found]:
        self.begin()
        assert self._work is not None
        return self._work


def _made(make: Made, history: dict[str, Any], found: Found) -> Model | None:
    seen = deepcopy(history)
    seen["means"] = seen["means"] - found.shift
    del seen["largest"]  # of the means as they were
    return make(found.hyper, seen)


def _learn(reward: Reward, model: Model, found: Found) -> None:
    row, column, value = reward
    model.learn(row, column, value - found.shift)


def state_of(pending: PendingFit | None) -> dict[str, Any] | None:
    """Returns what `pending_of` makes the same fit from; waits for its hyperparameters."""
    if pending is None:
        return None
    try:
        found = pending.found()
    except FAILURES:  # it would not be taken: to whoever loads this it is as if it had not begun
        return None
    users, arms, values = zip(*pending.later, strict=True) if pending.later else ((), (), ())
    return {
        "started": pending.started,
        "due": pending.due,
        "shift": found.shift,
        "history": pending.history,
        "hyper": found.hyper._asdict(),
        "later": {"users": list(users), "arms": list(arms), "values": list(values)},
    }


def pending_of(state: dict[str, Any], make: Made) -> PendingFit:
    """Returns the fit of a state."""
    found, later = Found(Hyper(**state["hyper"]), state["shift"]), state["later"]
    out = PendingFit(state["started"], state["due"], state["history"], lambda: found, make)
    for reward in zip(later["users"], later["arms"], later["values"], strict=True):
        out.follow(reward)
    return out
