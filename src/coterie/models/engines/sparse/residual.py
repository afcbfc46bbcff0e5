"""The weights of all users, and what is left of the equations they should solve."""

from types import ModuleType
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph import GraphKernel
from coterie.models.engines.sparse.blocks import LACKING, DataBlocks
from coterie.models.engines.sparse.everywhere import Everywhere, Progress
from coterie.models.engines.sparse.together import Together
from coterie.models.engines.sparse.workspace import Workspace, graph_arrays

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
        if kernel.own or kernel.common:
            demands = kernel.reach / np.sqrt(kernel.user_variances())
        # Half is for what the common weights may be off by.
        allowed = eps if kernel.common == 0 else SAFETY * eps
        self.threshold = allowed / float(np.quantile(demands, NOT_HUBS, method="higher"))
        self.weights, self.left = np.zeros(shape), np.zeros(shape)
        self.shift = np.zeros(shape[1])  # weights that all have in common, and that nobody's own include
        self._ring = np.zeros(kernel.n_users, dtype=np.int64)
        self._waiting = np.zeros(kernel.n_users, dtype=np.bool_)
        self._marks = np.zeros(2, dtype=np.int64)  # head and length of the ring
        self._rounding = 0.0
        self.together = Together(kernel)
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

    @property
    def rounding(self) -> float:
        """What rounding may have added to a user's residual, in units of shape."""
        return self._rounding

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
        while most > 0 and self.n_waiting:
            turn = min(self.together.turn(len(data.table), most), most)
            if turn == 0:
                self._move_together(data)
                continue
            made = int(self._push.repair(*graph, data.slot, data.inverse, self.threshold, turn, *held, *queue))
            self.together.since += made
            most -= made
            if self.n_waiting and data.slot[self._ring[self._marks[0]]] == LACKING:
                data.make(int(self._ring[self._marks[0]]))
        if self.few and self.n_waiting:
            self.solve(data)

    def warm_up(self, data: DataBlocks) -> None:
        """Calls what `repair` needs, with nothing to do."""
        held, queue = (self.weights, self.left), (self._ring, self._waiting, self._marks)
        self._push.repair(*graph_arrays(self._kernel), data.slot, data.inverse, self.threshold, 0, *held, *queue)

    def _move_together(self, data: DataBlocks) -> None:
        step = self.together.step(data, self.left, self.threshold)
        if step is None:
            return
        self.weights += step.weights
        self.left -= step.residual
        sizes = np.sqrt(np.einsum("ij,ij->i", step.residual, step.residual))
        self._rounding += ROUNDING * float(np.max(sizes / self._kernel.shape))
        self.take_residual(self.left)

    def solve(self, data: DataBlocks) -> None:
        """Settles everything by conjugate gradients, from the weights at hand."""
        everywhere = Everywhere(self._kernel, data)
        more = everywhere.solve(self.left.copy(), SAFETY * self.threshold)
        self.weights += more
        self.left -= everywhere.times(more)
        self.take_residual(self.left)

    def fit(self, data: DataBlocks, progress: Progress | None = None) -> int:
        """Settles everything for the rows that the table holds by now; returns how many steps it took."""
        everywhere = Everywhere(self._kernel, data)
        self.left = self.recomputed(data)
        everywhere.solve(self.left, SAFETY * self.threshold, progress, onto=self.weights)
        self.refresh(data)
        return everywhere.n_steps

    def refresh(self, data: DataBlocks) -> None:
        """Takes the residual computed from scratch, and what rounding may have done to it."""
        self.together.count(data)
        self.take_residual(self.recomputed(data))
        self._rounding = self._rounding_of(data)

    def _rounding_of(self, data: DataBlocks) -> float:
        """Returns a bound of what rounding does to a residual computed from scratch, in units of shape."""
        kernel, table = self._kernel, data.table
        sizes = np.sqrt(kernel.arm_diag(table.arms))
        largest = np.sqrt(np.einsum("ij,ij->i", self.weights, self.weights)).max() + np.linalg.norm(self.shift)
        terms = table.counts * sizes * (np.abs(table.means) + sizes * largest) / data.noise_var
        summed = np.bincount(table.users, terms, kernel.n_users) + 2 * kernel.diagonal * largest
        terms_each = max(ROUNDING, 1e-15 * int(table.lengths.max(initial=0)))
        return float(terms_each * np.max(summed / kernel.shape))

    def recomputed(self, data: DataBlocks) -> Array:
        """Returns b - A w from scratch; with other parts than the graph's that is t - C (own t + k) - A g."""
        everywhere = Everywhere(self._kernel, data)
        out = everywhere.times(self.weights)
        np.negative(out, out=out)
        add_targets(self._kernel, data, out)
        if self._kernel.own or self._kernel.common:
            alone = add_targets(self._kernel, data, np.zeros_like(out))
            out -= everywhere.blocks_times(self._kernel.own * alone + self.shift)
        return out

    def whole(self, data: DataBlocks) -> Array:
        """Returns the weights of all users with every part in them: x - own C x, with x = g + k + own t."""
        if not (self._kernel.own or self._kernel.common):
            return self.weights
        alone = add_targets(self._kernel, data, np.zeros_like(self.weights))
        known = self.weights + self.shift + self._kernel.own * alone
        return np.asarray(known - self._kernel.own * Everywhere(self._kernel, data).blocks_times(known))

    def take_residual(self, left: Array) -> None:
        """Takes another residual, and queues the users where it exceeds the threshold."""
        self.left = left
        self._enqueue(np.flatnonzero(np.sqrt(np.einsum("ij,ij->i", left, left)) > self.threshold * self._kernel.shape))

    def state(self) -> dict[str, Any]:
        """Returns what `take` makes the same from, to the bit; nothing large is copied."""
        kept = {"weights": self.weights, "left": self.left, "queue": self._queue()}
        kept |= {"since": self.together.since, "total": self.together.total}
        return {"rounding": self._rounding, **kept} | ({"shift": self.shift} if self._kernel.common else {})

    def take(self, state: dict[str, Any]) -> None:
        """Takes a state, and its arrays."""
        self.weights, self.left, self._rounding = state["weights"], state["left"], state["rounding"]
        self.shift = state.get("shift", self.shift)
        self.together.since = state.get("since", 0)  # files of before know nothing of it
        self.together.total = state.get("total", self.together.total)
        self._enqueue(state["queue"])

    def _queue(self) -> Any:
        head, length = self._marks.tolist()
        return self._ring[(head + np.arange(length)) % len(self._ring)]

    def _enqueue(self, users: Any) -> None:
        self._waiting[:] = False
        self._waiting[users] = True
        self._ring[: len(users)] = users
        self._marks[:] = 0, len(users)


def add_targets(kernel: GraphKernel, data: DataBlocks, out: Array) -> Array:
    """Adds every user's t, the sum of features * reward / noise, and returns it all."""
    table = data.table
    amounts = table.counts * table.means / data.noise_var
    table.compiled.add_targets(table.users, table.arms, amounts, kernel.features, out)
    return out
