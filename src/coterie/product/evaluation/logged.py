"""Decisions that somebody made and wrote down: whom for, among what, what was chosen, how probably, what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from coterie.contracts import LARGEST_REWARD, LEAST_PROPENSITY, PROPENSITY_RULE, REWARD_RULE, Array, Index
from coterie.errors import CandidatesError, DimensionError, InputError, ParameterError, RewardError
from coterie.logs.contexts import Contexts

SUM_ERROR = 1e-3  # what a decision's propensities may miss 1 by: logs are written with few digits
ONE_EACH = ("arms", "rewards", "propensities")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Logged:
    """A log of decisions, one row each; users and arms are rows of the graph and of the pool.

    Attributes:
        users: Whom each decision was made for.
        starts: Where the candidates of each decision start; one number more than decisions.
        candidates: Those of all decisions, one after another.
        arms: What was chosen.
        rewards: What came of it.
        propensities: With which probability the logger chose it, above 0.
        times: When, in any unit; none means in this order.
        chances: The logger's probability of every candidate, as `candidates`; none means that they were not written
            down. Only `switch-ips` needs them, and they show what the logger never chose.
        contexts: What was different about each moment; none where there are no contexts.
        slates: A number for each decision, the same for the places of a slate, which come in their order; none where
            each decision stands alone.
        shown_at: At which place of a slate each was shown, from 1; none means at the first.
        places: Where the chosen arm stands in `candidates`; computed.

    Examples:
        >>> log = Logged.of([0, 1], [[0, 1], [2, 0, 1]], [1, 2], [1.0, 0.5], [0.5, 0.2])
        >>> len(log), log.places
        (2, array([1, 2]))
    """

    users: Index
    starts: Index
    candidates: Index
    arms: Index
    rewards: Array
    propensities: Array
    times: Array | None = None
    chances: Array | None = None
    contexts: Contexts | None = None
    slates: Index | None = None
    shown_at: Index | None = None
    places: Index = field(init=False)

    def __post_init__(self) -> None:
        _check_lengths(self)
        object.__setattr__(self, "places", _places(self))
        _check_numbers(self)

    def __len__(self) -> int:
        return len(self.users)

    @classmethod
    def of(
        cls,
        users: Sequence[int],
        candidates: Sequence[Sequence[int]],
        arms: Sequence[int],
        rewards: Sequence[float],
        propensities: Sequence[float],
        *,
        times: Sequence[float] | None = None,
        chances: Sequence[Sequence[float]] | None = None,
        contexts: Sequence[Any] | None = None,
        slates: Sequence[int] | None = None,
        shown_at: Sequence[int] | None = None,
    ) -> "Logged":
        """Returns the log of plain lists, with a list of candidates for each decision.

        A context is a mapping from names to values, or a row of numbers; all are of the same names.
        """
        return cls(
            users=np.asarray(users, dtype=np.intp),
            starts=np.concatenate([[0], np.cumsum([len(each) for each in candidates])]).astype(np.intp),
            candidates=_joined(candidates, np.intp),
            arms=np.asarray(arms, dtype=np.intp),
            rewards=np.asarray(rewards, dtype=np.float64),
            propensities=np.asarray(propensities, dtype=np.float64),
            times=None if times is None else np.asarray(times, dtype=np.float64),
            chances=None if chances is None else _joined(chances, np.float64),
            contexts=None if contexts is None else Contexts.of(contexts),
            slates=None if slates is None else np.asarray(slates, dtype=np.intp),
            shown_at=None if shown_at is None else np.asarray(shown_at, dtype=np.intp),
        )

    @property
    def sizes(self) -> Index:
        """How many candidates each decision had."""
        return np.diff(self.starts)

    def shown(self, row: int) -> Index:
        """Returns the candidates of one decision."""
        return self.candidates[self.starts[row] : self.starts[row + 1]]

    def in_order(self) -> "Logged":
        """Returns the log in order of time; decisions of the same time stay in theirs, and a slate stays whole."""
        if self.slates is not None:
            return self.take(self._slate_order(self.slates))
        return self if self.times is None else self.take(np.argsort(self.times, kind="stable"))

    def _slate_order(self, slates: Index) -> Index:
        """Returns the rows by the time at which their slate begins, then slate by slate."""
        _, first, codes = np.unique(slates, return_index=True, return_inverse=True)
        begins = np.zeros(len(first))
        if self.times is not None:
            begins = np.full(len(first), np.inf)
            np.minimum.at(begins, codes, self.times)
        return np.lexsort((np.arange(len(self)), first[codes], begins[codes]))

    @property
    def slate_starts(self) -> Index:
        """Where slates start, if each is whole as `in_order` has them; every row, where decisions stand alone."""
        if self.slates is None:
            return np.arange(len(self))
        return np.concatenate([[0], np.flatnonzero(np.diff(self.slates)) + 1])

    def take(self, rows: Index) -> "Logged":
        """Returns these decisions, in this order."""
        sizes = self.sizes[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        flat = np.arange(starts[-1]) + np.repeat(self.starts[:-1][rows] - starts[:-1], sizes)
        parts: dict[str, Any] = {"starts": starts}
        for each in (column for column in fields(self) if column.init and column.name != "starts"):
            values = getattr(self, each.name)
            parts[each.name] = None if values is None else values.take(flat if each.name in PER_CANDIDATE else rows)
        return Logged(**parts)


PER_CANDIDATE = ("candidates", "chances")


def _joined(lists: Sequence[Sequence[Any]], kind: Any) -> Any:
    return np.concatenate([np.zeros(0, kind), *(np.asarray(each, dtype=kind) for each in lists)])


def _check_lengths(log: Logged) -> None:
    """Raises if the columns do not belong together, or a decision had no candidate."""
    n = len(log.users)
    lengths = {name: len(getattr(log, name)) for name in ONE_EACH} | {"starts": len(log.starts) - 1}
    given = {"times": log.times, "contexts": log.contexts, "slates": log.slates, "shown_at": log.shown_at}
    lengths |= {name: len(values) for name, values in given.items() if values is not None}
    if not n:
        raise InputError("the log is empty", "there is at least one decision", "Pass one with decisions")
    for name, length in lengths.items():
        if length != n:
            problem = f"there are {n} users and {length} {name}"
            raise DimensionError(problem, "there is one of each for a decision", "Pass columns of the same length")
    empty = np.flatnonzero(log.sizes < 1)
    if log.starts[0] != 0 or empty.size:
        row = int(empty[0]) if empty.size else 0
        raise CandidatesError(f"row {row}: there are no candidates", "there is at least one", "Mend or drop that row")
    flat = [len(log.candidates)] + ([] if log.chances is None else [len(log.chances)])
    if any(length != log.starts[-1] for length in flat):
        problem = f"the decisions have {log.starts[-1]} candidates, and the columns of candidates {flat}"
        raise DimensionError(problem, "there is one entry for each candidate", "Pass columns of the same length")


def check_rows(odd: Any, error: type[InputError], problem: Callable[[int], str], rule: str) -> None:
    """Raises if one of the decisions is odd, and says what of the first of them is."""
    rows = np.flatnonzero(odd)
    if rows.size:
        row = int(rows[0])
        raise error(f"row {row}: {problem(row)}", rule, "Mend or drop that row")


def _places(log: Logged) -> Index:
    """Returns where the chosen arms stand, or raises if one is no candidate or candidates repeat."""
    rows = np.repeat(np.arange(len(log)), log.sizes)
    order = np.lexsort((log.candidates, rows))
    again = (np.diff(log.candidates[order]) == 0) & (np.diff(rows[order]) == 0)
    twice = np.bincount(rows[order][1:][again], minlength=len(log))
    check_rows(twice, CandidatesError, lambda _: "a candidate is given twice", "they are distinct")
    places = np.flatnonzero(log.candidates == log.arms[rows])
    missing = np.bincount(rows[places], minlength=len(log)) == 0
    check_rows(
        missing,
        CandidatesError,
        lambda row: f"arm {log.arms[row]} was chosen among {log.shown(row).tolist()}",
        "what was chosen is a candidate",
    )
    return places


def _check_numbers(log: Logged) -> None:
    """Raises at the first reward, propensity or time that is none."""
    rewards, propensities, times, places = log.rewards, log.propensities, log.times, log.shown_at
    odd = ~(np.abs(rewards) <= LARGEST_REWARD)
    check_rows(odd, RewardError, lambda row: f"the reward is {rewards[row]}", REWARD_RULE)
    odd = ~((propensities >= LEAST_PROPENSITY) & (propensities <= 1))
    check_rows(odd, ParameterError, lambda row: f"the propensity is {propensities[row]}", PROPENSITY_RULE)
    if times is not None:
        check_rows(~np.isfinite(times), ParameterError, lambda row: f"the time is {times[row]}", "it is a number")
    if places is not None:
        check_rows(places < 1, ParameterError, lambda row: f"the place is {places[row]}", "places are counted from 1")
    if log.chances is not None:
        _check_chances(log, log.chances)


def _check_chances(log: Logged, chances: Array) -> None:
    sums = np.add.reduceat(chances, log.starts[:-1])
    least = np.minimum.reduceat(chances, log.starts[:-1])
    gap = np.abs(chances[log.places] - log.propensities)
    check_rows(
        ~((np.abs(sums - 1) <= SUM_ERROR) & (least >= 0) & (gap <= SUM_ERROR)),
        ParameterError,
        lambda row: (
            f"the candidates' probabilities are {chances[log.starts[row] : log.starts[row + 1]].tolist()}, "
            f"and the propensity is {log.propensities[row]}"
        ),
        f"they are >= 0, sum to 1 and agree with the propensity, within {SUM_ERROR:g}",
    )
