"""A study on logs on the terminal."""

from pathlib import Path
from typing import Any

from coterie.runs.recorded.outcome import outcome_of
from coterie.runs.recorded.report.page import write_log_report
from coterie.runs.recorded.report.summary import summary_of
from coterie.runs.recorded.report.tables import tables as tables_of
from coterie.runs.recorded.report.words import answer
from coterie.runs.recorded.settings import LogSettings
from coterie.runs.recorded.sources import problem_of
from coterie.runs.report.tables import for_terminal
from coterie.runs.store import Store
from coterie.runs.study import Study


def is_of_logs(store: Store) -> bool:
    """Whether the study that lies here has logs for its worlds."""
    return any("data" in world for world in store.manifest["study"]["worlds"])


def check_logs(study: Study) -> None:
    """Reads the logs of a study, so that what is wrong with them is said before anything is run."""
    for each in study.worlds:
        assert isinstance(each.settings, LogSettings)
        problem_of(each.settings)


def show_logs(store: Store, console: Any, *, tables: bool = True, page: bool = True) -> Path:
    """Prints what came of a study on logs, writes its report and returns the report's path."""
    outcome = outcome_of(store)
    console.print(answer(outcome), highlight=False)
    for table in tables_of(outcome) if tables else ():
        console.print(for_terminal(table))
    path = store.folder / "report.html"
    if page:
        store.write_json(store.folder / "summary.json", summary_of(outcome))
        write_log_report(outcome, store.folder)
        console.print(f"The report: {path}  (open it in any browser)", highlight=False, soft_wrap=True)
    return path


def duration(seconds: float) -> str:
    """Returns a length of time in words, rounded.

    Examples:
        >>> duration(50), duration(400), duration(9000)
        ('50 s', '7 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
