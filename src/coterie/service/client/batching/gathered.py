"""Rewards that wait to be sent together. Nothing here sends anything, waits or locks."""

from collections import deque
from collections.abc import Sequence
from itertools import islice

from msgspec import UNSET

from coterie.errors import DecisionError, ParameterError, counted
from coterie.errors.checks import check_whole, is_number
from coterie.service.client.requests.rows import as_reward
from coterie.service.client.sending.failures import AGAIN, RequestRefusedError, ServiceError, failure_of
from coterie.service.envelopes import MOST_IN_BATCH, EventReward, RewardResult

MOST_WAITING = 20  # batches; then a reward waits for its place
MOST_KEPT = 1000  # refused rewards that are kept to be looked at


class Gathered:
    """Rewards in order, each kept until the service has answered for it.

    Args:
        size: How many are sent together.
        seconds: How long the oldest may wait.

    Attributes:
        n_sent: How many were taken by the service.
        n_refused: How many it refused.
        refused: The last of these, with why.
        is_closed: Whether it takes no further ones.
    """

    def __init__(self, size: int, seconds: float) -> None:
        check_whole("size", size)
        if size > MOST_IN_BATCH:
            raise ParameterError(f"size is {size}", f"a batch has at most {MOST_IN_BATCH}", "Pass less")
        if not is_number(seconds) or seconds <= 0:
            raise ParameterError(f"seconds is {seconds!r}", "it is a number > 0", "Pass one")
        self.size, self.seconds = size, seconds
        self.n_sent = self.n_refused = 0
        self.is_closed = False
        self.refused: deque[tuple[EventReward, RequestRefusedError | ServiceError]] = deque(maxlen=MOST_KEPT)
        self._waiting: deque[tuple[float, EventReward]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether no further reward has room."""
        return len(self._waiting) >= MOST_WAITING * self.size

    def check_open(self) -> None:
        """Raises if no further rewards are taken."""
        if self.is_closed:
            raise DecisionError("rewards are no longer gathered", "a batcher that is closed takes none", "Make another")

    def add(self, reward: EventReward, now: float) -> None:
        """Takes a reward, and gives it an id if it has none."""
        self._waiting.append((now, as_reward(reward)))

    def due_in(self, now: float) -> float | None:
        """Returns the seconds until a batch is to be sent; None if nothing waits."""
        if not self._waiting:
            return None
        return 0.0 if len(self._waiting) >= self.size else max(self._waiting[0][0] + self.seconds - now, 0.0)

    def batch(self) -> list[EventReward]:
        """Returns the oldest, which stay here until they are settled."""
        return [reward for _, reward in islice(self._waiting, self.size)]

    def settle(self, results: Sequence[RewardResult]) -> None:
        """Lets go of the oldest, by what came of them; those that the service could not take now stay."""
        again = []
        for result in results:
            at, reward = self._waiting.popleft()
            if result.error is UNSET:
                self.n_sent += 1
            elif result.status in AGAIN:
                again.append((at, reward))
            else:
                self.n_refused += 1
                self.refused.append((reward, failure_of(result.status, result.error)))
        self._waiting.extendleft(reversed(again))

    @property
    def unsent(self) -> list[EventReward]:
        """Those for which the service has not answered."""
        return [reward for _, reward in self._waiting]

    def check_refused(self) -> None:
        """Raises if any were refused since this was last asked."""
        if self.n_refused:
            n, self.n_refused = self.n_refused, 0
            reward, why = self.refused[-1]
            problem = f"{counted(n, 'reward')} refused, the last of event {reward.event_id!r}: {why.problem}"
            raise RequestRefusedError(problem, why.rule, why.remedy, status=why.status, code=why.code, path=why.path)
