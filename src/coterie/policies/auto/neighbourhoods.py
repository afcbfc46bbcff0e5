"""Learned kernels on graphs that are too large for a matrix over their users: fits look at some neighbourhoods.

A fit needs the covariance of the users whose rewards it looks at. These are drawn so that neighbours come together; the
Laplacian among them is that of the whole graph, what lies one step beyond them eliminated and what lies farther held at
zero. The scale of the graph part, mean g, is that of the whole graph, by Lanczos quadrature.
"""

from functools import cached_property
from math import exp, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.csgraph import connected_components

from coterie.contracts import Array
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, Linear, SquaredExponential
from coterie.kernels.arm import median_distance
from coterie.kernels.graph import FEATURE_ERROR, GraphKernel, arm_features
from coterie.models import History
from coterie.policies.auto.evidence import Evidence
from coterie.policies.auto.parts import Density, Hyper, Parts

WHOLE = 2_000  # users of a graph that is looked at as a whole
MOST_USERS, MOST_PAIRS, BALLS = 700, 1_500, 4
LANCZOS_STEPS, ENOUGH_ENTRIES = 60, 20_000

Index = NDArray[np.intp]


class Neighbourhoods:
    """What the kernel of `auto` is made of on a graph of any size; the kernel is a `GraphKernel`.

    Args:
        graph: The users.
        arms: The pool.
        seed: Fixes which users fits look at.
    """

    def __init__(self, graph: UserGraph, arms: ArmPool, *, seed: int = 0) -> None:
        self._graph, self._arms, self._seed = graph, arms, seed
        self.mean_degree = float(graph.degrees.mean())
        self.median_distance = median_distance(arms.features)
        self._mean_square = float(np.einsum("ij,ij->i", arms.features, arms.features).mean())

    @cached_property
    def density(self) -> Density:
        """How the Laplacian's eigenvalues are spread."""
        if self._whole is not None:
            n = len(self._whole.eigenvalues)
            return Density(self._whole.eigenvalues, np.full(n, 1 / n))
        return lanczos_density(self._graph.laplacian(), seed=self._seed)

    @cached_property
    def _whole(self) -> Parts | None:
        """The parts of the whole graph, where it is small, without arms."""
        if self._graph.n_users > WHOLE:
            return None
        return self._parts(self._graph.laplacian().toarray(), np.zeros((1, self._arms.dimension)), density=None)

    def mean_gain(self, ridge: float) -> float:
        """Returns the mean of g for this log ridge: what G is divided by."""
        return self.density.gain(exp(ridge))[0]

    @property
    def is_whole(self) -> bool:
        """Whether the graph is so small that fits see all of it."""
        return self._whole is not None

    def evidence(self, history: History, t: int, shift: float = 0.0) -> Evidence:
        """Returns the evidence of rewards, less a number, of some neighbourhoods, drawn anew for each number t."""
        sample = draw_sample(self._graph, history, np.random.default_rng([self._seed, t]), whole=self.is_whole)
        arms, columns = np.unique(history.arm_array()[sample.rows], return_inverse=True)
        features = self._arms.features[arms]
        if self._whole is not None:
            parts = self._parts_like(self._whole, features)
        else:
            laplacian = neighbourhood_laplacian(self._graph, sample.users)
            parts = self._parts(laplacian, features, density=self.density)
        return Evidence(parts, _renumbered(history, sample, columns, shift))

    def kernel(self, hyper: Hyper) -> GraphKernel:
        """Returns the joint kernel: the graph part has weight 1, its scale is in the features."""
        scale, w = exp(hyper.graph) / self.mean_gain(hyper.ridge), hyper.linear_share
        smooth = (1 - w) * SquaredExponential(exp(hyper.lengthscale))
        linear = self._mean_square > 0
        shape = smooth + (w / self._mean_square) * Linear() if linear else smooth
        features, lost = arm_features(shape, self._arms, FEATURE_ERROR)
        level = np.full((len(features), 1), exp(hyper.offset / 2))
        return GraphKernel(
            self._graph,
            sqrt(scale) * np.hstack([features, level]),
            laplacian_ridge=exp(hyper.ridge),
            feature_error=lost,
            own=exp(hyper.own) / scale,
            common=exp(hyper.common) / scale,
        )

    def _parts(self, laplacian: Array, features: Array, *, density: Density | None) -> Parts:
        return Parts.made(
            laplacian,
            features,
            mean_square=self._mean_square,
            mean_degree=self.mean_degree,
            median_distance=self.median_distance,
            density=density,
        )

    def _parts_like(self, whole: Parts, features: Array) -> Parts:
        """Returns the parts of the whole graph with other arms."""
        arms = self._parts(np.zeros((1, 1)), features, density=None)
        return Parts(
            whole.eigenvalues,
            whole.eigenvectors,
            arms.squared_distance,
            arms.products,
            self.mean_degree,
            self.median_distance,
        )


class Sample(NamedTuple):
    """What a fit looks at.

    Attributes:
        users: The users, in the order that they are numbered in.
        rows: Their rows of the history.
        places: The number of each row's user.
    """

    users: Index
    rows: Index
    places: Index


def draw_sample(graph: UserGraph, history: History, rng: np.random.Generator, *, whole: bool) -> Sample:
    """Returns users with all their pairs, neighbours together, until there are enough pairs or users.

    Where the graph is looked at as a whole, all users count and only the pairs are some.
    """
    users = history.user_array()
    if whole and len(users) <= MOST_PAIRS:
        return Sample(np.arange(graph.n_users), np.arange(len(users)), users)
    counts = np.bincount(users, minlength=graph.n_users)
    chosen = _gathered(graph.weights, counts, rng)
    numbers = np.full(graph.n_users, -1)
    numbers[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero(numbers[users] >= 0)
    rows = rows[np.argsort(numbers[users[rows]], kind="stable")][:MOST_PAIRS]
    if whole:
        return Sample(np.arange(graph.n_users), rows, users[rows])
    kept = chosen[: numbers[users[rows[-1]]] + 1]
    return Sample(kept, rows, numbers[users[rows]])


def _gathered(weights: Any, counts: Index, rng: np.random.Generator) -> Index:
    """Returns users with data, breadth first from a few of them along edges between such users; then from others."""
    indptr, indices = weights.indptr, weights.indices
    starts = iter(rng.permutation(np.flatnonzero(counts)).tolist())
    met, pairs = np.zeros(len(counts), dtype=bool), 0
    out: list[int] = []
    while pairs < MOST_PAIRS and len(out) < MOST_USERS:
        start = next((user for user in starts if not met[user]), None)
        if start is None:
            break
        ball, found = [start], 0
        met[start] = True
        for user in ball:  # grows as it goes
            out.append(user)
            found += int(counts[user])
            if found * BALLS >= MOST_PAIRS or len(out) >= MOST_USERS:
                break
            near = indices[indptr[user] : indptr[user + 1]]
            near = np.unique(near[(counts[near] > 0) & ~met[near]])
            met[near] = True
            ball.extend(rng.permutation(near).tolist())
        met[ball] = False  # those that were seen and not taken may come another time
        met[out] = True
        pairs += found
    return np.array(out, dtype=np.intp)


def neighbourhood_laplacian(graph: UserGraph, users: Index) -> Array:
    """Returns the Laplacian among some users, their neighbours eliminated and what lies beyond these held at zero.

    It is the Schur complement of a matrix with the whole graph's degrees, so it has no negative eigenvalue.
    """
    rows = graph.weights[users]
    degrees = graph.degrees
    inside = np.zeros(graph.n_users, dtype=bool)
    inside[users] = True
    beyond = np.flatnonzero((np.bincount(rows.indices, minlength=graph.n_users) > 0) & ~inside)
    out = rows[:, beyond]
    through = (out @ sp.diags_array(1 / degrees[beyond]) @ out.T).toarray()
    laplacian = np.diag(degrees[users]) - rows[:, users].toarray() - through
    return np.asarray((laplacian + laplacian.T) / 2)


def lanczos_density(laplacian: Any, *, seed: int) -> Density:
    """Returns how the eigenvalues of a large sparse Laplacian are spread, by Lanczos quadrature. O(steps x edges).

    The null vectors, one for each component, are counted and kept out; random signs do for the rest: the more users
    there are, the fewer draws it takes.
    """
    n = laplacian.shape[0]
    n_components, labels = connected_components(laplacian, directed=False)
    sizes = np.bincount(labels)
    draws = max(1, ENOUGH_ENTRIES // n)
    rng = np.random.default_rng([seed, n])
    nodes, weights = [np.zeros(1)], [np.array([n_components / n])]
    for _ in range(draws):
        start = rng.choice([-1.0, 1.0], size=n)
        start -= (np.bincount(labels, start) / sizes)[labels]
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


def _renumbered(history: History, sample: Sample, columns: Index, shift: float) -> History:
    """Returns the rows of a sample, their rewards less a number, as a history of its own numbers of users and arms."""
    out = History()
    taken = sample.rows.tolist()
    for place, column, row in zip(sample.places.tolist(), columns.tolist(), taken, strict=True):
        out.add((place, column), place, column, history.means[row] - shift, weight=history.counts[row])
        out.scatters[-1] = history.scatters[row]
    return out
