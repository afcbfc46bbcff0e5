"""Studies on the terminal: progress with an estimate, the tables, and where the report lies."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from coterie.errors.extras import require_extra
from coterie.product.cluster.places import usable_cores
from coterie.runs.report.page import report_of, write_report
from coterie.runs.report.regret import unfinished
from coterie.runs.report.tables import TextTable, comparison, for_terminal
from coterie.runs.results import results_of
from coterie.runs.runner import OnUnit, Place, Processes, run_study
from coterie.runs.store import Store, Unit
from coterie.runs.studies import find_study
from coterie.runs.study import Study


def run_demo(*, out: Path, seed: int = 0, quick: bool = False) -> Path:
    """Runs the demonstration, the main policies on two small worlds, and returns the path of its report."""
    study = find_study("demo").changed(seed=seed, quick=quick)
    return run_and_report(study, out, place=Processes(usable_cores()), resume=False)


def run_and_report(study: Study, out: Path, *, place: Place, resume: bool, tables: bool = True) -> Path:
    """Runs a study with progress, prints its tables, writes the report and returns its path."""
    console = _console()
    rounds = sum(each.n_rounds * len(study.playing(each.name)) for each in study.worlds) * study.trials
    if study.tuning is not None:
        tried = {each.name: sum(map(len, study.grids(each.name).values())) for each in study.worlds}
        pilot = sum(min(study.tuning.horizon, each.horizon) * tried[each.name] for each in study.worlds)
        rounds += pilot * study.tuning.trials
    sizes = (
        f"worlds {len(study.worlds)}, policies {len(study.policies)}, trials {study.trials}, rounds {rounds:,} in all"
    )
    console.print(f"{study.title}: {sizes}; results in {out}", highlight=False, soft_wrap=True)
    study.check()  # before there is a bar, which an error would leave a line of
    with _progress(console) as on_unit:
        on_plan = partial(_print_plan, console, place.size) if study.of_logs else None
        store = run_study(study, out, place=place, resume=resume, on_unit=on_unit, on_plan=on_plan)
    return show(store, tables=tables)


def _print_plan(console: Any, jobs: int, units: list[Unit]) -> None:
    """Prints how long the whole will take: no less than its longest unit."""
    seconds = max([sum(unit.cost for unit in units) / jobs, *(unit.cost for unit in units)])
    plan = f"{len(units)} to play, about {duration(seconds)} on {jobs} processes by their first rounds"
    console.print(f"{plan}; each is stored when it is done", highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Returns a length of time in words, rounded.

    Examples:
        >>> duration(50), duration(400), duration(9000)
        ('50 s', '7 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def seconds_left(passed: float, done: float, total: float) -> float:
    """Returns how long the rest takes at this pace; sums of costs may end a rounding error above their total.

    Examples:
        >>> seconds_left(30.0, 1.0, 4.0), seconds_left(30.0, 4.0000001, 4.0), seconds_left(1.0, 0.0, 0.0)
        (90.0, 0.0, 0.0)
    """
    return max(0.0, passed * (total / done - 1)) if done else 0.0  # what cannot run costs nothing


def show(store: Store, *, tables: bool = True) -> Path:
    """Prints the tables of a stored study, writes its report and figures, and returns the report's path."""
    console, results = _console(), results_of(store)
    report = report_of(results)
    console.print(report.answer, highlight=False)
    _print_tables(console, report.tables if tables else ())
    if report.summary:
        store.write_json(store.folder / "summary.json", report.summary)
    path = write_report(results, store.folder)
    console.print(f"The report: {path}  (open it in any browser)", highlight=False, soft_wrap=True)
    return path


def _print_tables(console: Any, tables: Sequence[TextTable]) -> None:
    for table in tables:
        console.print(for_terminal(table))


def draw(store: Store) -> list[Path]:
    """Draws the figures of a stored study again and returns their paths."""
    drawn = report_of(results_of(store)).draw(store.folder / "figures")
    return [path for figure in drawn for path in (figure.png, figure.svg)]


def show_comparison(folders: list[Path]) -> None:
    """Prints the tables of one study or of several: regrets of all in one comparison, logs one by one."""
    console = _console()
    found = [replace(results_of(Store(folder)), name=folder.name) for folder in folders]
    for report in (report_of(each) for each in found if each.logs):
        console.print(report.answer, highlight=False)
        _print_tables(console, report.tables)
    drawn = [each for each in found if not each.logs]
    for each in drawn:
        if missing := unfinished(each):
            console.print(f"{each.name}: {missing}", highlight=False)
    _print_tables(console, comparison(*drawn) if drawn else ())


def free_folder(wanted: Path) -> Path:
    """Returns this folder if it holds no study, or the first of wanted-2, wanted-3, ... that holds none."""
    folder, number = wanted, 1
    while (folder / "manifest.json").exists():
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder


def _console() -> Any:
    with require_extra("lab", "the laboratory"):
        from rich.console import Console
    return Console()


@contextmanager
def _progress(console: Any) -> Iterator[OnUnit]:
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, speed_estimate_period=600) as progress:
        task, start = progress.add_task("starting", total=None), monotonic()

        def on_unit(unit: Unit, left: int, done: float, total: float) -> None:
            what = str(unit)
            progress.update(task, completed=done, total=total, description=what)
            if not console.is_terminal:
                rest = seconds_left(monotonic() - start, done, total)
                with suppress(BrokenPipeError):  # nobody reads any more; the work goes on
                    console.print(
                        f"{what} done, {left} to go, about {rest:.0f} s left", highlight=False, soft_wrap=True
                    )

        yield on_unit
