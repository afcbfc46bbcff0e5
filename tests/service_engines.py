"""Engines of the service on journals in memory, at a time that a test sets."""

import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from coterie.service.engine.clock import ServiceClock
from coterie.service.engine.engine import Engine
from coterie.service.engine.opening import Recovery, open_engine
from coterie.service.engine.snapshots import snapshot_of
from coterie.service.journal import MemoryJournal, ServiceJournal
from coterie.service.records import Arm, DecisionRequest, Edge, Graph, NewExperiment, RewardRequest

USERS = ("ana", "bo", "cy", "di")
ARMS = ("tea", "ale", "gin")


def experiment(id: str = "news", **settings: Any) -> NewExperiment:
    """Returns a small experiment: a path of users, and arms with two features."""
    path = [Edge(user=user, other=other) for user, other in pairwise(USERS)]
    arms = [Arm(id=arm, features=[float(place), float(place % 2)]) for place, arm in enumerate(ARMS)]
    given = {"graph": Graph(users=list(USERS), edges=path), "arms": arms, **settings}
    return NewExperiment(id=id, **given)


@dataclass
class Kept:
    """An engine and its journal, to be closed and opened again.

    Attributes:
        journal: Which is in memory, unless it is given.
        now: The time, which only a test changes.
        jump: By how much the computer's clock is ahead of it.
    """

    journal: ServiceJournal = field(default_factory=MemoryJournal)
    now: float = 1000.0
    jump: float = 0.0

    def __post_init__(self) -> None:
        self.engine, self.recovery = self.opened()

    def opened(self, journal: ServiceJournal | None = None, **options: Any) -> tuple[Engine, Recovery]:
        """Returns an engine on the journal as it is."""
        return open_engine(journal or self.journal, clock=self.clock(), **options)

    def clock(self) -> ServiceClock:
        """Returns the clock of a process that starts now."""
        return ServiceClock(wall=lambda: self.now + self.jump, steady=lambda: self.now)

    def take_fit(self, experiment: str = "news") -> None:
        """Waits for a fit that goes on, and takes it: further calls find none, unless rewards come."""
        found = self.engine.state.experiments[experiment]
        while found.is_fitting:
            time.sleep(0.001)
        found.bandit.describe()  # as every call, it begins by taking what is ready

    def commit(self) -> None:
        """Makes all events durable, as a batch."""
        self.engine.flush()
        self.journal.append(self.engine.state.take_batch())

    def snapshot(self) -> None:
        """Commits, and keeps a snapshot."""
        self.commit()
        self.journal.put_snapshot(snapshot_of(self.engine.state))

    def restart(self, **options: Any) -> None:
        """Commits, and goes on with another engine from the journal."""
        self.commit()
        self.engine, self.recovery = self.opened(**options)

    def decide(self, user: str = "ana", experiment: str = "news", **asked: Any) -> str:
        """Returns the id of a new decision."""
        answer, is_new = self.engine.decide(experiment, DecisionRequest(user=user, **asked))
        assert is_new
        return answer.event_id

    def reward(self, event_id: str, value: float = 1.0, **given: Any) -> str:
        """Returns what becomes of a reward."""
        return self.engine.reward(event_id, RewardRequest(value=value, **given)).status
