"""The decisions of an experiment as a log that other policies are judged by.

Propensities are those that were answered. Rewards, contexts and slates are in the lines of the bandit's journal, which
the events hold; candidates too, where a request named some.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET

from coterie.errors import InputError, counted
from coterie.logs.contexts import Contexts
from coterie.logs.log import Events, Log, Ragged
from coterie.product.bandit import Bandit
from coterie.product.files.recording import Told
from coterie.service.engine.events import Created, Decided, Line, Reset, decode
from coterie.service.journal import Event


class Made(NamedTuple):
    """A decision, or a place of a slate, as it was made.

    Attributes:
        user: For whom.
        arm: What was chosen.
        propensity: With which probability.
        shown: Among which arms.
        at: When.
    """

    user: str
    arm: str
    propensity: float | None
    shown: tuple[str, ...]
    at: float


class LoggedDecisions:
    """The decisions since the last reset, by their numbers with the bandit, and what the bandit's lines say of them."""

    def __init__(self) -> None:
        self._pool: dict[str, None] = {}
        self._retired: set[str] = set()
        self._active: tuple[str, ...] | None = None
        self.made: dict[int, Made] = {}
        self.told = Told()

    def add(self, event: Event) -> None:
        """Takes an event into account, in the order of the journal."""
        body = decode(event.body)
        if isinstance(body, Created):
            self._pool = dict.fromkeys(arm.id for arm in body.experiment.arms)
        if isinstance(body, Reset):
            self.made, self.told = {}, Told()
        for line in body.changes:
            self.told.add(line)
            self._follow_arms(line)
        if isinstance(body, Decided):
            self._decided(body, event.at)

    def _decided(self, body: Decided, at: float) -> None:
        left = self._shown(body.changes[-1]["with"].get("candidates"))
        first, slate = body.answer, body.answer.slate
        for place, (arm, chance) in enumerate(
            [(first.arm, first.propensity)] if slate is UNSET else [(each.arm, each.propensity) for each in slate]
        ):
            self.made[body.first + place] = Made(body.user, arm, chance, left, at)
            left = left if slate is UNSET else tuple(each for each in left if each != arm)

    def _shown(self, candidates: Any) -> tuple[str, ...]:
        if isinstance(candidates, dict):
            return tuple(arm for arm, _ in candidates["pairs"])
        if candidates is not None:
            return tuple(candidates)
        if self._active is None:
            self._active = tuple(arm for arm in self._pool if arm not in self._retired)
        return self._active

    def _follow_arms(self, line: Line) -> None:
        """Follows which arms there are, and which of them are shown where a request names none."""
        match line["call"]:
            case "add_arms":
                self._pool |= dict.fromkeys(line["with"]["arms"]["ids"])
            case "decide" | "rank" if line["with"].get("keep"):
                self._pool |= dict.fromkeys(arm for arm, _ in line["with"]["candidates"]["pairs"])
            case "retire_arms":
                self._retired.update(line["with"]["arms"])
            case "revive_arms":
                self._retired.difference_update(line["with"]["arms"])
            case _:
                return
        self._active = None


def log_of(bandit: Bandit, events: Iterable[Event]) -> Log:
    """Returns the decisions with a reward, on the graph and with the arms that a bandit has.

    Args:
        bandit: Of the experiment; only its graph, its arms and its schema are asked for.
        events: All of the experiment.
    """
    found = LoggedDecisions()
    for event in events:
        found.add(event)
    graph, arms, schema = bandit.graph, bandit.arms, bandit.context_schema
    rewarded = {number: each for number, each in found.made.items() if number in found.told.rewards}
    known = {number: each for number, each in rewarded.items() if each.user in graph.index}
    kept = {number: each for number, each in known.items() if all(arm in arms.index for arm in each.shown)}
    _check_kept(kept)
    left_out = {
        "without a reward": len(found.made) - len(rewarded),
        "for users who are gone": len(rewarded) - len(known),
        "among arms that came with the request": len(known) - len(kept),
    }
    has_contexts = schema is not None and bool(schema.fields)
    contexts = Contexts.of([found.told.contexts.get(each) for each in kept], schema) if has_contexts else None
    return Log(
        graph=graph,
        arms=arms if arms.has_features else arms.ids,
        events=_events(kept, found.told, graph.index, arms.index, contexts),
        left_out={what: count for what, count in left_out.items() if count},
    )


def _check_kept(kept: Mapping[int, Made]) -> None:
    if not kept:
        rule = "policies are judged by decisions and what came of them"
        raise InputError("no decision of this experiment has a reward", rule, "Wait for rewards")
    unknown = sum(each.propensity is None for each in kept.values())
    if unknown:
        what, rule = f"{counted(unknown, 'decision')} of {len(kept)} have no propensity", "each needs one"
        raise InputError(what, rule, "Use a policy whose propensities are known, such as auto-ts")


def _events(
    kept: Mapping[int, Made],
    told: Told,
    users: Mapping[Any, int],
    arms: Mapping[Any, int],
    contexts: Contexts | None,
) -> Events:
    """Returns decisions as a log has them, in columns."""
    made = list(kept.values())
    slate, place = np.array([told.ranked.get(number, (-1, -1)) for number in kept], dtype=np.int64).T
    has_slates = bool((slate >= 0).any())
    return Events(
        user=np.array([users[each.user] for each in made], dtype=np.int64),
        arm=np.array([arms[each.arm] for each in made], dtype=np.int64),
        reward=np.array([told.rewards[number] for number in kept], dtype=np.float64),
        candidates=Ragged.of([[arms[arm] for arm in each.shown] for each in made]),
        propensity=np.array([each.propensity for each in made], dtype=np.float64),
        time=np.array([each.at for each in made], dtype=np.float64),
        context=contexts,
        slate=slate if has_slates else None,
        place=place if has_slates else None,
    )
