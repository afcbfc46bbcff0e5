"""One part of a parted solve: its rows of A, its vectors, and what it does in each step of conjugate gradients.

    A = L_rho (x) I + blocks,   A w = b

A part knows its own users' rows of every vector. Of other parts it is given its halo: the users that its rows of A
refer to. What is summed over all users leaves it as a few numbers.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.models.engines.sparse.compiling import load_solvers
from coterie.models.engines.sparse.parted.cutting import PartGraph
from coterie.models.engines.sparse.reward_table import Columns, RewardTable

Sent = tuple[Array, ...]  # for each part that has some of these users in its halo, their rows of a vector


class Report(NamedTuple):
    """What a part says of its residual r and of z, that after its own preconditioner.

    Attributes:
        level: The largest residual of a user, in units of its shape.
        along: sum_u null_u r_u, what is left along the part's coarse vectors.
        size: <r, z>.
        moved: <z, A p> for the direction p of the last step; 0 at the start.
        moved_along: sum_u null_u (A p)_u.
    """

    level: float
    along: Array
    size: float
    moved: float
    moved_along: Array


class Part:
    """The users of one part.

    Args:
        graph: Their rows of L_rho.
        rows: Their rewards; users are numbered from 0.
        features: Of all arms.
        noise_var: The noise variance of the rewards.
        inner_steps: Steps of conjugate gradients on the part alone that its preconditioner makes; 0 for the inverses
            of the users' blocks.
        weights: To start from; none for zeros.
    """

    def __init__(
        self,
        graph: PartGraph,
        rows: Columns,
        features: Array,
        noise_var: float,
        *,
        inner_steps: int,
        weights: Array | None = None,
    ) -> None:
        load_solvers()
        n_users, (n_arms, width) = len(graph.users), features.shape
        state = {"n_observations": int(np.sum(rows["counts"])), **rows}
        self._graph, self._features, self._noise_var = graph, features, noise_var
        self._table, self._inner_steps = RewardTable.from_columns(state, n_users, n_arms), inner_steps
        self._rows = (graph.starts, graph.ends, graph.indices, graph.weights, graph.diagonal)
        self._data = (*self._table.chains, features, noise_var)
        self._unmade = np.full(n_users, -1, np.int32), np.zeros((0, width, width))  # no user's inverse is kept
        self.weights = np.zeros((n_users, width)) if weights is None else np.array(weights)
        self._extended = np.zeros((n_users + graph.halo_size, width))
        self._residual, self._image, self._ready = (np.zeros((n_users, width)) for _ in range(3))

    def size(self) -> int:
        """Returns the bytes held."""
        vectors = self.weights, self._extended, self._residual, self._image, self._ready
        return self._graph.nbytes + self._table.nbytes + sum(each.nbytes for each in vectors)

    def coarse(self) -> tuple[dict[int, float], Array]:
        """Returns q' L_rho q with q the null vector at this part's users and at each other's, and the data's part.

        The first by part, this one's own under -1; the second is sum_u null_u^2 B_u.
        """
        graph, null = self._graph, self._graph.null
        owners = np.repeat(np.arange(len(null)), graph.ends - graph.starts)
        inside, own = graph.indices < len(null), float(null @ (graph.diagonal * null))
        own -= float(np.sum(null[owners[inside]] * graph.weights[inside] * null[graph.indices[inside]]))
        ends = np.cumsum([len(null), *(len(each) for _, each in graph.halo)])
        with_others = {-1: own}
        for (part, _), start, end in zip(graph.halo, ends[:-1], ends[1:], strict=True):
            there = (graph.indices >= start) & (graph.indices < end)
            pulled = null[owners[there]] * graph.weights[there]
            sums = np.bincount(graph.indices[there] - start, pulled, end - start)
            with_others[part] = -float(sums @ self._null_of_halo[start - len(null) : end - len(null)])
        table = self._table
        weight = np.bincount(table.arms, table.counts * null[table.users] ** 2, len(self._features))
        return with_others, (self._features * (weight / self._noise_var)[:, None]).T @ self._features

    def null_sent(self) -> Sent:
        """Returns the null vector at the users whom others need."""
        return tuple(self._graph.null[places] for _, places in self._graph.sends)

    def take_null(self, *halo: Array) -> None:
        """Takes the null vector at the users of the halo."""
        self._null_of_halo = np.concatenate([np.zeros(0), *halo])

    def weights_sent(self) -> Sent:
        """Returns the weights of the users whom others need."""
        return tuple(self.weights[places] for _, places in self._graph.sends)

    def begin(self, *halo: Array) -> Report:
        """Computes the residual b - A w of the weights there are, given those of the halo."""
        self._extended[: len(self.weights)] = self.weights
        self._take_halo(halo)
        self._times(self._extended, self._residual)
        np.negative(self._residual, out=self._residual)
        table = self._table
        amounts = table.counts * table.means / self._noise_var
        self._compiled.add_targets(table.users, table.arms, amounts, self._features, self._residual)
        self._image[:] = 0.0
        return self._report()

    def advance(self, coarse: Array, share: float) -> Sent:
        """Takes the next direction, z + null c + share p; returns it at the users whom others need."""
        direction = self._extended[: len(self.weights)]
        direction *= share
        direction += self._ready
        direction += np.multiply.outer(self._graph.null, coarse)
        return tuple(direction[places] for _, places in self._graph.sends)

    def multiply(self, *halo: Array) -> float:
        """Returns <p, A p> of the direction, given it at the halo."""
        self._take_halo(halo)
        self._times(self._extended, self._image)
        return float(np.vdot(self._extended[: len(self.weights)], self._image))

    def step(self, length: float) -> Report:
        """Moves the weights along the direction, and the residual with them."""
        self.weights += length * self._extended[: len(self.weights)]
        self._residual -= length * self._image
        return self._report()

    @property
    def _compiled(self) -> Any:
        return self._table.compiled

    def _take_halo(self, halo: tuple[Array, ...]) -> None:
        start = len(self.weights)
        for each in halo:
            self._extended[start : start + len(each)] = each
            start += len(each)

    def _times(self, vectors: Array, out: Array) -> Array:
        self._compiled.times_all(*self._rows, *self._data, vectors, out)
        return out

    def _report(self) -> Report:
        residual, null = self._residual, self._graph.null
        self._precondition()
        sizes = np.sqrt(np.einsum("ij,ij->i", residual, residual)) / self._graph.shape
        return Report(
            float(sizes.max(initial=0.0)),
            null @ residual,
            float(np.vdot(residual, self._ready)),
            float(np.vdot(self._ready, self._image)),
            null @ self._image,
        )

    def _precondition(self) -> None:
        """Computes z: about the solution on the part alone, everybody else's weights held."""
        if self._inner_steps == 0:
            self._blocks_solved(self._residual, self._ready)
            return
        from coterie.algebra.iterative import pcg  # only here, for it imports numba

        alone = np.zeros_like(self._extended)

        def times(vectors: Array, out: Array) -> Array:
            alone[: len(vectors)] = vectors
            return self._times(alone, out)

        self._ready[:] = 0.0
        left, steps = self._residual.copy(), self._inner_steps
        pcg(times, self._blocks_solved, left, self._ready, is_small=lambda _, r: not r.any(), most_steps=steps)

    def _blocks_solved(self, residual: Array, out: Array) -> Array:
        self._compiled.precondition_all(self._graph.diagonal, *self._data, *self._unmade, residual, out)
        return out
