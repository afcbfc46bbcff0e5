"""The decisions that wait for rewards, oldest first."""

from collections import OrderedDict
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from coterie.service.engine.aggregates import Aggregate
from coterie.service.records import RewardRequest


class PendingDecision(Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """A decision whose rewards still count. It never changes: another takes its place.

    Attributes:
        event_id: Its id.
        first: The number of its first place with the bandit; further places have the next numbers.
        made_at: When.
        is_active: Whether it counts.
        places: What came for each place and was learned, none for nothing: one, or those of a slate.
        reward_ids: Those that came.
        held: Rewards that came before it was active.
    """

    event_id: str
    first: int
    made_at: float
    is_active: bool
    places: tuple[Aggregate | None, ...]
    reward_ids: tuple[str, ...] = ()
    held: tuple[RewardRequest, ...] = ()

    def activated(self) -> "PendingDecision":
        """Returns it as one that counts; rewards that were held are to come again, and count then."""
        again = {each.reward_id for each in self.held}
        kept = tuple(each for each in self.reward_ids if each not in again)
        return replace(self, is_active=True, held=(), reward_ids=kept)

    def with_id(self, reward_id: str | None) -> "PendingDecision":
        """Returns it as one for which this reward came."""
        return self if reward_id is None else replace(self, reward_ids=(*self.reward_ids, reward_id))

    def with_held(self, reward: RewardRequest) -> "PendingDecision":
        """Returns it as one that holds this reward until it is active."""
        return replace(self, held=(*self.held, reward))

    def together(self, reward: RewardRequest) -> Aggregate:
        """Returns what a reward and those before it at its place come to."""
        before = self.places[reward.place - 1]
        return Aggregate.of(reward.value) if before is None else before.with_one(reward.value)

    def with_learned(self, reward: RewardRequest) -> "PendingDecision":
        """Returns it as one of which this reward was learned."""
        places = list(self.places)
        places[reward.place - 1] = self.together(reward)
        return replace(self, places=tuple(places))


class PendingDecisions:
    """Decisions by id, in the order in which they were made.

    Attributes:
        n_places: How many places they have in all.

    Examples:
        >>> waiting = PendingDecisions()
        >>> for name, at in {"e0": 0.0, "e1": 5.0}.items():
        ...     waiting.put(PendingDecision(event_id=name, first=0, made_at=at, is_active=True, places=(None,)))
        >>> [each.event_id for each in waiting.due(before=1.0, most=10)], len(list(waiting.due(before=0.0, most=1)))
        (['e0'], 1)
    """

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, PendingDecision] = OrderedDict()
        self.n_places = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[PendingDecision]:
        return iter(dict.values(self._by_id))  # as OrderedDict, but many times faster: nothing is ever moved

    def get(self, event_id: str) -> PendingDecision | None:
        """Returns a decision, if it is there."""
        return self._by_id.get(event_id)

    def put(self, decision: PendingDecision) -> None:
        """Takes a decision that was made after all others, or what one of them is by now."""
        if decision.event_id not in self._by_id:
            self.n_places += len(decision.places)
        self._by_id[decision.event_id] = decision

    def remove(self, event_id: str) -> None:
        """Lets go of a decision."""
        self.n_places -= len(self._by_id.pop(event_id).places)

    def due(self, *, before: float, most: int) -> Iterator[PendingDecision]:
        """Yields the decisions that were made before a time, and the oldest of those that have places too many."""
        excess = self.n_places - most
        for decision in self._by_id.values():
            if decision.made_at >= before and excess <= 0:
                return
            excess -= len(decision.places)
            yield decision
