"""The app on a port: uvicorn in one process, with every limit set."""

from contextlib import suppress
from functools import partial

import uvicorn

from coterie.service.app.application import WhenReady, create_app
from coterie.service.app.protocol import protocol_of
from coterie.service.app.settings import ServiceSettings, checked
from coterie.service.engine.running import RunningEngine, ensure_admin_key
from coterie.service.journal import SqliteJournal


def serve(settings: ServiceSettings | None = None, *, when_ready: WhenReady | None = None) -> None:
    """Serves until the process is told to stop.

    Args:
        settings: How the service runs.
        when_ready: Awaited once the replay is done; prints the first key by default.
    """
    settings = checked(settings or ServiceSettings())
    running = RunningEngine(
        partial(SqliteJournal, settings.store), snapshot_every=settings.snapshot_every, tick_every=settings.tick_every
    )
    app = create_app(running, settings, when_ready=when_ready or print_first_key)
    with suppress(KeyboardInterrupt):
        uvicorn.Server(server_config(app, settings)).run()


def server_config(app: object, settings: ServiceSettings) -> uvicorn.Config:
    """Returns how uvicorn runs: one process, limits on everything, nothing told about itself."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=protocol_of(settings),
        ws="none",
        lifespan="on",
        workers=1,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        log_level="warning",
        limit_concurrency=settings.most_connections,
        backlog=1024,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


async def print_first_key(running: RunningEngine) -> None:
    """Prints a key that may do everything if there is no key at all: it is told once."""
    key = await ensure_admin_key(running)
    if key is not None:
        print(f"The first key, told once: {key}", flush=True)
