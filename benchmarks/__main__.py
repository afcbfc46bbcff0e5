"""Runs every benchmark and writes docs/benchmarks.md."""

import os
import platform
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_info

from benchmarks import exact, grid, linear, memory, product, refits, runner

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
HEAD = "| what | ours | peer or limit | ratio | target | met |\n|---|---|---|---|---|---|"
BEGIN, END = "<!-- service: begin -->", "<!-- service: end -->"  # of what `make bench-service` writes
LARGE = "Graphs of up to a million users have a page of their own: [scale.md](scale.md)."
SECTIONS = {
    "Grid: decide among five and update": (grid, "Through the public policy, with string ids. Times are medians."),
    "Linear: decide among twenty and update": (linear, "The graph-linear policies, on users x features."),
    "Exact: append one and score twenty new arms": (
        exact,
        "No pool; the arms are new vectors each round. The peers are refitted with the same fixed kernel.",
    ),
    "Laboratory: what the runner adds to a policy's own cost": (
        runner,
        "Drawing the world and its rounds, the loop, the truth and the record; one policy a trial, the dearest case.",
    ),
    "Product: the Bandit and its propensities": (
        product,
        "Late rewards, the ledger, the lock and the events included.",
    ),
    "Auto: learning hyperparameters instead of a pilot": (
        refits,
        "Processor time of all fits of a trial, with the beliefs rebuilt after them; the pilot is one trial times 100.",
    ),
    "Memory": (memory, "Peak as NumPy reports it to tracemalloc, with a rebuild at the end."),
}


def machine() -> str:
    blas = {f"{info['internal_api']} {info['version']}" for info in threadpool_info() if info["user_api"] == "blas"}
    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"{', '.join(sorted(blas))}, one thread; {platform.machine()}, {os.cpu_count()} cores."
    )


def service_part(page: str) -> str:
    """Returns the part of a page that is the service's, with its marks; empty if there is none."""
    return BEGIN + page.partition(BEGIN)[2].partition(END)[0] + END if BEGIN in page else ""


def main() -> None:
    parts = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Every ratio is measured in one run.",
        "",
        LARGE,
        "",
        machine(),
    ]
    for title, (module, note) in SECTIONS.items():
        print(f"\n{title}", flush=True)
        parts += ["", f"## {title}", "", note, "", HEAD]
        for row in module.rows():
            line = row.as_markdown()
            print(line, flush=True)
            parts.append(line)
    if kept := service_part(PAGE.read_text(encoding="utf-8")):
        parts += ["", kept]
    PAGE.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print(f"\nwritten to {PAGE.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
