"""A slate: an ordered list of decisions, one for each place, and what a place does to a reward."""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, Self

from coterie.contracts import ArmId, UserId
from coterie.errors import ParameterError, counted
from coterie.errors.checks import as_list, check_whole, is_number
from coterie.policies.factory.ingredients import LEARNED
from coterie.product.decisions import Decision

LEAST_EXAMINED = 1e-3  # a reward at a place is divided by this, and weighs its square
PLACES_RULE = (
    f"it is {LEARNED!r}, None, or how likely each place is looked at beside the first: numbers from {LEAST_EXAMINED:g} "
    "to 1, the first 1"
)


class Slate(tuple[Decision, ...]):
    """The places of a slate, in order: each is a decision among the candidates that those before it left.

    A place is rewarded by itself: `bandit.reward(slate[2].id, 1.0)`; or all of them at once:
    `bandit.reward_many([place.id for place in slate], [0, 0, 1])`.

    Attributes:
        context: That of all places, as it was given.
    """

    context: Any

    def __new__(cls, decisions: Iterable[Decision], context: Any = None) -> Self:
        """Returns the slate of these decisions."""
        out = super().__new__(cls, decisions)
        out.context = context
        return out

    def __repr__(self) -> str:
        return f"Slate(id={self.id}, user={self.user!r}, arms={list(self.arms)!r}, propensity={self.propensity})"

    @property
    def id(self) -> int:
        """The id of the slate: that of its first decision."""
        return self[0].id

    @property
    def user(self) -> UserId:
        """The user it was made for."""
        return self[0].user

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decision of each place."""
        return tuple(self)

    @property
    def arms(self) -> tuple[ArmId, ...]:
        """The arm of each place."""
        return tuple(each.arm for each in self)

    @property
    def propensity(self) -> float | None:
        """The probability of this slate, the product of its places' propensities; none where one is not known."""
        known = [each.propensity for each in self]
        return None if None in known else prod(each for each in known if each is not None)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields a row for each place, for a log of slates.

        It has `slate` (its id), `place` (from 1), `decision`, `user`, `arm`, `candidates` (those that were left, in
        order), `propensity` (given the places before it) and `context` (as it was given).
        """
        for place, each in enumerate(self, start=1):
            yield {
                "slate": self.id,
                "place": place,
                "decision": each.id,
                "user": each.user,
                "arm": each.arm,
                "candidates": list(each.candidates),
                "propensity": each.propensity,
                "context": self.context,
            }


def checked_places(places: Any, likelihood: str) -> str | list[float] | None:
    """Returns the effect of places: learned, given, or none; raises if it is no such.

    Examples:
        >>> checked_places((1, 0.5), "gaussian")
        [1.0, 0.5]
        >>> checked_places([0.9, 0.5], "gaussian")
        Traceback (most recent call last):
        coterie.errors.ParameterError: places is [0.9, 0.5]; it is 'learned', None, or ... Divide all by the first.
    """
    if places is None or (isinstance(places, str) and places == LEARNED):
        return places
    given = [] if isinstance(places, str | bytes) else as_list("places", places)
    if not given or not all(is_number(each) and LEAST_EXAMINED <= each <= 1 for each in given):
        raise ParameterError(f"places is {places!r}", PLACES_RULE, "Pass, say, [1.0, 0.6, 0.4]")
    if given[0] != 1:
        raise ParameterError(f"places is {places!r}", PLACES_RULE, "Divide all by the first")
    if likelihood != "gaussian":
        what = f"effects of places were given with likelihood {likelihood!r}"
        raise ParameterError(what, "a reward is learned as one over them, which is neither 0 nor 1", 'Use "gaussian"')
    return [float(each) for each in given]


def examined_at(examination: list[float], place: Any) -> float:
    """Returns how likely a place, from 1, is looked at beside the first; 1 where places have no given effect."""
    check_whole("place", place)
    if not examination:
        return 1.0
    if place > len(examination):
        what, rule = f"place {place} was asked for", f"places has {counted(len(examination), 'number')}, one for each"
        raise ParameterError(what, rule, "Lower k, or make the bandit with more")
    return examination[int(place) - 1]
