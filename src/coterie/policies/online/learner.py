"""Any learner, with features that come from its own past: nothing of the future, nothing of the truth."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from coterie.contracts import ArmId, UserId
from coterie.errors import ParameterError, listed
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.policies.online.levels import Levels, levelled_pool

Count: TypeAlias = Literal["popularity", "friends"]
LEVELS: dict[str, Levels] = {"popularity": Levels(9), "friends": Levels(5)}


class Chooser(Protocol):
    """What is needed of a learner: a choice has an `arm`, and rewards can be learned."""

    def select(self, user: UserId, candidates: Any) -> Any:
        """Returns a choice."""
        ...

    def update(self, user: UserId, arm: ArmId, reward: float) -> None:
        """Learns a reward."""
        ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """An arm that was chosen."""

    arm: ArmId


class OnlineFeatures:
    """A learner whose arms have counts of its own past as features: hits of the arm, hits of it among friends.

    A hit is a reward above 0 that this learner was told. The learner inside plays with the arms at every level of
    these counts (`levelled_pool`); for a decision each candidate is taken at its level of the moment, and the reward
    is learned for the features as they were then, however late it comes.

    Args:
        make: Makes the learner inside from a pool of arms.
        graph: The learner's own graph: friends are the neighbours in it.
        arms: The pool.
        counts: Which features: "popularity", "friends" or both.

    Examples:
        >>> from coterie.policies import make_policy
        >>> graph, arms = UserGraph.from_edges([("ana", "bo")]), ArmPool([[0.0], [1.0]], ids=["tea", "milk"])
        >>> def make(pool):
        ...     return make_policy("pooled-linucb", graph=graph, arms=pool)
        >>> learner = OnlineFeatures(make, graph=graph, arms=arms)
        >>> learner.update("ana", "tea", 1.0)
        >>> learner.select("bo", ["tea", "milk"]).arm, learner.features_of("bo", "tea")
        ('milk', {'popularity': 1})
    """

    def __init__(
        self,
        make: Callable[[ArmPool], Chooser],
        *,
        graph: UserGraph,
        arms: ArmPool,
        counts: Iterable[Count] = ("popularity",),
    ) -> None:
        self._counts = tuple(counts)
        if not self._counts or len(set(self._counts)) != len(self._counts) or set(self._counts) - set(LEVELS):
            rule = f"they are one or more of {listed(LEVELS)}"
            raise ParameterError(f"counts are {self._counts!r}", rule, 'Choose, say, ("popularity",)')
        self._graph, self._arms = graph, arms
        self._levels = [LEVELS[each] for each in self._counts]
        self._inside = make(levelled_pool(arms, self._levels))
        self._hits: Counter[ArmId] = Counter()
        self._friends: Counter[tuple[UserId, ArmId]] = Counter()
        self._pending: dict[tuple[UserId, ArmId], int] = {}

    def select(self, user: UserId, candidates: Any) -> Chosen:
        """Returns the choice of the learner inside among these candidates as they stand now."""
        shown = {self._now(user, arm): arm for arm in candidates}
        levelled = self._inside.select(user, tuple(shown)).arm
        self._pending[user, shown[levelled]] = levelled
        return Chosen(shown[levelled])

    def update(self, user: UserId, arm: ArmId, reward: float) -> None:
        """Learns a reward for the arm as it stood when it was chosen, or as it stands now if it was not."""
        levelled = self._pending.get((user, arm))
        self._inside.update(user, self._now(user, arm) if levelled is None else levelled, reward)
        self._pending.pop((user, arm), None)
        if reward > 0:
            self._count(user, arm)

    @property
    def inside(self) -> Chooser:
        """The learner inside."""
        return self._inside

    def features_of(self, user: UserId, arm: ArmId) -> dict[str, int]:
        """Returns the counts of an arm for a user at this moment."""
        found = {"popularity": self._hits[arm], "friends": self._friends[user, arm]}
        return {each: found[each] for each in self._counts}

    def _count(self, user: UserId, arm: ArmId) -> None:
        self._hits[arm] += 1
        if "friends" in self._counts:
            self._friends.update((friend, arm) for friend in self._graph.neighbours(user))

    def _now(self, user: UserId, arm: ArmId) -> int:
        """Returns the row of an arm at its levels of this moment."""
        place = 0
        for count, levels in zip(self._counts, self._levels, strict=True):
            held = self._hits.get(arm, 0) if count == "popularity" else self._friends.get((user, arm), 0)
            place = place * levels.n_levels + levels.of(held)
        return place * len(self._arms) + self._arms.index_of(arm)
