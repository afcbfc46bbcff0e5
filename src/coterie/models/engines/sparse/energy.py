"""How far all means together can be off, in units of their stds: the energy of what is left of the equations.

With K the posterior precision of all users' weights and the common ones, and r what is left of their equations, no mean
is off by more than sqrt(r' K^-1 r) of its posterior std. Data only add to K, so r' K^-1 r <= sum r' L_rho^-1 r + common
|border|^2, whatever is known. Signs count here: residuals that cancel along the graph are not added up.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph import GraphKernel

MOST_STEPS = 30
CLOSE = 0.05  # how far above the energy its bound may be, as a share of it
ROOM = 0.7
SLACK = 1e-9  # for the rounding of sums


class Calm(NamedTuple):
    """Where a solve of `Joint` ends: no mean is off by more than `goal` of its std."""

    kernel: GraphKernel
    goal: float

    def above(self, left: Array) -> float:
        """Returns how many times too large a residual is, its last row that of the border; 1 where it is right."""
        return float(np.sqrt(_until_known(self.kernel, left[:-1], left[-1], self.goal)) / self.goal)


def strain(kernel: GraphKernel, left: Array, border: Array, goal: float = 0.0) -> float:
    """Returns an upper bound of all means' error in units of their stds: close to the least, or below the goal."""
    for least, most in energies(kernel, left, border):
        if most <= max(goal, 0.0) ** 2 or most <= (1 + CLOSE) * least:
            break
    return float(np.sqrt(most))


class Proven(NamedTuple):
    """What was left of the equations when all means were proven to be within `strain` of their stds."""

    left: Array
    border: Array
    strain: float

    def at_most(self, kernel: GraphKernel, left: Array, border: Array) -> float:
        """Returns a bound of the strain of what is left now: what has changed since may have the most energy it can."""
        rows, shared = left - self.left, border - self.border
        changed = float(np.vdot(rows, rows)) / kernel.ridge + kernel.common * float(shared @ shared)
        return self.strain + float(np.sqrt(changed * (1 + SLACK)))


def proven(kernel: GraphKernel, left: Array, border: Array, goal: float) -> Proven | None:
    """Returns the proof that all means are within the goal, or None; with some room for what comes next, if there is.

    It takes as little work as it takes to know on which side of `ROOM` of the goal they are.
    """
    energy = _until_known(kernel, left, border, ROOM * goal)
    return Proven(left.copy(), border, float(np.sqrt(energy))) if energy <= goal * goal else None


def _until_known(kernel: GraphKernel, left: Array, border: Array, goal: float) -> float:
    """Returns an upper bound of the energy, as close as it takes to know on which side of the goal's square it is."""
    for least, most in energies(kernel, left, border):
        if most <= goal * goal or least > goal * goal:
            break
    return most


def energies(kernel: GraphKernel, left: Array, border: Array) -> Iterator[tuple[float, float]]:
    """Yields two bounds of sum r' L_rho^-1 r + common |border|^2 over features, closer and closer.

    With L_rho x = r - s the first is r'x + x's + s' L_rho^-1 s, and its last term is at most |s|^2 / ridge. What
    follows the Laplacian's null vector has the energy of its square / ridge. O(edges x features) for each pair.
    """
    unit = kernel.null / float(np.linalg.norm(kernel.null))
    together = unit @ left
    known = float(together @ together) / kernel.ridge + kernel.common * float(border @ border)
    rest = max(float(np.vdot(left, left)) - float(together @ together), 0.0)
    yield known * (1 - SLACK), (known + rest / kernel.ridge) * (1 + SLACK)
    for found, rest in _steps(kernel, left - unit[:, None] * together):
        yield (known + found) * (1 - SLACK), (known + found + rest / kernel.ridge) * (1 + SLACK)


def _steps(kernel: GraphKernel, left: Array) -> Iterator[tuple[float, float]]:
    """Yields r'x + x's and |s|^2 for better and better x, by conjugate gradients; `left` becomes s."""
    inverse, found = (1 / kernel.diagonal)[:, None], 0.0
    along = left * inverse
    first = size = float(np.vdot(left, along))
    ready, room = np.empty_like(left), np.empty_like(left)
    for _ in range(MOST_STEPS):
        if size <= SLACK**2 * first:  # rounding
            return
        image = np.multiply(kernel.diagonal[:, None], along, out=ready)
        image -= kernel.weights @ along
        length = size / float(np.vdot(along, image))
        left -= np.multiply(image, length, out=room)
        found += length * size  # each step adds so much
        yield found, float(np.vdot(left, left))
        np.multiply(left, inverse, out=ready)
        before, size = size, float(np.vdot(left, ready))
        along *= size / before
        along += ready
