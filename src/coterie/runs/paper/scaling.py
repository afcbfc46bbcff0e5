"""Scaling, for the ablations: what the engines cost, and the effective dimension of each family of graphs."""

from pathlib import Path

from coterie.runs.paper.experiments import engines, families
from coterie.runs.paper.experiments.pictures import Drawn
from coterie.runs.paper.experiments.record import Record, Tell
from coterie.runs.paper.experiments.study_parts import draw_parts, run_parts

__all__ = ["draw", "run"]

PARTS = {"engines": engines, "families": families}


def run(quick: bool, tell: Tell) -> Record:
    """Returns the record of the scaling: each part with its settings and data, and all findings."""
    return run_parts("scaling", PARTS, quick, tell)


def draw(record: Record, folder: Path) -> list[Drawn]:
    """Returns title, path without ending, and caption of each picture, written as PNG and SVG."""
    return draw_parts(PARTS, record, folder)
