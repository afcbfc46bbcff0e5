"""`coterie serve`: decisions over HTTP, and tables for them. Nothing of the extra is imported before it runs."""

import argparse
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from coterie.errors.extras import require_extra

ABOUT = (
    "Serves decisions over HTTP from one process. Every event is in the store before it is answered; after a crash the "
    "service goes on where its store ends. `coterie serve load --help` says how tables get into an experiment."
)
LOAD = (
    "Sends users, edges and arms to an experiment of a service that runs, in batches. Tables are CSV or Parquet, and "
    "are checked before anything is sent; what is there already may be sent again. The key is that of COTERIE_KEY."
)
LEVELS = ("debug", "info", "warning", "error")


def add_serve(commands: Any, natural: Callable[[str], int], number: Callable[[str], float]) -> None:
    """Adds the command to a parser's commands."""
    serve = commands.add_parser("serve", help="serve decisions over HTTP (extra 'service')", description=ABOUT)
    serve.add_argument("--demo", action="store_true", help="with an experiment and a stream of decisions to look at")
    serve.add_argument("--store", metavar="DIR", help="where events are kept (default: coterie-store)")
    serve.add_argument("--host", help="the address to listen on (default: 127.0.0.1, so this computer alone)")
    serve.add_argument("--port", type=natural, help="the port; 0 takes a free one (default: 8711)")
    serve.add_argument("--config", type=Path, metavar="FILE", help="settings as TOML; flags go before them")
    serve.add_argument("--rate-per-key", type=number, metavar="N", help="requests a second that one key may make")
    serve.add_argument("--personalizer-experiment", metavar="ID", help="the experiment of Personalizer's routes")
    serve.add_argument("--new-key", action="store_true", help="make a key that may do everything, and print it")
    serve.add_argument("--log-level", choices=LEVELS, help="what is logged (default: info; with --demo: warning)")
    _add_load(serve.add_subparsers(dest="action", metavar="load"))


def _add_load(actions: Any) -> None:
    load = actions.add_parser("load", help="send tables to an experiment of a service that runs", description=LOAD)
    load.add_argument("experiment", metavar="EXPERIMENT", help="its id")
    load.add_argument("--edges", type=Path, metavar="FILE", help="table: two users and perhaps a weight")
    load.add_argument("--users", type=Path, metavar="FILE", help="table with a header: the user's id first")
    load.add_argument("--arms", type=Path, metavar="FILE", help="table with a header: the arm's id, then numbers")
    load.add_argument("--create", action="store_true", help="make the experiment if it is not there, with defaults")
    load.add_argument("--url", help="where the service is (default: COTERIE_URL, or http://127.0.0.1:8711)")
    load.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the CSV file of edges has a header (default: see for itself)",
    )


def run_serve(options: argparse.Namespace) -> int:
    """Runs `serve`, and returns the exit code."""
    if options.action == "load":
        return _load(options)
    with require_extra("service", "coterie serve"):
        from coterie.service.command.running import run
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        with suppress(KeyboardInterrupt):  # which the server has waited for, or which came before it began
            run(options)
    finally:
        signal.signal(signal.SIGTERM, before)
    print("coterie: stopped; every event that was answered for is in the store", file=sys.stderr)
    return 0


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def _load(options: argparse.Namespace) -> int:
    with require_extra("service", "coterie serve load"):
        from coterie.product.bulk.progress import ProgressLines
        from coterie.service.client import Client
        from coterie.service.command.loading import load, read_tables
    tables = read_tables(users=options.users, edges=options.edges, arms=options.arms, header=options.header)
    with Client(options.url) as client:
        print(load(client, options.experiment, tables, create=options.create, lines=ProgressLines()))
    return 0
