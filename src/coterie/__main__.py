"""The command line: run studies, compare and report them, reproduce the paper."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from coterie import __version__
from coterie.errors import CoterieError
from coterie.policies import list_policies
from coterie.policies.registry import summary
from coterie.runs import console
from coterie.runs.demo import run_demo
from coterie.runs.paper.reproduce import PARTS, reproduce
from coterie.runs.store import Store

STOPPED = 130


def positive(text: str) -> int:
    """Returns a whole number >= 1 given on the command line."""
    return whole(text, least=1)


def seed(text: str) -> int:
    """Returns a whole number >= 0 given on the command line."""
    return whole(text, least=0)


def whole(text: str, *, least: int) -> int:
    """Returns a whole number of at least this size given on the command line."""
    if not text.strip().lstrip("+-").isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= {least}")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """Returns the command line's parser."""
    root = argparse.ArgumentParser(prog="coterie", description="Bandits that learn together, on a graph of users.")
    root.add_argument("--version", action="version", version=f"coterie {__version__}")
    commands = root.add_subparsers(dest="command", metavar="COMMAND")
    _add_demo(commands)
    _add_run(commands)
    _add_reproduce(commands)
    compare = commands.add_parser("compare", help="tables of one result or of several: means, differences, ranks, time")
    compare.add_argument("results", nargs="+", type=Path, metavar="RESULT", help="folder given as --out to run")
    for name, text in (("plot", "draw the figures of a result anew"), ("report", "write the report of a result anew")):
        command = commands.add_parser(name, help=text)
        command.add_argument("result", type=Path, metavar="RESULT", help="folder given as --out to run")
    commands.add_parser("studies", help="list the studies that come with Coterie")
    commands.add_parser("policies", help="list the policies that make_policy knows")
    return root


def _add_demo(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    demo = commands.add_parser(
        "demo",
        help="a quick study of the main policies on two small worlds, with a report",
        description="Plays the main policies against each other on two small worlds of users on a graph, prints a "
        "table of their regret (what better choices would have paid more) and writes a report, in under a minute.",
    )
    demo.add_argument("--out", type=Path, default=None, help="folder for the results (default: coterie-demo)")
    demo.add_argument("--seed", type=seed, default=0, help="seed of all randomness (default: %(default)s)")
    demo.add_argument("--quick", action="store_true", help="few rounds and trials: to see that it works")


def _add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    run = commands.add_parser(
        "run",
        help="run a study from a TOML file, and write its report",
        description="Runs every policy of a study on every world, trial by trial, and writes tables, figures and one "
        "HTML page. Each trial is stored as soon as it is done; an interrupted study goes on with --resume.",
    )
    run.add_argument(
        "study",
        metavar="STUDY",
        help="a TOML file, the manifest.json of a result, or the name of a study (see: coterie studies)",
    )
    run.add_argument("--trials", type=positive, help="how many trials, instead of the study's number")
    run.add_argument("--seed", type=seed, help="seed of all randomness, instead of the study's")
    run.add_argument("--out", type=Path, help="folder for the results (default: results/NAME)")
    _add_running(run)


def _add_reproduce(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    paper = commands.add_parser(
        "reproduce",
        help="the paper's figures, table and claims",
        description="Runs the paper's comparison, with its own pilot tuning and 20 trials, and checks its theory; ends "
        "with a page that says for each claim whether it holds. `all` takes about half an hour on two cores.",
    )
    paper.add_argument("part", nargs="?", default="all", choices=[*PARTS, "all"], help="default: %(default)s")
    paper.add_argument("--out", type=Path, help="folder (default: reproduction, with --quick reproduction-quick)")
    _add_running(paper)


def _add_running(command: argparse.ArgumentParser) -> None:
    command.add_argument("--jobs", type=positive, default=console.usable_cores(), help="processes (default: all cores)")
    command.add_argument("--quick", action="store_true", help="few rounds and trials: to see that it works")
    command.add_argument("--resume", action="store_true", help="go on with what --out holds of this study")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code: 0, or 2 for a mistake that the message explains."""
    options = parser().parse_args(arguments)
    if options.command is None:
        parser().print_help()
        return 0
    try:
        return _COMMANDS[options.command](options)
    except CoterieError as error:
        print(f"coterie: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"coterie: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("coterie: stopped; what was finished is stored, and --resume goes on with it", file=sys.stderr)
        return STOPPED


def _demo(options: argparse.Namespace) -> int:
    run_demo(out=options.out or console.free_folder(Path("coterie-demo")), seed=options.seed, quick=options.quick)
    return 0


def _run(options: argparse.Namespace) -> int:
    study = console.find_study(options.study).changed(trials=options.trials, seed=options.seed, quick=options.quick)
    out = options.out or Path("results") / f"{study.name}{'-quick' if options.quick else ''}"
    console.run_and_report(study, out, jobs=options.jobs, resume=options.resume)
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    parts = list(PARTS) if options.part == "all" else [options.part]
    out = options.out or Path("reproduction-quick" if options.quick else "reproduction")
    reproduce(parts, out=out, quick=options.quick, jobs=options.jobs, resume=options.resume)
    return 0


def _compare(options: argparse.Namespace) -> int:
    console.show_comparison(options.results)
    return 0


def _plot(options: argparse.Namespace) -> int:
    for path in console.draw(Store(options.result)):
        print(path)
    return 0


def _report(options: argparse.Namespace) -> int:
    console.show(Store(options.result), tables=False)
    return 0


def _studies(_: argparse.Namespace) -> int:
    for path in sorted(console.studies_folder().glob("*.toml")):
        print(f"{path.stem:<18} {console.find_study(path.stem).title}")
    return 0


def _policies(_: argparse.Namespace) -> int:
    for name in list_policies():
        print(f"{name:<20} {summary(name)}")
    return 0


_COMMANDS = {
    "demo": _demo,
    "run": _run,
    "reproduce": _reproduce,
    "compare": _compare,
    "plot": _plot,
    "report": _report,
    "studies": _studies,
    "policies": _policies,
}


if __name__ == "__main__":
    sys.exit(main())
