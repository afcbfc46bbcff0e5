"""A route, a call of it, and what all calls share."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from coterie.service.app.requests.answers import Answer
from coterie.service.app.requests.bodies import BodyType
from coterie.service.app.requests.failures import RETRY_AFTER, RequestError
from coterie.service.app.requests.limits import Limits
from coterie.service.app.requests.metrics import Metrics
from coterie.service.app.settings import ServiceSettings
from coterie.service.engine.engine import Engine
from coterie.service.engine.events import KeyMade
from coterie.service.engine.running import RunningEngine
from coterie.service.records import Scope

Where: TypeAlias = Literal["path", "all", "some"]


@dataclass(slots=True, kw_only=True)
class Call:
    """A request that is being answered.

    Attributes:
        service: What all calls share.
        params: What stands in the path.
        headers: By name in lower case.
        query: The query, as it was sent.
        key: The key with which it came; none where no key is needed.
        given: The record of its body, or of its query.
        experiment: The experiment that it is about, for the log.
        n_bytes: How large its body is, as far as it was read.
        is_read: Whether its body was read to the end.
    """

    service: "Service"
    params: dict[str, Any]
    headers: dict[bytes, bytes]
    query: bytes
    key: KeyMade | None = None
    given: Any = None
    experiment: str = ""
    n_bytes: int = 0
    is_read: bool = False

    @property
    def engine(self) -> Engine:
        """The engine; raises UnavailableError until it is ready."""
        return self.service.running.engine


Handler: TypeAlias = Callable[[Call], Answer | Coroutine[Any, Any, Answer]]
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One thing that can be asked for.

    Attributes:
        method: The method of HTTP.
        path: The path, with its parameters in braces.
        scope: What a key must be good for; none means that no key is needed. There is no default: a route that does
            not say so cannot be written.
        where: The experiments that the key must be good for: that in the path, all, or some, which the handler checks.
        handler: What answers, in one go; a coroutine where it does many things, and lets others in between them.
        changes: Whether it may change what the service knows: its answer leaves after the commit of all that has
            happened by then.
        is_long: Whether it may take long: it works in a thread, and one such call at a time.
        body: What its body holds; none means that it has none.
        query: The record of its query; none means that it has none.
        answer: The record of its answer, by status; bytes are the media type of one that is no JSON.
        also: Further statuses: see `description/document.py` for those that every route has.
    """

    method: Method
    path: str
    scope: Scope | None
    where: Where = "path"
    handler: Handler
    changes: bool = False
    is_long: bool = False
    body: BodyType | None = None
    query: Any = None
    answer: dict[int, Any]
    also: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class Service:
    """What all calls share.

    Attributes:
        running: The engine.
        settings: How the service runs.
        limits: What is in work.
        metrics: What is counted.
        documents: Bytes that are made once, such as the description of the routes.
    """

    running: RunningEngine
    settings: ServiceSettings
    limits: Limits
    metrics: Metrics
    documents: dict[str, bytes]
    _reader: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 1, "coterie-reader"))
    _n_reads: int = 0

    async def read(self, work: Callable[[], Answer]) -> Answer:
        """Returns what a long read gives, made in a thread, one at a time."""
        if self._n_reads > self.settings.most_reads_waiting:
            what, rule = f"{self._n_reads - 1} reads wait", f"at most {self.settings.most_reads_waiting} do"
            raise RequestError(503, "busy", what, rule, "Ask again later", headers=(RETRY_AFTER,))
        self._n_reads += 1
        reading = self._reader.submit(work)
        reading.add_done_callback(self._count_read)  # when it ends, which may be after its caller has gone
        return await asyncio.wrap_future(reading)

    def _count_read(self, _: Future[Answer]) -> None:
        self._n_reads -= 1

    def close(self) -> None:
        """Ends the thread, without waiting for what it does."""
        self._reader.shutdown(wait=False, cancel_futures=True)
