"""How A z = b is solved, for A the precision of all users' weights.

`LocalSolve` pushes residuals from one user outwards, and reaches as few users as its threshold allows.
`PosteriorPrecision` is A itself, and solves on the whole graph by conjugate gradients: for few users, where pushes
would go round too often, and for many rewards. `UserQueue` holds users whose residual waits to be pushed.
"""

from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.kernels.growing_rows import Room
from coterie.models.base import SolveProgress
from coterie.models.conditioned import LOG_2PI
from coterie.models.engines.sparse.compiling import load_solvers
from coterie.models.engines.sparse.user_blocks import LACKING, DataBlocks, MarginalBlocks, UserBlocks

FIRST_ROOM = 256
MOST_STEPS = 1000
WHOLE = NDArray[np.int64]


class LocalSolve:
    """A solve A z = e_u (x) value that grows from user u outwards; its arrays are kept for the next one.

    Args:
        kernel: The graph that is solved on.
        shape: The shape of a user's row: (width,), or (width, width) for many right-hand sides at once.
        most_bytes: How much it may grow to; a hub has more neighbours than there is room for.
    """

    __slots__ = (
        "_kernel",
        "_most_room",
        "_push",
        "_room",
        "_shrink_marginals",
        "bound",
        "marks",
        "nodes",
        "place",
        "residual",
        "ring",
        "solution",
        "start_size",
        "waiting",
    )

    def __init__(self, kernel: GraphKernel, shape: tuple[int, ...], *, most_bytes: float = float("inf")) -> None:
        self._kernel, self._room = kernel, Room()
        self._shrink_marginals = load_solvers().shrink_marginals
        self._push = load_solvers().push_residuals
        self._most_room = most_bytes / (16 * int(np.prod(shape)))  # a solution and a residual of 8 bytes a number
        self.place = np.full(kernel.n_users, -1, dtype=np.int32)
        self.nodes = np.empty(FIRST_ROOM, dtype=np.int64)
        self.solution, self.residual = np.empty((FIRST_ROOM, *shape)), np.empty((FIRST_ROOM, *shape))
        self.bound = np.empty(FIRST_ROOM)
        self.ring = np.empty(FIRST_ROOM, dtype=np.int64)
        self.waiting = np.zeros(FIRST_ROOM, dtype=np.bool_)
        self.marks = np.zeros(4, dtype=np.int64)  # users reached, head and length of the ring, work done
        self.start_size = 0.0  # of the right-hand side, in units of shape

    def lengthen(self, n_users: int) -> None:
        """Makes room for newcomers."""
        self._room.lengthen(self, n_users, place=-1)

    @property
    def count(self) -> int:
        """How many users were reached."""
        return int(self.marks[0])

    @property
    def work(self) -> int:
        """How many pushes were made, and edges gone along."""
        return int(self.marks[3])

    def start(self, user: int, value: Any) -> None:
        """Forgets the last solve, and begins one whose right-hand side is this value at this user."""
        self.place[self.nodes[: self.count]] = -1
        self.place[user], self.nodes[0], self.ring[0], self.waiting[0] = 0, user, 0, True
        self.solution[0], self.residual[0] = 0.0, value
        self.bound[0] = np.linalg.norm(self.residual[0])
        self.start_size = float(self.bound[0] / self._kernel.shape[user])
        self.marks[:] = 1, 0, 1, 0

    def run(self, blocks: UserBlocks, threshold: float, most: int) -> bool:
        """Pushes until no residual exceeds threshold * shape; returns whether work and room sufficed."""
        while not self._push(
            *graph_arrays(self._kernel),
            blocks.slot,
            blocks.inverse,
            threshold,
            most,
            self.place,
            self.nodes,
            self.solution,
            self.residual,
            self.bound,
            self.ring,
            self.waiting,
            self.marks,
        ):
            user = int(self.nodes[self.ring[self.marks[1]]])
            if blocks.slot[user] == LACKING:
                blocks.make(user)
                continue
            if 2 * len(self.ring) > self._most_room:
                return False
            self._grow()
        return self.work < most

    def resume(self, threshold: float) -> None:
        """Queues everybody whose residual exceeds a smaller threshold than the last."""
        count = self.count
        over = np.flatnonzero(self.bound[:count] > threshold * self._kernel.shape[self.nodes[:count]])
        self.waiting[:count] = False
        self.waiting[over] = True
        self.ring[: len(over)] = over
        self.marks[1:3] = 0, len(over)

    def residual_bound(self) -> float:
        """Returns the largest residual in units of shape, or a little more."""
        return float(np.max(self.bound[: self.count] / self._kernel.shape[self.nodes[: self.count]]))

    def products(self) -> tuple[float, float]:
        """Returns <z, r> and <r, r>, of traces where there are many right-hand sides."""
        z, r = self.solution[: self.count], self.residual[: self.count]
        return float(np.vdot(z, r)), float(np.vdot(r, r))

    def shrink_marginals(self, user: int, marginals: MarginalBlocks, lowest: float, highest: float) -> None:
        """Takes the reward of a user, whose solve this is, off others' marginal blocks, as far as that is proven.

        Args:
            user: The user.
            marginals: The blocks.
            lowest: A lower bound of the reward's predictive variance, noise included.
            highest: An upper bound of it.
        """
        solved = self.nodes, self.count, self.solution, self._kernel.reach
        blocks = marginals.slot, marginals.matrix, marginals.stale
        self._shrink_marginals(*solved, *blocks, self.residual_bound(), lowest, highest, user)

    def _grow(self) -> None:
        room = len(self.ring)
        queued = self.ring[(self.marks[1] + np.arange(self.marks[2])) % room]
        for name in ("nodes", "solution", "residual", "bound", "ring", "waiting"):
            old = getattr(self, name)
            new = np.empty((2 * room, *old.shape[1:]), dtype=old.dtype)
            new[: self.count] = old[: self.count]
            setattr(self, name, new)
        self.ring[: len(queued)] = queued
        self.marks[1] = 0


def graph_arrays(kernel: GraphKernel) -> tuple[Any, ...]:
    """Returns what every compiled function takes of the graph: starts, ends, neighbours, weights, diagonal, shape."""
    return *kernel.rows, kernel.diagonal, kernel.shape


class UserQueue:
    """Users in a ring, first in, first out, as compiled loops take it and change it.

    Attributes:
        ring: Users, from the head on.
        waiting: Whether each user is in it.
        marks: Head and length of the ring.
    """

    def __init__(self, n_users: int) -> None:
        self.ring = np.zeros(n_users, dtype=np.int64)
        self.waiting = np.zeros(n_users, dtype=np.bool_)
        self.marks = np.zeros(2, dtype=np.int64)
        self._room = Room()

    def __len__(self) -> int:
        return int(self.marks[1])

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        """What compiled loops take."""
        return self.ring, self.waiting, self.marks

    @property
    def first(self) -> int:
        """The user at the head."""
        return int(self.ring[self.marks[0]])

    def users(self) -> Any:
        """Returns the users in it, in order."""
        head, length = self.marks.tolist()
        return self.ring[(head + np.arange(length)) % len(self.ring)]

    def append(self, users: Any) -> None:
        """Adds those of the users who are not in it yet."""
        users = users[~self.waiting[users]]
        head, length = self.marks.tolist()
        self.ring[(head + length + np.arange(len(users))) % len(self.ring)] = users
        self.waiting[users] = True
        self.marks[1] += len(users)

    def refill(self, users: Any) -> None:
        """Takes these users in place of those who were in it."""
        self.waiting[:] = False
        self.waiting[users] = True
        self.ring[: len(users)] = users
        self.marks[:] = 0, len(users)

    def lengthen(self, n_users: int) -> None:
        """Makes room for newcomers."""
        self._room.lengthen(self, n_users, waiting=0)
        if n_users > len(self.ring):
            users = self.users()
            self.ring = np.zeros(2 * n_users, dtype=np.int64)
            self.ring[: len(users)] = users
            self.marks[0] = 0


class PosteriorPrecision:
    """The precision A = L_rho (x) I + blocks of all users' weights as a linear map; A w = b for the posterior mean.

    The blocks come from the rows of rewards, so no user needs a matrix. O(edges + rows) x features each product, and
    rows^2 of a user (features^2 where these are fewer) for the preconditioner.
    """

    def __init__(self, kernel: GraphKernel, data: DataBlocks) -> None:
        self._kernel, self._data, self._compiled = kernel, data, data.table.compiled
        self._graph = (*kernel.rows, kernel.diagonal)
        self._rows = (*data.table.chains, kernel.features, data.noise_var)
        self.n_steps = 0  # of the last solve

    def times(self, weights: Array, out: Array | None = None) -> Array:
        """Returns A w, written to `out` if that is given."""
        out = np.empty_like(weights) if out is None else out
        self._compiled.times_all(*self._graph, *self._rows, weights, out)
        return out

    def blocks_times(self, weights: Array) -> Array:
        """Returns every user's data block times their weights, without the graph."""
        nobody, nothing = np.zeros(len(weights), self._graph[0].dtype), np.zeros(len(weights))
        nobody.flags.writeable = self._graph[0].flags.writeable  # compiled code has a type for each
        out = np.empty_like(weights)
        self._compiled.times_all(nobody, nobody, *self._graph[2:4], nothing, *self._rows, weights, out)
        return out

    def preconditioned(self, residual: Array, out: Array) -> Array:
        """Writes the inverses of the users' diagonal blocks times their rows, and returns them."""
        blocks = self._data.slot, self._data.inverse
        self._compiled.precondition_all(self._kernel.diagonal, *self._rows, *blocks, residual, out)
        return out

    def add_targets(self, out: Array) -> Array:
        """Adds every user's b, the sum of features * reward / noise, and returns it all."""
        table = self._data.table
        amounts = table.counts * table.means / self._data.noise_var
        self._compiled.add_targets(table.users, table.arms, amounts, self._kernel.features, out)
        return out

    def residual_of(self, weights: Array) -> Array:
        """Returns b - A w."""
        out = self.times(weights)
        np.negative(out, out=out)
        return self.add_targets(out)

    def solve(
        self, right: Array, threshold: float, progress: SolveProgress | None = None, *, onto: Array | None = None
    ) -> Array:
        """Returns w, once no row of right - A w exceeds threshold * shape; `right` becomes the residual.

        A warm start adds to the weights `onto`, and `right` is their residual.
        """
        from coterie.algebra.iterative import pcg  # only here, for it imports numba

        def is_small(step: int, residual: Array) -> bool:
            level = float(np.max(np.sqrt(np.einsum("ij,ij->i", residual, residual)) / self._kernel.shape))
            if progress is not None:
                progress(step, level / threshold)
            return level <= threshold

        weights = np.zeros_like(right) if onto is None else onto
        self.n_steps = pcg(self.times, self.preconditioned, right, weights, is_small=is_small, most_steps=MOST_STEPS)
        return weights

    def info_gain_bound(self) -> float:
        """Returns a lower bound of the information gain of all rewards.

        L_rho <= diag(diagonal + sums of weights), so every user's prior is at least that of a user alone with this
        precision, and the gain is at least the sum of theirs.
        """
        alone = 1 / (self._kernel.diagonal + np.asarray(self._kernel.weights.sum(axis=1)).ravel())
        return float(self._compiled.log_dets(alone, *self._rows))

    def log_likelihood(self, weights: Array, info_gain: float) -> float:
        """Returns about log p(rewards), given solved weights: y' M^-1 y = y' y / noise - b' A^-1 b."""
        table, noise_var = self._data.table, self._data.noise_var
        means, counts = table.means, table.counts
        predicted = self._compiled.predictions(table.users, table.arms, weights, self._kernel.features)
        fit = float(np.sum(counts * means * (means - predicted))) / noise_var
        rest = float(np.sum((counts - 1) * (LOG_2PI + log(noise_var)) + np.log(counts) + table.scatters / noise_var))
        single = float(np.sum(LOG_2PI + np.log(noise_var / counts)))
        return -0.5 * (fit + info_gain + single + rest)

    def warm_up(self) -> None:
        """Calls what is compiled for nobody, and what the table needs of it."""
        from coterie.algebra.iterative import add_scaled, scale_and_add

        nobody, compiled = self._kernel.diagonal[:0], self._compiled
        nothing, more = (np.zeros((0, self._kernel.features.shape[1])) for _ in range(2))
        compiled.times_all(*self._graph[:4], nobody, *self._rows, nothing, more)
        compiled.precondition_all(nobody, *self._rows, self._data.slot, self._data.inverse, nothing, more)
        add_scaled(0.0, nothing, more)
        scale_and_add(0.0, nothing, more)
        self._data.table.place(0, 0)
        self._data.table.of_user(0)
        self._data.precision(0)
        self._data.fresh_inverse(0)
