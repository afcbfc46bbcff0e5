"""The engine: experiments under one writer. It decides what happens, and every event of it goes to a journal.

A call changes the state at once and adds its events to a batch; whoever commits takes the batch away, and an answer
leaves only after the commit of its `seq` (`commits.py`). The state is what a replay of the events gives: a call emits
events, `_apply` takes each into account, and so does a replay.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from hashlib import sha256

from msgspec import UNSET
from msgspec.json import encode as as_json
from msgspec.structs import asdict, replace

from coterie.errors import InputError, ParameterError, RewardError
from coterie.errors.checks import checked_binary
from coterie.product.decisions import Decision
from coterie.product.files.recording import versions
from coterie.service.engine.clock import ServiceClock
from coterie.service.engine.events import (
    Activated,
    AnyBody,
    Archived,
    Changed,
    Configured,
    Created,
    Decided,
    Expired,
    KeyMade,
    KeyRevoked,
    Opened,
    Reset,
    Rewarded,
    Unclaimed,
    decode,
    encode,
    kind_of,
)
from coterie.service.engine.experiment import Experiment
from coterie.service.engine.failures import ConflictError, NotThereError
from coterie.service.engine.held import HeldReward, HeldRewards
from coterie.service.engine.keys import Keys, Scope, new_key
from coterie.service.engine.pending import PendingDecision
from coterie.service.engine.time_ids import time_id
from coterie.service.journal import Event, ServiceJournal
from coterie.service.records import (
    ActivationAnswer,
    ArmsChange,
    DecisionAnswer,
    DecisionRequest,
    Edge,
    ExperimentSettings,
    ExperimentView,
    NewExperiment,
    Place,
    RewardAnswer,
    RewardRequest,
    SettingsChange,
    UsersChange,
)
from coterie.service.records import (
    Changed as ChangedAnswer,
)

MOST_EXPIRED = 200  # decisions that one event lets expire: no call waits for more
RECENT = 10_000  # decisions whose answers are in memory; others are looked up in the journal


class Engine:
    """All experiments, keys and held rewards, as the journal says.

    Args:
        journal: What happened so far; the engine reads it, and others append to it what `take_batch` gives.
        clock: The time of events.

    Attributes:
        seq: The number of the last event.
        experiments: By id.
        keys: Those that are good.
        held: Rewards whose decision has not come.
        when_changed: Called when there are events to be committed.
    """

    def __init__(self, journal: ServiceJournal, *, clock: ServiceClock | None = None) -> None:
        self._journal, self._clock = journal, clock or ServiceClock()
        self.seq, self._at = 0, 0.0
        self.experiments: dict[str, Experiment] = {}
        self.keys, self.held = Keys(), HeldRewards()
        self.when_changed: Callable[[], None] = _nothing
        self._batch: list[Event] = []
        self._recent: OrderedDict[str, Decided] = OrderedDict()
        self._is_live = False

    # Events

    def take_batch(self) -> list[Event]:
        """Returns the events that were not taken before, to be committed in this order."""
        batch, self._batch = self._batch, []
        return batch

    def replay(self, events: Iterator[Event], progress: Callable[[int], None] | None = None) -> None:
        """Makes events again, before the engine is live."""
        for event in events:
            body = decode(event.body)
            if event.experiment in self.experiments:
                self.experiments[event.experiment].make_again(body.changes)
            self._apply(event, body)
            if progress is not None:
                progress(event.seq)

    def go_live(self) -> None:
        """Ends the replay, and lets the journal know who writes from now on."""
        for experiment in self.experiments.values():
            experiment.go_live()
        self._is_live = True
        self._clock.not_before(self._at)
        self._emit(Opened(versions=versions()))

    def _emit(self, body: AnyBody, experiment: str = "", key: str = "") -> int:
        """Takes an event that just happened into account, puts it into the batch, and returns its number."""
        at = max(self._at, self._clock())
        event = Event(self.seq + 1, at, experiment, kind_of(body), key, encode(body))
        self._apply(event, body)
        self._batch.append(event)
        if len(self._batch) == 1:
            self.when_changed()
        return event.seq

    def _apply(self, event: Event, body: AnyBody) -> None:
        """Takes an event into account: all but what its changes mean for a bandit."""
        self.seq, self._at = event.seq, event.at
        match body:
            case Created():
                made = Experiment.of(event.experiment, body.experiment)
                self.experiments[event.experiment] = made
                if self._is_live:
                    made.go_live()
                return
            case KeyMade() | KeyRevoked():
                self.keys.apply(body)
                return
            case Rewarded(status="held") if not event.experiment:
                self.held.add(event.key, HeldReward(body.reward, event.at, body.may_reward))
                return
            case Unclaimed():
                self.held.drop(body.ids)
                return
            case Opened():
                return
            case Decided():
                self._recent[event.key] = body
                while len(self._recent) > RECENT:
                    self._recent.popitem(last=False)
                self.held.drop([event.key])
        if event.experiment in self.experiments:
            self.experiments[event.experiment].apply(body, at=event.at, key=event.key)

    # Experiments

    def create(self, given: NewExperiment) -> ExperimentView:
        """Makes an experiment, and returns it."""
        name = given.id or time_id(self._clock())
        if name in self.experiments:
            raise ConflictError(f"experiment {name!r} is there", "ids are unique", "Use another id, or change this one")
        _check_settings(given)
        Experiment.of(name, given)  # raises if it cannot be one, before anything is written
        self._emit(Created(experiment=given), name)
        return self.view(name)

    def view(self, experiment: str) -> ExperimentView:
        """Returns an experiment as it stands."""
        return self.get(experiment).view(self.seq)

    def get(self, experiment: str) -> Experiment:
        """Returns an experiment, or raises if there is none."""
        if experiment not in self.experiments:
            rule = "requests name an experiment that was created"
            raise NotThereError(f"experiment {experiment!r} is not there", rule, "Create it, or list those there are")
        return self.experiments[experiment]

    def _running(self, experiment: str) -> Experiment:
        found = self.get(experiment)
        if found.is_archived:
            rule = "an archived experiment can be read, and takes no changes"
            raise ConflictError(f"experiment {experiment!r} is archived", rule, "Create another")
        return found

    def configure(self, experiment: str, change: SettingsChange) -> ExperimentView:
        """Changes settings, and returns the experiment."""
        found = self._running(experiment)
        given = {name: value for name, value in asdict(change).items() if value is not UNSET}
        settings = replace(found.settings, **given)
        _check_settings(settings)
        self._flush(found)
        self._emit(Configured(settings=settings), experiment)
        return self.view(experiment)

    def archive(self, experiment: str) -> ExperimentView:
        """Ends an experiment; it can still be read."""
        found = self._running(experiment)
        self._emit(Archived(changes=found.taken_lines()), experiment)
        return self.view(experiment)

    def reset(self, experiment: str) -> ExperimentView:
        """Lets an experiment forget what it has learned; graph, arms and settings stay."""
        found = self._running(experiment)
        self._flush(found)
        self._emit(Reset(), experiment)
        return self.view(experiment)

    # Users, edges, arms

    def set_edges(self, experiment: str, edges: list[Edge], *, whole: bool = False) -> ChangedAnswer:
        """Sets edges of a graph; `whole` says that there are no others."""
        found = self._running(experiment)
        graph = found.bandit.graph
        given = [(edge.user, edge.other, edge.weight) for edge in edges]
        if whole:
            kept = {frozenset((user, other)) for user, other, _ in given}
            given += [(u, v, 0.0) for u, v in graph.edge_ids() if frozenset((u, v)) not in kept]
        found.bandit.connect_many(given)
        return self._changed(found, "graph")

    def change_users(self, experiment: str, change: UsersChange) -> ChangedAnswer:
        """Adds users with their friends, and removes users with what was learned from them."""
        found = self._running(experiment)
        bandit, gone = found.bandit, list(dict.fromkeys(change.remove))
        for user in gone:
            bandit.graph.index_of(user)  # or raises, before anything has changed
        names = [user.id for user in change.add]
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if twice:
            raise InputError(f"user {twice[0]!r} is added twice", "user ids are unique", "Name each once")
        if change.add:
            bandit.add_users({user.id: user.friends for user in change.add})
        for user in gone:
            bandit.remove_user(user)
        return self._changed(found, "graph")

    def change_arms(self, experiment: str, change: ArmsChange) -> ChangedAnswer:
        """Adds arms or gives them other features, retires arms, and lets retired ones be shown again."""
        found = self._running(experiment)
        found.change_arms(change)
        return self._changed(found, "arms")

    def _changed(self, experiment: Experiment, part: str) -> ChangedAnswer:
        body = Changed(part="graph" if part == "graph" else "arms", changes=experiment.taken_lines())
        seq = self._emit(body, experiment.id)
        version = experiment.graph_version if part == "graph" else experiment.arms_version
        return ChangedAnswer(version=version, seq=seq)

    def _flush(self, experiment: Experiment) -> None:
        """Emits what a reader made the bandit do, such as taking a fit."""
        if experiment.has_lines:
            self._emit(Changed(part="upkeep", changes=experiment.taken_lines()), experiment.id)

    # Decisions

    def decide(self, experiment: str, request: DecisionRequest) -> tuple[DecisionAnswer, bool]:
        """Returns a decision, and whether it is new: a repeat of an event id gets what was logged."""
        found = self._running(experiment)
        digest = sha256(experiment.encode() + b"\0" + as_json(request, order="sorted")).hexdigest()
        if request.event_id is not None and (before := self._decided(request.event_id)) is not None:
            if before.digest != digest:
                rule = "an event id stands for one request"
                raise ConflictError(f"event {request.event_id!r} was another request", rule, "Use another event id")
            return before.answer, False
        self._expire(found)
        places = found.decide(request)
        changes = found.taken_lines()
        event_id = request.event_id or time_id(self._clock())
        answer = _answer(event_id, request, places, found.model_version + len(changes) - 1, self.seq + 1)
        held = self.held.get(event_id)
        body = Decided(
            answer=answer,
            digest=digest,
            first=places[0].id,
            user=request.user,
            deferred=request.defer_activation,
            changes=changes,
        )
        self._emit(body, experiment, event_id)
        for each in held:
            if each.may_reward is None or experiment in each.may_reward:
                self.reward(event_id, each.reward)
        return answer, True

    def activate(self, event_id: str) -> ActivationAnswer:
        """Lets a deferred decision count."""
        home, decision = self.owner(event_id)
        if decision is None:
            seq = self._emit(Activated(status="late"), home, event_id)
            return ActivationAnswer(event_id=event_id, status="late", seq=seq)
        if decision.is_active:
            return ActivationAnswer(event_id=event_id, status="duplicate", seq=self.seq)
        held = list(decision.held)
        for reward in held:
            decision.reward_ids.discard(reward.reward_id or "")  # they come again, and count this time
        seq = self._emit(Activated(), home, event_id)
        for reward in held:
            self.reward(event_id, reward)
        return ActivationAnswer(event_id=event_id, status="activated", seq=seq)

    def reward(self, event_id: str, request: RewardRequest, may_reward: list[str] | None = None) -> RewardAnswer:
        """Learns what came of a decision, or says why not.

        Args:
            event_id: The decision's.
            request: What came.
            may_reward: The experiments of the caller's key, for a reward that is held; none means all.
        """
        home = self.home(event_id)
        if home is None:
            return self._hold(event_id, request, may_reward)
        found = self.experiments[home]
        self._expire(found)
        decision = found.pending.get(event_id)
        if request.reward_id is not None and self._is_known(event_id, request.reward_id, decision):
            return RewardAnswer(event_id=event_id, status="duplicate", seq=self.seq)
        _check_reward(request.value, found.settings)
        if decision is None or found.is_archived:
            return self._note(home, event_id, Rewarded(reward=request, status="late"))
        if request.place > len(decision.places):
            what, rule = f"place {request.place} was rewarded", f"the decision has {len(decision.places)}"
            raise RewardError(what, rule, "Leave it out, or name one of them")
        if not decision.is_active:
            return self._note(home, event_id, Rewarded(reward=request, status="held"))
        place = decision.places[request.place - 1]
        if place.learned and found.settings.aggregation == "first":
            return self._note(home, event_id, Rewarded(reward=request, status="duplicate"))
        value = place.rewards.with_one(request.value).value(found.settings.aggregation)
        found.bandit.reward(decision.first + request.place - 1, value, replace=place.learned)
        changes = found.taken_lines()
        return self._note(home, event_id, Rewarded(reward=request, status="applied", value=value, changes=changes))

    def _note(self, experiment: str, event_id: str, body: Rewarded) -> RewardAnswer:
        return RewardAnswer(event_id=event_id, status=body.status, seq=self._emit(body, experiment, event_id))

    def _hold(self, event_id: str, request: RewardRequest, may_reward: list[str] | None) -> RewardAnswer:
        """Keeps a reward until its decision comes."""
        same = [each for each in self.held.get(event_id) if request.reward_id in (each.reward.reward_id,)]
        if request.reward_id is not None and same:
            return RewardAnswer(event_id=event_id, status="duplicate", seq=self.seq)
        self.held.check_room()
        return self._note("", event_id, Rewarded(reward=request, status="held", may_reward=may_reward))

    def home(self, event_id: str) -> str | None:
        """Returns the experiment of a decision; none if there is no such decision."""
        recent = self._recent_home(event_id)
        if recent is not None:
            return recent
        events = self._journal.find(event_id)
        return next((event.experiment for event in events if event.kind == "decided"), None)

    def owner(self, event_id: str) -> tuple[str, PendingDecision | None]:
        """Returns the experiment of a decision, and the decision if its rewards still count; or raises."""
        home = self.home(event_id)
        if home is None:
            rule = "an event is a decision that was made"
            raise NotThereError(f"event {event_id!r} is not there", rule, "Pass the event id of a decision")
        self._expire(self.experiments[home])
        return home, self.experiments[home].pending.get(event_id)

    def _recent_home(self, event_id: str) -> str | None:
        return next((each.id for each in self.experiments.values() if each.pending.get(event_id) is not None), None)

    def _decided(self, event_id: str) -> Decided | None:
        """Returns a decision as it was logged, if there is one."""
        if event_id in self._recent:
            return self._recent[event_id]
        for event in self._journal.find(event_id):
            body = decode(event.body)
            if isinstance(body, Decided):
                return body
        return None

    def _is_known(self, event_id: str, reward_id: str, decision: PendingDecision | None) -> bool:
        """Returns whether a reward came before, also one whose decision has expired meanwhile."""
        if decision is not None:
            return reward_id in decision.reward_ids
        bodies = (
            decode(event.body) for event in [*self._journal.find(event_id), *self._batch] if event.key == event_id
        )
        return any(isinstance(body, Rewarded) and body.reward.reward_id == reward_id for body in bodies)

    # Time

    def tick(self) -> bool:
        """Lets what has waited too long expire; returns whether there may be more."""
        more = [self._expire(each) for each in self.experiments.values() if not each.is_archived]
        due = self.held.due(self._clock())
        if due:
            self._emit(Unclaimed(ids=due))
        return any(more)

    def _expire(self, experiment: Experiment) -> bool:
        """Lets decisions that have waited too long, or are too many, count as the default reward says."""
        settings = experiment.settings
        due = experiment.pending.due(before=self._clock() - settings.wait_time, most=settings.max_pending - 1)
        if not due:
            return False
        due, more = due[:MOST_EXPIRED], len(due) > MOST_EXPIRED
        default = settings.default_reward
        numbers = [
            each.first + place
            for each in due
            if each.is_active
            for place, state in enumerate(each.places)
            if not state.learned
        ]
        ids = [each.event_id for each in due]
        if default is None or not numbers:
            self._emit(Expired(ids=ids), experiment.id)
            return more
        experiment.bandit.reward_many(numbers, [default] * len(numbers))
        self._emit(Expired(ids=ids, value=default, changes=experiment.taken_lines()), experiment.id)
        return more

    # Keys

    def make_key(
        self, scopes: list[Scope], experiments: list[str] | None = None, replaces: str | None = None
    ) -> tuple[KeyMade, str, int]:
        """Returns a new key's record, the key itself, which nobody can be told again, and the number of its event."""
        name, key, digest = new_key()
        made = KeyMade(id=name, hash=digest, scopes=list(scopes), experiments=experiments, replaces=replaces)
        return made, key, self._emit(made)

    def rotate_key(self, name: str) -> tuple[KeyMade, str, int]:
        """Puts another key in the place of one, with the same scopes."""
        old = self.keys.get(name)
        return self.make_key([*old.scopes], old.experiments, replaces=name)  # type: ignore[list-item]

    def revoke_key(self, name: str) -> int:
        """Makes a key no good, at once; returns the number of the event."""
        self.keys.get(name)
        return self._emit(KeyRevoked(id=name))


def _answer(event_id: str, request: DecisionRequest, places: list[Decision], version: int, seq: int) -> DecisionAnswer:
    first = places[0]
    every = {str(arm): each.propensity for arm, each in first.candidates.items()} if request.probabilities else {}
    return DecisionAnswer(
        event_id=event_id,
        arm=str(first.arm),
        propensity=first.propensity,
        mean=first.mean,
        std=first.std,
        model_version=version,
        seq=seq,
        probabilities={arm: p for arm, p in every.items() if p is not None} if request.probabilities else UNSET,
        slate=UNSET
        if request.k is None
        else [Place(arm=str(p.arm), propensity=p.propensity, mean=p.mean, std=p.std) for p in places],
    )


def _check_reward(value: float, settings: ExperimentSettings) -> None:
    if settings.binary:
        checked_binary(value)
    if settings.reward_range is not None:
        least, most = settings.reward_range
        if not least <= value <= most:
            rule = f"this experiment's rewards are from {least:g} to {most:g}"
            raise RewardError(f"the reward is {value!r}", rule, "Pass such, or change reward_range")


def _check_settings(settings: ExperimentSettings) -> None:
    if settings.reward_range is not None and not settings.reward_range[0] < settings.reward_range[1]:
        what = f"reward_range is {list(settings.reward_range)}"
        raise ParameterError(what, "it is the least and the greatest reward", "Put the smaller first")
    if settings.default_reward is not None:
        _check_reward(settings.default_reward, settings)
    if settings.binary and settings.aggregation in ("sum", "mean"):
        what, rule = f"aggregation is {settings.aggregation!r}", "binary rewards come to 0 or 1"
        raise ParameterError(what, rule, "Use 'first', 'last' or 'max', or rewards that are not binary")


def _nothing() -> None:
    """Does nothing."""
