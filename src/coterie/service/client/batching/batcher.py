"""Rewards gathered and sent together, by a thread of its own."""

import time
from collections.abc import Callable, Iterable
from threading import Condition, Thread

from coterie.service.client.batching.gathered import Gathered
from coterie.service.client.sending.failures import ServiceError
from coterie.service.envelopes import EventReward, RewardResult


class Batcher:
    """Gathers rewards and sends them so many at a time, or when the oldest has waited so long.

    Each has its id from the start and stays here until the service has answered for it: what is sent again counts once.
    While the service cannot be reached it goes on trying; `flush` and `close` raise if it was in vain, and `unsent`
    has what is left.

    Args:
        send: Sends rewards and returns what became of each.
        size: How many are sent together.
        seconds: How long the oldest may wait.

    Examples:
        >>> from coterie.service.records import RewardAnswer
        >>> def send(rewards):
        ...     print(len(rewards), "sent")
        ...     answers = [RewardAnswer(event_id=each.event_id, status="applied", seq=1) for each in rewards]
        ...     return [RewardResult(status=200, reward=answer) for answer in answers]
        >>> with Batcher(send, size=2, seconds=60.0) as rewards:
        ...     for event_id in ("a", "b", "c"):
        ...         rewards.reward(event_id, 1.0)
        2 sent
        1 sent
    """

    def __init__(
        self, send: Callable[[Iterable[EventReward]], list[RewardResult]], *, size: int = 500, seconds: float = 1.0
    ) -> None:
        self._send, self._gathered = send, Gathered(size, seconds)
        self._changed = Condition()
        self._failure: ServiceError | None = None
        self._flushing = False
        self._thread = Thread(target=self._work, name="coterie-rewards", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Batcher":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def unsent(self) -> list[EventReward]:
        """The rewards for which the service has not answered."""
        with self._changed:
            return self._gathered.unsent

    @property
    def n_sent(self) -> int:
        """How many rewards the service has taken."""
        return self._gathered.n_sent

    @property
    def refused(self) -> list[tuple[EventReward, ServiceError]]:
        """The last rewards that were refused, with why."""
        with self._changed:
            return list(self._gathered.refused)

    def reward(
        self,
        event_id: str,
        value: float,
        *,
        reward_id: str | None = None,
        observed_at: float | None = None,
        place: int = 1,
    ) -> None:
        """Takes what came of a decision; waits if too many are there already, and raises if they cannot be sent."""
        given = EventReward(event_id=event_id, value=value, reward_id=reward_id, observed_at=observed_at, place=place)
        with self._changed:
            self._gathered.check_open()
            self._changed.wait_for(lambda: not self._gathered.is_full or self._failure or self._gathered.is_closed)
            self._gathered.check_open()
            if self._gathered.is_full and self._failure is not None:
                raise self._failure
            self._gathered.add(given, time.monotonic())
            self._changed.notify_all()

    def flush(self) -> None:
        """Sends what is there, waits for the answers, and raises if some was refused or could not be sent."""
        with self._changed:
            self._failure, self._flushing = None, True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not len(self._gathered) or self._failure is not None)
            self._flushing = False
            if self._failure is not None:
                raise self._failure
            self._gathered.check_refused()

    def close(self) -> None:
        """Sends what is there and ends the thread; raises if some was refused or could not be sent."""
        if self._gathered.is_closed:
            return
        try:
            self.flush()
        finally:
            with self._changed:
                self._gathered.is_closed = True
                self._changed.notify_all()
            self._thread.join()

    def _work(self) -> None:
        while self._wait_for_batch():
            with self._changed:
                batch = self._gathered.batch()
            failure, results = None, []
            try:
                results = self._send(batch)
            except ServiceError as error:
                failure = error
            with self._changed:
                self._gathered.settle(results)
                self._failure = failure
                self._changed.notify_all()

    def _wait_for_batch(self) -> bool:
        """Waits until there is something to send, and returns whether there is; otherwise it is the end."""
        with self._changed:
            if (
                self._failure is not None and not self._gathered.is_closed
            ):  # a while before all is tried anew, unless it is urgent
                self._changed.wait_for(
                    lambda: self._failure is None or self._gathered.is_closed, self._gathered.seconds
                )
            while not self._gathered.is_closed:
                due = self._gathered.due_in(time.monotonic())
                if due is not None and (self._flushing or due <= 0):
                    return True
                self._changed.wait(due)
            return False
