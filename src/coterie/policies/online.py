"""Features of a learner's own past: hits of an arm so far, and hits of it among a user's friends."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from coterie.contracts import ArmId, Array, UserId
from coterie.errors import ParameterError, listed
from coterie.errors.checks import is_whole
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool


@dataclass(frozen=True, slots=True)
class Levels:
    """Counts in steps that double: 0, 1, 2, 3 to 4, 5 to 8, and so on up to a last one without end.

    Models work on a fixed pool, so a count cannot be a number of its own; and log(1 + count), which is what matters,
    changes little within a step.

    Attributes:
        n_levels: How many steps there are; with 9 the last is 65 and more.

    Examples:
        >>> [Levels(5).of(count) for count in (0, 1, 2, 3, 4, 5, 8, 9, 1000)]
        [0, 1, 2, 3, 3, 4, 4, 4, 4]
        >>> Levels(9).least
        (0, 1, 2, 3, 5, 9, 17, 33, 65)
    """

    n_levels: int = 9

    def __post_init__(self) -> None:
        if not is_whole(self.n_levels, 2, 30):
            raise ParameterError(f"n_levels is {self.n_levels!r}", "it is a whole number from 2 to 30", "Choose 9")

    @property
    def least(self) -> tuple[int, ...]:
        """The least count of each level."""
        return (0, 1, *(2**power + 1 for power in range(self.n_levels - 2)))

    def of(self, count: int) -> int:
        """Returns the level of a count."""
        return min((count - 1).bit_length() + 1, self.n_levels - 1) if count > 0 else 0

    def column(self, length: float) -> Array:
        """Returns the feature of each level: log(1 + least count), the last one being of this length."""
        values = np.log1p(self.least)
        return np.asarray(values * (length / values[-1]))


def levelled_pool(arms: ArmPool, columns: Sequence[Levels]) -> ArmPool:
    """Returns the arms at every combination of levels, with a feature for each of these counts.

    Row and id of an arm at levels (i, j) is (i * n_j + j) * n_arms + the arm's row. The last level is as long as the
    arms' own features are (their root mean square length): then at the start a linear model takes what is very
    popular to be as telling as all that is known of an arm, and a kernel of distances keeps an arm's levels about as
    far apart as arms. With the spread of a single column instead, one among many, popularity would come last.

    Examples:
        >>> pool = levelled_pool(ArmPool([[3.0], [-1.0]], ids=["tea", "milk"]), [Levels(3)])
        >>> len(pool), pool.features[:, 1].round(2)
        (6, array([0.  , 0.  , 1.41, 1.41, 2.24, 2.24]))
    """
    length = float(np.sqrt(np.mean(np.sum(arms.features**2, axis=1)))) or 1.0
    grids = np.meshgrid(*(each.column(length) for each in columns), indexing="ij")
    counts = np.stack([grid.ravel() for grid in grids], axis=1)
    own = np.tile(arms.features, (len(counts), 1))
    return ArmPool(np.hstack([own, np.repeat(counts, len(arms), axis=0)]))


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

    A hit is a reward above 0 that this learner has learned. The learner inside plays with the arms at every level of
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


class MostHits:
    """Chooses the candidate with the most hits so far, ties at random; a hit is a reward above 0 that it learned.

    Args:
        seed: Of the ties.

    Examples:
        >>> rule = MostHits(seed=0)
        >>> rule.update("ana", "tea", 1.0)
        >>> rule.select("bo", ["milk", "tea"]).arm
        'tea'
    """

    __slots__ = ("_hits", "_rng")

    def __init__(self, *, seed: int = 0) -> None:
        self._hits: Counter[ArmId] = Counter()
        self._rng = np.random.default_rng(seed)

    def select(self, user: UserId, candidates: Any) -> Chosen:  # noqa: ARG002 - the same for everybody
        """Returns the choice."""
        hits = [self._hits.get(arm, 0) for arm in candidates]
        best = [arm for arm, count in zip(candidates, hits, strict=True) if count == max(hits)]
        return Chosen(best[int(self._rng.integers(len(best)))])

    def update(self, user: UserId, arm: ArmId, reward: float) -> None:  # noqa: ARG002 - the same for everybody
        """Counts a hit."""
        if reward > 0:
            self._hits[arm] += 1
