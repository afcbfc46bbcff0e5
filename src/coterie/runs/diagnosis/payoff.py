"""How many rounds until the graph pays off: truths drawn from the fitted kernel, learned with and without the graph."""

from dataclasses import dataclass

import numpy as np

from coterie.contracts import Array
from coterie.kernels import PoolKernel
from coterie.logs.log import Floats, Ints
from coterie.models import make_model
from coterie.policies.rules.scores import ucb

CLEARLY = 2.0  # standard errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What is simulated: so many users of a few communities, arms, truths, and candidates where none were logged."""

    n_users: int = 40
    n_communities: int = 4
    n_arms: int = 100
    n_truths: int = 48
    n_candidates: int = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Payoff:
    """What UCB earned with and without the graph, in rounds that were simulated.

    Attributes:
        n_users: How many users there were.
        n_arms: How many arms.
        n_candidates: How many of them were shown in a round.
        with_graph: Cumulative reward above the level of all, a row for each truth.
        without: The same without the graph.
    """

    n_users: int
    n_arms: int
    n_candidates: int
    with_graph: Floats
    without: Floats

    @property
    def rounds(self) -> int:
        """How many rounds were played."""
        return int(self.with_graph.shape[1])

    @property
    def n_truths(self) -> int:
        """How many truths were drawn."""
        return int(self.with_graph.shape[0])

    @property
    def ahead(self) -> Floats:
        """By how much more was earned with the graph, the mean over truths, round by round."""
        return np.asarray((self.with_graph - self.without).mean(axis=0))

    @property
    def std_err(self) -> Floats:
        """The standard error of that."""
        gap = self.with_graph - self.without
        return np.asarray(gap.std(axis=0, ddof=1) / np.sqrt(len(gap)))

    @property
    def pays_from(self) -> int | None:
        """The first round, from 1, from which the graph stays ahead by more than two standard errors; none if never."""
        behind = np.flatnonzero(~(self.ahead > CLEARLY * self.std_err))
        first = int(behind[-1]) + 2 if len(behind) else 1
        return first if first <= self.rounds else None


def simulate(
    kernel: PoolKernel, noise_var: float, *, rounds: int, n_candidates: int, n_truths: int, seed: int
) -> Payoff:
    """Returns what comes of truths drawn from a kernel over users x arms.

    Both learners know the arm kernel and the noise, and choose the highest mean + std. One knows how users are alike;
    the other only how alike they are on average: each user's variance, and one covariance between any two.
    """
    rng = np.random.default_rng(seed)
    halves = _root(kernel.user_cov), _root(kernel.arm_cov)
    plain = PoolKernel(exchangeable(kernel.user_cov), kernel.arm_cov)
    earned: list[tuple[Floats, Floats]] = []
    for _ in range(n_truths):
        truth = halves[0] @ rng.normal(size=(kernel.n_users, kernel.n_arms)) @ halves[1].T
        users = rng.integers(kernel.n_users, size=rounds)
        shown = rng.permuted(np.tile(np.arange(kernel.n_arms), (rounds, 1)), axis=1)[:, :n_candidates]
        noise = rng.normal(scale=np.sqrt(noise_var), size=rounds)
        here, there = (_played(each, noise_var, truth, users, shown, noise) for each in (kernel, plain))
        earned.append((here, there))
    with_graph, without = (np.cumsum(each, axis=1) for each in zip(*earned, strict=True))
    sizes = {"n_users": kernel.n_users, "n_arms": kernel.n_arms, "n_candidates": n_candidates}
    return Payoff(**sizes, with_graph=with_graph, without=without)


def exchangeable(user_cov: Array) -> Array:
    """Returns the covariance with the same variances in which any two users are as alike as two are on average.

    Examples:
        >>> exchangeable(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 2.0]]))
        array([[2. , 0.5, 0.5],
               [0.5, 2. , 0.5],
               [0.5, 0.5, 2. ]])
    """
    n, diagonal = len(user_cov), user_cov.diagonal()
    between = (user_cov.sum() - diagonal.sum()) / max(n * (n - 1), 1)
    out = np.full((n, n), min(max(between, 0.0), float(diagonal.min())))
    np.fill_diagonal(out, diagonal)
    return out


def _played(kernel: PoolKernel, noise_var: float, truth: Array, users: Ints, shown: Ints, noise: Floats) -> Floats:
    """Returns the reward of each round."""
    model = make_model(kernel, noise_var=noise_var, expected_rounds=len(users))
    rewards = np.empty(len(users))
    for t, (user, arms) in enumerate(zip(users.tolist(), shown, strict=True)):
        arm = int(arms[np.argmax(ucb(*model.read(user, arms), 1.0))])
        rewards[t] = truth[user, arm] + noise[t]
        model.learn(user, arm, float(rewards[t]))  # drawn, it may exceed what rewards of the log may be
    return rewards


def _root(matrix: Array) -> Array:
    """Returns R with R R' the matrix, which may be singular."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
