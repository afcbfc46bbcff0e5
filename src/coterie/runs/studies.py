"""A study by its name, its file or a log; run from Python, and what came of it as a table."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from coterie.errors import ParameterError, SettingError, UnknownNameError, listed, or_similar
from coterie.errors.extras import require_extra
from coterie.logs import Log
from coterie.policies.online import LEVELS
from coterie.problems.recorded import can_ask_for_positives
from coterie.runs import runner
from coterie.runs.places import open_place
from coterie.runs.report.page import write_report
from coterie.runs.results import Results, results_of
from coterie.runs.store import Store
from coterie.runs.study import Study, plain_name, read_study, study_from, title_of
from coterie.runs.worlds import LogSettings, log_of, log_settings, recorded_problem

SMALL = 3000  # pairs of user and arm: up to so many, engine "auto" is left to choose, for a matrix over them is small
FOUND_BY_HAND = "as on Last.fm"  # says of a policy that its settings were found on that log


def studies_folder() -> Path:
    """Returns the folder of the studies that come with Coterie: in the package, or beside it in a clone."""
    package = Path(__file__).parent.parent
    inside = package / "studies"
    return inside if inside.is_dir() else package.parent.parent / "studies"


def list_studies() -> dict[str, str]:
    """Returns the titles of Coterie's own studies by their names, sorted."""
    return {name: title_of(path) for name, path in _own_studies().items()}


def _own_studies() -> dict[str, Path]:
    return dict(sorted((path.stem, path) for path in studies_folder().glob("*.toml")))


def find_study(name: str) -> Study:
    """Returns a study by the path of its file or of a result's manifest, or by the name of one of Coterie's own.

    A folder that is a log makes the study of Last.fm on that log.
    """
    path = Path(name)
    if path.name == "manifest.json":
        return study_from(Store(path.parent).manifest["study"])
    if path.is_dir() and not (path / "manifest.json").exists():
        return study_of_folder(path, studies_folder() / "lastfm.toml")
    if name.endswith(".toml") or path.is_file():
        return read_study(path)
    known = _own_studies()
    if name not in known:
        remedy = or_similar(name, known, "Name one of these, or the path of a TOML file")
        raise UnknownNameError(f"study {name!r} is unknown", f"studies are {listed(known, 30)}", remedy)
    return read_study(known[name])


def study_of_folder(folder: Path, like: Path) -> Study:
    """Returns the study in the file `like` on the log in this folder; candidates that were logged are replayed too.

    Its title says which of that study's worlds this log is too small for.
    """
    log = log_of("plain", str(folder))
    given = tomllib.loads(like.read_text(encoding="utf-8"))
    name = plain_name(folder.resolve().name) or "log"
    learners = given.get("learners", {}) if _pairs(log) > SMALL else {}
    worlds, left_out = _worlds(log, folder, given["worlds"])
    rest = f" (left out, for {_nobody(log)}: {', '.join(left_out)})" if left_out else ""
    return study_from(
        {
            **given,
            "name": name,
            "title": f"{name}: would the graph have helped?{rest}",
            "learners": learners,
            "policies": [_renamed(each) for each in given["policies"]],
            "worlds": worlds,
        }
    )


def _renamed(policy: dict[str, Any]) -> dict[str, Any]:
    """Returns the entry of a policy; one with settings of its own says whose they are."""
    if not {"noise_var", "width", "laplacian_ridge"} & set(policy):
        return policy
    return {**policy, "label": f"{policy.get('label', policy['policy'])}, {FOUND_BY_HAND}"}


def _worlds(log: Log, folder: Path, given: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the worlds that this log can be, one positive among others and what was logged; and what it cannot be."""
    here = {"data": "plain", "folder": str(folder)}
    asked = [{**each, **here, "n_candidates": _n_candidates(log)} for each in given]
    worlds = [each for each in asked if _can_be(each)] if can_ask_for_positives(log) else []
    left_out = [each["name"] for each in asked if each not in worlds]
    if log.events.candidates is not None:
        features = given[0]["online_features"] if log.events.context is None else []  # contexts are shown instead
        worlds.append({"name": "replay", "protocol": "replay", "online_features": features, **here})
    if not worlds:
        raise SettingError(
            f"the log in {str(folder)!r} has no candidates, and {_nobody(log)}",
            "a study draws candidates around what users liked (a reward above 0), or replays those that were logged",
            "Log candidates, or write a study file with a smaller least_positives or n_candidates (docs/studies.md), "
            "and run that",
            key="data",
        )
    return worlds, left_out


def _n_candidates(log: Log) -> int:
    return min(LogSettings().n_candidates, max(len(log.arm_ids) // 2, 2))


def _can_be(world: dict[str, Any]) -> bool:
    """Returns whether some user can come in this world."""
    try:
        recorded_problem(log_settings({key: value for key, value in world.items() if key != "name"}))
    except ParameterError:
        return False
    return True


def _nobody(log: Log) -> str:
    """Returns in words whom a world of one positive among others would need."""
    least, others = LogSettings().least_positives, _n_candidates(log) - 1
    return f"no user with {least} positives (least_positives) has {others} other arms never had (n_candidates - 1)"


def _pairs(log: Log) -> int:
    return log.graph.n_users * len(log.arm_ids) * LEVELS["popularity"].n_levels


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
    on: str = "processes",
    address: str | None = None,
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
        jobs: How many processes, or CPUs of a Ray that is started here.
        on: "processes" of this machine, or "ray" (extra 'ray'); the results are the same.
        address: Of a Ray cluster that runs, "auto" or HOST:PORT, instead of one started here.
        resume: Whether to go on with what `out` holds of this study.
        progress: Called with what is done and how many units of work are left, after each.
    """
    found = study_from(dict(study)) if isinstance(study, Mapping) else find_study(str(study))
    found = found.changed(trials=trials, seed=seed, quick=quick)
    if data is not None:
        found = found.on(Path(data))
    with open_place(on, jobs=jobs, address=address) as place:
        store = runner.run_study(found, Path(out), place=place, resume=resume, on_unit=_reporting(progress))
    return FinishedStudy(store.folder)


def _reporting(progress: Callable[[str, int], None] | None) -> runner.OnUnit | None:
    if progress is None:
        return None
    return lambda unit, left, *_: progress(str(unit), left)
