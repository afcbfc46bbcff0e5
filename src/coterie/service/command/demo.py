"""The demonstration: an experiment, and people who are shown something a few times a second and answer.

Forty users in four communities; what a community likes is near a point of its own. The stream goes through the client,
as that of any program would.
"""

import random
import time
from collections import deque
from collections.abc import Callable
from statistics import mean
from threading import Event, Thread

from coterie.errors import counted
from coterie.service.client import Client, RequestRefusedError, ServiceError

EXPERIMENT = "demo"
RATE = 5.0  # decisions a second
MOST = 20_000  # decisions of one run; then it is quiet
TOLD_EVERY = 5.0  # seconds
LAST = 200  # decisions whose mean reward is told
TASTES = ((0.1, 0.2), (0.9, 0.3), (0.4, 0.9), (0.7, 0.7))


class Town:
    """Users in four communities, arms with two features, and what each user likes.

    Args:
        seed: Fixes who knows whom, the arms and the noise.
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self.users = [f"user-{number}" for number in range(1, 41)]
        points = [(column / 3, row / 2) for column in range(4) for row in range(3)]
        self.arms: dict[str, dict[str, float] | list[float] | None] = {
            f"arm-{number}": {"mood": round(mood, 2), "pace": round(pace, 2)}
            for number, (mood, pace) in enumerate(points, start=1)
        }

    def edges(self) -> list[tuple[str, str]]:
        """Returns who knows whom: in a ring within a community, and one pair between two of them."""
        groups = [self.users[each::4] for each in range(4)]
        rings = [(group[i - step], group[i]) for group in groups for i in range(len(group)) for step in (1, 2)]
        return rings + [(groups[each - 1][0], groups[each][5]) for each in range(4)]

    def visitor(self) -> str:
        """Returns the next user."""
        return self._random.choice(self.users)

    def liking(self, user: str, arm: str) -> float:
        """Returns how much a user likes an arm, on average."""
        mood, pace = TASTES[self.users.index(user) % 4]
        features = self.arms[arm]
        assert isinstance(features, dict)
        return max(0.0, 1 - 2 * ((features["mood"] - mood) ** 2 + (features["pace"] - pace) ** 2))

    def reward(self, user: str, arm: str) -> float:
        """Returns what a user makes of an arm this time."""
        return self.liking(user, arm) + self._random.gauss(0, 0.2)

    def by_chance(self) -> float:
        """Returns what random choices would earn on average."""
        return mean(self.liking(user, arm) for user in self.users for arm in self.arms)


class Demo:
    """The stream, in a thread of its own.

    Args:
        client: Of the service.
        tell: Takes a line every few seconds.
        rate: Decisions a second.
        most: Decisions in all.
    """

    def __init__(
        self, client: Client, tell: Callable[[str], object] = print, *, rate: float = RATE, most: int = MOST
    ) -> None:
        self._client, self._tell, self._rate, self._most = client, tell, rate, most
        self._town, self._stopped, self._earned = Town(), Event(), deque[float](maxlen=LAST)
        self._thread = Thread(target=self._run, name="coterie-demo", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def wait(self) -> None:
        """Waits until it has ended."""
        self._thread.join()

    def stop(self) -> None:
        """Ends it, and waits until it has ended."""
        self._stopped.set()
        self.wait()
        self._client.close()

    def _run(self) -> None:
        try:
            self._open()
            self._stream()
        except ServiceError as error:
            if error.status is not None:  # otherwise the service has ended, and this ends with it
                self._tell(f"demo: ended: {error}")

    def _open(self) -> None:
        try:
            self._client.experiment(EXPERIMENT)
        except RequestRefusedError:
            self._client.create_experiment(EXPERIMENT, arms=self._town.arms, edges=self._town.edges())

    def _stream(self) -> None:
        told = time.monotonic()
        for number in range(1, self._most + 1):
            seq = self._one()
            if number == 1 or time.monotonic() - told >= TOLD_EVERY:
                told = time.monotonic()
                self._tell(self._line(seq))
            if self._stopped.wait(1 / self._rate):
                return
        self._tell(f"demo: {self._most:,} decisions were made; the service goes on without more")

    def _one(self) -> int:
        """Makes a decision and rewards it; returns the number of the last event, which is durable by then."""
        user = self._town.visitor()
        decision = self._client.decide(EXPERIMENT, user)
        reward = self._town.reward(user, decision.arm)
        self._earned.append(reward)
        return self._client.reward(decision.event_id, reward).seq

    def _line(self, seq: int) -> str:
        n_decisions = self._client.experiment(EXPERIMENT).n_decisions
        return (
            f"demo: {counted(f'{n_decisions:,}', 'decision')}; "
            f"mean reward {mean(self._earned):.2f} in the last {len(self._earned)}, "
            f"by chance it is {self._town.by_chance():.2f}; {seq:,} events durable"
        )
