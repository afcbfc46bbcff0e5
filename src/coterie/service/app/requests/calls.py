"""A route, a call of it, and what all calls share."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from coterie.service.app.requests.answers import Answer
from coterie.service.app.requests.bodies import BodyType
from coterie.service.app.requests.failures import RequestError
from coterie.service.app.requests.limits import Limits
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


Handler: TypeAlias = Callable[[Call], Answer]
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
        handler: What answers, in one go.
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
        routes: All routes.
        documents: Bytes that are made once, such as the description of the routes.
    """

    running: RunningEngine
    settings: ServiceSettings
    limits: Limits
    routes: tuple[Route, ...]
    documents: dict[str, bytes] = field(default_factory=dict)
    _long_reads: asyncio.Lock = field(default_factory=asyncio.Lock)
    _n_waiting: int = 0

    async def read(self, work: Callable[[], Answer]) -> Answer:
        """Returns what a long read gives, made in a thread, one at a time."""
        if self._n_waiting >= self.settings.most_reads_waiting:
            rule = f"at most {self.settings.most_reads_waiting} long reads wait"
            raise RequestError(503, "busy", f"{self._n_waiting} reads wait", rule, "Ask again later")
        self._n_waiting += 1
        try:
            async with self._long_reads:
                return await asyncio.to_thread(work)
        finally:
            self._n_waiting -= 1
