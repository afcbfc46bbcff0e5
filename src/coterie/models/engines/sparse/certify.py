"""Choices that are certain: mean and variance of the contenders between two bounds, refined until one of them wins.

With A z = b - r solved only so far, b = e_u (x) row, and R what is left of the weights' own equations, A w = rhs - R:
b' A^-1 b lies between b'z + z'r and that + |r|^2 / ridge, and the mean is b'w + z'R, off by at most sum_v |r_v| reach_v
times the level of R. All errors shrink with r, so a finer solve settles what a coarse one leaves open.
"""

from functools import cached_property
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models.base import CertifiedBelief, Index
from coterie.models.engines.sparse.global_solve import PosteriorPrecision
from coterie.models.engines.sparse.local_solve import LocalSolve
from coterie.models.engines.sparse.posterior_weights import FEW, PosteriorWeights, rounds_among_few
from coterie.models.engines.sparse.user_blocks import NONE, DataBlocks

FIRST_THRESHOLD = 0.02
FINER = 0.25
FINEST = 1e-10
MOST_OPEN = 8
DECISION = 0.5  # of the work of a reward's solve: a decision is waited for
HOPE_AFTER = 0.02
HOPE_FIRST, HOPE_LAST = 0.4, 0.9
ROUNDING = 1e-12
TIE = 1e-9  # scores this close, beside the largest prior std, may be tied


class ArmBounds(NamedTuple):
    """What a solve says of one row: a mean, how far off it is at most, and two bounds of the variance."""

    mean: float
    error: float
    lower: float
    upper: float


class RefinableSolve:
    """One solve A z = e_u (x) row, that can be made finer; among few users all at once, where pushes go round."""

    def __init__(self, push: ModuleType, kernel: GraphKernel) -> None:
        from coterie.algebra.solve_products import read_solution  # only here, for nothing else needs numba

        self._push, self._kernel, self._read_solution = push, kernel, read_solution
        self._work = LocalSolve(kernel, (kernel.features.shape[1],))
        self.start(0, np.zeros(kernel.features.shape[1]))

    def start(self, user: int, row: Array) -> None:
        """Forgets the last solve, and begins one for this user and row."""
        self._user, self._row, self._size = user, row, float(np.linalg.norm(row))
        self._threshold = FIRST_THRESHOLD * self._size / float(self._kernel.shape[user])
        self._whole: tuple[Array, Array] | None = None
        self._begun = False
        self._most = rounds_among_few(self._kernel) if self._kernel.n_users <= FEW else None
        self._work.start(user, row)

    def lengthen(self, n_users: int) -> None:
        """Makes room for newcomers; the last solve is over."""
        self._work.lengthen(n_users)

    @property
    def finished(self) -> bool:
        """Whether a finer solve would say no more."""
        least = FINEST * self._size / float(self._kernel.shape[self._user])
        return self._whole is not None or self._threshold <= least  # a row of zeros is, at once

    def refine(self, data: DataBlocks, most: int) -> int:
        """Solves further, with so much work at most, and returns the work done."""
        before, allowed = self._work.work, most if self._most is None else min(most, self._most)
        if self._begun:
            self._threshold *= FINER
            self._work.resume(self._threshold)
        self._begun = True
        settled = self._work.run(self._push.push_local, data, self._threshold, before + allowed)
        if self._most is not None and (not settled or self._work.work > self._most):
            self._solve_everywhere(data)
        return self._work.work - before

    def _solve_everywhere(self, data: DataBlocks) -> None:
        right, everywhere = np.zeros((self._kernel.n_users, len(self._row))), PosteriorPrecision(self._kernel, data)
        right[self._user] = self._row
        found = everywhere.solve(right.copy(), FINEST * self._size)
        self._whole = found, right - everywhere.times(found)

    def read(self, residual: PosteriorWeights) -> ArmBounds:
        """Returns what is known of the row by now."""
        work, ridge = self._work, self._kernel.ridge
        nodes, count, solution, left = work.nodes, work.count, work.solution, work.residual
        own = solution[0]
        if self._whole is not None:
            solution, left = self._whole
            nodes, count, own = np.arange(len(left)), len(left), solution[self._user]
        held = residual.left, self._kernel.reach
        cross, rest, shift, mass = self._read_solution(nodes, count, solution, left, *held)
        about = float(self._row @ own) + cross
        slack = ROUNDING * self._size**2 / ridge
        mean = float(self._row @ residual.weights[self._user]) + shift
        error = mass * residual.level() + float(self._kernel.reach[self._user]) * self._size * residual.rounding
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
        push: The compiled functions.
        kernel: The graph, and the arms' features.
        most: The work of one solve, at most; a decision has half of it for all its solves.
    """

    def __init__(self, push: ModuleType, kernel: GraphKernel, *, most: int) -> None:
        self._push, self._kernel = push, kernel
        self._most = max(int(DECISION * most), 1)
        self._contenders = [RefinableSolve(push, kernel)]
        self._margin = TIE * float(np.sqrt(kernel.arm_diag(np.arange(kernel.n_arms)).max() / kernel.ridge))

    @cached_property
    def _kind(self) -> NDArray[np.int64]:
        """Which arms have the same features; made when it is first asked for, since sorting many arms takes a while."""
        return np.unique(self._kernel.features, axis=0, return_inverse=True)[1].ravel()

    def lengthen(self, n_users: int) -> None:
        """Makes room for newcomers."""
        for contender in self._contenders:
            contender.lengthen(n_users)

    def warm_up(self, data: DataBlocks, residual: PosteriorWeights) -> None:
        """Calls what is compiled with nothing to do."""
        self._contenders[0].refine(data, 1)
        self._contenders[0].read(residual)

    def decide(
        self,
        user: int,
        arms: Index,
        belief: tuple[Array, Array],
        factor: float,
        data: DataBlocks,
        residual: PosteriorWeights,
    ) -> CertifiedBelief:
        """Returns mean and std of these arms, so fine that the highest mean + factor * std is certain, if that can be.

        Args:
            user: The user.
            arms: The candidates. Those with the same features are one contender.
            belief: The mean, and an upper bound of the std, of each.
            factor: How wide to explore.
            data: The users' data.
            residual: Weights and residual.
        """
        known = self._first(user, arms, belief, factor, data, residual)
        kinds, open_, spent = self._kind[arms], dict[int, RefinableSolve](), 0
        while True:
            best, rival = _first_two(known, kinds)
            if rival is None or known.low[best] > known.high[rival] + self._gap(known.high[rival]):
                return CertifiedBelief(known.mean, known.highest, certain=True)
            chosen = self._to_refine(known, (best, rival), kinds, open_)
            if chosen is None or spent >= self._most or self._is_hopeless(known, best, rival, spent):
                return CertifiedBelief(known.mean, known.highest, certain=False)
            contender = self._opened(user, arms, chosen, kinds, open_, known)
            spent += contender.refine(data, self._most - spent)
            known.narrow(np.flatnonzero(kinds == kinds[chosen]), contender.read(residual))

    def variances(
        self,
        user: int,
        arms: Index,
        belief: tuple[Array, Array],
        accuracy: float,
        data: DataBlocks,
        residual: PosteriorWeights,
    ) -> tuple[Array, Array]:
        """Returns two bounds of the variance of each arm, within the accuracy as far as the work allowed for one."""
        known = self._first(user, arms, belief, 0.0, data, residual)
        kinds, contender = self._kind[arms], self._contenders[0]
        for kind in np.unique(kinds):
            which, spent = np.flatnonzero(kinds == kind), 0
            contender.start(user, self._kernel.features[arms[which[0]]])
            while _apart(known, which[0]) > accuracy and spent < self._most and not contender.finished:
                spent += contender.refine(data, self._most - spent)
                known.narrow(which, contender.read(residual))
        return known.lowest**2, known.highest**2

    def _gap(self, score: float) -> float:
        return self._margin + ROUNDING * abs(score)

    def _is_hopeless(self, known: ScoreIntervals, best: int, rival: int, spent: int) -> bool:
        """Whether the work that is left cannot be hoped to tell the two apart.

        Beyond a few hundredths of the work intervals shrink to about half: the mean's error falls with the part of the
        solve that has not come to rest, and that fades slowly. Among few users a solve ends, so there is always hope.
        """
        share = spent / self._most
        if self._kernel.n_users <= FEW or share < HOPE_AFTER:
            return False
        middles = (known.low + known.high) / 2
        halves = (known.high - known.low) / 2
        needed = HOPE_FIRST + share * (HOPE_LAST - HOPE_FIRST)
        return bool(middles[best] - middles[rival] < needed * (halves[best] + halves[rival]))

    def _first(
        self,
        user: int,
        arms: Index,
        belief: tuple[Array, Array],
        factor: float,
        data: DataBlocks,
        residual: PosteriorWeights,
    ) -> ScoreIntervals:
        """Returns what is known without a solve. A variance is no lower than if everything of others were known."""
        squares = self._kernel.arm_diag(arms)
        error = residual.level() * self._kernel.reach[user] * np.sqrt(squares)
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
        """Returns the solve of a candidate, begun if there is none; where all are taken, that of the least likely."""
        kind = int(kinds[chosen])
        if kind not in open_:
            open_[kind] = self._free(open_, kinds, known)
            open_[kind].start(user, self._kernel.features[arms[chosen]])
        return open_[kind]

    def _free(self, open_: dict[int, RefinableSolve], kinds: Index, known: ScoreIntervals) -> RefinableSolve:
        if len(open_) < len(self._contenders):
            taken = {id(each) for each in open_.values()}
            return next(each for each in self._contenders if id(each) not in taken)
        if len(self._contenders) < MOST_OPEN:
            self._contenders.append(RefinableSolve(self._push, self._kernel))
            return self._contenders[-1]
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
