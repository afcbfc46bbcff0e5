"""The app: Litestar finds the path and holds the lifespan; each path is an `Endpoint` with the routes of the table."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from litestar import Litestar, Request, Response
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp

from coterie.service.app.description.document import documents
from coterie.service.app.requests.answers import SAFE
from coterie.service.app.requests.calls import Route, Service
from coterie.service.app.requests.endpoint import Endpoint
from coterie.service.app.requests.failures import RequestError, failure_of
from coterie.service.app.requests.limits import Limits
from coterie.service.app.requests.metrics import Metrics
from coterie.service.app.requests.notes import Notes
from coterie.service.app.routes.table import ROUTES
from coterie.service.app.settings import ServiceSettings, checked
from coterie.service.engine.running import RunningEngine

log = logging.getLogger(__name__)
WhenReady: TypeAlias = Callable[[RunningEngine], Awaitable[None]]


def create_app(
    running: RunningEngine, settings: ServiceSettings | None = None, *, when_ready: WhenReady | None = None
) -> Litestar:
    """Returns the app of an engine, which it starts and stops.

    Args:
        running: The engine.
        settings: How the service runs.
        when_ready: Awaited once the replay is done.
    """
    settings = checked(settings or ServiceSettings())
    limits, notes = Limits(settings), Notes(log_requests=settings.log_requests)
    service = Service(
        running=running, settings=settings, limits=limits, metrics=Metrics(running, limits), documents=documents(ROUTES)
    )

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        starting = asyncio.create_task(_start(running, when_ready))
        try:
            yield
        finally:
            service.close()
            notes.write()
            await running.stop()
            await asyncio.gather(starting, return_exceptions=True)

    return Litestar(
        route_handlers=[_handler(Endpoint(service, route, notes), route) for route in ROUTES],
        lifespan=[lifespan],
        openapi_config=None,
        logging_config=None,
        exception_handlers={Exception: _refused},
    )


async def _start(running: RunningEngine, when_ready: WhenReady | None) -> None:
    await running.start()
    if when_ready is not None and running.is_ready:
        try:
            await when_ready(running)
        except Exception:
            log.exception("what was to be done at the start failed")


def _handler(endpoint: Endpoint, route: Route) -> HTTPRouteHandler:
    """Returns what Litestar finds by method and path.

    The endpoint stands in the place of a middleware, so that what Litestar does around a handler is not done twice.
    """

    def in_its_place(app: ASGIApp) -> ASGIApp:  # noqa: ARG001
        return endpoint

    async def handle() -> None:
        """Is never awaited."""

    path = re.sub(r"{(\w+)}", r"{\1:str}", route.path)
    return HTTPRouteHandler(path, http_method=route.method, status_code=200, middleware=[in_its_place])(handle)


def _refused(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Returns the answer to what reached no route."""
    if isinstance(error, HTTPException):
        what = f"there is no {request.method} {request.url.path!r}"
        headers = tuple((name.encode(), value.encode()) for name, value in (error.headers or {}).items())
        rule, remedy = "methods and paths are those of /docs", "Open /docs: it has every route, and needs no key"
        error = RequestError(error.status_code, "not_there", what, rule, remedy, headers=headers)
    answer = failure_of(error).answer
    sent = {name.decode(): value.decode() for name, value in (*SAFE, *answer.headers)}
    return Response(answer.body, status_code=answer.status, headers=sent, media_type="application/json")
