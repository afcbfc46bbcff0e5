"""Rewards gathered and sent together, by a task of an event loop."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from coterie.service.client.batching.gathered import Gathered
from coterie.service.client.sending.failures import ServiceError
from coterie.service.envelopes import EventReward, RewardResult


class AsyncBatcher:
    """Gathers rewards as `Batcher` does, for one event loop: `async with client.batching() as rewards`.

    Args:
        send: Sends rewards and returns what became of each.
        size: How many are sent together.
        seconds: How long the oldest may wait.
    """

    def __init__(
        self,
        send: Callable[[Iterable[EventReward]], Awaitable[list[RewardResult]]],
        *,
        size: int = 500,
        seconds: float = 1.0,
    ) -> None:
        self._send, self._gathered = send, Gathered(size, seconds)
        self._sending, self._due = asyncio.Lock(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "AsyncBatcher":
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def unsent(self) -> list[EventReward]:
        """The rewards for which the service has not answered."""
        return self._gathered.unsent

    @property
    def n_sent(self) -> int:
        """How many rewards the service has taken."""
        return self._gathered.n_sent

    @property
    def refused(self) -> list[tuple[EventReward, ServiceError]]:
        """The last rewards that were refused, with why."""
        return list(self._gathered.refused)

    async def reward(
        self,
        event_id: str,
        value: float,
        *,
        reward_id: str | None = None,
        observed_at: float | None = None,
        place: int = 1,
    ) -> None:
        """Takes what came of a decision; sends some first if too many are there already, and raises if that fails."""
        given = EventReward(event_id=event_id, value=value, reward_id=reward_id, observed_at=observed_at, place=place)
        self._gathered.check_open()
        while self._gathered.is_full:
            await self._send_batch()
        self._gathered.add(given, time.monotonic())
        self._due.set()

    async def flush(self) -> None:
        """Sends what is there, and raises if some was refused or could not be sent."""
        while len(self._gathered):
            await self._send_batch()
        self._gathered.check_refused()

    async def close(self) -> None:
        """Sends what is there and ends the task; raises if some was refused or could not be sent."""
        if self._gathered.is_closed:
            return
        self._gathered.is_closed = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self.flush()

    async def _send_batch(self) -> None:
        """Sends the oldest; one batch is under way at a time, and what is cancelled stays here."""
        async with self._sending:
            if batch := self._gathered.batch():
                self._gathered.settle(await self._send(batch))

    async def _work(self) -> None:
        while True:
            self._due.clear()
            due = self._gathered.due_in(time.monotonic())
            if due is not None and due <= 0:
                try:
                    await self._send_batch()
                except ServiceError:  # which the next reward that finds no room, or the end, will tell
                    await asyncio.sleep(self._gathered.seconds)
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), due)
