"""Runs the cases that are not there yet, each run in a process of its own, and writes the page.

python -m benchmarks.large [--runs 5] [--only TEXT ...] [--quick] [--page]
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from benchmarks.__main__ import machine
from benchmarks.large.cases import CASES, Case
from benchmarks.large.page import write_page
from benchmarks.large.store import Kept

ROOT = Path(__file__).parent.parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each case (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose names hold one of these texts")
    parser.add_argument("--quick", action="store_true", help="tiny, into build/scale/: to see that it works")
    parser.add_argument("--page", action="store_true", help="no runs: write the page from what is kept")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "SEED"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(_case(asked.one[0], asked.quick)(int(asked.one[1]))))
        return
    folder = ROOT / "build" / "scale" if asked.quick else ROOT / "docs"
    kept = Kept(folder / "scale.json")
    if not asked.page:
        for case in CASES:
            if any(text in case.key for text in asked.only):
                _run(case, kept, runs=1 if case.once else asked.runs, quick=asked.quick)
    print(f"written: {write_page(kept, folder, quick=asked.quick)}")


def _run(case: Case, kept: Kept, *, runs: int, quick: bool) -> None:
    for seed in range(len(kept.runs(case.key)), runs):
        start = perf_counter()
        command = [sys.executable, "-m", "benchmarks.large", "--one", case.key, str(seed), *["--quick"] * quick]
        one_core = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")}
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | one_core, stdout=subprocess.PIPE, text=True, check=True
        )
        kept.add(case.key, json.loads(done.stdout.splitlines()[-1]), machine=machine())
        print(f"{case.key}, run {seed + 1} of {runs}: {perf_counter() - start:.0f} s", flush=True)


def _case(key: str, quick: bool) -> Callable[[int], dict[str, float]]:
    case = next(case for case in CASES if case.key == key)
    return case.quick if quick else case.run


if __name__ == "__main__":
    main()
