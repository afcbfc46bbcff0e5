"""How we measure: interleaved repeats, medians, and ratios in one table."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

REPEATS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One measured ratio and what was hoped of it."""

    what: str
    ours: str
    peer: str
    ratio: str
    target: str
    met: bool | None

    def as_markdown(self) -> str:
        verdict = {True: "yes", False: "**no**", None: "-"}[self.met]
        return f"| {self.what} | {self.ours} | {self.peer} | {self.ratio} | {self.target} | {verdict} |"


def seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def medians(*works: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Median seconds of each, taken in turn so that noise of the machine meets all alike."""
    for work in works:
        work()
    taken = [[seconds(work) for work in works] for _ in range(repeats)]
    return [float(value) for value in np.median(np.array(taken), axis=0)]


def micro(value: float) -> str:
    return f"{value * 1e6:,.0f} us" if value < 1e-2 else f"{value * 1e3:,.1f} ms"


def at_least(what: str, ours: float, peer: float, target: float, *, per: str) -> Row:
    ratio = peer / ours
    return Row(what, micro(ours), f"{micro(peer)} ({per})", f"{ratio:.1f}x faster", f">= {target:g}x", ratio >= target)


def at_most(what: str, ours: float, peer: float, target: float | None, *, per: str) -> Row:
    ratio = ours / peer
    goal = "-" if target is None else f"<= {target:g}x"
    return Row(
        what, micro(ours), f"{micro(peer)} ({per})", f"{ratio:.2f}x", goal, None if target is None else ratio <= target
    )
