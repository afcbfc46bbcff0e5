"""How the eigenvalues of a large Laplacian are spread, without computing them."""

from math import sqrt
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.csgraph import connected_components

from coterie.contracts import Array
from coterie.policies.auto.parts import Density

LANCZOS_STEPS, ENOUGH_ENTRIES = 60, 20_000


def lanczos_density(laplacian: Any, *, seed: int, null: Array | None = None) -> Density:
    """Returns how the eigenvalues of a large sparse Laplacian are spread, by Lanczos quadrature. O(steps x edges).

    The null vectors, one for each component, are counted and kept out; random signs do for the rest: the more users
    there are, the fewer draws it takes.

    Args:
        laplacian: In CSR.
        seed: Fixes the draws.
        null: The entries of the null vectors: all ones, unless given.
    """
    n = laplacian.shape[0]
    n_components, labels = connected_components(laplacian, directed=False)
    null = np.ones(n) if null is None else null
    sizes = np.bincount(labels, null * null)
    draws = max(1, ENOUGH_ENTRIES // n)
    rng = np.random.default_rng([seed, n])
    nodes, weights = [np.zeros(1)], [np.array([n_components / n])]
    for _ in range(draws):
        start = rng.choice([-1.0, 1.0], size=n)
        start -= null * (np.bincount(labels, null * start) / sizes)[labels]
        mass = float(start @ start)
        if mass <= 1e-12 * n:
            continue
        values, shares = _ritz(laplacian, start / sqrt(mass))
        nodes.append(np.maximum(values, 0.0))
        weights.append(shares * ((1 - n_components / n) / draws))
    together = np.concatenate(weights)
    return Density(np.concatenate(nodes), together / together.sum())


def _ritz(matrix: Any, start: Array) -> tuple[Array, Array]:
    """Returns the eigenvalues that a Krylov space sees from a unit vector, and the vector's shares in them."""
    diagonal, beside = [], []
    before, now, size = np.zeros_like(start), start, 0.0
    for _ in range(LANCZOS_STEPS):
        ahead = matrix @ now - size * before
        diagonal.append(float(now @ ahead))
        ahead -= diagonal[-1] * now
        size = float(np.linalg.norm(ahead))
        if size <= 1e-10 * max(abs(diagonal[0]), 1e-300):
            break
        beside.append(size)
        before, now = now, ahead / size
    values, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside[: len(diagonal) - 1]))
    return values, vectors[0] ** 2
