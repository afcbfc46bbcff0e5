"""`SparseModel`: the posterior in weight space on a graph of any size, by local solves."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import log
from typing import Any, ClassVar

import numpy as np

from coterie.contracts import Array, Drift, Index
from coterie.errors import FAILURES, DimensionError
from coterie.errors.checks import check_whole, checked_flag, checked_positive
from coterie.graphs import Difference
from coterie.kernels.graph_kernel import GraphKernel
from coterie.kernels.joint import JointKernel
from coterie.models.base import DRIFT_TOLERANCE, CertifiedBelief, SolveProgress
from coterie.models.conditioned import LOG_2PI, ConditionedModel
from coterie.models.engines.sparse.certify import Certifier
from coterie.models.engines.sparse.compiling import load_solvers
from coterie.models.engines.sparse.limits import LIMITS, Limits
from coterie.models.engines.sparse.posterior_weights import SAFETY, PosteriorWeights
from coterie.models.engines.sparse.reward_table import COLUMNS, RewardTable
from coterie.models.engines.sparse.solves import LocalSolve, PosteriorPrecision
from coterie.models.engines.sparse.user_blocks import DataBlocks, MarginalBlocks
from coterie.models.engines.sparse.variance_bounds import VarianceBounds
from coterie.models.history import History
from coterie.models.requirements import require_graph

USERS_A_REWARD = 20  # one reward learned by itself costs as much as this many users in a solve for all of them
HANDFUL, FINER_MEANS, FINER_STDS = 200, 20.0, 100.0  # up to so many users, means and stds are so much more accurate
COARSE = 0.02  # of a row's size, the largest residual that the first pushes of a reward leave
STALE_SHARE = 4.0  # times the accuracy, of the trace


class SparseModel(ConditionedModel):
    """f(u, x) = w_u . features of x, the w_u alike along the graph; nothing of the size users x users is ever made.

    The precision of all weights is A = L_rho (x) I plus one block for each user with data. A reward is one local solve
    z = A^-1 (e_u (x) features): the weights move along z, the residual b - A w is kept exactly however early the solve
    stops, and it is pushed on where it exceeds a threshold, `max_work` at a time; the rest waits for the next reward.
    Among a thousand users or fewer, and where users x ridge is below a thousand, nothing waits that matters: what
    pushes do not settle soon, conjugate gradients do.

    `error_bound` says how far a mean can be from the exact one, and it is true. Once nothing waits it is at most `eps`
    of the user's prior std, but for the hundredth of users with the highest degrees.

    The std is an upper bound: a user's block of A^-1 is computed when they are first decided for, their own rewards are
    taken off it exactly, others' as far as is proven, and it is recomputed when what was left out for want of proof may
    exceed four times the accuracy. What is proven only in part is not counted: until the next recomputation a variance
    may be further above the exact one than a fresh one is.

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

    engine = "sparse"
    can_fit = certifies = follows_graph = has_cheap_means = True
    mismatch_limit = 1e-3  # a file of it has no kernel: only the belief shows whether graph and features are its own
    stages = False
    limits: ClassVar[Limits] = LIMITS
    kernel: GraphKernel
    history: RewardTable
    _grown: GraphKernel | None = None
    _evidence_is_stale: bool

    def __init__(
        self,
        kernel: JointKernel,
        *,
        noise_var: float = 0.01,
        eps: float = 0.1,
        accuracy: float = 0.05,
        max_work: int = 150_000,
        certified: bool = False,
    ) -> None:
        graph = require_graph(kernel)
        load_solvers()  # which says that numba is missing, before anything else can
        super().__init__(graph, noise_var=noise_var)
        self.eps, self.accuracy = checked_positive("eps", eps), checked_positive("accuracy", accuracy)
        check_whole("max_work", max_work)
        self.max_work = int(max_work)
        self.history = RewardTable(graph.n_users, graph.n_arms)
        self.certified = checked_flag("certified", certified)
        self._configure(graph, self.noise_var)
        self._reset()
        self._warm_up()

    # Reading

    def read(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and an upper bound of the std; a block that is missing or stale is computed, and kept."""
        if not self._marginals.is_fresh(user, STALE_SHARE * self._fineness):
            self._marginals.put(user, *self._variance_bounds.marginal(user, self._data))
        return self._read(user, arms, self._marginals.matrix[self._marginals.slot[user]])

    def peek(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std, and keeps nothing."""
        with self._leaving_no_trace():
            return self._read(user, arms, self._block(user))

    def read_means(self, users: Index, arms: Index) -> Array:
        """Returns the means of the same arms for several users, a row each."""
        return np.asarray(self._posterior.weights[users] @ self._rows(arms).T)

    def std_bound(self, user: int, arms: Index) -> Array:
        """Returns an upper bound of the std by one scalar solve and the user's own rewards, where none is kept."""
        place = self._marginals.slot[user]
        block = self._variance_bounds.by_own_data(user, self._data) if place < 0 else self._marginals.matrix[place]
        return self._read(user, arms, block)[1]

    def read_covariance(self, user: int, arms: Index) -> Array:
        """Returns the joint covariance, or rather one that is above it."""
        rows = self._rows(arms)
        with self._leaving_no_trace():
            return np.asarray(rows @ self._block(user) @ rows.T)

    def prior_std(self, user: int, arms: Any = None) -> Array:
        """Returns the std of these arms before any observation, or a little more: by half the accuracy at most."""
        rows = self.checked_arms(arms)
        return np.sqrt(self._variance_bounds.prior_variance(self.checked_user(user)) * self.kernel.arm_diag(rows))

    def error_bound(self, user: int, arms: Any = None) -> Array:
        """Returns how far the mean of each of these arms can be from the exact one, at most. O(users that wait).

        Users are rows of the graph, arms rows of the pool. The exact mean is that of the kernel's features; what these
        miss of the arm kernel, as `describe()` says, comes on top.

        By diagonal dominance of A no weight vector is off by more than reach_u max_v |residual_v| / shape_v.
        """
        row, rows = self.checked_user(user), self.checked_arms(arms)
        reach = self._posterior.residual_bound() * self.kernel.reach[row]
        return np.asarray(reach * np.sqrt(self.kernel.arm_diag(rows)))

    def variance_bounds(self, user: int, arms: Any = None) -> tuple[Array, Array]:
        """Returns a lower and an upper bound of the variance of each of these arms, within the accuracy if work allows.

        Both are of the function, without noise. One solve for each arm of distinct features.
        """
        row, rows = self.checked_user(user), self.checked_arms(arms)
        belief = self.peek(row, rows)
        return self._certifier.variances(row, rows, belief, self.accuracy, self._data, self._posterior)

    def read_certain(self, user: int, arms: Index, factor: float) -> CertifiedBelief:
        """Returns mean and std as `read` does, refined until the highest mean + factor * std is certain, if it can be.

        Certain is what these features' exact belief would choose; `kernel.feature_error` says what they miss.
        """
        return self._certifier.decide(user, arms, self.read(user, arms), factor, self._data, self._posterior)

    def reward_weights(self, user: int, arm: int, users: Index, arms: Index, counts: Array) -> tuple[Array, Array]:
        """Returns the weight of each pair's mean reward in the mean of one pair, and what it were without others' data.

        By one solve for that pair, so within what the solve leaves; nothing is kept.
        """
        row, scaled = self.kernel.features[arm], self._rows(arms) * (counts / self.noise_var)[:, None]
        self._solve(user, row, finer=self.eps)
        places = self._local.place[users]
        found = np.where((places >= 0)[:, None], self._local.solution[places], 0.0)
        alone = row @ self._variance_bounds.by_own_data(user, self._data)
        return np.einsum("ij,ij->i", scaled, found), np.where(users == user, scaled @ alone, 0.0)

    @contextmanager
    def _leaving_no_trace(self) -> Iterator[None]:
        """Evicts users' matrices that are made meanwhile."""
        mark = self._data.mark()
        try:
            yield
        finally:
            self._data.back_to(mark)

    def _rows(self, arms: Index) -> Array:
        return self.kernel.features.take(arms, axis=0)

    def _read(self, user: int, arms: Index, block: Array) -> tuple[Array, Array]:
        rows = self._rows(arms)
        mean, variance = rows @ self._posterior.weights[user], np.einsum("ij,ij->i", rows @ block, rows)
        return np.asarray(mean), np.sqrt(np.maximum(variance, 0.0, out=variance), out=variance)

    def _block(self, user: int) -> Array:
        place = self._marginals.slot[user]
        return self._variance_bounds.marginal(user, self._data)[0] if place < 0 else self._marginals.matrix[place]

    @property
    def info_gain(self) -> float:
        """A lower bound of log det(I + K/noise_var) over all observations. O(rewards) once after a change of edges."""
        self._refresh_evidence()
        return self._info_gain

    @property
    def log_marginal_likelihood(self) -> float:
        """About log p(rewards)."""
        self._refresh_evidence()
        return self._log_likelihood

    def _refresh_evidence(self) -> None:
        if self._evidence_is_stale:
            fresh = self._fresh()
            self._info_gain, self._log_likelihood = fresh._info_gain, fresh._log_likelihood
            self._evidence_is_stale = False

    # Learning

    def learn(self, user: int, arm: int, reward: float) -> None:
        """Learns one reward from values that were checked already; `update` is the safe door."""
        variance, surprise = self._condition_on(user, self.kernel.features[arm], reward, self.noise_var)
        self._info_gain += log(variance / self.noise_var)
        self._log_likelihood -= 0.5 * (surprise * surprise / variance + log(variance) + LOG_2PI)
        self.history.n_observations += 1
        self.history.put(user, arm, 1.0, reward, 0.0)
        self._posterior.repair(self._data, self.max_work)

    def relearn(self, history: History) -> None:
        """Forgets its observations and learns this history instead; on an error nothing has changed."""
        super().relearn(RewardTable.of(history, self.kernel.n_users, self.kernel.n_arms))

    def rebuild(self) -> None:
        """Recomputes the belief, in place: many rows at once, few one by one."""
        whole, self._info_gain, self._log_likelihood = self.history, 0.0, 0.0
        if self._is_worth_a_fit(len(whole)):
            self._reset()
            self._solve_globally(None)
            return
        try:
            self.history = RewardTable(self.kernel.n_users, self.kernel.n_arms)
            self._reset()
            self._learn_rows(whole)
        finally:
            self.history = self._data.table = whole  # the rows are the same ones, and in the same order

    def fit(self, rows: History, progress: SolveProgress | None = None, *, start: Array | None = None) -> int:
        """Learns many rewards at once by one solve for all users, and returns how many steps that took.

        The belief is that of learning them one by one, within `error_bound`. Variances that were kept are recomputed,
        and blocks of users are made, when they are first needed. On an error nothing has changed.

        Args:
            rows: The rewards, collapsed; a `RewardTable` is taken over, if it is the first.
            progress: Called with the number of each step, and how far above what `eps` asks for the residual is.
            start: The weights that the solve starts from, a row for each user; those at hand, unless given.
        """
        shape = self._posterior.weights.shape
        if start is not None and start.shape != shape:
            rule = f"weights have a row for each user and a column for each feature, {shape}"
            raise DimensionError(
                f"the weights to start from have shape {start.shape}", rule, "Solve on the same kernel"
            )
        before = self.__dict__.copy()
        self.history = self.history.joined(rows)
        try:
            return self._solve_globally(progress, start)
        except BaseException:  # whatever it was, an interruption too: the belief that was there comes back
            self.__dict__.update(before)
            raise

    @property
    def solve_threshold(self) -> float:
        """The residual of any user, in units of its shape, at which a solve for all users ends."""
        return SAFETY * self._posterior.threshold

    def new_history(self, users: Any, arms: Any, rewards: Any, weights: Array) -> RewardTable:
        """Returns rewards, each counting as much as its weight, without a Python object for each row."""
        return RewardTable.of_rewards(users, arms, rewards, weights, self.kernel.n_users, self.kernel.n_arms)

    def _is_worth_a_fit(self, n_rows: int) -> bool:
        return n_rows > max(self.limits.fit_rows, self.kernel.n_users / USERS_A_REWARD)

    def history_of(self, columns: dict[str, Any]) -> RewardTable:
        """Returns rewards that were combined by pairs of rows; it takes over the columns."""
        return RewardTable.from_columns(columns, self.kernel.n_users, self.kernel.n_arms)

    def _solve_globally(self, progress: SolveProgress | None, start: Array | None = None) -> int:
        """Solves for the rows that the history holds, by a warm start, and recomputes the evidence."""
        weights = self._posterior.weights if start is None else start
        self._reset()
        self._posterior.weights[:] = weights
        steps = self._posterior.fit(self._data, progress)
        precision = PosteriorPrecision(self.kernel, self._data)
        self._info_gain = precision.info_gain_bound()
        self._log_likelihood = precision.log_likelihood(self._posterior.weights, self._info_gain)
        return steps

    def _learn_batch(self, batch: History) -> None:
        if self._is_worth_a_fit(len(batch)):
            self.fit(batch)
            return
        mark = self.history.mark(batch)
        try:
            self._learn_rows(batch)
        except FAILURES:
            self.history.undo(*mark)
            self.rebuild()
            raise
        self.history.n_observations += batch.n_observations

    def _learn_rows(self, batch: History) -> None:
        columns = batch.state()
        for each in zip(*(columns[name].tolist() for name in COLUMNS), strict=True):
            self._learn_row(*each)

    def _learn_row(self, user: int, arm: int, count: float, mean: float, scatter: float) -> None:
        noise = self.noise_var / count
        log_det, fit = self._condition(np.array([user]), np.array([arm]), np.array([mean]), np.array([noise]))
        # What the mean of so many rewards leaves out of them, as in `ConditionedModel`.
        within = (count - 1) * (LOG_2PI + log(self.noise_var)) + log(count) + scatter / self.noise_var
        self._info_gain += log_det - log(noise)
        self._log_likelihood -= 0.5 * (fit + log_det + LOG_2PI + within)
        self.history.put(user, arm, count, mean, scatter)
        self._posterior.repair(self._data, self.max_work)

    def _condition(self, users: Index, arms: Index, values: Array, noise: Array) -> tuple[float, float]:
        log_det = fit = 0.0
        for user, arm, value, one in zip(users.tolist(), arms.tolist(), values.tolist(), noise.tolist(), strict=True):
            variance, surprise = self._condition_on(user, self.kernel.features[arm], value, one)
            log_det, fit = log_det + float(np.log(variance)), fit + surprise * surprise / variance
        return log_det, fit

    def _condition_on(self, user: int, row: Array, value: float, noise: float) -> tuple[float, float]:
        """Learns one reward; returns a lower bound of its predictive variance, noise included, and its surprise.

        The history does not have it yet, and has to before blocks are made from its rows: `repair` comes after.
        """
        local = self._local
        self._solve(user, row)
        about = float(row @ local.solution[0])
        surprise = value - float(row @ self._posterior.weights[user])
        cross, rest = local.products()
        lowest = noise + max(about + cross, 0.0)
        highest = noise + max(about + cross, 0.0) + rest / self.kernel.ridge
        self._posterior.add(local, surprise / (noise + about))
        self._data.add(user, row, noise)
        self._posterior.deflation.add(user, row, noise)
        local.shrink_marginals(user, self._marginals, lowest, highest)
        self._marginals.condition(user, row, noise)
        return lowest, surprise

    def _solve(self, user: int, row: Array, finer: float = 1.0) -> None:
        """Solves A z = e_u (x) row so far that the nearest are reached; `repair` goes on where it matters."""
        share = min(COARSE, self.kernel.ridge / float(self.kernel.diagonal[user]))
        threshold = finer * share * float(np.linalg.norm(row)) / float(self.kernel.shape[user])
        self._local.start(user, row)
        self._local.run(self._data, threshold, self.max_work)

    def regraph(self, change: Difference) -> bool:
        """Takes newcomers and changed edges: amortised O(1) for each, and the repair; see `GraphKernel.follow`.

        Blocks of covariance stay where edges were only added under the combinatorial Laplacian, which shrinks them;
        otherwise all are recomputed when they are read.
        """
        if self.kernel is not self._grown:  # a kernel of its own, for others may hold the one it was given
            self._grown = self.kernel.growing()
            self._configure(self._grown, self.noise_var)
        growth = self.kernel.follow(change)
        for part in (self.history, self._data, self._marginals, self._local, self._certifier):
            part.lengthen(self.kernel.n_users)
        self._variance_bounds.lengthen(self.kernel.n_users, self._fineness)
        self._posterior.follow(self.kernel, growth, self._data)
        self._data.follow(self.kernel, growth.diagonal)
        if growth.covariance_grows:
            self._marginals.forget()
        self._evidence_is_stale = self._evidence_is_stale or bool(growth.diagonal)
        self._posterior.repair(self._data, self.max_work)
        return True

    # Bookkeeping

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        return self._posterior.nbytes + self._data.nbytes + self._marginals.nbytes + self.history.nbytes

    @property
    def n_waiting(self) -> int:
        """Users whose residual is above the threshold, and waits to be pushed on."""
        return self._posterior.n_waiting

    @property
    def _fineness(self) -> float:
        """The accuracy, or a finer one: a handful of users know much of each other.

        Their stds would be too large by a tenth, and choices the worse.
        """
        return self.accuracy / (FINER_STDS if self.kernel.n_users <= HANDFUL else 1.0)

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        graph = require_graph(kernel)
        super()._configure(graph, noise_var)
        self._local = LocalSolve(graph, (graph.features.shape[1],))
        if graph is not self._grown:
            self._grown = None
        self._variance_bounds = VarianceBounds(graph, self.limits, accuracy=self._fineness, most=self.max_work)
        self._certifier = Certifier(graph, self.limits, most=self.max_work)

    def _detach(self) -> None:
        self._configure(self.kernel, self.noise_var)  # a solve has room of its own; `_reset` makes the rest

    def _reset(self) -> None:
        eps = self.eps / (FINER_MEANS if self.kernel.n_users <= HANDFUL else 1.0)
        self._posterior = PosteriorWeights(self.kernel, eps, self.limits)
        self._data = DataBlocks(self.kernel, self.history, self.noise_var, self.limits)
        self._marginals = MarginalBlocks(self.kernel.n_users, self.kernel.features.shape[1], self.limits)
        self._evidence_is_stale = False

    def _warm_up(self) -> None:
        """Calls every compiled function with nothing to do, so that none is compiled while somebody waits."""
        nothing = np.zeros(self.kernel.features.shape[1])
        self._local.start(0, nothing)
        self._local.run(self._data, 1.0, 1)
        self._variance_bounds.warm_up(self._data)
        self._certifier.warm_up(self._data, self._posterior)
        self._posterior.add(self._local, 0.0)
        self._posterior.warm_up(self._data)
        PosteriorPrecision(self.kernel, self._data).warm_up()
        self._local.shrink_marginals(0, self._marginals, 1.0, 1.0)
        self._marginals.condition(0, nothing, 1.0)

    def _belief(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in ("eps", "accuracy", "max_work", "certified")}
        parts = {"residual": self._posterior.state(), "data": self._data.state(), "marginals": self._marginals.state()}
        grown = (
            {"growth": self.kernel.growth(), "sums_are_old": self._evidence_is_stale} if self.kernel.has_grown else {}
        )
        return options | parts | grown

    def _restored_history(self, state: dict[str, Any], kernel: JointKernel) -> History:
        return RewardTable.from_columns(state, kernel.n_users, require_graph(kernel).n_arms)

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        if "growth" in state and not require_graph(kernel).has_grown:
            kernel = self._grown = require_graph(kernel).growing(state["growth"])
        super()._restore(state, kernel)
        load_solvers()
        self.eps, self.accuracy, self.max_work = state["eps"], state["accuracy"], state["max_work"]
        self.certified = state.get("certified", False)  # files of before know nothing of it
        self._configure(kernel, self.noise_var)
        self._reset()
        self._warm_up()
        self._posterior.take(state["residual"])
        self._data.take(state["data"])
        self._marginals.take(state["marginals"])
        self._evidence_is_stale = state.get("sums_are_old", False)

    def mismatch(self) -> float:
        """Returns how far residual and blocks are from what history and kernel give; 0 up to rounding.

        Upper bounds of covariances are only looked at for what none is: one that is not symmetric, or beyond the prior.
        """
        blocks_times = PosteriorPrecision(self.kernel, self._data).blocks_times
        return max(
            self.kernel.mismatch(),
            self._posterior.mismatch(self._data),
            self._data.mismatch(blocks_times),
            self._marginals.mismatch(2 / self.kernel.ridge),
        )

    def check(self, tolerance: float = DRIFT_TOLERANCE) -> Drift:
        """Returns how far the kept residual and inverses are from recomputed ones, which it takes if beyond that.

        The mean's drift is in units of what `eps` allows, the variance's relative. O(users x features + history).
        """
        fresh = self._posterior.fresh_residual(self._data)
        allowed = self._posterior.threshold * self.eps / self._posterior.eps
        mean = float(np.max(np.abs(fresh - self._posterior.residual), initial=0.0)) / allowed
        variance = self._data.drift()
        sound = max(mean, variance) <= tolerance
        if not sound:
            self._data.renew()
            self._posterior.set_residual(fresh)
            self._posterior.repair(self._data, self.max_work)
        return Drift(mean, variance, tolerance, healed=not sound)

    def describe(self) -> str:
        """Returns in words which engine this is and why, and what it states."""
        return (
            f"{super().describe()} Means are within {self.eps:g} prior stds of the exact ones, but for "
            f"{self.n_waiting} users whose residual waits; {len(self._data)} users have a matrix of their data by now, "
            f"{len(self._marginals)} a variance kept. "
            f"The arms' {self.kernel.features.shape[1]} features miss {self.kernel.feature_error:.2g} of the largest "
            f"prior variance at most."
        )
