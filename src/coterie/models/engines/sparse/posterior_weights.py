"""The posterior mean of all users' weights, and its residual: what is above the threshold is queued, and pushed on.

Deflation settles by one step for all users what pushes would settle by the ridge alone. The null vector q of the
Laplacian (all ones, or the roots of the degrees) has L_rho q = ridge q. Moving all weights by q_u c changes the
residual of user u by q_u (ridge I + B_u) c, whatever c is, so the residual stays exact. With c such that
sum_u q_u residual_u vanishes, nothing is left of it for pushes to carry round the graph.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.algebra.gaps import gap_of_matrices
from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel, Growth
from coterie.kernels.growing_rows import Room
from coterie.models.base import SolveProgress
from coterie.models.engines.sparse.compiling import load_solvers
from coterie.models.engines.sparse.limits import Limits
from coterie.models.engines.sparse.solves import LocalSolve, PosteriorPrecision, UserQueue, graph_arrays
from coterie.models.engines.sparse.user_blocks import LACKING, NONE, DataBlocks

ROUNDING = 1e-13
FINE_ROUNDING = 1e-15  # of few sums
UNIT = 2.3e-16
TINY = 1e-300
SAFETY = 0.5
NOT_HUBS = 0.99
ROUNDS_AMONG_FEW = 5
MOST_SHARE = 0.5  # of the work of one solve, that a step of deflation may cost
FINE = 1e4  # residuals are small beside what they are left of, and kept to far more digits


class DeflationStep(NamedTuple):
    """By how much all weights and residuals change."""

    weights: Array
    residual: Array


class Deflation:
    """When to move all users' weights along the null vector, and how far.

    A step is due once pushes have cost eight times as much, if it takes at most half of the work that is left to the
    call: on a graph so large that it never does, what users have in common is little beside what they have not.

    Attributes:
        work_since: The work of pushes since the last step.
        data_precision: sum_u q_u^2 B_u, the data's part of the precision along q, with B_u that of a user's rewards.
    """

    def __init__(self, kernel: GraphKernel, limits: Limits) -> None:
        self._limits = limits
        width = kernel.features.shape[1]
        self._kernel, self.work_since, self.data_precision = kernel, 0, np.zeros((width, width))

    def add(self, user: int, row: Array, noise: float) -> None:
        """Takes note of a reward."""
        self.data_precision += np.outer(row, row * (float(self._kernel.null[user]) ** 2 / noise))

    def recompute(self, data: DataBlocks) -> None:
        """Takes note of all rewards that the table holds, and of none besides."""
        table, features = data.table, self._kernel.features
        weights = table.counts * self._kernel.null[table.users] ** 2 / data.noise_var
        by_arm = np.bincount(table.arms, weights, len(features))
        self.work_since, self.data_precision = 0, (features * by_arm[:, None]).T @ features

    def follow(self, kernel: GraphKernel, growth: Growth, data: DataBlocks) -> None:
        """Takes a graph that has changed."""
        self._kernel = kernel
        for user, more in growth.null_squares.items():
            if data.slot[user] != NONE:
                self.data_precision += more * data.precision(user)

    def work_until_due(self, n_rows: int, most: int) -> int:
        """Returns how much work pushes may do until the next step: none if it is due now, `most` if it never is."""
        limits = self._limits
        cost = limits.deflation_user * len(self._kernel.null) + limits.deflation_row * n_rows
        return most if cost > MOST_SHARE * most else max(limits.deflation_patience * cost - self.work_since, 0)

    def step(self, data: DataBlocks, residual: Array, threshold: float) -> DeflationStep | None:
        """Returns the next step, or nothing if little is left along q. O(users + rows) x features."""
        self.work_since = 0
        null, ridge = self._kernel.null, self._kernel.ridge
        along = null @ residual
        if np.linalg.norm(along) <= self._limits.deflation_gain * threshold * float(null @ self._kernel.shape):
            return None
        precision = ridge * float(null @ null) * np.eye(len(along)) + self.data_precision
        field = np.multiply.outer(null, np.linalg.solve(precision, along))
        return DeflationStep(field, ridge * field + PosteriorPrecision(self._kernel, data).blocks_times(field))


class PosteriorWeights:
    """Weights w, the residual b - A w kept exactly, and a queue of the users where it exceeds the threshold.

    The threshold is so small that residuals below it move the mean of 99 in 100 users by no more than `eps` of their
    prior std, of which 1 / sqrt(degree + ridge) is a lower bound. The prior std of a hub is far smaller than others':
    held to it everybody would pay for the hub. In units of reward its mean is off by half more than others' at most.
    The threshold is measured again when there are more than twice as many users as then, and among few users after each
    change of the graph.
    """

    def __init__(self, kernel: GraphKernel, eps: float, limits: Limits) -> None:
        self.eps, self._limits = eps, limits
        shape = kernel.n_users, kernel.features.shape[1]
        self._push, self._kernel = load_solvers(), kernel
        self.solves_globally = needs_global_solves(kernel, limits)
        self._set_threshold()
        self.weights, self.residual = np.zeros(shape), np.zeros(shape)
        self._queue = UserQueue(kernel.n_users)
        self._rounding, self._uneven, self._room = 0.0, 1.0, Room()
        self._largest, self._refreshed = 0.0, 0.0  # the largest weights so far, and the rounding of the last refresh
        self.deflation = Deflation(kernel, limits)

    def _set_threshold(self) -> None:
        kernel = self._kernel
        demands = np.sqrt(kernel.diagonal) * kernel.reach
        self.threshold = self.eps / float(np.quantile(demands, NOT_HUBS, method="higher"))
        # Residuals as large as the shape move no mean by more of its std than this, by their energy.
        energy = float(np.linalg.norm(kernel.shape) / np.sqrt(kernel.ridge))
        self._roundable = self._limits.rounding * min(self.threshold, self.eps / energy)
        self._measured = len(demands)
        self._steepest, self._flattest = float(np.max(kernel.diagonal / kernel.shape)), float(np.min(kernel.shape))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self.weights.nbytes + self.residual.nbytes + self._queue.ring.nbytes + self._queue.waiting.nbytes)

    @property
    def n_waiting(self) -> int:
        """Users in the queue."""
        return len(self._queue)

    @property
    def rounding(self) -> float:
        """What rounding may have added to a user's residual, in units of shape."""
        return self._rounding * self._uneven

    def residual_bound(self) -> float:
        """Returns a bound of every user's residual in units of shape, what rounding may add to it included."""
        users = self._queue.users()
        sizes = np.linalg.norm(self.residual[users], axis=1) / self._kernel.shape[users]
        return max(self.threshold, float(sizes.max(initial=0.0))) + self.rounding

    def add(self, solve: LocalSolve, amount: float) -> None:
        """Moves the weights along a solution; what it leaves over joins the residual."""
        solved = solve.nodes, solve.count, solve.solution, solve.residual
        held = self.weights, self.residual
        # What is added to a row never exceeds amount * |features|; some hundreds of sums are each off by 1e-16 of that.
        self._rounding += ROUNDING * abs(amount) * solve.start_size
        self._push.apply_solution(amount, self.threshold, self._kernel.shape, *solved, *held, *self._queue.arrays)
        moved = self.weights[solve.nodes[: solve.count]]
        self._largest = max(self._largest, float(np.sqrt(np.einsum("ij,ij->i", moved, moved).max())))

    def repair(self, data: DataBlocks, most: int) -> None:
        """Pushes what is queued, with so much work at most; among few users a global solve settles the rest."""
        graph = graph_arrays(self._kernel)
        held = self.weights, self.residual, *self._queue.arrays
        if self.solves_globally:
            most = min(most, work_before_global_solve(self._kernel))
        while most > 0 and self.n_waiting:
            turn = min(self.deflation.work_until_due(len(data.table), most), most)
            if turn == 0:
                self._deflate(data)
                continue
            made = int(self._push.repair(*graph, data.slot, data.inverse, self.threshold, turn, *held))
            self.deflation.work_since += made
            most -= made
            # Weights are rounded with each push, and the residual does not know: by so much, times A.
            self._rounding += UNIT * made * self._largest * (self._steepest + data.heaviest / self._flattest)
            if self.n_waiting and data.slot[self._queue.first] == LACKING:
                data.make(self._queue.first)
        if self.solves_globally and self.n_waiting:
            self.solve_globally(data)
        if self.rounding > max(self._roundable, 2 * self._refreshed):
            self.refresh(data)

    def warm_up(self, data: DataBlocks) -> None:
        """Calls what `repair` needs, with nothing to do."""
        held = self.weights, self.residual, *self._queue.arrays
        self._push.repair(*graph_arrays(self._kernel), data.slot, data.inverse, self.threshold, 0, *held)

    def _deflate(self, data: DataBlocks) -> None:
        step = self.deflation.step(data, self.residual, self.threshold)
        if step is None:
            return
        self.weights += step.weights
        self.residual -= step.residual
        self._largest = max(self._largest, self._largest_weight())
        moved, changed = (np.sqrt(np.einsum("ij,ij->i", each, each)) for each in step)
        # L_rho null = ridge null to the rounding of sums as large as the diagonal.
        sizes = changed + self._kernel.diagonal * moved
        self._rounding += ROUNDING * float(np.max(sizes / self._kernel.shape))
        self.set_residual(self.residual)

    def solve_globally(self, data: DataBlocks) -> None:
        """Settles everything by conjugate gradients, from the weights at hand."""
        precision = PosteriorPrecision(self._kernel, data)
        more = precision.solve(self.residual.copy(), SAFETY * self.threshold)
        self.weights += more
        self.residual -= precision.times(more)
        self.set_residual(self.residual)

    def fit(self, data: DataBlocks, progress: SolveProgress | None = None) -> int:
        """Settles everything for the rows that the table holds by now; returns how many steps it took."""
        precision = PosteriorPrecision(self._kernel, data)
        self.residual = self.fresh_residual(data)
        precision.solve(self.residual, SAFETY * self.threshold, progress, onto=self.weights)
        self.refresh(data)
        return precision.n_steps

    def refresh(self, data: DataBlocks) -> None:
        """Takes the residual computed from scratch, and what rounding may have done to it."""
        self.deflation.recompute(data)
        self.set_residual(self.fresh_residual(data))
        self._rounding, self._uneven = self._rounding_of(data), 1.0
        self._refreshed, self._largest = self._rounding, self._largest_weight()

    def follow(self, kernel: GraphKernel, growth: Growth, data: DataBlocks) -> None:
        """Takes a graph that has changed: the residual falls by what L_rho has grown by, times the weights."""
        self._kernel = kernel
        self.deflation.follow(kernel, growth, data)
        self._lengthen(kernel.n_users)
        touched = set() if growth.reshaped is None else set(growth.reshaped.tolist())
        touched.update(growth.diagonal)
        for row, others, amounts in growth.entries:
            self.residual[row] += amounts @ self.weights[others]
            self.residual[others] += np.outer(amounts, self.weights[row])
            touched.update(others.tolist())
        for user, amount in growth.diagonal.items():
            self.residual[user] -= amount * self.weights[user]
        self._allow(growth, np.array(list(touched), dtype=np.intp))

    def _allow(self, growth: Growth, users: Any) -> None:
        """Allows for the rounding of a change, and queues whom it concerns where the residual is too large by now."""
        if self._kernel.n_users <= self._limits.few_users or self._kernel.n_users > 2 * self._measured:
            self._set_threshold()
            self.set_residual(self.residual)
        if growth.reshaped is None:
            self.set_residual(self.residual)
        shape = self._kernel.shape[users]
        # Weights are right to some hundreds of roundings, and L_rho changes by so much; each sum is rounded once more.
        change = np.array([abs(growth.diagonal.get(user, 0.0)) for user in users.tolist()])
        factor = ROUNDING * (change + self._kernel.normalised) + FINE_ROUNDING * self._kernel.diagonal[users]
        sizes = factor * np.linalg.norm(self.weights[users], axis=1)
        self._rounding += float(sizes.sum() / shape.min(initial=np.inf))
        self._uneven = max(self._uneven, growth.uneven)
        over = np.linalg.norm(self.residual[users], axis=1) > self.threshold * shape
        self._queue.append(users[over])

    def _lengthen(self, n_users: int) -> None:
        self._room.lengthen(self, n_users, weights=0.0, residual=0.0)
        self._queue.lengthen(n_users)
        self.solves_globally = self.solves_globally and needs_global_solves(self._kernel, self._limits)

    def _rounding_of(self, data: DataBlocks) -> float:
        """Returns a bound of what rounding does to a residual computed from scratch, in units of shape."""
        kernel, table = self._kernel, data.table
        sizes = np.sqrt(kernel.arm_diag(table.arms))
        largest = self._largest_weight()
        terms = table.counts * sizes * (np.abs(table.means) + sizes * largest) / data.noise_var
        summed = np.bincount(table.users, terms, kernel.n_users) + 2 * kernel.diagonal * largest
        terms_each = max(ROUNDING, 1e-15 * int(table.lengths.max(initial=0)))
        return float(terms_each * np.max(summed / kernel.shape))

    def _largest_weight(self) -> float:
        return float(np.sqrt(np.einsum("ij,ij->i", self.weights, self.weights).max()))

    def fresh_residual(self, data: DataBlocks) -> Array:
        """Returns b - A w from scratch."""
        return PosteriorPrecision(self._kernel, data).residual_of(self.weights)

    def set_residual(self, residual: Array) -> None:
        """Takes another residual, and queues the users where it exceeds the threshold."""
        self.residual = residual
        sizes = np.sqrt(np.einsum("ij,ij->i", residual, residual))
        self._queue.refill(np.flatnonzero(sizes > self.threshold * self._kernel.shape))

    def mismatch(self, data: DataBlocks) -> float:
        """Returns how far the residual is from what rows and kernel give, relative. O((edges + rows) x features).

        It is relative to the terms that it is a sum of, each reward by itself: rewards that cancel leave rounding.
        """
        table, precision = data.table, PosteriorPrecision(self._kernel, data)
        sizes = table.counts * np.sqrt(self._kernel.arm_diag(table.arms)) / data.noise_var
        rewards = np.sqrt(table.means**2 + table.scatters / np.maximum(table.counts, TINY))  # root mean squares
        terms = np.abs(precision.times(self.weights)).max(axis=1)
        terms += np.bincount(table.users, sizes * rewards, self._kernel.n_users)
        return FINE * gap_of_matrices(self.fresh_residual(data), self.residual, float(terms.max(initial=0.0)))

    def state(self) -> dict[str, Any]:
        """Returns what `take` makes the same from, to the bit; nothing large is copied."""
        kept = {"weights": self.weights, "left": self.residual, "queue": self._queue.users()}
        kept |= {"since": self.deflation.work_since, "total": self.deflation.data_precision}
        kept |= {"uneven": self._uneven, "measured": [self.threshold, self._measured]}
        kept |= {"largest": self._largest, "refreshed": self._refreshed}
        return {"rounding": self._rounding, **kept}

    def take(self, state: dict[str, Any]) -> None:
        """Takes a state, and its arrays."""
        self.weights, self.residual, self._rounding = state["weights"], state["left"], state["rounding"]
        self.deflation.work_since = state.get("since", 0)  # files of before know nothing of it
        self.deflation.data_precision = state.get("total", self.deflation.data_precision)
        self.threshold, self._measured = state.get("measured", [self.threshold, self._measured])
        self._uneven, self._refreshed = state.get("uneven", 1.0), state.get("refreshed", 0.0)
        self._largest = state.get("largest", self._largest_weight())
        self._queue.refill(state["queue"])


def needs_global_solves(kernel: GraphKernel, limits: Limits) -> bool:
    """Returns whether users are so few, or the ridge so small, that pushes would go round and round.

    What all users have in common decays by the ridge alone.
    """
    return kernel.n_users <= limits.few_users or kernel.n_users * kernel.ridge < limits.least_spread


def work_before_global_solve(kernel: GraphKernel) -> int:
    """Returns the work of some pushes of everybody."""
    starts, ends = kernel.rows[:2]
    return ROUNDS_AMONG_FEW * (len(starts) + int((ends - starts).sum()))
