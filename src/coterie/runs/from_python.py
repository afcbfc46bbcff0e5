"""A study from Python: run it, and read what came of it as a table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from coterie.errors.extras import require_extra
from coterie.runs import runner
from coterie.runs.console import find_study
from coterie.runs.report.page import write_report
from coterie.runs.results import Results, results_of
from coterie.runs.store import Store
from coterie.runs.study import Study, study_from


@dataclass(frozen=True)
class FinishedStudy:
    """A study that was run, and the folder that holds it.

    Attributes:
        folder: Where its files are; `coterie report FOLDER` reads the same.
    """

    folder: Path

    @cached_property
    def results(self) -> Results:
        """Regrets and rewards in memory: `results.final(world, policy)` has one number for each trial."""
        return results_of(Store(self.folder))

    def table(self) -> Any:
        """Returns a pyarrow table of all rounds: world, trial, policy, t, user, degree, arm, reward, regret.

        With pandas installed, `.table().to_pandas()` is a dataframe of it; polars reads it by `polars.from_arrow`.
        """
        with require_extra("lab", "a table of results"):
            import pyarrow.dataset as datasets
        return datasets.dataset(self.folder / "trials", format="parquet").to_table()

    def report(self) -> Path:
        """Writes report.html with its figures into the folder, and returns its path."""
        return write_report(self.results, self.folder)


def run_study(
    study: str | Path | Mapping[str, Any],
    *,
    out: str | Path,
    data: str | Path | None = None,
    trials: int | None = None,
    seed: int | None = None,
    quick: bool = False,
    jobs: int = 1,
    resume: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> FinishedStudy:
    """Runs a study and returns where its results are; what is stored already is not run again with `resume`.

    Args:
        study: The name of a study that comes with Coterie, the path of a TOML file or of a log's folder, or the content
            of such a file as a mapping.
        out: The folder for the results.
        data: For a study of a known data set, the folder with its original files.
        trials: How many trials, instead of the study's number.
        seed: Of all randomness, instead of the study's.
        quick: Few rounds and trials: to see that it works.
        jobs: How many processes.
        resume: Whether to go on with what `out` holds of this study.
        progress: Called with what is done and how many units of work are left, after each.
    """
    found = study_from(dict(study)) if isinstance(study, Mapping) else find_study(str(study))
    found = found.changed(trials=trials, seed=seed, quick=quick)
    if data is not None:
        found = found.on(Path(data))
    _check(found)
    store = runner.run_study(found, Path(out), jobs=jobs, resume=resume, on_unit=_reporting(progress))
    return FinishedStudy(store.folder)


def _check(study: Study) -> None:
    for each in study.worlds:
        each.check()  # what is wrong with a log is said before anything is run


def _reporting(progress: Callable[[str, int], None] | None) -> runner.OnUnit | None:
    if progress is None:
        return None
    return lambda unit, left, *_: progress(f"{unit.world}, trial {unit.number}, {unit.policy}", left)
