"""Rewards that came before their decision: held for a while, so that messages may overtake each other."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from coterie.service.engine.failures import UnavailableError
from coterie.service.records import RewardRequest

HELD_FOR = 600.0  # seconds
MOST_HELD = 100_000


class HeldReward(NamedTuple):
    """A reward without a decision.

    Attributes:
        reward: What came.
        at: When.
        may_reward: The experiments of the key with which it came; none means all.
    """

    reward: RewardRequest
    at: float
    may_reward: list[str] | None


class HeldRewards:
    """Held rewards by the event id of their decision, oldest first.

    Examples:
        >>> held = HeldRewards()
        >>> held.add("e1", HeldReward(RewardRequest(value=1.0), 0.0, None))
        >>> len(held), list(held.due(now=601.0)), list(held.due(now=599.0))
        (1, ['e1'], [])
    """

    def __init__(self) -> None:
        self._by_event: OrderedDict[str, list[HeldReward]] = OrderedDict()
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[tuple[str, HeldReward]]:
        return ((event_id, each) for event_id, some in self._by_event.items() for each in some)

    def get(self, event_id: str) -> list[HeldReward]:
        """Returns the rewards of a decision to come."""
        return list(self._by_event.get(event_id, ()))

    def add(self, event_id: str, reward: HeldReward) -> None:
        """Takes a reward."""
        self._by_event.setdefault(event_id, []).append(reward)
        self._n += 1

    def drop(self, event_ids: Iterable[str]) -> None:
        """Lets go of the rewards of decisions."""
        for event_id in event_ids:
            self._n -= len(self._by_event.pop(event_id, ()))

    def due(self, now: float) -> Iterator[str]:
        """Yields the ids whose rewards were held for long enough."""
        for event_id, rewards in self._by_event.items():
            if rewards[0].at > now - HELD_FOR:
                return
            yield event_id

    def check_room(self) -> None:
        """Raises if no further reward can be held."""
        if self._n >= MOST_HELD:
            rule = f"at most {MOST_HELD} rewards wait for decisions that have not come"
            raise UnavailableError(f"{self._n} rewards wait", rule, "Send decisions first, and this reward again later")
