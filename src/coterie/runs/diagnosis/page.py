"""`coterie diagnose`: what a log says before any experiment, printed and as a page."""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from coterie.errors import StoreError
from coterie.errors.extras import require_extra
from coterie.logs import read_log
from coterie.runs.diagnosis.answers import (
    DIMENSION,
    console_lines,
    evidence_words,
    homophily_words,
    payoff_section,
    suggestions,
    verdict,
)
from coterie.runs.diagnosis.diagnosis import SIM_ROUNDS, Diagnosis, diagnose
from coterie.runs.diagnosis.pictures import draw_diagnosis
from coterie.runs.report.sheet import Section, write_page
from coterie.runs.report.style import Picture
from coterie.runs.report.tables import TextTable


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
    command.add_argument(
        "--out",
        type=Path,
        help="folder of the page (default: diagnosis-NAME); an earlier diagnosis of the same log is written over",
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON too")
    command.add_argument("--rewirings", type=positive, help="of the graph (default: 99, fewer on large graphs)")
    command.add_argument("--rounds", type=positive, default=SIM_ROUNDS, help="to simulate (default: %(default)s)")
    command.add_argument("--seed", type=natural, default=0, help="of all that is drawn (default: %(default)s)")


def run_diagnose(options: argparse.Namespace) -> int:
    """Runs `diagnose`, and returns the exit code."""
    with require_extra("lab", "the page"):
        import matplotlib  # noqa: F401 - missed now rather than after minutes
    name = options.folder.resolve().name
    out = options.out or Path(f"diagnosis-{name}")
    again = _is_written(out, name)
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
    page = write_diagnosis(found, out, command=command)
    print(f"\nThe page{', written again' if again else ''}: {page}  (open it in any browser)")
    if options.json is not None:
        options.json.write_text(json.dumps(found.figures(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return 0


def _is_written(folder: Path, name: str) -> bool:
    """Returns whether the folder holds the page of an earlier diagnosis of this log; raises if of anything else."""
    page = folder / "report.html"
    if not page.exists():
        return False
    if f"<title>{escape(_title(name))}</title>" not in page.read_text(encoding="utf-8", errors="replace"):
        raise StoreError(
            f"{str(folder)!r} holds another report",
            f"only an earlier diagnosis of {name!r} is written over",
            "Choose another --out",
        )
    return True


def _title(name: str) -> str:
    return f"Diagnosis of {name}: would the graph help?"


def write_diagnosis(found: Diagnosis, folder: Path, *, command: str) -> Path:
    """Returns the path of folder/report.html, written with its pictures beside it in folder/figures."""
    sections = [*_sections(found, draw_diagnosis(found, folder / "figures")), _log(found, command)]
    return write_page(folder / "report.html", title=_title(found.name), answer=verdict(found), sections=sections)


def _sections(found: Diagnosis, pictures: Mapping[str, Picture]) -> Iterator[Section]:
    if found.missing:
        yield Section(title="What cannot be said", points=found.missing)
    if found.alike:
        *points, note = homophily_words(found)
        shown = [pictures["homophily"]]
        yield Section(title="Are linked users alike?", points=points, paragraphs=[note], pictures=shown)
    if (kernel := found.kernel) is not None:
        *points, note = evidence_words(kernel, found.question)
        shown = [pictures["evidence"]]
        yield Section(title="What explains the rewards?", points=points, paragraphs=[note], pictures=shown)
        table = TextTable(
            title="What the fitted kernel suggests",
            columns=("setting", "value", "meaning"),
            rows=tuple(suggestions(kernel)),
            note="auto-ucb and auto-ts learn all of it by themselves; other policies are given them.",
            words=frozenset({0, 2}),
        )
        shown = [pictures["features"]]
        yield Section(title=table.title, paragraphs=[DIMENSION], pictures=shown, tables=[table])
    if found.payoff is not None:
        paragraphs = payoff_section(found, found.payoff)
        shown = [pictures["payoff"]]
        yield Section(title="When does the graph pay off?", paragraphs=paragraphs, pictures=shown)


def _log(found: Diagnosis, command: str) -> Section:
    rows = tuple((name.replace("_", " "), f"{count:,}") for name, count in found.sizes.items())
    table = TextTable(title="The log", columns=("what", "count"), rows=rows)
    said = f"Everything that was drawn has seed {found.seed}; the same command gives the same page."
    return Section(title="The log", tables=[table], paragraphs=[said], commands=[command])
