"""The contract of every model, and the checks at its doors."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import inf, log1p
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from coterie.contracts import Array, Drift, Index
from coterie.errors import FAILURES, DimensionError, NumericalError
from coterie.errors.checks import check_ratio, checked_noise_var, checked_reward
from coterie.errors.renamed import warn_renamed
from coterie.graphs import Difference
from coterie.kernels.joint import JointKernel
from coterie.kernels.links import Link
from coterie.models.history import History

SolveProgress = Callable[[int, float], None]  # the number of a step, and how far above the threshold the residual is

DRIFT_TOLERANCE = 1e-8
SAME, EPS = 1e-7, 2.3e-16


class Replica(Protocol):
    """Makes a model without observations, of the engine and options of another."""

    def __call__(self, kernel: JointKernel, *, noise_var: float) -> "Model":
        """Returns it."""
        ...


class CertifiedBelief(NamedTuple):
    """Mean and an upper bound of the std of each candidate, and whether the highest score is proven to be so."""

    mean: Array
    std: Array
    certain: bool


class Model(ABC):
    """A belief over users x arms: mean, variance and covariance of the reward function.

    Users are integers 0 to n_users - 1; arms are rows of the pool, or vectors where the kernel has no pool. `predict`
    and `update` check what they are given; `read` and `learn` trust it.

    Attributes:
        can_fit: Whether `fit` learns many rewards by one solve.
        certifies: Whether `read_certain` can prove which candidate scores highest.
        follows_graph: Whether `regraph` takes every change of the graph that is one of edits.
        has_cheap_means: Whether `read_means` of many users costs far less than their stds.
        kernel: The prior covariance; `retune` changes it.
        noise_var: The noise variance, the lambda of the paper; `set_noise_var` changes it.
        history: The observations.
        reason: Why this engine was taken, in words.
    """

    can_fit: ClassVar[bool] = False
    certifies: ClassVar[bool] = False
    follows_graph: ClassVar[bool] = False
    has_cheap_means: ClassVar[bool] = False
    engine: ClassVar[str]
    mismatch_limit: ClassVar[float] = inf  # of a belief, relative: one that is farther off belongs to another kernel

    def __init__(self, kernel: JointKernel, *, noise_var: float = 0.01) -> None:
        self.kernel = kernel
        self.history = History()
        self.reason = "asked for by name"
        self.noise_var = checked_noise_var(noise_var)
        check_ratio(self.max_variance, self.noise_var)

    @property
    @abstractmethod
    def info_gain(self) -> float:
        """Log det(I + K/noise_var) over all observations, the gamma_t of the paper."""

    @property
    @abstractmethod
    def log_marginal_likelihood(self) -> float:
        """Log p(rewards) under the prior and Gaussian noise."""

    @abstractmethod
    def read(self, user: int, arms: Any) -> tuple[Array, Array]:
        """Returns mean and std for a user and arms that were checked already."""

    def peek(self, user: int, arms: Any) -> tuple[Array, Array]:
        """Returns mean and std as `read` does, and leaves no trace: what is learned next is the same to the bit."""
        return self.read(user, arms)

    def read_many(self, users: Index, arms: Any) -> tuple[Array, Array]:
        """Returns mean and std of the same arms for several users, a row each, to the bit as `read` does."""
        both = [self.read(user, arms) for user in users.tolist()]
        return np.array([mean for mean, _ in both]), np.array([std for _, std in both])

    def read_means(self, users: Index, arms: Any) -> Array:
        """Returns the means of the same arms for several users, a row each, and leaves no trace."""
        return np.array([self.peek(user, arms)[0] for user in users.tolist()])

    def std_bound(self, user: int, arms: Any) -> Array:
        """Returns an upper bound of the std, where an engine has one that costs less than `peek`; else the std."""
        return self.peek(user, arms)[1]

    def read_certain(self, user: int, arms: Any, factor: float) -> CertifiedBelief:  # noqa: ARG002 - proves nothing
        """Returns mean and std, and whether the highest mean + factor * std is proven to be the exact belief's."""
        return CertifiedBelief(*self.read(user, arms), certain=False)

    @abstractmethod
    def read_covariance(self, user: int, arms: Any) -> Array:
        """Returns the joint covariance for a user and arms that were checked already."""

    @abstractmethod
    def learn(self, user: int, arm: Any, reward: float) -> None:
        """Learns one reward from values that were checked already."""

    @abstractmethod
    def learn_weighted(self, user: int, arm: Any, reward: float, *, weight: float) -> None:
        """Learns one observation that counts as `weight` rewards do, from values that were checked already."""

    def learn_noisier(self, user: int, arm: Any, reward: float, *, weight: float) -> None:
        """Learns one reward whose noise variance is `noise_var` / weight; one of weight 1 as `learn` does, to the bit.

        The posterior is that of `learn_weighted`. In the evidence of the noise it is one reward, whatever its weight.
        """
        if weight == 1:
            self.learn(user, arm, reward)
            return
        self.learn_weighted(user, arm, reward, weight=weight)
        self.history.spare += 1 - weight

    @abstractmethod
    def update_many(self, users: Any, arms: Any, rewards: Any) -> None:
        """Learns many rewards at once; the same belief as one by one; on an error nothing has changed."""

    def fit(self, rows: History, progress: SolveProgress | None = None, *, start: Array | None = None) -> int:
        """Learns many rewards by one solve and returns how many steps that took; only where `can_fit`.

        The solve goes on from the weights at hand, or from those of `start`: a solution is taken without a step.
        """
        raise NotImplementedError(self.engine)

    def new_history(self, users: Any, arms: Any, rewards: Any, weights: Array) -> History:
        """Returns rewards, each counting as much as its weight, in the form in which this engine keeps its history."""
        return History.weighted(users, arms, rewards, weights)

    def history_of(self, columns: dict[str, Any]) -> History:
        """Returns rewards that were combined by pairs of rows, in the form in which this engine keeps its history."""
        return History.restored(columns, self.kernel.key)

    @abstractmethod
    def relearn(self, history: History) -> None:
        """Forgets its observations and learns this history instead; on an error nothing has changed."""

    @abstractmethod
    def _reconfigure(self, kernel: JointKernel, noise_var: float) -> None:
        """Takes other settings, and the belief that the same observations give with them; on an error, neither."""

    @abstractmethod
    def check(self, tolerance: float = DRIFT_TOLERANCE) -> Drift:
        """Returns how far the belief had drifted from an exact rebuild; what exceeds the tolerance is mended."""

    def state(self) -> dict[str, Any]:
        """Returns all that the belief is made of beside the kernel: arrays and plain values by name, in nested tables.

        `restored` makes the same model from it, to the bit. Nothing large is copied: it holds until the model learns.
        """
        return {
            "engine": self.engine,
            "reason": self.reason,
            "noise_var": self.noise_var,
            "history": self.history.state(),
            **self._belief(),
        }

    @classmethod
    def restored(cls, state: dict[str, Any], kernel: JointKernel) -> Self:
        """Returns the model of a state of this engine, on the kernel that it had; it takes over the arrays."""
        model = cls.__new__(cls)
        model._restore(state, kernel)
        return model

    @abstractmethod
    def _belief(self) -> dict[str, Any]:
        """Returns what an engine adds to the state: its options, and the arrays that it believes by."""

    def _restored_history(self, state: dict[str, Any], kernel: JointKernel) -> History:
        """Returns the history of a state; an engine may keep it in another form."""
        return History.restored(state, kernel.key)

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        """Takes everything from a state; an engine adds what is its own."""
        self.kernel = kernel
        self.history = self._restored_history(state["history"], kernel)
        self.reason = state["reason"]
        self.noise_var = state["noise_var"]

    @abstractmethod
    def mismatch(self) -> float:
        """Returns how far the belief is from the one that history and kernel give, relative; 0 up to rounding.

        Takes no longer than reading the belief does: for a belief that somebody else has written.
        """

    def is_sound(self) -> bool:
        """Returns whether the belief is what history and kernel give, up to rounding; raises beyond `mismatch_limit`.

        Rounding grows as what is known beside what was. Beyond it lie beliefs that lost digits on their way, beside a
        reward that was far too large or an edge that is very heavy: they are better recomputed.
        """
        ratio = self.max_variance * float(self.history.count_array().max(initial=0.0)) / self.noise_var
        allowed, off = SAME + EPS * ratio * ratio, self.mismatch()
        if off <= max(allowed, self.mismatch_limit):
            return off <= allowed
        raise NumericalError(
            f"a belief on engine {self.engine!r} is off by {off:.2g} of what its history gives",
            "it is the posterior of its rewards",
            "Learn the rewards again",
        )

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.kernel.n_users

    @property
    def n_observations(self) -> int:
        """Rewards seen so far, repeats included."""
        return self.history.n_observations

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        return 0

    @property
    def max_variance(self) -> float:
        """The largest prior variance, K_max in the paper; without a pool, over the arms observed so far."""
        return self.kernel.max_variance(self.history.arms)

    @property
    def effective_dim(self) -> float:
        """info_gain / log(1 + t K_max / noise_var), Definition 1 of the paper; 0 where nothing can be learned."""
        most = log1p(self.n_observations * self.max_variance / self.noise_var)
        return self.info_gain / most if most > 0 else 0.0

    def predict(self, user: int, arms: Any = None) -> tuple[Array, Array]:
        """Returns the posterior mean and std of the reward function, without noise; None means the whole pool."""
        return self.read(self.checked_user(user), self.checked_arms(arms))

    def covariance(self, user: int, arms: Any = None) -> Array:
        """Returns the joint posterior covariance of these arms for this user."""
        return self.read_covariance(self.checked_user(user), self.checked_arms(arms))

    def prior_cross(self, users: Index, arms: Any, others: Index, other_arms: Any) -> Array:
        """Returns the prior covariance of pairs with other pairs that this model computes with; a row for each pair."""
        return self.kernel.cross(users, arms, others, other_arms)

    def reward_weights(self, user: int, arm: int, users: Index, arms: Index, counts: Array) -> tuple[Array, Array]:
        """Returns the weight of each pair's mean reward in the mean of one pair, and what it were without others' data.

        The posterior mean is k' (K + N)^-1 y. O(k^3) for k pairs.
        """
        pairs, own = (users, arms, user, arm), np.where(users == user, counts, 0.0)
        found = _reward_weights(self.prior_cross, self.noise_var, counts, *pairs)
        return found, _reward_weights(self.kernel.cross, self.noise_var, own, *pairs)

    def prior_std(self, user: int, arms: Any = None) -> Array:
        """Returns the std of these arms before any observation."""
        rows = self.checked_arms(arms)
        return np.asarray(np.sqrt(self.kernel.user_variance(self.checked_user(user)) * self.kernel.arm_diag(rows)))

    def update(self, user: int, arm: Any, reward: float) -> None:
        """Learns one reward; on an error nothing has changed."""
        self.learn(self.checked_user(user), self.checked_arm(arm), checked_reward(reward))

    def set_noise_var(self, noise_var: float) -> None:
        """Changes the noise variance; the belief is then that of the same observations."""
        value = checked_noise_var(noise_var)
        check_ratio(self.max_variance, value)
        self._reconfigure(self.kernel, value)

    def set_user_cov(self, user_cov: Any) -> None:
        """Changes the user covariance; the belief is then that of the same observations."""
        kernel = self.kernel.with_user_cov(user_cov)
        check_ratio(kernel.max_variance(self.history.arms), self.noise_var)
        self._reconfigure(kernel, self.noise_var)

    def retune(self, kernel: JointKernel, noise_var: float, *, shift: float = 0.0) -> None:
        """Changes kernel and noise variance, and adds `shift` to every reward; on an error nothing has changed."""
        value = checked_noise_var(noise_var)
        check_ratio(kernel.max_variance(self.history.arms), value)
        self._shift(shift)
        try:
            self._reconfigure(kernel, value)
        except FAILURES:
            self._shift(-shift)
            self._reconfigure(self.kernel, self.noise_var)
            raise

    def revise(self, user: int, arm: Any, before: float, after: float) -> bool:  # noqa: ARG002 - an engine that can says so
        """Puts a reward in the place of one it has learned, cheaper than by a rebuild; returns whether it could.

        The belief is then that of the observations with the new one in them; where it could not, nothing has changed.
        """
        return False

    def relink(self, link: Link) -> bool:  # noqa: ARG002 - an engine that can says so
        """Takes a change of the user covariance at less than the cost of a rebuild; returns whether it could.

        The belief is then that of the same observations; where it could not, nothing has changed.
        """
        return False

    def regraph(self, change: Difference) -> bool:  # noqa: ARG002 - an engine that can says so
        """Takes newcomers and changed edges, where the graph itself is the kernel; returns whether it could.

        The belief is then that of the same observations; where it could not, nothing has changed.
        """
        return False

    def replica(self) -> Replica | None:
        """Returns what makes a model of this engine with these options on another kernel, where that is cheap."""
        return None

    def _shift(self, amount: float) -> None:
        """Adds an amount to every remembered reward; the belief is rebuilt right after."""
        self.history.shift(amount)

    def describe(self) -> str:
        """Returns in words which engine this is and why, and what it holds."""
        return (
            f"engine {self.engine!r}: {self.reason}. Observations: {self.n_observations}, of distinct pairs: "
            f"{len(self.history)}; {self.nbytes / 2**20:.1f} MiB held."
        )

    def explain(self) -> str:
        """Returns what `describe` does, under its old name."""
        warn_renamed("Model.explain", "Model.describe")
        return self.describe()

    def checked_user(self, user: Any) -> int:
        """Returns the user's row, or raises a typed error."""
        if isinstance(user, int | np.integer) and 0 <= user < self.kernel.n_users:
            return int(user)
        raise DimensionError(
            f"user index {user!r} is out of range",
            f"users are 0 to {self.kernel.n_users - 1}",
            "Use a row of the graph",
        )

    def checked_arm(self, arm: Any) -> Any:
        """Returns one arm in the kernel's form, or raises a typed error."""
        arm = self.kernel.checked_arm(arm)
        if np.ndim(arm):
            self._check_dimension(np.shape(arm))
            check_ratio(self.kernel.max_variance([arm]), self.noise_var)
        return arm

    def checked_arms(self, arms: Any) -> Any:
        """Returns an array of arms in the kernel's form, or raises a typed error."""
        arms = self.kernel.checked_arms(arms)
        self._check_dimension(np.shape(arms)[1:])
        if np.ndim(arms) > 1:
            check_ratio(self.kernel.max_variance(arms), self.noise_var)
        return arms

    def checked_batch(self, users: Any, arms: Any, rewards: Any) -> History:
        """Returns many observations, collapsed, or raises a typed error before anything is learned."""
        users, arms, rewards = list(users), list(arms), list(rewards)
        if not len(users) == len(arms) == len(rewards):
            raise DimensionError(
                f"{len(users)} users, {len(arms)} arms and {len(rewards)} rewards",
                "there is one of each for an observation",
                "Pass lists of the same length",
            )
        batch = History()
        for user, arm, reward in zip(users, arms, rewards, strict=True):
            row, column, value = self.checked_user(user), self.checked_arm(arm), checked_reward(reward)
            if batch.arms and np.shape(column) != np.shape(batch.arms[0]):
                raise _dimensions_differ(np.size(column), np.size(batch.arms[0]))
            batch.add(self.kernel.key(row, column), row, column, value)
        return batch

    def _check_dimension(self, shape: tuple[int, ...]) -> None:
        if shape and self.history.arms and shape != self.history.arms[0].shape:
            raise _dimensions_differ(shape[0], self.history.arms[0].size)


def _reward_weights(
    prior: Callable[..., Array], noise_var: float, counts: Array, users: Index, arms: Index, user: int, arm: int
) -> Array:
    """Returns the weight of each pair's mean reward in the posterior mean of one pair; 0 where nothing counts."""
    out = np.zeros(len(counts))
    kept = counts > 0
    if kept.any():
        gram = prior(users[kept], arms[kept], users[kept], arms[kept]) + np.diag(noise_var / counts[kept])
        cross = prior(np.array([user]), np.array([arm]), users[kept], arms[kept])[0]
        out[kept] = cho_solve(cho_factor(gram, lower=True), cross)
    return out


def _dimensions_differ(given: int, known: int) -> DimensionError:
    return DimensionError(
        f"an arm has {given} features", f"the arms before it have {known}", "Use the same features throughout"
    )
