"""The decisions that wait for rewards, oldest first."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from coterie.service.engine.aggregates import Aggregate
from coterie.service.records import RewardRequest


@dataclass(slots=True, kw_only=True)
class PendingPlace:
    """A place of a decision: one, or those of a slate.

    Attributes:
        rewards: What came so far.
        learned: Whether the bandit has been given a reward for it.
    """

    rewards: Aggregate = field(default_factory=Aggregate)
    learned: bool = False


@dataclass(slots=True, kw_only=True)
class PendingDecision:
    """A decision whose rewards still count.

    Attributes:
        event_id: Its id.
        first: The number of its first place with the bandit; further places have the next numbers.
        made_at: When.
        is_active: Whether it counts.
        places: One, or those of a slate.
        reward_ids: Those that came.
        held: Rewards that came before it was active.
    """

    event_id: str
    first: int
    made_at: float
    is_active: bool
    places: list[PendingPlace]
    reward_ids: set[str] = field(default_factory=set)
    held: list[RewardRequest] = field(default_factory=list)


class PendingDecisions:
    """Decisions by id, in the order in which they were made.

    Examples:
        >>> waiting = PendingDecisions()
        >>> for name, at in {"e0": 0.0, "e1": 5.0}.items():
        ...     waiting.add(PendingDecision(event_id=name, first=0, made_at=at, is_active=True, places=[]))
        >>> [each.event_id for each in waiting.due(before=1.0, most=10)]
        ['e0']
    """

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, PendingDecision] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[PendingDecision]:
        return iter(self._by_id.values())

    def get(self, event_id: str) -> PendingDecision | None:
        """Returns a decision, if it is there."""
        return self._by_id.get(event_id)

    def add(self, decision: PendingDecision) -> None:
        """Takes a decision that was made after all others."""
        self._by_id[decision.event_id] = decision

    def remove(self, event_id: str) -> None:
        """Lets go of a decision."""
        del self._by_id[event_id]

    def due(self, *, before: float, most: int) -> list[PendingDecision]:
        """Returns the decisions that were made before a time, and the oldest of those that are too many."""
        out: list[PendingDecision] = []
        excess = len(self._by_id) - most
        for decision in self._by_id.values():
            if decision.made_at >= before and len(out) >= excess:
                break
            out.append(decision)
        return out
