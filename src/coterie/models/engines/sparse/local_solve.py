"""One local solve by pushing residuals: the users that it reaches, and what it knows of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.graph_kernel import GraphKernel
from coterie.kernels.growing_rows import Room
from coterie.models.engines.sparse.compiling import load_push
from coterie.models.engines.sparse.user_blocks import LACKING, MarginalBlocks, UserBlocks

FIRST_ROOM = 256
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
        self._shrink_marginals = load_push().shrink_marginals
        self._push = load_push().push_residuals
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
