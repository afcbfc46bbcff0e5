"""The command line: `coterie demo`, `coterie policies`, `coterie --version`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from coterie import __version__
from coterie.errors import CoterieError
from coterie.policies import list_policies
from coterie.policies.recipes import RECIPES
from coterie.runs.demo import run_demo


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


def file_stem(text: str) -> str:
    """Returns the name of a picture, without .png and without folders."""
    stem = text.removesuffix(".png")
    if not stem or Path(stem).name != stem:
        raise argparse.ArgumentTypeError(f"{text!r} is not a plain file name; folders go into --out")
    return stem


def parser() -> argparse.ArgumentParser:
    """Returns the command line's parser."""
    root = argparse.ArgumentParser(prog="coterie", description="Bandits that learn together, on a graph of users.")
    root.add_argument("--version", action="version", version=f"coterie {__version__}")
    commands = root.add_subparsers(dest="command", metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="a duel of four learners on a small graph world, with a picture",
        description="Plays four learners against each other on small worlds of users on a graph, prints a table of "
        "their regret (what better choices would have paid more) and draws it. Takes about half a minute.",
    )
    demo.add_argument(
        "--out", type=Path, default=Path("coterie-demo"), help="folder for the picture (default: %(default)s)"
    )
    demo.add_argument(
        "--name", type=file_stem, default="regret", help="name of the picture, without .png (default: %(default)s)"
    )
    demo.add_argument("--trials", type=positive, default=40, help="how many worlds (default: %(default)s)")
    demo.add_argument("--rounds", type=positive, default=2000, help="rounds in each world (default: %(default)s)")
    demo.add_argument("--seed", type=seed, default=0, help="seed of all randomness (default: %(default)s)")
    commands.add_parser("policies", help="list the policies that make_policy knows")
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code: 0, or 2 for a mistake that the message explains."""
    options = parser().parse_args(arguments)
    if options.command is None:
        parser().print_help()
        return 0
    try:
        if options.command == "demo":
            run_demo(
                trials=options.trials, horizon=options.rounds, out=options.out, name=options.name, seed=options.seed
            )
        else:
            for name in list_policies():
                print(f"{name:<20} {RECIPES[name].summary}")
    except CoterieError as error:
        print(f"coterie: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"coterie: cannot write to {options.out}: {error.strerror}. Choose another --out", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("coterie: stopped; nothing was written", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
