"""The page of a diagnosis."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from coterie.runs.diagnosis.answers import (
    DIMENSION,
    evidence_words,
    homophily_words,
    payoff_words,
    suggestions,
    verdict,
)
from coterie.runs.diagnosis.diagnosis import Diagnosis
from coterie.runs.diagnosis.pictures import draw_diagnosis
from coterie.runs.report.figures import Picture
from coterie.runs.report.sheet import Section, write_page
from coterie.runs.report.tables import TextTable


def write_diagnosis(found: Diagnosis, folder: Path, *, command: str) -> Path:
    """Returns the path of folder/report.html, written with its pictures beside it in folder/figures."""
    title = f"Diagnosis of {found.name}: would the graph help?"
    sections = [*_sections(found, draw_diagnosis(found, folder / "figures")), _log(found, command)]
    return write_page(folder / "report.html", title=title, answer=verdict(found), sections=sections)


def _sections(found: Diagnosis, pictures: Mapping[str, Picture]) -> Iterator[Section]:
    if found.missing:
        yield Section(title="What cannot be told", points=found.missing)
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
            note="auto-ucb and auto-ts learn all of it by themselves; other policies are told.",
            words=frozenset({0, 2}),
        )
        shown = [pictures["features"]]
        yield Section(title=table.title, paragraphs=[DIMENSION], pictures=shown, tables=[table])
    if found.payoff is not None:
        paragraphs = payoff_words(found.payoff, found.sizes["users"])
        shown = [pictures["payoff"]]
        yield Section(title="When does the graph pay off?", paragraphs=paragraphs, pictures=shown)


def _log(found: Diagnosis, command: str) -> Section:
    rows = tuple((name.replace("_", " "), f"{count:,}") for name, count in found.sizes.items())
    table = TextTable(title="The log", columns=("what", "count"), rows=rows)
    said = f"Everything that was drawn has seed {found.seed}; the same command gives the same page."
    return Section(title="The log", tables=[table], paragraphs=[said], commands=[command])
