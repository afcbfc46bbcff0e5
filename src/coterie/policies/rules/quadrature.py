"""The probability of each of several independent normals to be the largest, by quadrature."""

from functools import lru_cache
from math import pi, sqrt

import numpy as np
from scipy.special import ndtr

from coterie.contracts import Array

REACH = 7.0  # a normal lies farther than this many spreads from its mean with probability 3e-12
OCTAVES = np.arange(1, 5)  # panels end 2, 4, 8 and 16 spreads from the lower end; 16 is beyond 2 * REACH
FEW, NODES_FOR_FEW, NODES_FOR_MANY = 32, 28, 64  # the maximum of many is steeper
LEAST_CHANCE = 1e-300


def wins(mean: Array, spread: Array, known: float) -> Array:
    """Returns the probability of each normal mean + spread * z to be the largest and above `known`; spreads are > 0.

    P_i is the integral of phi_i(x) prod_{j != i} Phi_j(x) over x > known, on panels of Gauss-Legendre nodes.
    The maximum is never below `start`, the highest of the lower ends. A normal that can still win has `start` within
    its reach, so that at a distance r from it nothing is narrower than r / (2 REACH): panels that double in length
    resolve spreads of any size.
    """
    probabilities = np.zeros(len(mean))
    lower = mean - REACH * spread
    origin = known if lower.max(initial=known) == known else mean[lower.argmax()]
    place = mean - origin  # differences of near floats are exact, however far both are from 0
    start = max(float((place - REACH * spread).max(initial=-np.inf)), known - origin)
    live = place + REACH * spread > start
    if live.any():
        probabilities[live] = _quadrature(place[live] - start, spread[live])
    return probabilities


def _quadrature(mean: Array, spread: Array) -> Array:
    """Returns the probability of each normal to be the largest and above 0."""
    x, weight = _nodes(spread, float((mean + REACH * spread).max()))
    with np.errstate(over="ignore"):
        z = (x - mean[:, None]) / spread[:, None]
        below = np.maximum(ndtr(z), LEAST_CHANCE)
        density = np.exp(-0.5 * z * z)
    return np.asarray((density / below) @ (weight * below.prod(axis=0)) / (spread * sqrt(2.0 * pi)))


def _nodes(spread: Array, end: float) -> tuple[Array, Array]:
    """Returns nodes and weights from 0 to the end, on panels that are fine where one of the normals is."""
    octaves = np.unique(np.frexp(spread)[1][:, None] + OCTAVES)
    inner = np.ldexp(1.0, octaves)
    edges = np.concatenate(([0.0], inner[inner < end], [end]))
    at, weight = _gauss_legendre(NODES_FOR_FEW if len(spread) <= FEW else NODES_FOR_MANY)
    length = np.diff(edges)[:, None]
    return (edges[:-1, None] + length * at).ravel(), (length * weight).ravel()


@lru_cache
def _gauss_legendre(n_nodes: int) -> tuple[Array, Array]:
    """Returns nodes and weights on the interval from 0 to 1."""
    at, weight = np.polynomial.legendre.leggauss(n_nodes)
    return (at + 1.0) / 2.0, weight / 2.0
