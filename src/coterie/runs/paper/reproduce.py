"""`coterie reproduce`: the paper's studies and the checks of its theory, then the page that says what holds."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

from coterie.errors import StoreError
from coterie.runs.console import run_and_report
from coterie.runs.paper.document import answer, as_markdown, read_summaries, write_html
from coterie.runs.paper.experiments import bounds, clustered_graphs, engines, families, gain, growth, uncertainty
from coterie.runs.paper.experiments.experiment import Computation, Record
from coterie.runs.paper.summary import summarise
from coterie.runs.results import results_of
from coterie.runs.runner import Place
from coterie.runs.store import Store, write_text
from coterie.runs.studies import find_study
from coterie.runs.workers import one_blas_thread

COMPUTED: Mapping[str, Computation] = {
    "figure-1": Computation("figure-1", {"": gain}),
    "theory": Computation(
        "theory", {"clusters": clustered_graphs, "growth": growth, "bounds": bounds, "uncertainty": uncertainty}
    ),
    "scaling": Computation("scaling", {"engines": engines, "families": families}),
}

# What each part of the command runs: studies by name, and computations of the theory.
PARTS: Mapping[str, tuple[str, ...]] = {
    "figure-1": ("figure-1",),
    "theory": ("theory",),
    "linear": ("linear",),
    "gp-draw": ("gp-draw",),
    "representer": ("representer",),
    "coop-kernels": ("coop-kernels",),
    "graphs": ("graphs",),
    "ablations": ("ablations", "scaling"),
    "table-n": ("table-n-literal", "table-n"),
}


def reproduce(parts: list[str], *, out: Path, quick: bool, place: Place, resume: bool) -> Path:
    """Runs these parts of the paper's comparison and returns the path of the page.

    Args:
        parts: Names of PARTS.
        out: The folder of all results; each part has a folder of its own below it.
        quick: Whether to run everything small, to see that it works.
        place: Where the units of the studies are done; the theory is computed here.
        resume: Whether to go on with what the folder holds.
    """
    names = [each for part in parts for each in PARTS[part]]
    if not resume:
        _check_free(names, out)
    for name in names:
        if name in COMPUTED:
            _compute(name, out, quick=quick)
        else:
            _run_study(name, out, quick=quick, place=place, resume=resume)
    return write_pages(out)


def say(line: str) -> None:
    """Prints a line at once."""
    print(line, flush=True)


def write_pages(out: Path) -> Path:
    """Writes the page from the stored summaries, as Markdown and as HTML, and returns the path of the latter."""
    records = read_summaries(out / "results")
    (out / "reproduction.md").write_text(as_markdown(records), encoding="utf-8")
    page = write_html(records, out / "reproduction.html", pictures=out / "pictures")
    say(f"\n{answer(records)}\nClaim by claim: {page}  (open it in any browser)")
    return page


def _check_free(names: list[str], out: Path) -> None:
    """Raises if one of the parts is there already, before any work is done."""
    for name in names:
        path = out / "results" / f"{name}.json" if name in COMPUTED else out / name / "trials"
        if path.exists():
            raise StoreError(
                f"{str(path)!r} is there already",
                "results are never overwritten",
                "Choose another --out, or add --resume to go on with them",
            )


def _run_study(name: str, out: Path, *, quick: bool, place: Place, resume: bool) -> None:
    folder, start = out / name, monotonic()
    run_and_report(find_study(name).changed(quick=quick), folder, place=place, resume=resume, tables=False)
    path = out / "results" / f"{name}.json"
    minutes = (monotonic() - start) / 60 + (json.loads(path.read_text())["minutes"] if path.exists() else 0.0)
    _write(path, {**summarise(results_of(Store(folder))), "quick": quick, "minutes": round(minutes, 2)})
    for drawn in (folder / "figures").iterdir():
        _copy(drawn, out / "pictures" / f"{name}-{drawn.name}")


def _compute(name: str, out: Path, *, quick: bool) -> None:
    path = out / "results" / f"{name}.json"
    if path.exists():
        say(f"{name}: finished already")
        record = _finished(path, quick=quick)
    else:
        say(f"{name}: computing")
        start = monotonic()
        with one_blas_thread():
            record = COMPUTED[name].run(quick, lambda line: say(f"{name}: {line}"))
        record["quick"], record["minutes"] = quick, round((monotonic() - start) / 60, 2)
    drawn = COMPUTED[name].draw(record, out / "pictures")
    record["pictures"] = [{"title": each.title, "stem": each.png.stem, "caption": each.caption} for each in drawn]
    _write(path, record)


def _finished(path: Path, *, quick: bool) -> Record:
    """Returns a stored record, or raises if it is of another kind of run."""
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    if record["quick"] != quick:
        raise StoreError(
            f"{str(path)!r} is of a run {'without' if quick else 'with'} --quick",
            "only the same run can be resumed",
            "Choose another --out",
        )
    return record


def _write(path: Path, record: Record) -> None:
    write_text(path, json.dumps(record, indent=None, separators=(",", ":")) + "\n")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
