"""`coterie score`: the best arms of every user of a saved bandit, as a Parquet file."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from coterie.errors import SavedFileError
from coterie.product.bandit import Bandit
from coterie.product.bulk.budget import read_size, score_block, spent
from coterie.product.bulk.out_file import STOPPED, check_out
from coterie.product.bulk.progress import ProgressLines
from coterie.product.cluster.connection import check_reach, connected
from coterie.product.cluster.places import add_place, check_place
from coterie.product.project.context_text import read_context
from coterie.product.scoring import Mapper

ABOUT = (
    "Writes the best arms of every user, a row for each: user, rank (from 1), arm, mean, and std if asked for. Retired "
    "arms are left out. Users are scored in blocks, as many at a time as the memory that is named allows."
)

SLOW_BLOCK = 2**18  # means at a time where a std is to be solved for: a block is as far as one line of progress goes


def add_score(commands: Any, positive: Callable[[str], int]) -> None:
    """Adds the command to a parser's commands."""
    score = commands.add_parser("score", help="write the best arms of every user of a saved bandit", description=ABOUT)
    score.add_argument("file", type=Path, metavar="FILE", help="a saved bandit (see: coterie fit)")
    score.add_argument("--out", type=Path, required=True, metavar="SCORES", help="the Parquet file to write")
    score.add_argument("--overwrite", action="store_true", help="replace SCORES if it is there")
    score.add_argument("--top", type=positive, default=10, help="arms for each user, at most (default: %(default)s)")
    score.add_argument("--by", choices=("mean", "ucb"), default="mean", help="which are best (default: %(default)s)")
    score.add_argument("--context", metavar="CONTEXT", help="in which arms are shown: hour=21,device=phone, or JSON")
    score.add_argument("--std", action="store_true", help="also the std of each; it takes a solve for each user")
    add_place(score)
    score.add_argument("--jobs", type=positive, default=2, help="CPUs of a Ray that is started here (default: 2)")
    score.add_argument("--memory", metavar="SIZE", help="at most so much, such as 4GB (default: what is free, about)")


def run_score(options: argparse.Namespace) -> int:
    """Runs `score`, and returns the exit code."""
    try:
        _score(options)
    except KeyboardInterrupt:
        print(f"coterie: stopped; {options.out} was not written", file=sys.stderr)
        return STOPPED
    return 0


def _check_ending(path: Path) -> None:
    if path.suffix != ".parquet":
        rule = "scores are written as Parquet, in a file *.parquet"
        raise SavedFileError(f"--out is {str(path)!r}", rule, f"Write {path.stem}.parquet")


@contextmanager
def _mapper(
    options: argparse.Namespace, users: Sequence[Any], asked: Mapping[str, Any], lines: ProgressLines
) -> Iterator[Mapper]:
    """Gives who scores the blocks of users."""
    if options.on != "ray":
        yield map
        return
    from coterie.product.cluster.ray_score import RayScores

    lines.tell("connecting to Ray", "", "", 0.0)
    with connected(options.address, jobs=options.jobs):
        yield RayScores(options.file, users, asked)


def _score(options: argparse.Namespace) -> None:
    started, lines = monotonic(), ProgressLines()
    limit = None if options.memory is None else read_size(options.memory)
    check_place(options.on, options.address)
    if options.on == "ray":
        check_reach(options.address)  # before anything is read
    _check_ending(options.out)
    check_out(options.out, overwrite=options.overwrite)
    if not options.file.is_file():
        rule = "a saved bandit is a file"
        raise SavedFileError(f"there is no file {str(options.file)!r}", rule, "Make one with: coterie fit")
    block = score_block(options.file.stat().st_size, limit)
    lines.tell(f"loading {options.file}", "", "", 0.0)
    bandit = Bandit.load(options.file, journal=None)  # it is only read

    def told(done: int, total: int) -> None:
        lines("scoring", done, total, "users")

    if options.std or options.by == "ucb":
        block = min(block, SLOW_BLOCK)
    context = None if options.context is None else read_context(options.context, bandit.context_schema)
    asked = {"top": options.top, "by": options.by, "std": options.std, "context": context}
    with _mapper(options, bandit.graph.users, asked, lines) as mapper:
        told(0, bandit.graph.n_users)
        bandit.score_all(**asked, to=options.out, progress=told, block=block, mapper=mapper)
    n_users, top = bandit.graph.n_users, min(options.top, len(bandit.arms) - len(bandit.retired))
    best = f"the best {top} of {len(bandit.arms)} arms for {n_users:,} users, by {options.by}"
    print(f"wrote {options.out}: {n_users * top:,} rows, {best}; {spent(monotonic() - started, limit)}")
