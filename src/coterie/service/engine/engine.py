"""The engine: what may happen, under one writer. A call changes the state at once, and its events go to the journal.

An answer leaves only after the commit of its `seq` (`commits.py`).
"""

from collections.abc import Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, Literal

from msgspec import UNSET
from msgspec.json import encode as as_json
from msgspec.structs import asdict, replace

from coterie.errors import DecisionError, InputError
from coterie.errors.checks import checked_reward
from coterie.service.engine.answers import answer_of, check_place, check_reward, check_settings
from coterie.service.engine.clock import ServiceClock
from coterie.service.engine.events import (
    Activated,
    Archived,
    Changed,
    Configured,
    Created,
    Decided,
    Expired,
    KeyMade,
    KeyRevoked,
    Reset,
    Rewarded,
    Unclaimed,
)
from coterie.service.engine.experiment import Experiment
from coterie.service.engine.failures import ConflictError, NotThereError
from coterie.service.engine.held import HeldReward
from coterie.service.engine.keys import new_key
from coterie.service.engine.pending import PendingDecision
from coterie.service.engine.state import State
from coterie.service.journal import ServiceJournal
from coterie.service.records import (
    ActivationAnswer,
    ArmsChange,
    DecisionAnswer,
    DecisionRequest,
    Edge,
    ExperimentView,
    NewExperiment,
    RewardAnswer,
    RewardRequest,
    Scope,
    SettingsChange,
    UsersChange,
)
from coterie.service.records import Changed as ChangedAnswer
from coterie.service.time_ids import time_id

MOST_EXPIRED = 20  # decisions that a call lets expire, each of which may be learned: no call waits for more
MOST_UNCLAIMED = 1_000  # decisions that never came, whose rewards a call lets go of


class Engine:
    """Experiments that decide and learn.

    Args:
        journal: What happened so far.
        clock: The time of events.

    Attributes:
        state: What is known.
    """

    def __init__(self, journal: ServiceJournal, *, clock: ServiceClock | None = None) -> None:
        self.state = State(journal, clock or ServiceClock())

    # Experiments

    def create(self, given: NewExperiment) -> ExperimentView:
        """Makes an experiment, and returns it."""
        name = given.id or time_id(self.state.now())
        if name in self.state.experiments:
            raise ConflictError(f"experiment {name!r} is there", "ids are unique", "Use another id, or change this one")
        check_settings(given)
        self.state.emit(Created(experiment=given), name)  # raises if it cannot be one, before anything is written
        return self.view(name)

    def view(self, experiment: str) -> ExperimentView:
        """Returns an experiment as it stands."""
        return self.state.get(experiment).view(self.state.seq)

    def views(self) -> list[ExperimentView]:
        """Returns all experiments as they stand."""
        return [each.view(self.state.seq) for each in self.state.experiments.values()]

    def _running(self, experiment: str) -> Experiment:
        found = self.state.get(experiment)
        if found.is_archived:
            rule = "an archived experiment can be read, and takes no changes"
            raise ConflictError(f"experiment {experiment!r} is archived", rule, "Create another")
        return found

    def configure(self, experiment: str, change: SettingsChange) -> ExperimentView:
        """Changes settings, and returns the experiment."""
        found = self._running(experiment)
        given = {name: value for name, value in asdict(change).items() if value is not UNSET}
        settings = replace(found.settings, **given)
        check_settings(settings)
        self._flush(found)
        self.state.emit(Configured(settings=settings), experiment)
        return self.view(experiment)

    def archive(self, experiment: str) -> ExperimentView:
        """Ends an experiment; it can still be read."""
        found = self._running(experiment)
        self.state.emit(Archived(changes=found.taken_lines()), experiment)
        return self.view(experiment)

    def reset(self, experiment: str) -> ExperimentView:
        """Lets an experiment forget what it has learned; graph, arms and settings stay."""
        found = self._running(experiment)
        self._flush(found)
        self.state.emit(Reset(), experiment)
        return self.view(experiment)

    # Users, edges, arms

    def set_edges(self, experiment: str, edges: list[Edge], *, whole: bool = False) -> ChangedAnswer:
        """Sets edges of a graph; `whole` says that there are no others."""
        found = self._running(experiment)
        graph = found.bandit.graph
        given: list[tuple[Any, Any, float]] = [(edge.user, edge.other, edge.weight) for edge in edges]
        if whole:
            kept = {frozenset((user, other)) for user, other, _ in given}
            given += [(u, v, 0.0) for u, v, _ in graph.edges() if frozenset((u, v)) not in kept]
        found.bandit.connect_many(given)
        return self._changed(found, "graph")

    def change_users(self, experiment: str, change: UsersChange) -> ChangedAnswer:
        """Adds users with their friends, and removes users with what was learned from them."""
        found = self._running(experiment)
        found.change_users(change)
        return self._changed(found, "graph")

    def change_arms(self, experiment: str, change: ArmsChange) -> ChangedAnswer:
        """Adds arms or gives them other features, retires arms, and lets retired ones be shown again."""
        found = self._running(experiment)
        found.change_arms(change)
        return self._changed(found, "arms")

    def _changed(self, experiment: Experiment, part: Literal["graph", "arms"]) -> ChangedAnswer:
        seq = self.state.emit(Changed(part=part, changes=experiment.taken_lines()), experiment.id)
        version = experiment.graph_version if part == "graph" else experiment.arms_version
        return ChangedAnswer(version=version, seq=seq)

    def _flush(self, experiment: Experiment) -> None:
        """Emits what a reader made the bandit do, such as taking a fit."""
        if experiment.settle():
            self.state.emit(Changed(part="upkeep", changes=experiment.taken_lines()), experiment.id)

    def flush(self) -> None:
        """Emits what readers made bandits do, such as taking a fit."""
        for experiment in self.state.experiments.values():
            self._flush(experiment)

    # Decisions

    def decide(self, experiment: str, request: DecisionRequest) -> tuple[DecisionAnswer, bool]:
        """Returns a decision, and whether it is new: a repeat of an event id gets what was logged."""
        found = self._running(experiment)
        digest = sha256(experiment.encode() + b"\0" + as_json(request, order="sorted")).hexdigest()
        if request.event_id is not None and (before := self.state.decided(request.event_id)) is not None:
            if before.digest != digest:
                rule = "an event id stands for one request"
                raise ConflictError(f"event {request.event_id!r} was another request", rule, "Use another event id")
            return before.answer, False
        self._expire(found, room=request.k or 1)
        places = found.decide(request)
        changes = found.taken_lines()
        event_id = request.event_id or time_id(self.state.now())
        answer = answer_of(event_id, request, places, found.model_version + len(changes) - 1, self.state.seq + 1)
        held = self.state.held.get(event_id)
        body = Decided(
            answer=answer,
            digest=digest,
            first=places[0].id,
            user=request.user,
            deferred=request.defer_activation,
            changes=changes,
        )
        self.state.emit(body, experiment, event_id)
        for each in held:
            self._claim(experiment, event_id, each)
        return answer, True

    def _claim(self, experiment: str, event_id: str, held: HeldReward) -> None:
        """Learns a reward that came before its decision counted, if it may; otherwise the log says that it was not."""
        try:
            if held.may_reward is None or experiment in held.may_reward:
                self.reward(event_id, held.reward)
                return
        except InputError:  # the reward is none of this experiment's
            pass
        self._note(experiment, event_id, Rewarded(reward=held.reward, status="late"))

    def experiment_of(self, event_id: str) -> str | None:
        """Returns the id of the experiment of a decision; none if it was not made."""
        known = self.state.decided(event_id)
        return None if known is None else known.experiment

    def activate(self, event_id: str) -> ActivationAnswer:
        """Lets a deferred decision count."""
        found, decision = self._find(event_id)
        if decision is None:
            seq = self.state.emit(Activated(status="late"), found.id, event_id)
            return ActivationAnswer(event_id=event_id, status="late", seq=seq)
        if decision.is_active:
            return ActivationAnswer(event_id=event_id, status="duplicate", seq=self.state.seq)
        seq = self.state.emit(Activated(), found.id, event_id)
        for reward in decision.held:
            self._claim(found.id, event_id, HeldReward(reward, self.state.at, None))
        return ActivationAnswer(event_id=event_id, status="activated", seq=seq)

    def reward(self, event_id: str, request: RewardRequest, may_reward: list[str] | None = None) -> RewardAnswer:
        """Learns what came of a decision, or says why not.

        Args:
            event_id: The decision's.
            request: What came.
            may_reward: The experiments of the caller's key, for a reward that is held; none means all.
        """
        if self.state.decided(event_id) is None:
            return self._hold(event_id, request, may_reward)
        found, decision = self._find(event_id)
        known = None if decision is None else decision.reward_ids
        if request.reward_id is not None and (
            self.state.has_reward(event_id, request.reward_id) if known is None else request.reward_id in known
        ):
            return RewardAnswer(event_id=event_id, status="duplicate", seq=self.state.seq)
        check_reward(request.value, found.settings)
        if decision is None:
            return self._note(found.id, event_id, Rewarded(reward=request, status="late"))
        check_place(request.place, len(decision.places))
        return self._note(found.id, event_id, self._learned(found, decision, request))

    def _learned(self, experiment: Experiment, decision: PendingDecision, request: RewardRequest) -> Rewarded:
        """Returns what becomes of a reward of a decision that waits, and lets the bandit learn it if it counts."""
        if not decision.is_active:
            return Rewarded(reward=request, status="held")
        again, how = decision.places[request.place - 1] is not None, experiment.settings.aggregation
        if again and how == "first":
            return Rewarded(reward=request, status="duplicate")
        value = decision.together(request).value(how)
        try:
            experiment.bandit.reward(decision.first + request.place - 1, value, replace=again)
        except DecisionError:  # its user or arm was removed
            return Rewarded(reward=request, status="late")
        return Rewarded(reward=request, status="applied", value=value, changes=experiment.taken_lines())

    def _note(self, experiment: str, event_id: str, body: Rewarded) -> RewardAnswer:
        return RewardAnswer(event_id=event_id, status=body.status, seq=self.state.emit(body, experiment, event_id))

    def _hold(self, event_id: str, request: RewardRequest, may_reward: list[str] | None) -> RewardAnswer:
        """Keeps a reward until its decision comes."""
        held = {each.reward.reward_id for each in self.state.held.get(event_id)}
        if request.reward_id is not None and request.reward_id in held:
            return RewardAnswer(event_id=event_id, status="duplicate", seq=self.state.seq)
        checked_reward(request.value)
        self.state.held.check_room()
        return self._note("", event_id, Rewarded(reward=request, status="held", may_reward=may_reward))

    def _find(self, event_id: str) -> tuple[Experiment, PendingDecision | None]:
        """Returns the experiment of a decision, and the decision if its rewards still count; or raises."""
        known = self.state.decided(event_id)
        if known is None:
            rule = "an event is a decision that was made"
            raise NotThereError(f"event {event_id!r} is not there", rule, "Pass the event id of a decision")
        found = self.state.get(known.experiment)
        self._expire(found)
        decision = None if found.is_archived else found.pending.get(event_id)
        if decision is not None and decision.made_at < self.state.now() - found.settings.wait_time:
            decision = None  # it is about to expire, after others
        return found, decision

    # Time

    def tick(self) -> bool:
        """Lets what has waited too long expire; returns whether there may be more."""
        more = [self._expire(each) for each in self.state.experiments.values()]
        due = list(islice(self.state.held.due(self.state.now()), MOST_UNCLAIMED))
        if due:
            self.state.emit(Unclaimed(ids=due))
        return any(more) or len(due) == MOST_UNCLAIMED

    def _expire(self, experiment: Experiment, room: int = 0) -> bool:
        """Lets decisions that have waited too long, or are too many, count as the default reward says."""
        settings, default = experiment.settings, experiment.settings.default_reward
        found = experiment.pending.due(before=self.state.now() - settings.wait_time, most=settings.max_pending - room)
        due = [] if experiment.is_archived else list(islice(found, MOST_EXPIRED))
        if not due:
            return False
        more = len(due) == MOST_EXPIRED
        numbers = [
            each.first + place
            for each in due
            if each.is_active and default is not None
            for place, learned in enumerate(each.places)
            if learned is None and experiment.bandit.is_pending(each.first + place)
        ]
        ids = [each.event_id for each in due]
        if default is None or not numbers:
            self.state.emit(Expired(ids=ids), experiment.id)
            return more
        experiment.bandit.reward_many(numbers, [default] * len(numbers))
        self.state.emit(Expired(ids=ids, value=default, changes=experiment.taken_lines()), experiment.id)
        return more

    # Keys

    def make_key(
        self,
        scopes: Sequence[Scope],
        experiments: list[str] | None = None,
        replaces: str | None = None,
        name: str | None = None,
    ) -> tuple[KeyMade, str, int]:
        """Returns a new key's record, the key itself, which nobody can be told again, and the number of its event.

        Args:
            scopes: What it may do.
            experiments: Where; none means everywhere.
            replaces: The id of a key that is no good from then on.
            name: Its id, if it shall take the place of the last one with this id; one is made if none is given.
        """
        name, key, digest = new_key(name)
        made = KeyMade(id=name, hash=digest, scopes=list(scopes), experiments=experiments, replaces=replaces)
        return made, key, self.state.emit(made)

    def rotate_key(self, name: str) -> tuple[KeyMade, str, int]:
        """Puts another key in the place of one, with the same scopes."""
        old = self.state.keys.get(name)
        return self.make_key(old.scopes, old.experiments, replaces=name)

    def revoke_key(self, name: str) -> int:
        """Makes a key no good, at once; returns the number of the event."""
        self.state.keys.get(name)
        return self.state.emit(KeyRevoked(id=name))
