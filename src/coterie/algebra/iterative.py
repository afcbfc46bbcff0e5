"""Iterative solvers, compiled: pushes of residuals along a graph, and preconditioned conjugate gradients.

Pushes solve (L_rho (x) I + blocks) z = b from one user outwards, first in, first out.
A user's neighbours and weights >= 0 are those from `starts` to `ends`, beside a diagonal. `slot` says which users have
a block and `inverse` holds the inverses of diagonal + block; the others only need a division, but for those whose block
is `LACKING`: the caller has to make it first, and to call again. Numbers only: arrays in, arrays out.

Where numba is missing the functions are plain Python: right, and far too slow. `COMPILED` says which.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

COMPILED = find_spec("numba") is not None
LACKING = -2
F = TypeVar("F", bound=Callable[..., Any])
Map = Callable[[Any, Any], Any]


def compiled(function: F) -> F:
    """Returns the function compiled on its first call, and kept on disk; itself where there is no numba."""
    if not COMPILED:
        return function
    made: F = import_module("numba").njit(cache=True, fastmath={"contract", "reassoc"})(function)
    return made


@compiled
def _norm(row: Any) -> float:
    total = 0.0
    for k in range(row.shape[0]):
        total += row[k] * row[k]
    return float(np.sqrt(total))


def is_on_disk() -> bool:
    """Returns whether this file was compiled on this machine before; the smallest function is asked for it."""
    asked: Any = _norm
    asked(np.zeros(1))
    return not COMPILED or not asked.stats.cache_misses


@compiled
def _step(residual: Any, diagonal: float, block: int, inverse: Any, out: Any) -> None:
    """Writes what a user's weights move by, for their residual to vanish: a vector, or a column for each right side."""
    width = residual.shape[0]
    if residual.ndim == 2:  # known when it is compiled
        if block < 0:
            out[:] = residual / diagonal
        else:
            np.dot(inverse[block], residual, out)
        return
    if block < 0:
        for k in range(width):
            out[k] = residual[k] / diagonal
        return
    for k in range(width):
        total = 0.0
        for j in range(width):
            total += inverse[block, k, j] * residual[j]
        out[k] = total


@compiled
def push_residuals(
    starts: Any,
    ends: Any,
    indices: Any,
    weights: Any,
    diagonal: Any,
    shape: Any,
    slot: Any,
    inverse: Any,
    threshold: float,
    most: int,
    place: Any,
    nodes: Any,
    solution: Any,
    residual: Any,
    bound: Any,
    ring: Any,
    waiting: Any,
    marks: Any,
) -> bool:
    """Pushes until no residual exceeds threshold * shape, or the work reaches `most`; False if room or a block lacks.

    A row of `solution`, `residual` and `bound` (never below the norm of the residual) is a user who was reached:
    `nodes` names them and `place` finds them. Rows are vectors, or matrices for a block of right-hand sides. `marks`
    holds how many there are, the ring's head and length, and the work done: one for each push and each edge it goes
    along. Called again with more room it goes on where it stopped.
    """
    room, step = nodes.shape[0], np.empty(solution.shape[1:])
    width, moved = step.size, step.reshape(step.size)
    solved, left = solution.reshape(solution.shape[0], width), residual.reshape(solution.shape[0], width)
    while marks[2] > 0 and marks[3] < most:
        here = ring[marks[1]]
        user = nodes[here]
        if slot[user] == LACKING or marks[0] + ends[user] - starts[user] > room:
            return False
        marks[1] = (marks[1] + 1) % room
        marks[2] -= 1
        waiting[here] = False
        bound[here] = _norm(left[here])
        if bound[here] <= threshold * shape[user]:
            continue
        marks[3] += 1 + ends[user] - starts[user]
        _step(residual[here], diagonal[user], slot[user], inverse, step)
        for k in range(width):
            solved[here, k] += moved[k]
            left[here, k] = 0.0
        bound[here] = 0.0
        size = _norm(moved)
        for edge in range(starts[user], ends[user]):
            other, weight = indices[edge], weights[edge]
            there = place[other]
            if there < 0:
                there = marks[0]
                marks[0] += 1
                place[other], nodes[there] = there, other
                solved[there] = 0.0
                left[there] = 0.0
                bound[there] = 0.0
                waiting[there] = False
            for k in range(width):
                left[there, k] += weight * moved[k]
            bound[there] += weight * size
            if not waiting[there] and bound[there] > threshold * shape[other]:
                waiting[there] = True
                ring[(marks[1] + marks[2]) % room] = there
                marks[2] += 1
    return True


@compiled
def read_solution(
    nodes: Any, count: int, solution: Any, residual: Any, left: Any, reach: Any
) -> tuple[float, float, float, float]:
    """Returns <z, r>, <r, r>, <z, R> and sum_v |r_v| reach_v over the users that a solve has reached.

    z and r are rows of `solution` and `residual`, the users of which `nodes` names; R is `left`, a row for each user.
    """
    width = solution.shape[1]
    cross = rest = shift = mass = 0.0
    for here in range(count):
        user = nodes[here]
        square = 0.0
        for k in range(width):
            cross += solution[here, k] * residual[here, k]
            shift += solution[here, k] * left[user, k]
            square += residual[here, k] * residual[here, k]
        rest += square
        mass += square**0.5 * reach[user]
    return cross, rest, shift, mass


@compiled
def apply_solution(
    amount: float,
    threshold: float,
    shape: Any,
    nodes: Any,
    count: int,
    solution: Any,
    residual: Any,
    mean: Any,
    left: Any,
    ring: Any,
    waiting: Any,
    marks: Any,
) -> None:
    """Adds a solution to the weights and what it leaves to the kept residual; queues users where that is too large."""
    width, room = solution.shape[1], ring.shape[0]
    for here in range(count):
        user = nodes[here]
        for k in range(width):
            mean[user, k] += amount * solution[here, k]
            left[user, k] += amount * residual[here, k]
        if not waiting[user] and _norm(left[user]) > threshold * shape[user]:
            waiting[user] = True
            ring[(marks[0] + marks[1]) % room] = user
            marks[1] += 1


@compiled
def repair(
    starts: Any,
    ends: Any,
    indices: Any,
    weights: Any,
    diagonal: Any,
    shape: Any,
    slot: Any,
    inverse: Any,
    threshold: float,
    most: int,
    mean: Any,
    left: Any,
    ring: Any,
    waiting: Any,
    marks: Any,
) -> int:
    """Pushes what is queued into the weights until the work reaches `most`, and returns it. The rest stays queued."""
    width, room, made = mean.shape[1], ring.shape[0], 0
    step = np.empty(width)
    while marks[1] > 0 and made < most:
        user = ring[marks[0]]
        if slot[user] == LACKING:
            break
        marks[0] = (marks[0] + 1) % room
        marks[1] -= 1
        waiting[user] = False
        if _norm(left[user]) <= threshold * shape[user]:
            continue
        made += 1 + ends[user] - starts[user]
        _step(left[user], diagonal[user], slot[user], inverse, step)
        for k in range(width):
            mean[user, k] += step[k]
            left[user, k] = 0.0
        for edge in range(starts[user], ends[user]):
            other, weight = indices[edge], weights[edge]
            for k in range(width):
                left[other, k] += weight * step[k]
            if not waiting[other] and _norm(left[other]) > threshold * shape[other]:
                waiting[other] = True
                ring[(marks[0] + marks[1]) % room] = other
                marks[1] += 1
    return made


@compiled
def shrink_marginals(
    nodes: Any,
    count: int,
    solution: Any,
    reach: Any,
    cached: Any,
    marginal: Any,
    stale: Any,
    error: float,
    lowest: float,
    highest: float,
    own: int,
) -> None:
    """Takes one reward of user `own` off the marginal blocks of the others who have one, by no more than is proven.

    A block loses z z' / scale, lowest <= scale <= highest, and z is known to within d = error * reach. For 0 < t < 1,
    z z' >= (1 - t) zhat zhat' - (1/t - 1) d^2 I. With t = d / |zhat| the trace falls if |zhat| > width * d; where it
    would not, the block stays, for data only shrink it, and what it should have lost is added to `stale`.
    """
    width = solution.shape[1]
    for here in range(count):
        user = nodes[here]
        block = cached[user]
        if block < 0 or user == own:
            continue
        size, off = _norm(solution[here]), error * reach[user]
        if size <= 2 * width * off:
            stale[block] += size * size / highest
            continue
        share = off / size
        for k in range(width):
            for j in range(width):
                marginal[block, k, j] -= (1 - share) * solution[here, k] * solution[here, j] / highest
            marginal[block, k, k] += off * (size - off) / lowest


@compiled
def add_scaled(amount: float, vectors: Any, out: Any) -> None:
    """Adds amount * vectors; without an array in between."""
    for user in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[user, k] += amount * vectors[user, k]


@compiled
def scale_and_add(scale: float, vectors: Any, out: Any) -> None:
    """Makes `out` scale * out + vectors."""
    for user in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[user, k] = scale * out[user, k] + vectors[user, k]


def pcg(
    times: Map,
    precondition: Map,
    residual: Any,
    solution: Any,
    *,
    is_small: Callable[[int, Any], bool],
    most_steps: int,
) -> int:
    """Solves A x = b for a symmetric positive definite A, in place, and returns how many steps were made.

    Args:
        times: Writes A v of its first argument into its second, and returns it.
        precondition: Likewise for about A^-1 v.
        residual: b - A x for the x to begin with; in the end that of the solution.
        solution: The x to begin with; in the end the solution.
        is_small: Asked before each step, by its number and the residual, whether that will do.
        most_steps: How many steps are made at most.

    Examples:
        >>> matrix, solution = np.array([[2.0, 1.0], [1.0, 3.0]]), np.zeros((2, 1))
        >>> pcg(
        ...     lambda v, out: np.matmul(matrix, v, out=out),
        ...     lambda v, out: np.divide(v, matrix.diagonal()[:, None], out=out),
        ...     np.array([[3.0], [4.0]]),
        ...     solution,
        ...     is_small=lambda _, residual: bool(np.abs(residual).max() < 1e-12),
        ...     most_steps=10,
        ... )
        2
        >>> solution.round(9)
        array([[1.],
               [1.]])
    """
    ready, image = np.empty_like(residual), np.empty_like(residual)
    direction = precondition(residual, ready).copy()
    size = float(np.vdot(residual, ready))
    for step in range(most_steps):
        if is_small(step, residual):
            return step
        length = size / float(np.vdot(direction, times(direction, image)))
        add_scaled(length, direction, solution)
        add_scaled(-length, image, residual)
        before, size = size, float(np.vdot(residual, precondition(residual, ready)))
        scale_and_add(size / before, ready, direction)
    return most_steps
