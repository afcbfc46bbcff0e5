"""The client whose calls are awaited."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import httpx

from coterie.service.client.batching.async_batcher import AsyncBatcher
from coterie.service.client.methods import IsAwaited, Methods
from coterie.service.client.requests.call import Call, Plan
from coterie.service.client.sending.failures import ServiceError
from coterie.service.client.sending.retries import Retries
from coterie.service.client.sending.tries import Tries, connection

T = TypeVar("T")


class AsyncClient(Methods, IsAwaited):
    """A client of the service for one event loop, with the methods of `Client`, each of them awaited.

    Args:
        url: The base address; none given means that of COTERIE_URL, else http://127.0.0.1:8711.
        key: None given means that of COTERIE_KEY.
        timeout: Seconds that connecting, sending or waiting for an answer may take, each.
        retries: How often calls are tried again.
        transport: Of httpx, for tests.
        sleep: What waits.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._retries, self._sleep = retries or Retries(), sleep
        self._http = httpx.AsyncClient(**connection(url, key, timeout), transport=transport)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets go of the connections."""
        await self._http.aclose()

    async def log(self, experiment: str, from_seq: int = 1, *, page: int = 1000) -> AsyncIterator[dict[str, Any]]:
        """Yields the events of an experiment from a number on, in order, up to the last one that is durable now."""
        while events := await self.log_page(experiment, from_seq, page):
            for event in events:
                yield event
            from_seq = events[-1]["seq"] + 1

    def batching(self, *, size: int = 500, seconds: float = 1.0) -> AsyncBatcher:
        """Returns what gathers rewards and sends them together: so many, or after so long."""
        return AsyncBatcher(self.reward_many, size=size, seconds=seconds)

    async def carry_out(self, plan: Plan[T]) -> T:
        """Returns what came of a plan."""
        steps = iter(plan)
        try:
            call = next(steps)
            while True:
                try:
                    answer = await self._send(call)
                except ServiceError as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return] # which typing does not know of

    async def _send(self, call: Call[T]) -> T:
        tries = Tries(call, self._retries)
        while True:
            try:
                answer = await self._http.request(call.method, call.path, params=call.params, content=call.body)
                if answer.is_success:
                    return call.read(answer.status_code, answer.content)
                wait = tries.wait_after_answer(answer)
            except httpx.TransportError as error:
                wait = tries.wait_after_silence(error)
            await self._sleep(wait)
