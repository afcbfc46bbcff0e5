"""Times side by side: Coterie and the peers that come near it play the same passes in turn, for ratios of one run.

Passes made on different days, or while the machine did something else, cannot be compared in time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.context.protocol import Method
from benchmarks.context.schedule import Unit
from benchmarks.context.store import Kept

NEAR = 0.95  # of Coterie's reward, or better
RIVALS = 4  # how many of the peers that are near, the fastest by the passes that were kept
REPEATS = 3


def near(rows: Sequence[Mapping[str, Any]], ours: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the peers on the same set whose reward is near that of ours, or above; the fastest first."""
    some = [row for row in rows if row["set"] == ours["set"] and row["library"] != ours["library"]]
    able = [row for row in some if not row["stopped"] and row["reward"] >= NEAR * ours["reward"]]
    return sorted(able, key=lambda row: float(row["ms"]))


def to_time(rows: Sequence[Mapping[str, Any]], data: str, ours: Method, methods: Sequence[Method]) -> list[Method]:
    """Returns ours and its rivals on a set; none if ours has not played it, or nobody came near."""
    found = [row for row in rows if (row["set"], row["method"]) == (data, ours.key)]
    names = [row["method"] for row in near(rows, found[0])[:RIVALS]] if found else []
    rivals = [method for name in names for method in methods if method.key == name]
    return [ours, *rivals] if rivals else []


def untimed(data: str, methods: Sequence[Method], times: Kept) -> Iterator[Unit]:
    """Yields what is still to be timed, the methods in turn."""
    for repeat in range(REPEATS):
        yield from ((method, repeat) for method in methods if repeat not in times.of(data, method.key))
