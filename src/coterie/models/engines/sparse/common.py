"""What all users have in common: one vector of weights, added to everybody's.

With v_u = g_u + k, k ~ N(0, common I), the g solve A g = d - C k given k, C the users' blocks. For J = A^-1 L_rho 1
no |J_u| exceeds `spread_u`, and the mean of v_u is exactly g_u + k + J_u (k* - k) with k* the posterior mean, of which
S (k* - k) = `excess` + sum_v J_v' r_v, S the posterior precision and r the residual of the g.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg

from coterie.contracts import Array
from coterie.kernels.graph import GraphKernel
from coterie.kernels.growing import Growth
from coterie.kernels.rows import Room
from coterie.models.engines.sparse.balance import Balance
from coterie.models.engines.sparse.blocks import DataBlocks, symmetric
from coterie.models.engines.sparse.energy import Calm, Proven, proven, strain
from coterie.models.engines.sparse.everywhere import Everywhere, Progress
from coterie.models.engines.sparse.joint import Joint, Stop
from coterie.models.engines.sparse.looks import Looks
from coterie.models.engines.sparse.residual import SAFETY, Residual

FEW_GROWTH, MANY_GROWTH = 1.25, 2.0
WORTH_MOVING = 0.02
MOST_MOVES = 8
KEPT = 0.95  # of eps: prior stds are known to within a fortieth
MOST_BALANCED = 4
EXACT = 1e-3
ROUNDING = 1e-12
CUT = 1e-9
MOST_STEPS = 200
MOST_USERS = 1000  # of a half


class Common:
    """The common weights as they are applied, and an upper bound of their covariance.

    Among few users they are solved for with everything else after each reward. Among more users whose number x ridge is
    small everybody is moved together with them until no mean can be off by more than eps of its std.
    Among others they are looked at when rewards may have moved them, or every so often if that is enough (`Looks`), and
    moved where that matters: a move changes the residual of every user with data. O(users x features).

    Attributes:
        pull: L_rho 1, one number for each user.
        spread: How far a change of the common weights moves those of each user, at most.
        ratio: spread <= ratio * reach.
        covariance: An upper bound of the common weights' covariance, and `size` its largest eigenvalue.
        halves: The same from the data of users of even and of odd number alone, among many.
    """

    def __init__(self, kernel: GraphKernel, eps: float) -> None:
        width = kernel.features.shape[1]
        self._kernel, self._eps, self._room = kernel, eps, Room()
        self.total = np.zeros((width, width))  # of all users' blocks
        self._balance = Balance(kernel)
        self._proven: Proven | None = None
        self.pull, self.spread = np.full(kernel.n_users, kernel.ridge), np.ones(kernel.n_users)
        self._measure()
        self._forget()
        self._looks, self._next_bound = Looks(kernel, eps), 1.0

    def _measure(self) -> None:
        """Takes what depends on the graph, but for the length of arrays. O(edges) for the normalised Laplacian."""
        kernel = self._kernel
        # L_rho 1 = ridge 1 for the combinatorial Laplacian, so J is an average there; for the other the sign varies.
        self.ratio = kernel.ridge / kernel.smallest_shape
        if kernel.normalised:
            self.pull = kernel.diagonal - kernel.weights.sum(axis=1)
            self.ratio = float(np.max(np.abs(self.pull) / kernel.shape))
            self.spread = self.ratio * kernel.reach

    def regraph(self, kernel: GraphKernel, growth: Growth) -> None:
        """Takes a graph that has changed, the weights as they are. Amortised O(newcomers); O(edges) if normalised.

        Where some covariance may have grown the bound starts from the prior again, until the next reward.
        """
        self._kernel = kernel
        self._balance.follow(kernel, growth)
        self._proven = None
        if not kernel.normalised:
            self._room.lengthen(self, kernel.n_users, pull=kernel.ridge, spread=1.0)
        self._measure()
        if growth.covariance_grows:
            self._forget()
            self._next_bound = 1.0

    def _forget(self) -> None:
        prior = self._kernel.common * np.eye(len(self.total))
        self.covariance, self.size, self.halves = prior, self._kernel.common, np.stack([prior, prior])

    def without(self, user: int) -> Array:
        """Returns an upper bound of the covariance of the common weights that does not go by a user's own data."""
        return np.asarray(self.halves[1 - user % 2])

    # What is stated

    def excess(self, residual: Residual) -> Array:
        """Returns what the equation of the common weights leaves over, but for the residuals. O(users x features)."""
        return np.asarray(self.pull @ residual.weights - residual.shift / self._kernel.common)

    def border(self, residual: Residual) -> Array:
        """Returns what the equation of the common weights leaves over. O(users x features)."""
        return np.asarray(self.excess(residual) + residual.left.sum(axis=0))

    def strain(self, residual: Residual) -> float:
        """Returns by how much of its std a mean can be off, at most. O(edges x features) for each step of a solve."""
        rounding = self._rounding_strain(residual)
        return strain(self._kernel, residual.left, self.border(residual), KEPT * self._eps - rounding) + rounding

    def _rounding_strain(self, residual: Residual) -> float:
        of_border = self._rounding(residual) * np.sqrt(self._kernel.common)
        return residual.strain_of(residual.rounding) + float(of_border)

    def doubt(self, residual: Residual) -> float:
        """Returns how far the common weights can be from their exact mean, at most. O(users x features)."""
        sizes = np.linalg.norm(residual.left, axis=1) + residual.rounding * self._kernel.shape
        return self.doubt_of(residual, self.excess(residual), sizes)

    def doubt_of(self, residual: Residual, excess: Array, sizes: Array) -> float:
        """Returns the same for residuals of these lengths, and what the common equation leaves over besides."""
        exact = float(np.linalg.norm(excess))
        return self.size * (exact + self._rounding(residual) + float(self.spread @ sizes))

    def _rounding(self, residual: Residual) -> float:
        terms = np.abs(self.pull) + self._kernel.diagonal  # whose sums and differences the pull is made of
        return ROUNDING * float(terms @ np.sqrt(np.einsum("ij,ij->i", residual.weights, residual.weights)))

    def gain(self) -> float:
        """Returns a lower bound of what was learned of the common weights, log det(prior covariance / covariance)."""
        ratio = self.covariance / self._kernel.common
        return max(-float(np.linalg.slogdet(ratio)[1]), 0.0)

    # Learning

    def add(self, user: int, row: Array, noise: float) -> None:
        """Adds a reward that a user's block has grown by."""
        self._balance.add(user, row, noise)
        self.total += np.outer(row, row / noise)
        self._looks.count += 1

    def owe(self, row: Array, gap: float, variance: float) -> None:
        """Notes by how much a reward was off, and its variance if the common weights were known."""
        self._looks.owe(self.covariance, row, gap, variance)

    def follow(self, residual: Residual, data: DataBlocks, most: int) -> float:
        """Goes on after a reward that the table has; returns by how much the trace of the covariance fell."""
        if residual.few:
            self.solve(residual, data)
        elif residual.slow:
            self._keep(residual, data, most)
        elif self._looks.are_due(closely=residual.keeps_common):
            self._looks.looked(self._kernel)
            if not self._move(residual, data, most) and residual.keeps_common:
                self.solve(residual, data)
        return self._bound(residual, data)

    def fit(self, residual: Residual, data: DataBlocks, progress: Progress | None = None) -> int:
        """Settles everything for the rows that the table holds by now; returns how many steps it took."""
        self.total = sum((data.block(user) for user in users_of(data)), np.zeros_like(self.total))
        self._balance.between, self._proven = None, None
        self._looks.count = max(data.table.n_observations, 1)
        self._looks.looked(self._kernel)
        self._next_bound = float(self._looks.count)
        self._bound(residual, data)
        residual.left = residual.recomputed(data)
        steps = self.solve(residual, data, progress)
        residual.refresh(data)
        return steps

    def solve(self, residual: Residual, data: DataBlocks, progress: Progress | None = None) -> int:
        """Solves for the weights of all users and the common ones by conjugate gradients, from where they are."""
        joint = Joint(self._kernel, data, self.precision_above())
        border = self.border(residual)
        more, left = joint.solve(np.vstack([residual.left, border]), self._stop(residual), progress)
        residual.weights += more[:-1]
        residual.shift = residual.shift + more[-1]
        residual.take_residual(np.ascontiguousarray(left[:-1]))
        return joint.n_steps

    def precision_above(self) -> Array:
        """Returns an upper bound of S: that if all g could only move together."""
        mass, eye = float(self.pull.sum()), np.eye(len(self.total))
        return symmetric(eye / self._kernel.common + mass * np.linalg.solve(mass * eye + self.total, self.total))

    def _stop(self, residual: Residual) -> Stop | Calm:
        """Among few users, or if asked for, the bounds of the two parts of the error add up to eps; else the first is.

        Where users are slow to settle it is the energy of both.
        """
        if residual.slow:
            return Calm(self._kernel, SAFETY * self._eps)
        all_add_up = residual.few or residual.keeps_common
        return self.limits_of(residual, self.spread if all_add_up else np.zeros_like(self.spread), SAFETY)

    def limits_of(self, residual: Residual, spread: Array, share: float) -> Stop:
        """Returns the limits with which both parts of the error are within so much of what is allowed."""
        stds = np.sqrt(self._kernel.user_variances())
        goal = SAFETY * share * self._eps * float(np.min(stds / self.spread)) / self.size
        return Stop(share * residual.threshold * self._kernel.shape, spread, goal)

    def _keep(self, residual: Residual, data: DataBlocks, most: int) -> None:
        """Brings every mean to within eps: by pushes, steps of all users, and where these fail a solve for everybody.

        Users may wait with more than the threshold once everything together is within eps.
        """
        residual.repair(data, most)
        for _ in range(MOST_BALANCED):
            if self._is_kept(residual):
                return
            residual.move(data, *self._step(residual, data))
            if self._is_kept(residual):
                return
            residual.repair(data, most)
        self.solve(residual, data)
        self._proven = None

    def _is_kept(self, residual: Residual) -> bool:
        """Returns whether every mean is proven to be within eps; from the last proof on as long as little has changed.

        What the residual has changed by since is taken to have the largest energy that it can have.
        """
        goal, border = KEPT * self._eps - self._rounding_strain(residual), self.border(residual)
        if self._proven is None or self._proven.at_most(self._kernel, residual.left, border) > goal:
            self._proven = proven(self._kernel, residual.left, border, max(goal, 0.0))
        return self._proven is not None

    def _move(self, residual: Residual, data: DataBlocks, most: int) -> bool:
        """Moves all users and the common weights together; returns whether that came to hardly move anything.

        Where some users wait they do so as after any reward: the rest comes after the next.
        """
        for _ in range(MOST_MOVES):
            along, step = self._step(residual, data)
            if max(np.linalg.norm(along), np.linalg.norm(step)) <= WORTH_MOVING * self._eps * self._looks.typical:
                return True
            residual.move(data, along, step)
            residual.repair(data, most)
            if residual.n_waiting:
                return True
        return False

    def _step(self, residual: Residual, data: DataBlocks) -> tuple[Array, Array]:
        """Returns the step along the null vector and that of the common weights that leave nothing in common."""
        sums = residual.together.total, self.total
        return self._balance.step(data, *sums, self._kernel.null @ residual.left, self.border(residual))

    # The covariance

    def _bound(self, residual: Residual, data: DataBlocks) -> float:
        """Bounds the covariance anew, ever more rarely: data only shrink it. Returns by how much its trace fell."""
        if self._looks.count < self._next_bound:
            return 0.0
        self._next_bound = self._looks.count * (FEW_GROWTH if residual.few else MANY_GROWTH)
        if residual.few:
            fresh = self._bounded_by(self._known_exactly(data))
        else:
            users = users_of(data)[: 2 * MOST_USERS]
            known = [self._known_at_least(data, [user for user in users if user % 2 == side]) for side in (0, 1)]
            self.halves = np.stack([self._bounded_by(each) for each in known])
            fresh = min(self.halves, key=np.trace)
        fell = float(np.trace(self.covariance) - np.trace(fresh))
        if fell <= 0:
            return 0.0
        self.covariance, self.size = fresh, float(np.linalg.eigvalsh(fresh)[-1])
        return fell

    def _bounded_by(self, known: Array) -> Array:
        return symmetric(np.asarray(np.linalg.inv(np.eye(len(known)) / self._kernel.common + (1 - CUT) * known)))

    def _known_exactly(self, data: DataBlocks) -> Array:
        """Returns sum C - C' A^-1 C by one solve for each feature, or a little less by how far these came."""
        kernel, everywhere = self._kernel, Everywhere(self._kernel, data)
        threshold = EXACT * np.sqrt(kernel.ridge / (kernel.common * kernel.n_users)) / float(kernel.shape.max())
        columns = []
        for unit in np.eye(data.width):
            right = everywhere.blocks_times(np.tile(unit, (kernel.n_users, 1)))
            left = right.copy()
            found = everywhere.solve(left, threshold)
            columns.append((right.ravel(), found.ravel(), (right - everywhere.times(found)).ravel(), right.sum(axis=0)))
        c, x, r, total = (np.array(each).T for each in zip(*columns, strict=True))
        return positive(total - symmetric(c.T @ x) - symmetric(x.T @ r) - (r.T @ r) / kernel.ridge)

    def _known_at_least(self, data: DataBlocks, users: list[int]) -> Array:
        """Returns a lower bound of the same: what the mean of some users says, each weighed by their block.

        Its variance is Q^-1 + Q^-1 (sum_uv C_u G_uv C_v) Q^-1, Q = sum C, G = L_rho^-1 >= 0. With p_u = sum_v G_uv over
        these users the middle is at most sum_u p_u C_u^2. Some users are enough: fewer only say less.
        """
        if not users:
            return np.zeros((data.width, data.width))
        blocks = np.array([data.block(user) for user in users])
        total = blocks.sum(axis=0)
        scaled = (np.sqrt(self._sums(users))[:, None, None] * blocks).reshape(-1, data.width)
        # What is cut off only lowers it; directions of rounding would raise it.
        middle = np.linalg.pinv(symmetric(total + scaled.T @ scaled), rcond=CUT, hermitian=True)
        return positive(total @ middle @ total)

    def _sums(self, users: list[int]) -> Array:
        """Returns upper bounds of sum_v G_uv over these users v, for each of them u."""
        kernel = self._kernel
        ones = np.zeros(kernel.n_users)
        ones[users] = 1.0
        precision = sp.diags_array(kernel.diagonal) - kernel.weights
        found = cg(precision, ones, rtol=1e-3, maxiter=MOST_STEPS, M=sp.diags_array(1 / kernel.diagonal))[0]
        short = max(float(np.max((ones - precision @ found) / kernel.shape)), 0.0)
        return np.asarray((found + short * kernel.reach)[users])

    # Saving

    def state(self) -> dict[str, Any]:
        """Returns what `take` makes the same from, to the bit."""
        marks = self._looks.state() | {"next_bound": self._next_bound}
        held = {"covariance": self.covariance, "size": self.size, "halves": self.halves}
        if self._balance.between is not None:
            held |= {"between": self._balance.between}
        if self._proven is not None:
            held |= {"proven": self._proven._asdict()}
        return marks | {"total": self.total} | held

    def take(self, state: dict[str, Any]) -> None:
        """Takes a state, and its arrays."""
        self.total, self.covariance, self.size = state["total"], state["covariance"], state["size"]
        self._looks.take(state)
        self._next_bound = state["next_bound"]
        self.halves, self._balance.between = state["halves"], state.get("between")
        self._proven = Proven(**state["proven"]) if "proven" in state else None


def users_of(data: DataBlocks) -> list[int]:
    """Returns the users with data, those with the most rows first."""
    lengths = data.table.lengths
    users = np.flatnonzero(lengths)
    return [int(user) for user in users[np.argsort(-lengths[users], kind="stable")]]


def positive(matrix: Array) -> Array:
    """Returns the matrix without its negative directions, which are rounding."""
    values, vectors = np.linalg.eigh(symmetric(matrix))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
