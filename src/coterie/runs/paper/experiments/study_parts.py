"""A study of several parts, each a module that measures, says what it found, and draws."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from coterie.runs.paper.experiments.pictures import Drawn
from coterie.runs.paper.experiments.record import Record, Tell


class StudyPart(Protocol):
    """What a part offers: the record of its settings and data is all that findings and pictures are made from."""

    def measure(self, quick: bool, tell: Tell) -> Record:
        """Returns settings and data, fit for JSON."""
        ...

    def findings(self, record: Record) -> list[Record]:
        """Returns what the data say."""
        ...

    def draw(self, record: Record, folder: Path) -> list[Drawn]:
        """Returns title, path without ending, and caption of each picture, written as PNG and SVG."""
        ...


def run_parts(study: str, parts: Mapping[str, StudyPart], quick: bool, tell: Tell) -> Record:
    """Returns the record of all parts, their settings together, and all findings."""
    record: Record = {"study": study} | {name: part.measure(quick, tell) for name, part in parts.items()}
    record["settings"] = {name: record[name]["settings"] for name in parts}
    return record | {"findings": [each for name, part in parts.items() for each in part.findings(record[name])]}


def draw_parts(parts: Mapping[str, StudyPart], record: Record, folder: Path) -> list[Drawn]:
    """Returns the pictures of all parts."""
    return [drawn for name, part in parts.items() for drawn in part.draw(record[name], folder)]
