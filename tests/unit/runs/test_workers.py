"""Processes that give way after a few units: all units are done, in as many processes as that takes."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from coterie.runs.workers import Slots


def note(place: Path) -> None:
    """Writes who did it."""
    place.write_text(str(os.getpid()))


def start() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def test_a_process_ends_after_its_share_and_nothing_waits_for_ever(tmp_path: Path) -> None:
    places = [tmp_path / str(number) for number in range(7)]
    slots: Slots[Path] = Slots(2, most=2, start=start)
    done = [place for place, future in slots.run(note, places) if future.exception() is None]
    slots.end(at_once=False)
    assert sorted(done) == places
    by_process = [place.read_text() for place in places]
    assert len(set(by_process)) >= 4
    assert max(by_process.count(each) for each in by_process) == 2
