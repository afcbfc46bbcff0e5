"""What policies are judged on: the decisions of a log in tables, or of a bandit's journal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from coterie.contracts import Array, Index
from coterie.errors import InputError, counted, listed
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.logs.contexts import Contexts
from coterie.logs.log import Events, Log, Ragged
from coterie.logs.slates import candidates_left, in_slates, slate_order
from coterie.policies.auto.context_policy import ContextPolicy
from coterie.product.bandit import Bandit
from coterie.product.decisions import Decision
from coterie.product.evaluation.logged import Logged
from coterie.product.files.recording import Steady
from coterie.product.files.replaying import JournalLines
from coterie.product.files.saving import load_bandit

Kept: TypeAlias = Sequence[tuple[Decision, Mapping[Any, float]]]  # and the probability of each candidate
FEWEST = 20  # decisions, of which half are learned
MOST_INDICATORS = 2000  # arms that may have an indicator each: their features are a square
MOST_CANDIDATES = 50_000_000  # about 5 GB while they are sorted and predicted


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What policies are judged on.

    Attributes:
        logged: The decisions.
        graph: Who is near whom.
        arms: The arms.
        notes: What was made of things that were not logged, a sentence each.
    """

    logged: Logged
    graph: UserGraph
    arms: ArmPool
    notes: tuple[str, ...] = ()


def check_long(found: Material) -> None:
    """Raises if there are too few decisions to judge by."""
    if len(found.logged) < FEWEST:
        what, rule = f"the log has {counted(len(found.logged), 'decision')}", f"fewer than {FEWEST} say nothing"
        raise InputError(what, rule, "Bring a longer log; hundreds are few")


def without_edges(graph: UserGraph) -> UserGraph:
    """Returns the same users, who have nothing to do with each other.

    Examples:
        >>> without_edges(UserGraph.from_edges([("ana", "bo")]))
        UserGraph(n_users=2, n_edges=0)
    """
    return UserGraph.from_matrix(sp.csr_array((graph.n_users, graph.n_users)), users=graph.users)


def material_of(
    log: Log, *, graph: bool = True, contexts: bool = True, most_candidates: int = MOST_CANDIDATES
) -> Material:
    """Returns the decisions of a log, its graph and its arms.

    Candidates that were not logged are all arms, but for those that earlier places of a slate show. Arms without
    features have one indicator each.

    Args:
        log: What was read; every event needs its propensity, and if one has a time, all do.
        graph: Whether to keep the edges.
        contexts: Whether to keep the contexts.
        most_candidates: How many candidates of all events together may be.

    Examples:
        >>> from coterie.graphs import UserGraph
        >>> people = UserGraph.from_edges([("ana", "bo")])
        >>> columns = {"user": np.array([0, 1]), "arm": np.array([1, 0]), "reward": np.array([1.0, 0.0])}
        >>> log = Log(graph=people, arms=("tea", "milk"), events=Events(propensity=np.array([0.5, 0.5]), **columns))
        >>> found = material_of(log)
        >>> found.logged.shown(0), found.arms.features.tolist()
        (array([0, 1]), [[1.0, 0.0], [0.0, 1.0]])
    """
    events = log.events if contexts else replace(log.events, context=None)
    log = replace(log, events=events)
    logged = _decisions(events, len(log.arm_ids), most_candidates=most_candidates)
    people = log.graph if graph else without_edges(log.graph)
    return Material(logged, people, _pool(log), tuple(_notes_of_log(log, with_graph=graph)))


def _decisions(events: Events, n_arms: int, *, chances: Array | None = None, most_candidates: float = inf) -> Logged:
    """Returns the decisions that events are, in order and each slate whole; `chances` are one for each candidate."""
    starts, candidates = _candidates(candidates_left(events, n_arms), len(events), n_arms, most_candidates)
    logged = Logged(
        users=events.user.astype(np.intp),
        starts=starts,
        candidates=candidates,
        arms=events.arm.astype(np.intp),
        rewards=events.reward,
        propensities=_propensities(events),
        times=_whole(
            events, "time", "all have one, or none has", "Fill it in, or drop the column: rows are then in order"
        ),
        chances=chances,
        contexts=events.context,
        slates=None if events.slate is None else in_slates(events).astype(np.intp),
        shown_at=None if events.place is None else np.maximum(events.place, 1).astype(np.intp),
    )
    return logged if events.slate is None else logged.take(slate_order(events))


def _propensities(events: Events) -> Array:
    rule = "every event has one"
    remedy = "Log the probability with which each arm was chosen: nothing can be said of another policy without it"
    found = _whole(events, "propensity", rule, f"{remedy}; drop events without one only if chance dropped it")
    if found is None:
        raise InputError("the log has no propensities", rule, remedy)
    return found


def _whole(events: Events, name: str, rule: str, remedy: str) -> Array | None:
    """Returns a column that all events have, or None if none has; raises if some have."""
    column: Array | None = getattr(events, name)
    if column is None or np.isnan(column).all():
        return None
    missing = np.flatnonzero(np.isnan(column))
    if missing.size:
        problem = f"{missing.size} of {len(events)} events have no {name}, the first of them event {missing[0] + 1}"
        raise InputError(problem, rule, remedy)
    return column


def _candidates(given: Ragged | None, n_events: int, n_arms: int, most: float) -> tuple[Index, Index]:
    """Returns where the candidates of each event start, and all of them; all arms where none were logged."""
    sizes = np.full(n_events, n_arms) if given is None else np.where(given.lengths == 0, n_arms, given.lengths)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    if starts[-1] > most:
        problem = f"{n_events} events have {starts[-1]} candidates in all"
        raise InputError(problem, f"up to {most} fit into memory", "Take a stretch of the log, such as a day")
    if given is None:
        return starts, np.tile(np.arange(n_arms, dtype=np.intp), n_events)
    flat, logged = np.empty(starts[-1], dtype=np.intp), np.repeat(given.lengths > 0, sizes)
    flat[logged] = given.flat
    flat[~logged] = np.tile(np.arange(n_arms), int((given.lengths == 0).sum()))
    return starts, flat


def _pool(log: Log) -> ArmPool:
    if isinstance(log.arms, ArmPool):
        return log.arms
    if len(log.arms) > MOST_INDICATORS:
        problem = f"the {len(log.arms)} arms have no features"
        rule = f"up to {MOST_INDICATORS} arms without features have an indicator each"
        raise InputError(problem, rule, "Give the table arms columns of features")
    return ArmPool.without_features(log.arms)


def _notes_of_log(log: Log, *, with_graph: bool) -> Iterator[str]:
    """Yields what was made of things that were not logged."""
    events = log.events
    unlogged = len(events) if events.candidates is None else int((events.candidates.lengths == 0).sum())
    if unlogged:
        yield f"Candidates were not logged in {unlogged} of {len(events)} decisions: all {len(log.arm_ids)} arms are."
    if (context := events.context) is not None:
        names = f"{listed(context.columns, 9)}"
        yield f"The contexts ({names}) are shown to auto-* policies of likelihood gaussian; others do without."
    yield from _notes_of_slates(events)
    if not isinstance(log.arms, ArmPool):
        yield "The arms have no features: each has an indicator of its own."
    if with_graph and not log.graph.n_edges:
        yield "The graph has no edges: users learn from each other only what a policy shares among all."
    if events.time is None or np.isnan(events.time).all():
        yield "There are no times: the rows are taken to be in order."


def _notes_of_slates(events: Events) -> Iterator[str]:
    if events.slate is not None:
        in_some, slates = events.slate[events.slate >= 0], np.unique(events.slate[events.slate >= 0])
        yield (
            f"{len(in_some)} decisions are the places of {counted(len(slates), 'slate')}: each is judged among the "
            "candidates that earlier places left."
        )


def material_of_journal(snapshot: Path, journal: Path, *, graph: bool = True, contexts: bool = True) -> Material:
    """Returns the rewarded decisions of a bandit since it was saved, with the propensities of all candidates.

    Graph and arms are those that the bandit has at the end of the journal. Takes as long as the decisions took, and
    their propensities.

    Args:
        snapshot: A file that `Bandit.save` wrote before the decisions.
        journal: The file that was given to the bandit as `journal`.
        graph: Whether to keep the edges.
        contexts: Whether to keep the contexts.
    """
    lines, clock = JournalLines(journal), Steady(lambda: inf, stands=True)
    told, bandit = lines.told(), load_bandit(snapshot, clock=clock)
    rewards = told.rewards
    made = [(each, _chances(each)) for some in lines.replayed(bandit, clock) for each in some if each.id in rewards]
    kept = [(each, chances) for each, chances in made if each.user in bandit.graph.index]
    if not kept:
        rule = "a policy is judged by decisions and what came of them"
        raise InputError(f"{str(journal)!r} has no rewarded decision since the snapshot", rule, "Use an earlier one")
    _check_pool(bandit, kept)
    events = _events(bandit, kept, rewards, told.ranked)
    schema = bandit.context_schema
    if contexts and schema is not None and schema.fields:
        given = [told.contexts.get(each.id) for each, _ in kept]
        events = replace(events, context=Contexts.of(given, schema))
    shares = np.array([share for _, chances in kept for share in chances.values()])
    people = bandit.graph if graph else without_edges(bandit.graph)
    notes = *_notes_of_journal(bandit, len(rewards), len(made), len(kept)), *_notes_of_slates(events)
    return Material(_decisions(events, len(bandit.arms), chances=shares), people, bandit.arms, notes)


def _events(bandit: Bandit, kept: Kept, rewards: Mapping[int, float], ranked: Mapping[int, tuple[int, int]]) -> Events:
    """Returns decisions of a bandit as a log has them; `ranked` are slate and place of those that are of one."""
    slate, place = np.array([ranked.get(each.id, (-1, -1)) for each, _ in kept], dtype=np.int64).T
    has_slates = bool((slate >= 0).any())
    return Events(
        user=np.array([bandit.graph.index_of(each.user) for each, _ in kept], dtype=np.int64),
        arm=np.array([bandit.arms.index_of(each.arm) for each, _ in kept], dtype=np.int64),
        reward=np.array([rewards[each.id] for each, _ in kept], dtype=np.float64),
        candidates=Ragged.of([[bandit.arms.index_of(arm) for arm in chances] for _, chances in kept]),
        propensity=np.array([chances[each.arm] for each, chances in kept]),
        slate=slate if has_slates else None,
        place=place if has_slates else None,
    )


def _check_pool(bandit: Bandit, kept: Kept) -> None:
    """Raises if a candidate is known by features that came with its request alone."""
    policy = bandit._learned.policy
    rule, remedy = "candidates are arms of the pool, with the features that they have there", "Log tables instead"
    if isinstance(policy, ContextPolicy) and policy.inputs.request_features:
        named = listed(policy.inputs.request_features, 9)
        raise InputError(f"each request gives {named} of its candidates", rule, remedy)
    for decision, chances in kept:
        guests = [arm for arm in chances if arm not in bandit.arms.index]
        if guests:
            problem = f"decision {decision.id} has the candidate {guests[0]!r}, which the pool does not have"
            raise InputError(problem, rule, "Decide with keep=True")


def _chances(decision: Decision) -> dict[object, float]:
    """Returns the probability of each candidate, as it was when the decision was made."""
    chances = {arm: each.propensity for arm, each in decision.candidates.items()}
    known = {arm: chance for arm, chance in chances.items() if chance is not None}
    if len(known) < len(chances):
        problem, rule = f"decision {decision.id} has no propensities", "each candidate has one"
        raise InputError(problem, rule, "Decide by a policy whose choice probabilities are known, such as lk-gp-ts")
    return known


def _notes_of_journal(bandit: Bandit, n_rewards: int, n_made: int, n_kept: int) -> Iterator[str]:
    if bandit.n_decisions > n_rewards:
        yield f"Of {bandit.n_decisions} decisions {n_rewards} have a reward in the journal; the others are left out."
    if n_made > n_kept:
        yield f"Left out: {counted(n_made - n_kept, 'decision')} for users who are gone since."
    if n_rewards > n_made:
        yield f"Left out: {counted(n_rewards - n_made, 'decision')} before the snapshot."
