"""`coterie diagnose`: what a log says before any experiment."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coterie.errors.extras import require_extra
from coterie.logs import read_log
from coterie.runs.diagnosis.answers import console_lines
from coterie.runs.diagnosis.diagnosis import SIM_ROUNDS, diagnose
from coterie.runs.diagnosis.page import write_diagnosis


def add_diagnose(commands: Any, *, natural: Callable[[str], int], positive: Callable[[str], int]) -> None:
    """Adds `diagnose` to the command line."""
    command = commands.add_parser(
        "diagnose",
        help="would the graph help? what a log says before any experiment",
        description="Reads edges, arms and events (see: coterie data check) and says, in words and on one page with "
        "pictures: whether linked users are alike, what the rewards say for graph, own and common taste, which "
        "hyperparameters they suggest, and when the graph pays off in simulated rounds. Some minutes.",
    )
    command.add_argument("folder", type=Path, metavar="DIR", help="a folder with edges, arms and events")
    command.add_argument("--out", type=Path, help="folder of the page (default: diagnosis-NAME; written over)")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON too")
    command.add_argument("--rewirings", type=positive, help="of the graph (default: 99, fewer on large graphs)")
    command.add_argument("--rounds", type=positive, default=SIM_ROUNDS, help="to simulate (default: %(default)s)")
    command.add_argument("--seed", type=natural, default=0, help="of all that is drawn (default: %(default)s)")


def run_diagnose(options: argparse.Namespace) -> int:
    """Runs `diagnose`, and returns the exit code."""
    with require_extra("lab", "the page"):
        import matplotlib  # noqa: F401 - missed now rather than after minutes
    name = options.folder.resolve().name
    found = diagnose(
        read_log(options.folder),
        name=name,
        seed=options.seed,
        n_rewirings=options.rewirings,
        rounds=options.rounds,
        say=lambda text: print(f"({text})", flush=True),
    )
    print(*console_lines(found), sep="\n")
    rest = "" if options.rewirings is None else f" --rewirings {options.rewirings}"
    command = f"coterie diagnose {options.folder} --seed {options.seed} --rounds {options.rounds}{rest}"
    page = write_diagnosis(found, options.out or Path(f"diagnosis-{name}"), command=command)
    print(f"\nThe page: {page}  (open it in any browser)")
    if options.json is not None:
        options.json.write_text(json.dumps(found.figures(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return 0
