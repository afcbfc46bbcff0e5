"""Certified choices: the bounds of the best candidates are refined until one of them is proven to score highest.

With A z = b - r solved only so far, b = e_u (x) row, and R the residual of the weights' own equations, A w = rhs - R:
b' A^-1 b lies between b'z + z'r and that + |r|^2 / ridge, and the mean is b'w + z'R, off by at most sum_v |r_v| reach_v
times the bound of R. All errors shrink with r, so a finer solve settles what a coarse one leaves open.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array, Index
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models.base import CertifiedBelief
from coterie.models.engines.sparse.compiling import load_solvers
from coterie.models.engines.sparse.limits import LIMITS, Limits
from coterie.models.engines.sparse.posterior_weights import PosteriorWeights, work_before_global_solve
from coterie.models.engines.sparse.solves import LocalSolve, PosteriorPrecision
from coterie.models.engines.sparse.user_blocks import NONE, DataBlocks

FIRST_THRESHOLD = 0.02
FINER = 0.25
FINEST = 1e-10
ROUNDING = 1e-12
DECISION = 0.5  # of the work of a reward's solve: a decision is waited for
STOP_AFTER = 0.02
STOP_FIRST, STOP_LAST = 0.4, 0.9
TIE = 1e-9  # scores this close, beside the largest prior std, may be tied


class ArmBounds(NamedTuple):
    """Bounds of one arm by a solve: a mean, its error bound, and two bounds of the variance."""

    mean: float
    error: float
    lower: float
    upper: float


class RefinableSolve:
    """One solve A z = e_u (x) row, that can be made finer; among few users all at once, where pushes go round."""

    def __init__(self, kernel: GraphKernel, limits: Limits = LIMITS) -> None:
        self._kernel, self._read_solution = kernel, load_solvers().read_solution
        self._limits = limits
        self._local = LocalSolve(kernel, (kernel.features.shape[1],))
        self.start(0, np.zeros(kernel.features.shape[1]))

    def start(self, user: int, row: Array) -> None:
        """Forgets the last solve, and begins one for this user and row."""
        self._user, self._row, self._size = user, row, float(np.linalg.norm(row))
        self._threshold = FIRST_THRESHOLD * self._size / float(self._kernel.shape[user])
        self._whole: tuple[Array, Array] | None = None
        self._is_started = False
        few = self._kernel.n_users <= self._limits.few_users
        self._most_pushes = work_before_global_solve(self._kernel) if few else None
        self._local.start(user, row)

    def lengthen(self, n_users: int) -> None:
        """Makes room for newcomers; the last solve is over."""
        self._local.lengthen(n_users)

    @property
    def finished(self) -> bool:
        """Whether a finer solve would say no more."""
        least = FINEST * self._size / float(self._kernel.shape[self._user])
        return self._whole is not None or self._threshold <= least  # a row of zeros is, at once

    def refine(self, data: DataBlocks, most: int) -> int:
        """Solves further, with so much work at most, and returns the work done."""
        before, allowed = self._local.work, most if self._most_pushes is None else min(most, self._most_pushes)
        if self._is_started:
            self._threshold *= FINER
            self._local.resume(self._threshold)
        self._is_started = True
        converged = self._local.run(data, self._threshold, before + allowed)
        if self._most_pushes is not None and (not converged or self._local.work > self._most_pushes):
            self._solve_globally(data)
        return self._local.work - before

    def _solve_globally(self, data: DataBlocks) -> None:
        right, precision = np.zeros((self._kernel.n_users, len(self._row))), PosteriorPrecision(self._kernel, data)
        right[self._user] = self._row
        found = precision.solve(right.copy(), FINEST * self._size)
        self._whole = found, right - precision.times(found)

    def read(self, posterior: PosteriorWeights) -> ArmBounds:
        """Returns what is known of the row by now."""
        work, ridge = self._local, self._kernel.ridge
        nodes, count, solution, residual = work.nodes, work.count, work.solution, work.residual
        own = solution[0]
        if self._whole is not None:
            solution, residual = self._whole
            nodes, count, own = np.arange(len(residual)), len(residual), solution[self._user]
        held = posterior.residual, self._kernel.reach
        cross, rest, shift, mass = self._read_solution(nodes, count, solution, residual, *held)
        about = float(self._row @ own) + cross
        slack = ROUNDING * self._size**2 / ridge
        mean = float(self._row @ posterior.weights[self._user]) + shift
        rounding = float(self._kernel.reach[self._user]) * self._size * posterior.rounding
        error = mass * posterior.residual_bound() + rounding
        return ArmBounds(mean, error + ROUNDING * abs(mean), max(about - slack, 0.0), about + rest / ridge + slack)


class ScoreIntervals:
    """Means and stds of candidates between two bounds, and the scores mean + factor * std that follow."""

    def __init__(self, mean: Array, error: Array, lowest: Array, highest: Array, factor: float) -> None:
        self.mean, self.error, self.lowest, self.highest, self.factor = mean, error, lowest, highest, factor
        self.low, self.high = np.empty_like(mean), np.empty_like(mean)
        self._rescore(slice(None))

    def narrow(self, which: Index, found: ArmBounds) -> None:
        """Takes what a solve says of these candidates, who are one and the same to it."""
        low = np.maximum(self.mean[which] - self.error[which], found.mean - found.error)
        high = np.minimum(self.mean[which] + self.error[which], found.mean + found.error)
        self.mean[which], self.error[which] = (low + high) / 2, np.maximum(high - low, 0.0) / 2
        self.lowest[which] = np.maximum(self.lowest[which], found.lower**0.5)
        self.highest[which] = np.minimum(self.highest[which], found.upper**0.5)
        self._rescore(which)

    def _rescore(self, which: Index | slice) -> None:
        self.low[which] = self.mean[which] - self.error[which] + self.factor * self.lowest[which]
        self.high[which] = self.mean[which] + self.error[which] + self.factor * self.highest[which]


class Certifier:
    """Finds the best of some candidates, and says whether it is proven to be.

    Args:
        kernel: The graph, and the arms' features.
        limits: How many solves are kept, and among how many users they are global.
        most: The work of one solve, at most; a decision has half of it for all its solves.
    """

    def __init__(self, kernel: GraphKernel, limits: Limits, *, most: int) -> None:
        self._kernel, self._limits = kernel, limits
        self._most = max(int(DECISION * most), 1)
        self._solves = [RefinableSolve(kernel, limits)]
        self._margin = TIE * float(np.sqrt(kernel.arm_diag(np.arange(kernel.n_arms)).max() / kernel.ridge))

    @cached_property
    def _kind(self) -> NDArray[np.int64]:
        """Which arms have the same features; made when it is first asked for, since sorting many arms takes a while."""
        return np.unique(self._kernel.features, axis=0, return_inverse=True)[1].ravel()

    def lengthen(self, n_users: int) -> None:
        """Makes room for newcomers."""
        for solve in self._solves:
            solve.lengthen(n_users)

    def warm_up(self, data: DataBlocks, posterior: PosteriorWeights) -> None:
        """Calls what is compiled with nothing to do."""
        self._solves[0].refine(data, 1)
        self._solves[0].read(posterior)

    def decide(
        self,
        user: int,
        arms: Index,
        belief: tuple[Array, Array],
        factor: float,
        data: DataBlocks,
        posterior: PosteriorWeights,
    ) -> CertifiedBelief:
        """Returns mean and std of these arms, so fine that the highest mean + factor * std is certain, if that can be.

        Args:
            user: The user.
            arms: The candidates. Those with the same features are one contender.
            belief: The mean, and an upper bound of the std, of each.
            factor: How wide to explore.
            data: The users' data.
            posterior: The weights and their residual.
        """
        known = self._first(user, arms, belief, factor, data, posterior)
        kinds, open_, spent = self._kind[arms], dict[int, RefinableSolve](), 0
        while True:
            best, rival = _first_two(known, kinds)
            if rival is None or known.low[best] > known.high[rival] + self._gap(known.high[rival]):
                return CertifiedBelief(known.mean, known.highest, certain=True)
            chosen = self._to_refine(known, (best, rival), kinds, open_)
            if chosen is None or spent >= self._most or self._stops_early(known, best, rival, spent):
                return CertifiedBelief(known.mean, known.highest, certain=False)
            solve = self._opened(user, arms, chosen, kinds, open_, known)
            spent += solve.refine(data, self._most - spent)
            known.narrow(np.flatnonzero(kinds == kinds[chosen]), solve.read(posterior))

    def variances(
        self,
        user: int,
        arms: Index,
        belief: tuple[Array, Array],
        accuracy: float,
        data: DataBlocks,
        posterior: PosteriorWeights,
    ) -> tuple[Array, Array]:
        """Returns two bounds of the variance of each arm, within the accuracy as far as the work allowed for one."""
        known = self._first(user, arms, belief, 0.0, data, posterior)
        kinds, solve = self._kind[arms], self._solves[0]
        for kind in np.unique(kinds):
            which, spent = np.flatnonzero(kinds == kind), 0
            solve.start(user, self._kernel.features[arms[which[0]]])
            while _apart(known, which[0]) > accuracy and spent < self._most and not solve.finished:
                spent += solve.refine(data, self._most - spent)
                known.narrow(which, solve.read(posterior))
        return known.lowest**2, known.highest**2

    def _gap(self, score: float) -> float:
        return self._margin + ROUNDING * abs(score)

    def _stops_early(self, known: ScoreIntervals, best: int, rival: int, spent: int) -> bool:
        """Whether the work that is left will probably not tell the two apart.

        Beyond a few hundredths of the work intervals shrink to about half: the mean's error falls with the part of the
        solve that has not converged, and that fades slowly. Among few users a solve converges, so it goes on.
        """
        share = spent / self._most
        if self._kernel.n_users <= self._limits.few_users or share < STOP_AFTER:
            return False
        middles = (known.low + known.high) / 2
        halves = (known.high - known.low) / 2
        needed = STOP_FIRST + share * (STOP_LAST - STOP_FIRST)
        return bool(middles[best] - middles[rival] < needed * (halves[best] + halves[rival]))

    def _first(
        self,
        user: int,
        arms: Index,
        belief: tuple[Array, Array],
        factor: float,
        data: DataBlocks,
        posterior: PosteriorWeights,
    ) -> ScoreIntervals:
        """Returns what is known without a solve. A variance is no lower than if everything of others were known."""
        squares = self._kernel.arm_diag(arms)
        error = posterior.residual_bound() * self._kernel.reach[user] * np.sqrt(squares)
        lowest = squares / self._kernel.diagonal[user]
        if data.slot[user] != NONE:
            rows = self._kernel.features.take(arms, axis=0)
            lowest = np.einsum("ij,ij->i", rows @ data.inverse_of(user), rows)
        slack = ROUNDING * squares / self._kernel.ridge
        highest = np.sqrt(belief[1] ** 2 + slack)
        return ScoreIntervals(belief[0], error, np.sqrt(np.maximum(lowest - slack, 0.0)), highest, factor)

    def _to_refine(
        self, known: ScoreIntervals, pair: tuple[int, int], kinds: Index, open_: dict[int, RefinableSolve]
    ) -> int | None:
        """Returns the one of the two that less is known of, if a solve can say more of it."""
        able = [each for each in pair if kinds[each] not in open_ or not open_[kinds[each]].finished]
        return max(able, key=lambda each: known.high[each] - known.low[each]) if able else None

    def _opened(
        self, user: int, arms: Index, chosen: int, kinds: Index, open_: dict[int, RefinableSolve], known: ScoreIntervals
    ) -> RefinableSolve:
        """Returns the solve of a candidate, started if there is none; where all are taken, that of the least likely."""
        kind = int(kinds[chosen])
        if kind not in open_:
            open_[kind] = self._free(open_, kinds, known)
            open_[kind].start(user, self._kernel.features[arms[chosen]])
        return open_[kind]

    def _free(self, open_: dict[int, RefinableSolve], kinds: Index, known: ScoreIntervals) -> RefinableSolve:
        if len(open_) < len(self._solves):
            taken = {id(each) for each in open_.values()}
            return next(each for each in self._solves if id(each) not in taken)
        if len(self._solves) < self._limits.open_solves:
            self._solves.append(RefinableSolve(self._kernel, self._limits))
            return self._solves[-1]
        return open_.pop(min(open_, key=lambda kind: known.high[kinds == kind].max()))


def _first_two(known: ScoreIntervals, kinds: Index) -> tuple[int, int | None]:
    """Returns the candidate with the highest proven score, and the other kind that may score highest, if any."""
    best = int(np.argmax(known.low))
    others = np.where(kinds == kinds[best], -np.inf, known.high)
    rival = int(np.argmax(others))
    return best, None if kinds[rival] == kinds[best] else rival


def _apart(known: ScoreIntervals, which: int) -> float:
    """Returns how far apart the two bounds of a variance are, as a share of the upper one."""
    lower, upper = float(known.lowest[which]) ** 2, float(known.highest[which]) ** 2
    return (upper - lower) / upper if upper > 0 else 0.0
