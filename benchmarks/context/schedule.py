"""Which passes are still to be made: every configuration has a few seeds, the best of each library on a set have all.

It is a function of what is kept, so that an interrupted run goes on as if it had not been.
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.context.protocol import Method
from benchmarks.context.store import Kept, Line

TRIED = 3  # seeds of every configuration
FINALISTS = 3  # configurations of each library with all the seeds, on each set
LONG = 3.0  # seconds of a pass above which a configuration is tried with one seed
VERY_LONG = 10.0  # above which a finalist has no more than TRIED seeds
LIMIT = 120.0  # above which a pass is stopped, and not counted
Unit = tuple[Method, int]


def due(data: str, methods: Sequence[Method], kept: Kept, seeds: int) -> list[Unit]:
    """Returns the passes over a set that can be made now; none when all are."""
    tried = [unit for method in methods for unit in _missing(data, method, kept, trials(data, method, kept, seeds))]
    if tried:
        return tried
    chosen = finalists(data, methods, kept, seeds)
    return [unit for method in chosen for unit in _missing(data, method, kept, _all(data, method, kept, seeds))]


def trials(data: str, method: Method, kept: Kept, seeds: int) -> int:
    """Returns with how many seeds a configuration is tried."""
    if method.patient:
        return seeds
    first = kept.of(data, method.key).get(0)
    return 1 if first and seconds(first) > LONG else min(TRIED, seeds)


def finalists(data: str, methods: Sequence[Method], kept: Kept, seeds: int) -> list[Method]:
    """Returns the best configurations of each library on a set, by the seeds with which all were tried."""
    found = []
    for library in dict.fromkeys(method.library for method in methods):
        ranked = []
        for method in (each for each in methods if each.library == library):
            lines = kept.of(data, method.key)
            some = [lines[seed] for seed in range(trials(data, method, kept, seeds)) if seed in lines]
            if some and not any(line["stopped"] for line in some):
                ranked.append((-float(np.mean([line["reward"] for line in some])), method.key, method))
        found += [method for *_, method in sorted(ranked, key=lambda each: each[:2])[:FINALISTS]]
    return found


def seconds(line: Line) -> float:
    """Returns how long a pass took, in processor time."""
    return 1e-3 * float(line["ms"] * line["rounds"])


def _all(data: str, method: Method, kept: Kept, seeds: int) -> int:
    first = kept.of(data, method.key).get(0)
    very_long = first is not None and seconds(first) > VERY_LONG and not method.patient
    return min(TRIED, seeds) if very_long else seeds


def _missing(data: str, method: Method, kept: Kept, seeds: int) -> list[Unit]:
    lines = kept.of(data, method.key)
    return [(method, seed) for seed in range(seeds) if seed not in lines]
