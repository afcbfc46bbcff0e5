"""The paper's theory beside data: clusters, growth with n, regret bounds, and the lemma on cumulative uncertainty."""

from pathlib import Path

from coterie.runs.paper.experiments import bounds, clustered_graphs, growth, uncertainty
from coterie.runs.paper.experiments.pictures import Drawn
from coterie.runs.paper.experiments.record import Record, Tell
from coterie.runs.paper.experiments.study_parts import draw_parts, run_parts

__all__ = ["draw", "run"]

PARTS = {"clusters": clustered_graphs, "growth": growth, "bounds": bounds, "uncertainty": uncertainty}


def run(quick: bool, tell: Tell) -> Record:
    """Returns the record of the theory: each part with its settings and data, and all findings."""
    return run_parts("theory", PARTS, quick, tell)


def draw(record: Record, folder: Path) -> list[Drawn]:
    """Returns title, path without ending, and caption of each picture, written as PNG and SVG."""
    return draw_parts(PARTS, record, folder)
