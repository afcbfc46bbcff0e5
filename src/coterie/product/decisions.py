"""What was decided, and the decisions that wait for their rewards: any order, any time, once each."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from coterie.algebra.giving_way import rest
from coterie.contracts import ArmId, Array, UserId
from coterie.errors import DecisionError
from coterie.errors.checks import is_whole
from coterie.kernels.input_space import InputSpace
from coterie.policies import Policy
from coterie.policies.rules.draws import Draws
from coterie.policies.rules.propensity import Propensities, exploration
from coterie.policies.rules.scores import Scored, ScoredBatch

T = TypeVar("T")


class Decision:
    """What was decided, to be shown to the user and rewarded later.

    Attributes:
        id: The decision's number, from 0; with the seed it fixes the decision's randomness.
        user: The user it was made for.
        arm: The arm chosen.
        mean: The posterior mean of the reward; P(reward = 1) where the likelihood is "bernoulli".
        std: The uncertainty of the belief, without noise.
        score: What the policy compared.
        explored: Whether uniform exploration chose another arm than the policy would have.
        certain: Whether the exact belief is proven to choose the same; None where nobody asked (`certified`), or where
            uniform exploration chose.
    """

    __slots__ = (
        "_found",
        "_scored",
        "_seed",
        "_share",
        "_shown",
        "arm",
        "certain",
        "explored",
        "id",
        "mean",
        "score",
        "std",
        "user",
    )

    def __init__(
        self,
        *,
        number: int,
        user: UserId,
        shown: list[ArmId],
        place: int,
        mean: float,
        std: float,
        score: float,
        explored: bool,
        share: float,
        scored: "Scored | Callable[[], Scored]",
        seed: int,
        certain: bool | None = None,
    ) -> None:
        self.id, self.user, self.arm = number, user, shown[place]
        self.mean, self.std, self.score, self.explored = mean, std, score, explored
        self.certain = certain
        self._shown, self._share, self._scored, self._seed = shown, share, scored, seed
        self._found: Propensities | None = None

    def __repr__(self) -> str:
        return (
            f"Decision(id={self.id}, user={self.user!r}, arm={self.arm!r}, propensity={self.propensity}, "
            f"mean={self.mean:.4g}, std={self.std:.4g})"
        )

    def __eq__(self, other: object) -> bool:
        """Returns whether it is the same decision, with the same belief: as one that was replayed is."""
        return isinstance(other, Decision) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[Any, ...]:
        made = self.id, self.user, self.arm, self.explored, self.certain
        return (*made, self.mean, self.std, self.score, tuple(self._shown))

    @property
    def propensity(self) -> float | None:
        """The probability with which this arm was to be chosen; none where it is not known."""
        found = self._propensities()
        return None if found is None else float(found.probabilities[self._shown.index(self.arm)])

    @property
    def propensity_error(self) -> float | None:
        """The standard error of the propensity where it was simulated (joint Thompson sampling)."""
        found = self._propensities()
        if found is None or found.standard_errors is None:
            return None
        return float(found.standard_errors[self._shown.index(self.arm)])

    @property
    def candidates(self) -> dict[ArmId, "Candidate"]:
        """What was believed of every candidate when the decision was made."""
        found = self._propensities()
        known = [None] * len(self._shown) if found is None else found.probabilities.tolist()
        scored = self._believed()
        means, stds = scored.shown
        together = zip(self._shown, means.tolist(), stds.tolist(), known, scored.score.tolist(), strict=True)
        return {arm: Candidate(*believed) for arm, *believed in together}

    def _believed(self) -> Scored:
        """Returns what was believed then."""
        return self._scored if isinstance(self._scored, Scored) else self._scored()

    def _propensities(self) -> Propensities | None:
        """Returns the propensities, computed when they are first asked for, from what was believed then."""
        if self._found is None:
            believed = self._believed()
            simulated = believed.rule.is_joint  # only then numbers are drawn, and a generator is dear
            rng = np.random.default_rng([self._seed, self.id]) if simulated else None
            found = believed.propensities(rng)
            self._found = None if found is None else found.with_exploration(self._share)
        return self._found


def decision_number(decision: Any) -> int:
    """Returns the id of a decision as a plain number, or raises if it is none.

    Examples:
        >>> decision_number(np.int64(3))
        3
    """
    if is_whole(decision):
        return int(decision)
    what, remedy = f"decision {decision!r} is unknown", "Pass the id of a Decision"
    if isinstance(decision, Decision):
        what, remedy = "the decision is a whole Decision", "Pass decision.id"
    raise DecisionError(what, "decisions are numbered from 0", remedy)


class Candidate(NamedTuple):
    """What was believed of a candidate when a decision was made.

    Attributes:
        mean: The posterior mean of its reward.
        std: The posterior std, without noise.
        propensity: The probability with which it was to be chosen; None where it is not known.
        score: What the policy compared: the highest was chosen, unless uniform exploration chose.
    """

    mean: float
    std: float
    propensity: float | None
    score: float


def decisions_of(
    policy: Policy, batch: ScoredBatch, shown: list[ArmId], *, draws: Draws, min_propensity: float, seed: int
) -> Iterator[tuple[int, int, Decision]]:
    """Yields the user's row, the position of the chosen candidate, and the decision, one after another."""
    best = batch.best.tolist()
    shares, places = [0.0] * len(best), best
    if min_propensity > 0:
        numbers = range(batch.first, batch.first + len(best))
        drawn = [exploration(draws, number, len(shown), min_propensity) for number in numbers]
        shares = [share for share, _ in drawn]
        places = [chosen if place is None else place for chosen, (_, place) in zip(best, drawn, strict=True)]
    at = np.arange(len(best)), np.array(places, dtype=np.intp)
    means, stds, scores = batch.mean[at].tolist(), batch.std[at].tolist(), batch.score[at].tolist()
    for i, (row, place) in enumerate(zip(batch.rows, places, strict=True)):
        yield (
            row,
            place,
            Decision(
                number=batch.first + i,
                user=policy.graph.user_at(row),
                shown=shown,
                place=place,
                mean=means[i],
                std=stds[i],
                score=scores[i],
                explored=place != best[i],
                share=shares[i],
                scored=partial(batch.at, i),
                seed=seed,
            ),
        )


PART = 1000  # pending decisions
GUEST = -1  # the row of an arm that was a candidate of one request only


class Pending(NamedTuple):
    """A decision whose reward has not come.

    Attributes:
        user: For whom.
        arm: The row of the arm; `GUEST` where it is not of the pool.
        made_at: When; 0 where nothing expires.
        input: The arm in its context, as the model knows it; None where there are no contexts.
        guest: The id of an arm that is not of the pool.
        examined: How likely its place is looked at beside the first, where that is given; else 1.
    """

    user: int
    arm: int
    made_at: float
    input: Array | None = None
    guest: ArmId | None = None
    examined: float = 1.0

    def with_features(self, inputs: InputSpace | None) -> "Pending":
        """Returns the decision with the features that its arm has by now, if it is of the pool and has a context."""
        if inputs is None or self.input is None or self.arm == GUEST:
            return self
        return self._replace(input=inputs.with_arm(self.input, self.arm))


Row: TypeAlias = tuple[int, int, float, Array | None, ArmId | None, float]  # of a `Pending`


class Mark(NamedTuple):
    """The tables of a ledger, to go back to."""

    waiting: "OrderedDict[int, Row]"
    settled: "OrderedDict[int, int]"


class LedgerTables(NamedTuple):
    """All that a ledger knows, for later.

    Attributes:
        numbers: Those of the pending decisions, oldest first.
        pending: These decisions, as plain tuples.
        settled: The numbers of the settled decisions that are remembered.
        events: Those of their rewards.
    """

    numbers: list[int]
    pending: list[Row]
    settled: list[int]
    events: list[int]

    def column(self, field: str) -> list[Any]:
        """Returns one field of each pending decision, looked up in parts, between which a thread may give way."""
        place, firsts = Pending._fields.index(field), range(0, len(self.pending), PART)
        return [value for first in firsts for value in self._part(place, first)]

    def _part(self, place: int, first: int) -> list[Any]:
        rest()
        return [row[place] for row in self.pending[first : first + PART]]


class Ledger:
    """The pending decisions, oldest first, and where the rewards of settled ones went.

    Args:
        limit: How many pending decisions are remembered; the oldest are forgotten first. As many settled ones are.
        expire_after: Seconds after which a decision is forgotten; none means never.
        clock: Tells the time in seconds.

    Examples:
        >>> ledger = Ledger(limit=2, expire_after=None, clock=lambda: 0.0)
        >>> for number in range(3):
        ...     ledger.open(number, user=0, arm=number)
        >>> [number for number, _ in ledger.pending()]
        [1, 2]
        >>> ledger.settle(1, event=0).arm
        1
    """

    def __init__(self, *, limit: int, expire_after: float | None, clock: Callable[[], float]) -> None:
        self.limit = limit
        self.expire_after = expire_after
        self._clock = clock
        # Plain tuples, each a `Pending`: the garbage collector stops following those, and there may be many.
        self._open: OrderedDict[int, Row] = OrderedDict()
        self._settled: OrderedDict[int, int] = OrderedDict()
        self._done: list[tuple[int, Row | None, int | None]] = []  # what to undo, since `begin`
        self._was_moved = False  # whether the tables' own order may be another than that of their dicts

    def __len__(self) -> int:
        self._expire()
        return len(self._open)

    def begin(self) -> "Mark":
        """Returns a mark to roll back to; there is one at a time."""
        self._done = []
        return Mark(self._open, self._settled)

    def roll_back(self, mark: "Mark") -> None:
        """Takes back everything since the mark; can be repeated.

        Examples:
            >>> ledger = Ledger(limit=2, expire_after=None, clock=lambda: 0.0)
            >>> for number in range(2):
            ...     ledger.open(number, user=0, arm=number)
            >>> mark = ledger.begin()
            >>> ledger.open(2, user=0, arm=2), ledger.settle(1, event=0) and None
            (None, None)
            >>> ledger.roll_back(mark)
            >>> [number for number, _ in ledger.pending()], list(ledger.settled())
            ([0, 1], [])
        """
        self._open, self._settled = mark
        self._was_moved = True
        for number, waited, event in reversed(self._done):
            _put(self._open, number, waited)
            _put(self._settled, number, event)
            if event is not None:  # only the first to come are ever dropped
                self._settled.move_to_end(number, last=False)
        if any(waited is not None for _, waited, _ in self._done):
            for number in sorted(self._open):  # they were made in this order
                self._open.move_to_end(number)

    def pending(self) -> Iterator[tuple[int, Pending]]:
        """Yields the pending decisions, oldest first."""
        self._expire()
        yield from ((number, Pending._make(row)) for number, row in self._open.items())

    def settled(self) -> Iterator[tuple[int, int]]:
        """Yields the settled decisions that are remembered, and the number of their event."""
        yield from self._settled.items()

    def tables(self) -> LedgerTables:
        """Returns what `pending` and `settled` yield, column by column: that makes no tuple for each of them.

        Where a rollback has moved some they are sorted: decisions are numbered in their order, and events in theirs.

        Examples:
            >>> ledger = Ledger(limit=3, expire_after=None, clock=lambda: 0.0)
            >>> for number in range(3):
            ...     ledger.open(number, user=0, arm=number)
            >>> ledger.settle(2, event=0).arm, ledger.settle(0, event=1).arm
            (2, 0)
            >>> tables = ledger.tables()
            >>> tables.numbers, tables.settled, tables.events, tables.column("arm")
            ([1], [2, 0], [0, 1], [1])
        """
        self._expire()
        if not self._was_moved:  # a plain dict's columns need not be followed from one to the next
            return LedgerTables(*_columns(self._open), *_columns(self._settled))
        waiting, settled = dict(sorted(self._open.items())), dict(sorted(self._settled.items(), key=itemgetter(1)))
        return LedgerTables(*_columns(waiting), *_columns(settled))

    def open(
        self,
        number: int,
        *,
        user: int,
        arm: int,
        made_at: float | None = None,
        input: Array | None = None,
        guest: ArmId | None = None,
        examined: float = 1.0,
    ) -> None:
        """Remembers a decision."""
        if made_at is None:
            made_at = 0.0 if self.expire_after is None else self._clock()
        self._note(number)
        self._open[number] = user, arm, made_at, input, guest, examined
        self._expire()
        while len(self._open) > self.limit:
            self._drop_oldest()

    def is_open(self, number: int) -> bool:
        """Returns whether a decision is pending."""
        self._expire()
        return number in self._open

    def look(self, number: int, *, n_decisions: int) -> Pending:
        """Returns a pending decision, or raises and says why there is none."""
        self._expire()
        if number in self._open:
            return Pending._make(self._open[number])
        if number in self._settled:
            raise DecisionError(
                f"decision {number!r} was rewarded already",
                "a decision is rewarded once",
                "Pass replace=True if this reward takes the place of the first",
            )
        if not 0 <= number < n_decisions:
            raise DecisionError(
                f"decision {number!r} is unknown",
                f"decisions are numbered from 0 to {n_decisions - 1}" if n_decisions else "no decision was made yet",
                "Pass the id of a Decision",
            )
        raise DecisionError(
            f"decision {number!r} is no longer remembered: its user or arm was removed, or it has waited too long",
            f"at most {self.limit} pending decisions are kept, {self._how_long()}, while their user and arm are there",
            "Use learn(user, arm, reward), or raise max_pending or expire_after",
        )

    def _how_long(self) -> str:
        return "for any time" if self.expire_after is None else f"for {self.expire_after:g} seconds"

    def settle(self, number: int, *, event: int) -> Pending:
        """Takes a decision off the pending ones and remembers its event."""
        self._note(number)
        decision = Pending._make(self._open.pop(number))
        self._settled[number] = event
        while len(self._settled) > self.limit:
            self._note(next(iter(self._settled)))
            self._settled.popitem(last=False)
        return decision

    def remember(self, settled: Iterable[tuple[int, int]]) -> None:
        """Takes over settled decisions and their events."""
        self._settled = OrderedDict((number, event) for number, event in settled)

    def event_of(self, number: int) -> int | None:
        """Returns the event of a settled decision, if it is remembered."""
        return self._settled.get(number)

    def renumber(
        self, places: dict[int, int], users: dict[int, int], arms: dict[int, int], inputs: InputSpace | None = None
    ) -> None:
        """Follows events, users and arms to new rows; what concerns one that is gone is forgotten.

        Where arms have contexts, what was chosen has the features that it has by now.
        """
        kept = [
            (number, each._replace(user=users[each.user], arm=arms.get(each.arm, GUEST)))
            for number, each in ((number, Pending._make(row)) for number, row in self._open.items())
            if each.user in users and (each.arm in arms or each.arm == GUEST)
        ]
        self._open = OrderedDict((number, _row_of(each.with_features(inputs))) for number, each in kept)
        self._settled = OrderedDict(
            (number, places[event]) for number, event in self._settled.items() if event in places
        )

    def _expire(self) -> None:
        if self.expire_after is None:
            return
        oldest = self._clock() - self.expire_after
        while self._open and Pending._make(next(iter(self._open.values()))).made_at < oldest:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._note(next(iter(self._open)))
        self._open.popitem(last=False)

    def _note(self, number: int) -> None:
        """Remembers what is known of a decision before that changes."""
        self._done.append((number, self._open.get(number), self._settled.get(number)))


def _row_of(pending: Pending) -> Row:
    user, arm, made_at, input, guest, examined = pending
    return user, arm, made_at, input, guest, examined


def _put(table: "OrderedDict[int, Any]", number: int, value: Any) -> None:
    """Lets a table hold this for a number; nothing for None."""
    if value is None:
        table.pop(number, None)
    else:
        table[number] = value


def _columns(table: dict[int, T]) -> tuple[list[int], list[T]]:
    """Returns keys and values, in the order in which they came to the dict."""
    return list(dict.keys(table)), list(dict.values(table))
