"""The client whose calls wait for the answer."""

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import httpx

from coterie.service.client.batching.batcher import Batcher
from coterie.service.client.methods import Methods, Waits
from coterie.service.client.requests.call import Call, Plan
from coterie.service.client.sending.failures import ServiceError
from coterie.service.client.sending.retries import Retries
from coterie.service.client.sending.tries import Tries, connection

T = TypeVar("T")


class Client(Methods, Waits):
    """A client of the service; any thread may use it.

    A call that may be repeated is tried again when the connection fails, when time is up, and on 429, 502, 503 and 504,
    each time with the same ids: a decision is made once and a reward counts once, however often they are sent.

    Args:
        url: The base address; none given means that of COTERIE_URL, else http://127.0.0.1:8711.
        key: None given means that of COTERIE_KEY.
        timeout: Seconds that connecting, sending or waiting for an answer may take, each.
        retries: How often calls are tried again.
        transport: Of httpx, for tests.
        sleep: What waits.

    Examples:
        >>> answer = {"event_id": "morning-1", "status": "applied", "seq": 7}
        >>> service = httpx.MockTransport(lambda request: httpx.Response(200, json=answer))
        >>> with Client(key="ctr_1_2", transport=service) as client:
        ...     client.reward("morning-1", 1.0).status
        'applied'
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: Retries | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._retries, self._sleep = retries or Retries(), sleep
        self._http = httpx.Client(**connection(url, key, timeout), transport=transport)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the connections."""
        self._http.close()

    def log(self, experiment: str, from_seq: int = 1, *, page: int = 1000) -> Iterator[dict[str, Any]]:
        """Yields the events of an experiment from a number on, in order, up to the last one that is durable now."""
        while events := self.log_page(experiment, from_seq, page):
            yield from events
            from_seq = events[-1]["seq"] + 1

    def batching(self, *, size: int = 500, seconds: float = 1.0) -> Batcher:
        """Returns what gathers rewards and sends them together: so many, or after so long."""
        return Batcher(self.reward_many, size=size, seconds=seconds)

    def carry_out(self, plan: Plan[T]) -> T:
        """Returns what came of a plan."""
        steps = iter(plan)
        try:
            call = next(steps)
            while True:
                try:
                    answer = self._send(call)
                except ServiceError as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return] # which typing does not know of

    def _send(self, call: Call[T]) -> T:
        tries = Tries(call, self._retries)
        while True:
            try:
                answer = self._http.request(call.method, call.path, params=call.params, content=call.body)
                if answer.is_success:
                    return call.read(answer.status_code, answer.content)
                wait = tries.wait_after_answer(answer)
            except httpx.TransportError as error:
                wait = tries.wait_after_silence(error)
            self._sleep(wait)
