"""What the service knows: experiments, keys and held rewards, as the events of the journal say.

`apply` takes an event into account, one that just happened as well as one that is made again: state is the journal and
its replay.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

from msgspec import Struct

from coterie.product.files.recording import versions
from coterie.service.engine.clock import ServiceClock
from coterie.service.engine.events import (
    AnyBody,
    Created,
    Decided,
    KeyMade,
    KeyRevoked,
    Opened,
    Rewarded,
    Unclaimed,
    decode,
    encode,
    kind_of,
)
from coterie.service.engine.experiment import Experiment
from coterie.service.engine.failures import NotThereError
from coterie.service.engine.held import HeldReward, HeldRewards
from coterie.service.engine.keys import Keys
from coterie.service.journal import Event, ServiceJournal
from coterie.service.records import DecisionAnswer

RECENT = 10_000  # decisions whose answers are in memory; others are in the journal


class Known(Struct, frozen=True, gc=False):
    """A decision that was made. The garbage collector need not follow it: nothing in it refers back.

    Attributes:
        experiment: Where.
        answer: What was answered.
        digest: Of the request.
    """

    experiment: str
    answer: DecisionAnswer
    digest: str


class State:
    """All experiments, keys and held rewards.

    Args:
        journal: It is read here, and others append to it what `take_batch` gives.
        clock: The time of events.

    Attributes:
        journal: What happened so far.
        seq: The number of the last event.
        at: When it happened.
        experiments: By id.
        keys: Those that are good.
        held: Rewards whose decision has not come.
        when_changed: Called when there are events to be committed.
    """

    def __init__(self, journal: ServiceJournal, clock: ServiceClock) -> None:
        self.journal, self._clock = journal, clock
        self.seq, self.at = 0, 0.0
        self.experiments: dict[str, Experiment] = {}
        self.keys, self.held = Keys(), HeldRewards()
        self.when_changed: Callable[[], None] = _nothing
        self._batch: list[Event] = []
        self._uncommitted: deque[Event] = deque()
        self._recent: OrderedDict[str, Known] = OrderedDict()
        self._is_live = False

    def now(self) -> float:
        """Returns the time of an event that happens now."""
        return max(self.at, self._clock())

    def take_batch(self) -> list[Event]:
        """Returns the events that were not taken before, to be committed in this order."""
        batch, self._batch = self._batch, []
        return batch

    def replay(self, events: Iterable[Event], progress: Callable[[int], None] | None = None) -> None:
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
        self._clock.not_before(self.at)
        self.emit(Opened(versions=versions()))

    def emit(self, body: AnyBody, experiment: str = "", key: str = "") -> int:
        """Takes an event that just happened into account, puts it into the batch, and returns its number."""
        before = self.seq, self.at
        event = Event(self.seq + 1, self.now(), experiment, kind_of(body), key, encode(body))
        try:
            self._apply(event, body)
        except BaseException:
            self.seq, self.at = before  # no number is left out
            raise
        self._batch.append(event)
        self._uncommitted.append(event)
        while self._uncommitted[0].seq <= self.journal.last_seq:
            self._uncommitted.popleft()
        if len(self._batch) == 1:
            self.when_changed()
        return event.seq

    def _apply(self, event: Event, body: AnyBody) -> None:
        """Takes an event into account: all but what its changes mean for a bandit."""
        self.seq, self.at = event.seq, event.at
        match body:
            case Created():
                made = Experiment.of(event.experiment, body.experiment)
                made.last_seq, self.experiments[event.experiment] = event.seq, made
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
                self._recent[event.key] = Known(event.experiment, body.answer, body.digest)
                while len(self._recent) > RECENT:
                    self._recent.popitem(last=False)
                self.held.drop([event.key])
        if event.experiment in self.experiments:
            self.experiments[event.experiment].apply(body, event)

    # Looking up

    def get(self, experiment: str) -> Experiment:
        """Returns an experiment, or raises if there is none."""
        if experiment not in self.experiments:
            rule = "requests name an experiment that was created"
            raise NotThereError(f"experiment {experiment!r} is not there", rule, "Create it, or list those there are")
        return self.experiments[experiment]

    def decided(self, event_id: str) -> Known | None:
        """Returns a decision as it was logged; none if it was not made."""
        if event_id in self._recent:
            return self._recent[event_id]
        for event in self.find(event_id):
            if event.kind == "decided":
                body = decode(event.body)
                assert isinstance(body, Decided)
                return Known(event.experiment, body.answer, body.digest)
        return None

    def find(self, key: str) -> list[Event]:
        """Returns the events with this key, in order: those that are durable, and those that are not yet."""
        waiting = {event.seq: event for event in self._uncommitted if event.key == key}
        durable = {event.seq: event for event in self.journal.find(key)}  # asked later: an event may be in both
        return list((durable | waiting).values())

    def has_reward(self, event_id: str, reward_id: str) -> bool:
        """Returns whether a reward of a decision came before."""
        bodies = (decode(event.body) for event in self.find(event_id) if event.kind == "rewarded")
        return any(isinstance(body, Rewarded) and body.reward.reward_id == reward_id for body in bodies)


def _nothing() -> None:
    """Does nothing."""
