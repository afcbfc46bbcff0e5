"""Conjugate gradients over the parts of a graph: what is global is a few numbers, and what is sent the halos.

The preconditioner is additive. Each part solves for its own users, about (`Part`), and a coarse space sees what is left
along the null vector of the Laplacian in each part, which the parts alone would carry across the graph step by step:

    M^-1 = sum_p R_p' A_pp^-1 R_p + Z (Z' A Z)^-1 Z',   Z = (null vector in each part) (x) I

Where parts solve only about, M differs a little from step to step. So directions are made by Polak's and Ribiere's
formula, which needs <z, A p> beside <r, z> and forgives that.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from coterie.contracts import Array
from coterie.models.base import SolveProgress
from coterie.models.engines.sparse.parted.cutting import PartGraph
from coterie.models.engines.sparse.parted.part import Part, Report

MOST_STEPS = 1000


class PartLost(Exception):  # noqa: N818 - it is an event, and the solve goes on
    """A part is gone, with its process; the crew has put another in its place, which has the weights of a step ago."""


class Crew(Protocol):
    """Who holds the parts: this process, or others.

    Attributes:
        n_parts: How many parts there are.
        bytes_sent: What went between parts, so far.
    """

    n_parts: int
    bytes_sent: int

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Calls a method of every part, with arguments for each, and returns what they return; may raise `PartLost`."""

    def exchange(self, sender: str, arguments: Sequence[tuple[Any, ...]], receiver: str) -> list[Any]:
        """Calls `sender` of every part, gives what it sends to the parts that need it, and calls their `receiver`."""


class LocalCrew:
    """All parts in this process."""

    def __init__(self, graphs: Sequence[PartGraph], parts: Sequence[Part]) -> None:
        self._graphs, self._parts, self.n_parts, self.bytes_sent = graphs, parts, len(parts), 0

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Calls a method of every part."""
        return [getattr(part, method)(*given) for part, given in zip(self._parts, arguments, strict=True)]

    def exchange(self, sender: str, arguments: Sequence[tuple[Any, ...]], receiver: str) -> list[Any]:
        """Calls `sender` of every part, and `receiver` with what the others sent it."""
        sent = self.each(sender, arguments)
        self.bytes_sent += sum(each.nbytes for of_part in sent for each in of_part)
        return self.each(receiver, routed(sent, self._graphs))


def routed(sent: Sequence[Sequence[Any]], graphs: Sequence[PartGraph]) -> list[tuple[Any, ...]]:
    """Returns for each part what the parts of its halo sent to it, in the halo's order."""
    place = [{receiver: number for number, (receiver, _) in enumerate(graph.sends)} for graph in graphs]
    return [tuple(sent[owner][place[owner][part]] for owner, _ in graph.halo) for part, graph in enumerate(graphs)]


class Solved(NamedTuple):
    """How a solve went.

    Attributes:
        steps: Of conjugate gradients.
        level: The largest residual in units of shape.
        bytes_sent: Between parts.
        restarts: How often a part was lost.
    """

    steps: int
    level: float
    bytes_sent: int
    restarts: int


class CoarseSpace:
    """Z' A Z and its factor; parts x features rows and columns."""

    def __init__(self, parts: Sequence[tuple[dict[int, float], Array]]) -> None:
        size, width = len(parts), len(parts[0][1])
        graph = np.zeros((size, size))
        for part, (with_others, _) in enumerate(parts):
            for other, value in with_others.items():
                graph[part, part if other < 0 else other] = value
        matrix = np.kron((graph + graph.T) / 2, np.eye(width))
        for part, (_, data) in enumerate(parts):
            mine = slice(part * width, (part + 1) * width)
            matrix[mine, mine] += data
        self._factor, self._width = cho_factor(matrix, lower=True, overwrite_a=True), width

    def solve(self, along: Sequence[Array]) -> Array:
        """Returns the coarse correction of each part, a row each."""
        return np.asarray(cho_solve(self._factor, np.concatenate(along))).reshape(-1, self._width)


class NoCoarseSpace:
    """For comparison: parts alone."""

    def solve(self, along: Sequence[Array]) -> Array:
        """Returns zeros."""
        return np.zeros((len(along), len(along[0])))


def coarse_space(crew: Crew) -> CoarseSpace:
    """Returns the coarse space of the parts."""
    nothing = [()] * crew.n_parts
    crew.exchange("null_sent", nothing, "take_null")
    return CoarseSpace(crew.each("coarse", nothing))


def solve_parted(
    crew: Crew,
    threshold: float,
    *,
    coarse: CoarseSpace | NoCoarseSpace | None = None,
    progress: SolveProgress | None = None,
    most_steps: int = MOST_STEPS,
) -> Solved:
    """Solves A w = b from the weights that the parts have, until no residual exceeds threshold * shape.

    Args:
        crew: Holds the parts.
        threshold: As for `PosteriorPrecision.solve`.
        coarse: The coarse space; None to make it.
        progress: Called with the number of each step, and the residual over what is asked for.
        most_steps: How many steps are made at most.
    """
    space, steps, restarts = coarse, 0, 0
    level, before = np.inf, crew.bytes_sent
    while True:
        try:
            space = coarse_space(crew) if space is None else space
            for level in _steps(crew, space, most_steps - steps):
                if progress is not None:
                    progress(steps, level / threshold)
                if level <= threshold or steps == most_steps:
                    return Solved(steps, level, crew.bytes_sent - before, restarts)
                steps += 1
        except PartLost:  # what the others have done stays; the residual is computed again
            restarts += 1


def _steps(crew: Crew, space: CoarseSpace | NoCoarseSpace, most_steps: int) -> Any:
    """Yields the level of the residual before each step."""
    nothing = [()] * crew.n_parts
    reports: list[Report] = crew.exchange("weights_sent", nothing, "begin")
    share, size, correction = 0.0, *_corrected(space, reports)
    for _ in range(most_steps + 1):
        yield max(report.level for report in reports)
        directions = [(each, share) for each in correction]
        length = size / sum(crew.exchange("advance", directions, "multiply"))
        reports = crew.each("step", [(length,)] * crew.n_parts)
        last, (size, correction) = size, _corrected(space, reports)
        moved = sum(each.moved for each in reports)
        moved += sum(float(row @ each.moved_along) for row, each in zip(correction, reports, strict=True))
        share = max(-length * moved / last, 0.0)


def _corrected(space: CoarseSpace | NoCoarseSpace, reports: Sequence[Report]) -> tuple[float, Array]:
    """Returns <r, M^-1 r>, and the coarse correction of each part."""
    correction = space.solve([each.along for each in reports])
    size = sum(each.size for each in reports)
    return size + sum(float(row @ each.along) for row, each in zip(correction, reports, strict=True)), correction
