"""The app on a port: uvicorn in one process, with every limit set."""

import gc
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import uvicorn

from coterie.errors import ParameterError
from coterie.policies.auto.climbing import ClimbProcess, climbing_in
from coterie.runs.workers import BLAS_THREADS, one_blas_thread, one_thread_in_children
from coterie.service.app.application import WhenReady, create_app
from coterie.service.app.protocol import protocol_of
from coterie.service.app.settings import ServiceSettings, checked
from coterie.service.engine.running import RunningEngine, ensure_admin_key
from coterie.service.journal import SqliteJournal

BACKLOG = 1024
SWITCHED_AFTER = 0.0002  # seconds: how long a decision waits for a thread that computes, or a commit for a decision


def serve(
    settings: ServiceSettings | None = None,
    *,
    listener: socket.socket | None = None,
    when_ready: WhenReady | None = None,
) -> None:
    """Serves until the process is told to stop; raises if the address or the store is in use.

    Args:
        settings: How the service runs.
        listener: What it listens on; none given means host and port of the settings.
        when_ready: Awaited once the replay is done; prints the first key by default.
    """
    settings = checked(settings or ServiceSettings())
    with listener or listening(settings) as port, closing(SqliteJournal(settings.store)) as journal:
        running = RunningEngine(lambda: journal, snapshot_every=settings.snapshot_every, tick_every=settings.tick_every)
        app = create_app(running, settings, when_ready=when_ready or print_first_key)
        with suppress(KeyboardInterrupt), tuned():
            uvicorn.Server(server_config(app, settings)).run(sockets=[port])


@contextmanager
def tuned() -> Iterator[None]:
    """Lets this process do what a service needs: decisions that wait neither for fits, nor commits, nor for garbage."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCHED_AFTER)
    gc.collect()
    gc.freeze()  # what was imported is no garbage: to look through all of it again takes longer than many decisions
    try:
        with _blas_limits(), climbing_in(ClimbProcess()):
            yield
    finally:
        sys.setswitchinterval(before)
        gc.unfreeze()


def _blas_limits() -> ExitStack:
    """Returns a context in which BLAS has one thread, here and in processes that start, unless told otherwise.

    Matrices are so small that two threads get in each other's way: a decision takes three times as long.
    """
    limits = ExitStack()
    if not any(name in os.environ for name in BLAS_THREADS):
        limits.enter_context(one_blas_thread())
        limits.enter_context(one_thread_in_children())
    return limits


def listening(settings: ServiceSettings) -> socket.socket:
    """Returns what takes connections at the host and port of settings, or raises."""
    host, port = settings.host, settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        rule = "the service listens on an address of this computer, on a port that is free"
        why = (error.strerror or str(error)).partition(" (while")[0]
        problem = f"{host}:{port} cannot be listened on: {why}"
        raise ParameterError(problem, rule, "Give another --host or --port, or end who has it") from None


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
        backlog=BACKLOG,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


async def print_first_key(running: RunningEngine) -> None:
    """Prints a key that may do everything if there is no key at all: it is told once."""
    key = await ensure_admin_key(running)
    if key is not None:
        print(f"The first key, told once: {key}", flush=True)
