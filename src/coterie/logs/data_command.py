"""`coterie data`: a log checked, and an original data set made one."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coterie.logs.log import describe
from coterie.logs.originals import LOADERS, ORIGINS
from coterie.logs.originals.origin import Origin
from coterie.logs.plain.folder import by_kind
from coterie.logs.plain.reading import check_log
from coterie.logs.plain.write_log import write_log

MOST_READ = 1_000  # mistakes, after which nobody reads on

OPTIONS = {
    "lastfm": ("dimension", "seed"),
    "deezer": ("country",),
    "filmtrust": ("dimension", "seed", "reward"),
    "open-bandit": ("logger", "campaign", "position", "users", "contexts"),
}


def add_data(commands: Any, *, natural: Callable[[str], int], positive: Callable[[str], int]) -> None:
    """Adds `data check` and `data convert` to the command line."""
    data = commands.add_parser("data", help="check a log of your own, or make one of a known data set")
    kinds = data.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = kinds.add_parser(
        "check",
        help="what a folder with edges, arms and events holds, or what is wrong with it",
        description="Reads edges, arms and events (CSV or Parquet; users and had are optional), and prints how many "
        "there are. If something is wrong it prints the first mistake of each kind, with file, row, value, rule and "
        "remedy and how many are like it, and ends with code 2.",
    )
    check.add_argument("folder", type=Path, metavar="DIR", help="a folder with edges, arms and events")
    check.add_argument("--limit", type=positive, default=10, help="how many kinds to print (default: %(default)s)")
    convert = kinds.add_parser(
        "convert",
        help="make a log of the original files of a known data set",
        description="Reads the original files of a data set from a folder, and writes edges, arms and events. Nothing "
        "is downloaded, and nothing is overwritten.",
    )
    names = convert.add_subparsers(dest="name", metavar="NAME", required=True)
    made = {name: _add_origin(names, name, origin) for name, origin in ORIGINS.items()}
    for name in ("lastfm", "filmtrust"):
        made[name].add_argument("--dimension", type=positive, default=25, help="features (default: %(default)s)")
        made[name].add_argument("--seed", type=natural, default=0, help="of the features (default: %(default)s)")
    reward = "1 for a rating of at least 3, or the rating (default: %(default)s)"
    made["filmtrust"].add_argument("--reward", choices=["positive", "rating"], default="positive", help=reward)
    made["deezer"].add_argument("--country", default="RO", help="HR, HU or RO (default: %(default)s)")
    _add_open_bandit(made["open-bandit"], positive)


def _add_origin(names: Any, name: str, origin: Origin) -> argparse.ArgumentParser:
    about = f"{origin.title}. Usually had from {origin.had}. Terms: {origin.terms}."
    command: argparse.ArgumentParser = names.add_parser(name, help=origin.title, description=about)
    command.add_argument("source", type=Path, metavar="SRC", help="the folder of the original files")
    command.add_argument("folder", type=Path, metavar="DIR", help="where to write")
    command.add_argument("--format", choices=["csv", "parquet"], default="csv", help="default: %(default)s")
    return command


def _add_open_bandit(command: argparse.ArgumentParser, positive: Callable[[str], int]) -> None:
    command.add_argument("--logger", choices=["random", "bts"], default="random", help="default: %(default)s")
    command.add_argument("--campaign", choices=["all", "men", "women"], default="all", help="default: %(default)s")
    command.add_argument("--position", type=positive, help="only choices for this place on the page, 1 to 3")
    users = "who counts as one user: those of equal features, or everybody (default: %(default)s)"
    command.add_argument("--users", choices=["features", "one"], default="features", help=users)
    contexts = "write the user features as contexts, and the position as place"
    command.add_argument("--contexts", action="store_true", help=contexts)


def run_data(options: argparse.Namespace) -> int:
    """Runs `data check` or `data convert`, and returns the exit code."""
    return _check(options) if options.action == "check" else _convert(options)


def _check(options: argparse.Namespace) -> int:
    log, mistakes = check_log(options.folder, limit=MOST_READ)
    if log is not None:
        print(describe(log))
        return 0
    kinds = by_kind(mistakes)
    for first, *alike in kinds[: options.limit]:
        print(first, f"({len(alike)} more like it)" if alike else "", file=sys.stderr)
    more = "or more; the rest was not read" if len(mistakes) == MOST_READ else f"of {len(kinds)} kinds"
    if len(mistakes) > 1:
        print(f"{len(mistakes)} mistakes {more}", file=sys.stderr)
    return 2


def _convert(options: argparse.Namespace) -> int:
    given = {name: getattr(options, name) for name in OPTIONS[options.name]}
    log = LOADERS[options.name](options.source, **given)
    for path in write_log(log, options.folder, format=options.format):
        print(path)
    print(describe(log))
    return 0
