"""The demonstration: the main policies on two small worlds, about a minute, with a report."""

from pathlib import Path

from coterie.runs.console import find_study, run_and_report, usable_cores


def run_demo(*, out: Path, seed: int = 0, quick: bool = False) -> Path:
    """Runs the demonstration, prints its table and returns the path of its report."""
    study = find_study("demo").changed(seed=seed, quick=quick)
    return run_and_report(study, out, jobs=usable_cores(), resume=False)
