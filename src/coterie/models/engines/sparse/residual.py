"""The weights of all users, and what is left of the equations they should solve."""

from types import ModuleType
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph import GraphKernel
from coterie.models.engines.sparse.blocks import DataBlocks
from coterie.models.engines.sparse.everywhere import Everywhere
from coterie.models.engines.sparse.workspace import Workspace, graph_arrays
from coterie.models.history import History

ROUNDING = 1e-13
SAFETY = 0.5
NOT_HUBS = 0.99
FEW = 1000
ROUNDS_AMONG_FEW = 5


class Residual:
    """Weights w, the residual b - A w kept exactly, and a queue of the users where it exceeds the threshold.

    The threshold is so small that residuals below it move the mean of 99 in 100 users by no more than `eps` of their
    prior std, of which 1 / sqrt(degree + ridge) is a lower bound. The prior std of a hub is far smaller than others':
    held to it everybody would pay for the hub. In units of reward its mean is off by half more than others' at most.
    """

    def __init__(self, push: ModuleType, kernel: GraphKernel, eps: float) -> None:
        shape = kernel.n_users, kernel.features.shape[1]
        self._push, self._kernel = push, kernel
        demands = np.sqrt(kernel.diagonal) * kernel.reach
        self.threshold = eps / float(np.quantile(demands, NOT_HUBS, method="higher"))
        self.weights, self.left = np.zeros(shape), np.zeros(shape)
        self._ring = np.zeros(kernel.n_users, dtype=np.int64)
        self._waiting = np.zeros(kernel.n_users, dtype=np.bool_)
        self._marks = np.zeros(2, dtype=np.int64)  # head and length of the ring
        self._rounding = 0.0
        # What all users have in common decays by the ridge alone, so among few users pushes may go round and round.
        self.few = kernel.n_users <= FEW

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self.weights.nbytes + self.left.nbytes + self._ring.nbytes + self._waiting.nbytes)

    @property
    def n_waiting(self) -> int:
        """Users in the queue."""
        return int(self._marks[1])

    def level(self) -> float:
        """Returns a bound of every user's residual in units of shape, what rounding may add to it included."""
        users = self._queue()
        sizes = np.linalg.norm(self.left[users], axis=1) / self._kernel.shape[users]
        return max(self.threshold, float(sizes.max(initial=0.0))) + self._rounding

    def add(self, work: Workspace, amount: float) -> None:
        """Moves the weights along a solution; what it leaves over joins the residual."""
        queue = self._ring, self._waiting, self._marks
        solved = work.nodes, work.count, work.solution, work.residual
        held = self.weights, self.left
        # What is added to a row never exceeds amount * |features|; some hundreds of sums are each off by 1e-16 of that.
        self._rounding += ROUNDING * abs(amount) * work.start_size
        self._push.apply_solution(amount, self.threshold, self._kernel.shape, *solved, *held, *queue)

    def repair(self, data: DataBlocks, most: int) -> None:
        """Pushes what waits on, with so much work at most; among few users solves for all instead of more."""
        queue = self._ring, self._waiting, self._marks
        graph = graph_arrays(self._kernel)
        held = self.weights, self.left
        if self.few:
            most = min(most, ROUNDS_AMONG_FEW * (self._kernel.n_users + self._kernel.weights.nnz))
        self._push.repair(*graph, data.slot, data.inverse, self.threshold, most, *held, *queue)
        if self.few and self.n_waiting:
            more, left = Everywhere(self._kernel, data).solve(self.left, SAFETY * self.threshold)
            self.weights += more
            self.take_residual(left)

    def recomputed(self, data: DataBlocks, history: History, noise_var: float) -> Array:
        """Returns b - A w from scratch."""
        out = -Everywhere(self._kernel, data).times(self.weights)
        amounts = history.count_array() * history.mean_array() / noise_var
        rows = self._kernel.features[history.arm_array()]
        np.add.at(out, history.user_array(), amounts[:, None] * rows)
        return out

    def take_residual(self, left: Array) -> None:
        """Takes another residual, and queues the users where it exceeds the threshold."""
        self.left = left
        self._enqueue(np.flatnonzero(np.linalg.norm(left, axis=1) > self.threshold * self._kernel.shape))

    def state(self) -> dict[str, Any]:
        """Returns what `take` makes the same from, to the bit; nothing large is copied."""
        kept = {"weights": self.weights, "left": self.left, "queue": self._queue()}
        return {"rounding": self._rounding, **kept}

    def take(self, state: dict[str, Any]) -> None:
        """Takes a state, and its arrays."""
        self.weights, self.left, self._rounding = state["weights"], state["left"], state["rounding"]
        self._enqueue(state["queue"])

    def _queue(self) -> Any:
        head, length = self._marks.tolist()
        return self._ring[(head + np.arange(length)) % len(self._ring)]

    def _enqueue(self, users: Any) -> None:
        self._waiting[:] = False
        self._waiting[users] = True
        self._ring[: len(users)] = users
        self._marks[:] = 0, len(users)
