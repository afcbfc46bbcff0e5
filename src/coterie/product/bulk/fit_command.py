"""`coterie fit`: a bandit from files of events, a graph and arms, within a memory limit."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from coterie.contracts import Array
from coterie.errors import ArmError, ParameterError, counted
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.logs.plain.reading import read_graph_and_arms
from coterie.models.base import SolveProgress
from coterie.product.bulk.budget import FitSizes, Reading, fit_reading, in_bytes, read_size, spent
from coterie.product.bulk.collapse import Columns, combine_parts
from coterie.product.bulk.fitting import POLICIES, Fit, FitSettings, bandit_of, choose_options, in_words
from coterie.product.bulk.out_file import STOPPED, check_out
from coterie.product.bulk.progress import ProgressLines, SolveLines
from coterie.product.bulk.sources import EventPart, IdRows, event_parts, n_rows_of
from coterie.product.cluster.connection import check_reach, connected
from coterie.product.cluster.places import add_place, check_place, usable_cores

ABOUT = (
    "Learns files of events at once and saves a bandit. Events are read in batches and combined by pairs of user and "
    "arm, within the memory that is named; what cannot fit is refused before the work begins. Tables are as in "
    "docs/data.md."
)


def add_fit(
    commands: Any, natural: Callable[[str], int], positive: Callable[[str], int], number: Callable[[str], float]
) -> None:
    """Adds the command to a parser's commands."""
    fit = commands.add_parser("fit", help="make a bandit from files of events, a graph and arms", description=ABOUT)
    fit.add_argument("events", metavar="EVENTS", help="Parquet or CSV: a file, a folder, or a pattern in quotes")
    fit.add_argument("--graph", type=Path, required=True, metavar="EDGES", help="table: user, other, perhaps weight")
    fit.add_argument("--users", type=Path, metavar="FILE", help="table: user; people who may have no edges")
    fit.add_argument("--arms", type=Path, required=True, metavar="ARMS", help="table: arm, then numbers")
    fit.add_argument("--out", type=Path, required=True, metavar="FILE", help="where the bandit goes")
    fit.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    fit.add_argument("--memory", metavar="SIZE", help="at most so much, such as 4GB (default: what is free, about)")
    fit.add_argument("--policy", choices=POLICIES, default=POLICIES[0], help="(default: %(default)s)")
    held = "(default: fitted to a sample)"
    fit.add_argument("--laplacian-ridge", type=number, metavar="R", help=f"the smaller, the farther users share {held}")
    fit.add_argument("--lengthscale", type=number, metavar="L", help=f"of the arms' squared exponential {held}")
    fit.add_argument("--linear", action="store_true", help="rewards are linear in the features")
    fit.add_argument("--noise-var", type=number, metavar="V", help=f"noise variance of the rewards {held}")
    add_place(fit)
    fit.add_argument("--parts", type=positive, metavar="N", help="with --on ray: of the graph (default: one a CPU)")
    fit.add_argument("--seed", type=natural, default=0, help="of decisions, and of the sample (default: %(default)s)")


def run_fit(options: argparse.Namespace) -> int:
    """Runs `fit`, and returns the exit code."""
    try:
        _fit(options)
    except KeyboardInterrupt:
        print(f"coterie: stopped; {options.out} was not written", file=sys.stderr)
        return STOPPED
    return 0


def settings_of(options: argparse.Namespace) -> FitSettings:
    """Returns what was asked for on the command line."""
    names = ("policy", "laplacian_ridge", "lengthscale", "linear", "noise_var", "seed")
    return FitSettings(**{name: getattr(options, name) for name in names})


def sizes_of(settings: FitSettings, graph: UserGraph, arms: ArmPool, n_rows: int) -> FitSizes:
    """Returns what the memory of a fit depends on."""
    return FitSizes(
        n_users=graph.n_users,
        n_edges=graph.n_edges,
        n_arms=len(arms),
        n_features=settings.n_features(arms),
        n_rows=n_rows,
        is_solved=settings.is_solved,
    )


def read_world(options: argparse.Namespace) -> tuple[UserGraph, ArmPool]:
    """Returns graph and arms of the tables on the command line."""
    graph, arms = read_graph_and_arms(options.graph, options.arms, options.users)
    if not isinstance(arms, ArmPool):
        rule = "arms have an id and at least one feature"
        raise ArmError(f"{options.arms.name} has no features", rule, "Add a column of numbers, of ones if need be")
    return graph, arms


def _fit(options: argparse.Namespace) -> None:
    started, lines = monotonic(), ProgressLines()
    settings, limit = settings_of(options), None if options.memory is None else read_size(options.memory)
    check_place(options.on, options.address)
    if options.on == "ray":
        check_reach(options.address)  # before anything is read
    _check_parts(options, settings)
    check_out(options.out, overwrite=options.overwrite)
    parts = event_parts(options.events)
    n_rows = n_rows_of(parts)
    lines.tell(f"reading {options.graph.name} and {options.arms.name}", "", "", 0.0)
    graph, arms = read_world(options)
    sizes = sizes_of(settings, graph, arms, n_rows)
    reading = fit_reading(sizes, limit)
    with _work(options, graph, arms, lines, sizes) as work:
        columns = work.columns(parts, reading)
        pairs = len(columns["users"])
        print(
            f"read {columns['n_observations']:,} events of {counted(len(parts), 'file')}: {pairs:,} pairs of "
            f"{graph.n_users:,} users ({graph.n_edges:,} edges) and {len(arms):,} arms",
            flush=True,
        )
        if not settings.is_given:
            lines.tell("fitting hyperparameters to a sample", "", "", 0.0)
        chosen = choose_options(settings, graph, arms, columns)
        if settings.is_solved:
            print(f"{'given' if settings.is_given else 'fitted'}: {in_words(chosen)}", flush=True)
        progress = SolveLines(lines) if settings.is_solved else None
        weights = work.weights(chosen, progress)
    fit = bandit_of(chosen, graph, arms, columns, weights=weights, progress=progress if weights is None else None)
    del columns
    fit.bandit.save(options.out)
    print(_ending(fit, work.n_steps or fit.steps, options.out, monotonic() - started, limit))


class _Here:
    """The work of a fit in this process.

    Attributes:
        n_steps: Of a solve elsewhere; 0 here, where the bandit's own fit makes them.
    """

    n_steps = 0

    def __init__(self, graph: UserGraph, arms: ArmPool, lines: ProgressLines) -> None:
        self._graph, self._arms, self._lines = graph, arms, lines

    def columns(self, parts: Sequence[EventPart], reading: Reading) -> Columns:
        """Returns all rewards, combined by pairs."""
        total = n_rows_of(parts)

        def told(rows: int, pairs: int) -> None:
            self._lines("reading events", rows, total, "rows", f", {pairs:,} pairs so far" if pairs else "")

        told(0, 0)
        known = IdRows(self._graph.users), IdRows(self._arms.ids)
        return combine_parts(parts, *known, rows=reading.rows, waiting=reading.waiting, progress=told)

    def weights(self, options: Mapping[str, Any], progress: SolveProgress | None) -> Array | None:  # noqa: ARG002
        """Returns none: the bandit solves for them itself."""
        return None


@contextmanager
def _work(
    options: argparse.Namespace, graph: UserGraph, arms: ArmPool, lines: ProgressLines, sizes: FitSizes
) -> Iterator[Any]:
    """Gives who does the work."""
    if options.on != "ray":
        yield _Here(graph, arms, lines)
        return
    from coterie.product.cluster.ray_fit import RayFit

    lines.tell("connecting to Ray", "", "", 0.0)
    with connected(options.address, jobs=options.parts or usable_cores()):
        yield RayFit(graph, arms, options.parts, lines, sizes)


def _check_parts(options: argparse.Namespace, settings: FitSettings) -> None:
    if options.parts is not None and options.on != "ray":
        raise ParameterError("parts are given", "only a fit on Ray cuts the graph", "Add --on ray, or leave it out")
    if options.on == "ray" and not settings.is_solved:
        what, rule = f"{settings.policy!r} is to be fitted on Ray", "its posterior is no solve over the graph"
        raise ParameterError(what, rule, "Leave --on out, or choose lk-gp-ucb")


def _ending(fit: Fit, steps: int, path: Path, seconds: float, limit: int | None) -> str:
    """Returns the last lines: steps, the error bound, and where the file is."""
    solved = fit.bandit.describe()
    if fit.error_bound is not None:
        bound = f"no mean is farther than {fit.error_bound:.2g} from the exact one"
        solved = f"solved in {counted(steps, 'step')}; {bound}"
    size = in_bytes(path.stat().st_size)
    return (
        f"{solved}\n"
        f"wrote {path}: {size}, {fit.bandit.n_rewards:,} rewards; {spent(seconds, limit)}\n"
        f"next: coterie score {path} --out scores.parquet"
    )
