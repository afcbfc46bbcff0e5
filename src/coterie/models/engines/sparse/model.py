"""`SparseModel`: the belief in weight space on a graph of any size, by local solves."""

from math import log
from typing import Any

import numpy as np

from coterie.contracts import Array, Drift
from coterie.errors import FAILURES
from coterie.graphs import Difference
from coterie.models.base import DRIFT_TOLERANCE, Index
from coterie.models.conditioned import LOG_2PI
from coterie.models.engines.sparse.batch import joined, least_gain, likelihood, scattered
from coterie.models.engines.sparse.global_solve import PosteriorPrecision, Progress
from coterie.models.engines.sparse.matching import mismatch_of
from coterie.models.engines.sparse.reading import Reading
from coterie.models.engines.sparse.reward_table import COLUMNS, RewardTable
from coterie.models.history import History

FEWEST, USERS_A_REWARD = 1000, 20  # a solve for all users takes as long as this many rewards of theirs one by one


class SparseModel(Reading):
    """f(u, x) = w_u . features of x, the w_u alike along the graph; nothing of the size users x users is ever made.

    The precision of all weights is A = L_rho (x) I plus one block for each user with data. A reward is one local solve
    z = A^-1 (e_u (x) features): the weights move along z, the residual b - A w is kept exactly however early the solve
    stops, and it is pushed on where it exceeds a threshold, `max_work` at a time; the rest waits for the next reward.
    Among a thousand users or fewer, and where users x ridge is below a thousand, nothing waits that matters: what
    pushes do not settle soon, conjugate gradients do.

    `error_bound` says how far a mean can be from the exact one, and it is true. Once nothing waits it is at most `eps`
    of the user's prior std, but for the hundredth of users with the highest degrees.

    The std is an upper bound: a user's block of A^-1 is computed when they are first decided for, their own rewards are
    taken off it exactly, others' as far as is proven, and it is computed anew when these may have taken off four
    times the accuracy.

    `info_gain` is a lower bound; `log_marginal_likelihood` comes from the same truncated solves: it is approximate, and
    no bound is stated. `max_variance` is an upper bound, that of a user without edges.

    Args:
        kernel: A GraphKernel.
        noise_var: The noise variance of the rewards.
        eps: How far a mean may be from the exact one, in units of the user's prior std; see above for hubs.
        accuracy: How far a fresh variance may be above the exact one, as a share of it, or three times
            that where others' data seem to matter little; among 200 users or fewer a hundredth of that.
        max_work: The work of one solve, at most: pushes, and edges they go along.
        certified: Whether policies refine the belief of contenders until their choice is certain, as far as half
            of `max_work` reaches. What is left open is mostly the mean's error: a smaller `eps` settles more.
    """

    # Learning

    def learn(self, user: int, arm: Any, reward: float) -> None:
        """Learns one reward from values that were checked already; `update` is the safe door."""
        super().learn(user, arm, reward)
        self._posterior.repair(self._data, self.max_work)

    def relearn(self, history: History) -> None:
        """Forgets what it knows and learns this history instead; on an error nothing has changed."""
        super().relearn(RewardTable.of(history, self.kernel.n_users, self.kernel.n_arms))

    def rebuild(self) -> None:
        """Computes the belief anew, in place: many rows at once, few one by one."""
        whole, self._info_gain, self._log_likelihood = self.history, 0.0, 0.0
        if self._is_worth_a_fit(len(whole)):
            self._reset()
            self._settle(None)
            return
        try:
            self.history = RewardTable(self.kernel.n_users, self.kernel.n_arms)
            self._reset()
            self._learn_rows(whole)
        finally:
            self.history = self._data.table = whole  # the rows are the same ones, and in the same order

    def fit(self, rows: History, progress: Progress | None = None) -> int:
        """Learns many rewards at once by one solve for all users, and returns how many steps that took.

        The belief is that of learning them one by one, within `error_bound`. Variances that were kept are computed
        anew, and blocks of users are made, when they are first needed. On an error nothing has changed.

        Args:
            rows: The rewards, collapsed; a `RewardTable` is taken over, if it is the first.
            progress: Called with the number of each step, and how far above what `eps` asks for the residual is.
        """
        before = self.__dict__.copy()
        self.history = joined(self.history, rows, self.kernel.n_users, self.kernel.n_arms)
        try:
            return self._settle(progress)
        except BaseException:  # whatever it was, an interruption too: the belief that was there comes back
            self.__dict__.update(before)
            raise

    def _is_worth_a_fit(self, n_rows: int) -> bool:
        return n_rows > max(FEWEST, self.kernel.n_users / USERS_A_REWARD)

    def _settle(self, progress: Progress | None) -> int:
        """Solves for the rows that the history holds, from the weights at hand, and takes the evidence anew."""
        weights = self._posterior.weights
        self._reset()
        self._posterior.weights[:] = weights
        steps = self._posterior.fit(self._data, progress)
        self._info_gain = least_gain(self.kernel, self.history, self._noise_var)
        self._log_likelihood = likelihood(self.kernel, self._data, self._posterior, self._info_gain)
        return steps

    def _learn_batch(self, batch: History) -> None:
        if self._is_worth_a_fit(len(batch)):
            self.fit(batch)
            return
        before, mark = [], (len(self.history), self.history.n_observations)
        for user, arm in zip(batch.user_array().tolist(), batch.arm_array().tolist(), strict=True):
            row = self.history.place(user, arm)
            before += [(row, *self.history.row(row))] if row >= 0 else []
        try:
            self._learn_rows(batch)
        except FAILURES:
            self.history.undo(*mark, before)
            self.rebuild()
            raise
        self.history.n_observations += batch.n_observations

    def _learn_rows(self, batch: History) -> None:
        columns = batch.state()
        for each in zip(*(columns[name].tolist() for name in COLUMNS), strict=True):
            self._learn_row(*each)

    def _learn_row(self, user: int, arm: int, count: float, mean: float, scatter: float) -> None:
        noise = self._noise_var / count
        log_det, fit = self._condition(np.array([user]), np.array([arm]), np.array([mean]), np.array([noise]))
        self._info_gain += log_det - log(noise)
        self._log_likelihood -= 0.5 * (fit + log_det + LOG_2PI + scattered(count, scatter, self._noise_var))
        self.history.put(user, arm, count, mean, scatter)
        self._posterior.repair(self._data, self.max_work)

    def _condition_one(self, user: int, arm: int, reward: float) -> tuple[float, float]:
        return self._reward(user, self.kernel.features[arm], reward, self._noise_var)

    def _condition(self, users: Index, arms: Index, values: Array, noise: Array) -> tuple[float, float]:
        log_det = fit = 0.0
        for user, arm, value, one in zip(users.tolist(), arms.tolist(), values.tolist(), noise.tolist(), strict=True):
            variance, gap = self._reward(user, self.kernel.features[arm], value, one)
            log_det, fit = log_det + float(np.log(variance)), fit + gap * gap / variance
        return log_det, fit

    def _reward(self, user: int, row: Array, value: float, noise: float) -> tuple[float, float]:
        """Learns one reward; returns a lower bound of its predictive variance, noise included, and its surprise.

        The history does not have it yet, and has to before blocks are made from its rows: `repair` comes after.
        """
        work, ridge = self._work, self.kernel.ridge
        self._solve(user, row)
        about = float(row @ work.solution[0])
        gap = value - float(row @ self._posterior.weights[user])
        cross, rest = work.products()
        lowest = noise + max(about + cross, 0.0)
        highest = noise + max(about + cross, 0.0) + rest / ridge
        self._posterior.add(work, gap / (noise + about))
        self._data.add(user, row, noise)
        self._posterior.deflation.add(user, row, noise)
        self._shrink(user, row, noise, lowest, highest)
        return lowest, gap

    def _shrink(self, user: int, row: Array, noise: float, lowest: float, highest: float) -> None:
        work, cached = self._work, self._marginals
        self._push.shrink_marginals(
            work.nodes,
            work.count,
            work.solution,
            self.kernel.reach,
            cached.slot,
            cached.matrix,
            cached.stale,
            work.level(),
            lowest,
            highest,
            user,
        )
        cached.condition(user, row, noise)

    # A graph that changes

    def regraph(self, change: Difference) -> bool:
        """Takes newcomers and changed edges: amortised O(1) for each, and the repair; see `GraphKernel.follow`.

        Blocks of covariance stay where edges were only added under the combinatorial Laplacian, which shrinks them;
        otherwise all are computed anew when they are read.
        """
        if self.kernel is not self._grown:  # a kernel of its own, for others may hold the one it was given
            self._grown = self.kernel.growing()
            self._configure(self._grown, self._noise_var)
        growth = self.kernel.follow(change)
        self._lengthen(self.kernel.n_users)
        self._posterior.follow(self.kernel, growth, self._data)
        self._data.follow(self.kernel, growth.diagonal)
        if growth.covariance_grows:
            self._marginals.forget()
        self._sums_are_old = self._sums_are_old or bool(growth.diagonal)
        self._posterior.repair(self._data, self.max_work)
        return True

    def _lengthen(self, n_users: int) -> None:
        for part in (self.history, self._data, self._marginals, self._work, self._certifier):
            part.lengthen(n_users)
        self._variance_bounds.lengthen(n_users, self._fineness)

    # Bookkeeping

    def _warm_up(self) -> None:
        """Calls every compiled function with nothing to do, so that none is compiled while somebody waits."""
        nothing = np.zeros(self.kernel.features.shape[1])
        self._work.start(0, nothing)
        self._work.run(self._push.push_local, self._data, 1.0, 1)
        self._variance_bounds.warm_up(self._data)
        self._certifier.warm_up(self._data, self._posterior)
        self._posterior.add(self._work, 0.0)
        self._posterior.warm_up(self._data)
        PosteriorPrecision(self.kernel, self._data).warm_up()
        self._shrink(0, nothing, 1.0, 1.0, 1.0)

    def mismatch(self) -> float:
        """Returns how far residual and blocks are from what history and kernel give; 0 up to rounding.

        VarianceBounds of variances are only looked at for what no covariance is.
        """
        return max(self.kernel.mismatch(), mismatch_of(self.kernel, self._data, self._posterior, self._marginals))

    def _mismatch(self) -> float:
        return self.mismatch()

    def check(self, tolerance: float = DRIFT_TOLERANCE) -> Drift:
        """Returns how far the kept residual and inverses are from ones computed anew, which it takes if beyond that.

        The mean's drift is in units of what `eps` allows, the variance's relative. O(users x features + history).
        """
        fresh = self._posterior.recomputed(self._data)
        allowed = self._posterior.threshold * self.eps / self._posterior.eps
        mean = float(np.max(np.abs(fresh - self._posterior.left), initial=0.0)) / allowed
        variance = self._data.drift()
        sound = max(mean, variance) <= tolerance
        if not sound:
            self._data.renew()
            self._posterior.take_residual(fresh)
            self._posterior.repair(self._data, self.max_work)
        return Drift(mean, variance, tolerance, healed=not sound)

    def explain(self) -> str:
        """Returns in words which engine this is and why, and what it states."""
        return (
            f"{super().explain()} Means are within {self.eps:g} prior stds of the exact ones, but for {self.n_waiting} "
            f"users whose residual waits; {len(self._data)} users have a matrix of their data by now, "
            f"{len(self._marginals)} a variance kept. "
            f"The arms' {self.kernel.features.shape[1]} features miss {self.kernel.feature_error:.2g} of the largest "
            f"prior variance at most."
        )
