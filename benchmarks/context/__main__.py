"""Plays the passes that are not there yet, in this process, and writes the tables of docs/context.md.

python -m benchmarks.context [--seeds 10] [--sets TEXT ...] [--only TEXT ...] [--again TEXT] [--quick] [--page]
"""

import argparse
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.__main__ import machine
from benchmarks.context.beside import to_time, untimed
from benchmarks.context.data import SETS
from benchmarks.context.many_users import ENTRIES, MANY, play_many
from benchmarks.context.ours import OURS
from benchmarks.context.page import summary, versions, write_page
from benchmarks.context.peers import peers
from benchmarks.context.protocol import Method, Pass, play
from benchmarks.context.schedule import LIMIT, Unit, due
from benchmarks.context.store import Kept
from coterie.errors.extras import how_to_install, is_installed

ROOT = Path(__file__).parent.parent.parent
QUICK_ROWS = 120


@dataclass(frozen=True)
class Part:
    """Sets, the methods that play them, and how."""

    sets: Mapping[str, Callable[[], Any]]
    methods: Sequence[Method]
    play: Callable[..., Pass]


def parts(only: Sequence[str], sets: Sequence[str]) -> list[Part]:
    """Returns what is to be measured, without the libraries that are not installed."""
    found = []
    for there, methods, how in ((SETS, [OURS, *peers()], play), (MANY, ENTRIES, play_many)):
        some = {name: make for name, make in there.items() if any(text in name for text in sets)}
        wanted = [method for method in methods if any(text in method.key for text in only)]
        found.append(Part(some, list(_installed(wanted)), how))
    return found


def _installed(methods: Sequence[Method]) -> Iterator[Method]:
    there = {library: is_installed(library) for library in dict.fromkeys(method.library for method in methods)}
    for library in (name for name, found in there.items() if not found):
        print(f"{library} is not installed and left out; it comes with {how_to_install('bench')}", flush=True)
    yield from (method for method in methods if there[method.library])


def run(part: Part, kept: Kept, *, seeds: int, rows: int | None = None, stamp: Mapping[str, str]) -> None:
    """Plays the passes of a part that are not kept, and keeps each as it ends."""
    start, made = perf_counter(), 0
    for name, make in part.sets.items():
        data = make() if rows is None else make().head(rows)
        while units := due(name, part.methods, kept, seeds):
            _keep(units[0], part, name, data, kept, stamp)
            made += 1
            left = f"about {_left(units[1:], data.n_rows, kept):.0f} s for {len(units) - 1} more of this set"
            print(f"    {made} made in {perf_counter() - start:.0f} s, {left}", flush=True)


def run_beside(part: Part, kept: Kept, times: Kept, *, rows: int | None = None, stamp: Mapping[str, str]) -> None:
    """Times Coterie and the peers that come near it, in turn, on each set that is not timed."""
    found = summary(kept.lines)["rows"]
    for name, make in part.sets.items():
        data = make() if rows is None else make().head(rows)
        for unit in list(untimed(name, to_time(found, name, OURS, part.methods), times)):
            _keep(unit, part, name, data, times, stamp)


def _keep(unit: Unit, part: Part, name: str, data: Any, kept: Kept, stamp: Mapping[str, str]) -> None:
    method, seed = unit
    found = part.play(method, data, seed, limit=math.inf if method.patient else LIMIT)
    line = {"set": name, "library": method.library, "method": method.key, "seed": seed, **vars(found)}
    kept.add(line | {"stopped": found.rounds < data.n_rows, **stamp})
    print(f"{name}, {method.key}, seed {seed}: {found.reward:.3f}, {found.ms:.3f} ms a round", flush=True)


def _left(units: Sequence[Unit], rounds: int, kept: Kept) -> float:
    """The seconds that units may take, by the passes of the same method, or else of the same library."""
    return sum(1e-3 * rounds * _ms(method, kept) for method, _ in units)


def _ms(method: Method, kept: Kept) -> float:
    same = [line["ms"] for line in kept.lines if line["method"] == method.key]
    near = same or [line["ms"] for line in kept.lines if line["library"] == method.library] or [1.0]
    return float(np.median(near))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="passes over each set (default: %(default)s)")
    parser.add_argument("--sets", nargs="+", default=[""], help="sets whose names hold one of these texts")
    parser.add_argument("--only", nargs="+", default=[""], help="methods whose names hold one of these texts")
    parser.add_argument("--again", help="methods whose names hold this text are measured again: coterie")
    parser.add_argument("--quick", action="store_true", help="a few rows, into build/context/quick/: to see it work")
    parser.add_argument("--page", action="store_true", help="no passes: write the page from what is kept")
    asked = parser.parse_args()
    folder = ROOT / "build" / "context" / ("quick" if asked.quick else "")
    kept, times = Kept(folder / "passes.json"), Kept(folder / "times.json")
    if asked.again:
        kept.forget(asked.again)
        times.forget("")  # they are of one run, or of none
    if not asked.page:
        rows, seeds = (QUICK_ROWS, 1) if asked.quick else (None, asked.seeds)
        stamp = {"machine": f"{machine()} {versions()}"}
        single, many = parts(asked.only, asked.sets)
        for part in (single, many):
            run(part, kept, seeds=seeds, rows=rows, stamp=stamp)
        if OURS in single.methods:
            run_beside(single, kept, times, rows=rows, stamp=stamp)
    print(f"written: {os.path.relpath(write_page(kept, times, folder if asked.quick else ROOT / 'docs'))}")


if __name__ == "__main__":
    main()
