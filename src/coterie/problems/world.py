"""A world to learn in: users on a graph, arms, and a truth that only the runner may ask for."""

from collections.abc import Iterable, Iterator, Mapping
from math import cos, sin
from typing import Any, get_args

import numpy as np
from scipy.special import expit

from coterie.contracts import ArmId, Array, UserId
from coterie.errors import DimensionError, ParameterError, listed
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.kernels.joint import as_numbers
from coterie.problems.rounds import Context, NoiseKind, RewardKind, Round, drawn_noise, served_users, shown_arms, stream
from coterie.problems.setting_rules import FROM_0_BELOW_1, whole

MOST_NAMED = 2_000  # beyond so many users a table is an array: the names would take some ten times its room


class LargeTable:
    """An array with a row for each user and a column for each arm, read by their names.

    Examples:
        >>> LargeTable(np.array([[1.0, 2.0]]), {"ana": 0}, {"tea": 0, "milk": 1})["ana"]["milk"]
        2.0
    """

    __slots__ = ("_arms", "_users", "_values")

    def __init__(self, values: Array, users: Mapping[UserId, int], arms: Mapping[ArmId, int]) -> None:
        self._values, self._users, self._arms = values, users, arms

    def __getitem__(self, user: UserId) -> "LargeRow":
        return LargeRow(self._values[self._users[user]], self._arms)


class LargeRow:
    """A user's row of such a table."""

    __slots__ = ("_arms", "_values")

    def __init__(self, values: Array, arms: Mapping[ArmId, int]) -> None:
        self._values, self._arms = values, arms

    def __getitem__(self, arm: ArmId) -> float:
        return self._values.item(self._arms[arm])


NamedTable = dict[UserId, dict[ArmId, float]]
Table = NamedTable | LargeTable


class World:
    """Users, arms and a hidden table of expected rewards.

    A learner is given `graph` and `arms`, never the world. The runner asks for the truth, after the choice: `judge`
    returns what the learner gets to see, and the score.

    Args:
        graph: The graph that learners are shown; the truth may come from another one.
        arms: The pool.
        truth: f, one row a user and one column an arm.
        noise_std: Standard deviation of the noise, where rewards are real.
        noise: Its law.
        rewards: "real" for f plus noise; "binary" for 0 or 1, logistic(f) being the probability of a 1.
        later: Where the truth turns to: f_t = cos(turn t) truth + sin(turn t) later.
        turn: How far it turns in a round, in radians.
        chances: How likely each user is to come; none given means all alike.

    Examples:
        >>> world = World(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool([[0.0], [1.0]]),
        ...               truth=np.array([[1.0, 0.0], [0.0, 1.0]]), noise_std=0.0)
        >>> shown = Round(t=0, user="ana", candidates=(0, 1), noise=0.25)
        >>> world.judge(shown, 0), world.judge(shown, 1)
        ((1.25, 0.0), (0.25, 1.0))
    """

    __slots__ = ("_chances", "_later", "_truth", "_turn", "arms", "graph", "noise", "noise_std", "rewards")

    def __init__(
        self,
        *,
        graph: UserGraph,
        arms: ArmPool,
        truth: Array,
        noise_std: float,
        noise: NoiseKind = "gaussian",
        rewards: RewardKind = "real",
        later: Array | None = None,
        turn: float = 0.0,
        chances: Array | None = None,
    ) -> None:
        _check_number("noise_std", noise_std)
        _check_number("turn", turn)
        _check_name("noise", noise, get_args(NoiseKind))
        _check_name("rewards", rewards, get_args(RewardKind))
        self.graph = graph
        self.arms = arms
        self.noise_std = noise_std
        self.noise: NoiseKind = noise
        self.rewards: RewardKind = rewards
        moves = later is not None and turn > 0
        # A truth that stays is turned into probabilities once; one that moves, when it is asked for.
        self._truth = self._table(truth, logistic=rewards == "binary" and not moves)
        self._later = self._table(later, logistic=False) if moves else None
        self._turn, self._chances = turn, chances

    def rounds(
        self,
        horizon: int,
        *,
        n_candidates: int,
        seed: int | np.random.SeedSequence,
        late_share: float = 0.0,
        late_after: float = 0.5,
    ) -> Iterator[Round]:
        """Returns `horizon` rounds: a uniform user, distinct candidates, and the noise.

        They depend on the seed alone, never on a choice, so every policy can meet the same ones. Users, candidates
        and noise have streams of their own.

        Args:
            horizon: How many.
            n_candidates: Arms shown in each.
            seed: Fixes them.
            late_share: The share of users, chosen at random, who are not served before `late_after`.
            late_after: A part of the horizon.

        Examples:
            >>> world = World(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool([[0.0], [1.0]]),
            ...               truth=np.zeros((2, 2)), noise_std=0.1)
            >>> [shown.t for shown in world.rounds(3, n_candidates=1, seed=0)]
            [0, 1, 2]
        """
        if not 1 <= n_candidates <= len(self.arms):
            rule = f"it lies between 1 and {len(self.arms)}"
            raise ParameterError(f"n_candidates is {n_candidates!r}", rule, "Show fewer, or add arms")
        whole(0)("horizon", horizon)
        late = {"late_share": late_share, "late_after": late_after}
        for key, share in late.items():
            FROM_0_BELOW_1(key, share)
        trial = seed if isinstance(seed, np.random.SeedSequence) else _seed_sequence(seed)
        users = served_users(self.graph.n_users, horizon, stream(trial, "users"), **late, chances=self._chances)
        shown = shown_arms(len(self.arms), n_candidates, horizon, stream(trial, "candidates"))
        law: Any = {"noise_std": self.noise_std, "noise": self.noise, "rewards": self.rewards}
        noise = drawn_noise(horizon, stream(trial, "noise"), **law)
        contexts = self._contexts(horizon, stream(trial, "contexts"))
        return self._named(zip(users.tolist(), shown, noise.tolist(), contexts, strict=True))

    def _contexts(self, horizon: int, rng: np.random.Generator) -> Iterable[Context | None]:  # noqa: ARG002 - it has none
        """Returns the context of each round."""
        return [None] * horizon

    def _named(self, drawn: Iterator[tuple[int, list[int], float, Context | None]]) -> Iterator[Round]:
        users, arms = self.graph.users, self.arms.ids
        for t, (user, rows, noise, context) in enumerate(drawn):
            yield Round(t, users[user], tuple([arms[row] for row in rows]), noise, context)

    def judge(self, shown: Round, arm: ArmId) -> tuple[float, float]:
        """Returns the noisy reward of the chosen arm, and its regret: what the best candidate is expected to pay more.

        About a microsecond for five candidates.
        """
        expected = self._expected(shown)
        chosen = expected[shown.place_of(arm)]
        regret = max(expected) - chosen
        if self.rewards == "binary":
            return float(shown.noise < chosen), regret
        return chosen + shown.noise, regret

    def best(self, shown: Round) -> ArmId:
        """Returns the candidate of the highest expected reward, the first of several."""
        expected = self._expected(shown)
        return shown.candidates[expected.index(max(expected))]

    def _expected(self, shown: Round) -> list[float]:
        """Returns the expected reward of each candidate at this moment."""
        now = self._truth[shown.user]
        if self._later is None:
            return [now[arm] for arm in shown.candidates]
        then, angle = self._later[shown.user], self._turn * shown.t
        keep, gain = cos(angle), sin(angle)
        moved = [keep * now[arm] + gain * then[arm] for arm in shown.candidates]
        return expit(moved).tolist() if self.rewards == "binary" else moved

    def _table(self, truth: Any, *, logistic: bool) -> Table:
        """Returns the expected rewards by user and arm; by name they are looked up faster than in an array."""
        values = as_numbers(truth, what="truth")
        wanted = (self.graph.n_users, len(self.arms))
        if values.shape != wanted:
            raise DimensionError(
                f"a truth of shape {values.shape}", f"it is {wanted}", "One row a user, one column an arm"
            )
        expected = expit(values) if logistic else values
        if self.graph.n_users > MOST_NAMED:
            return LargeTable(expected, self.graph.index, self.arms.index)
        named = zip(self.graph.users, expected.tolist(), strict=True)
        return {user: dict(zip(self.arms.ids, row, strict=True)) for user, row in named}


def _check_number(name: str, value: object) -> None:
    if not (isinstance(value, int | float | np.number) and np.isfinite(value) and value >= 0):
        raise ParameterError(f"{name} is {value!r}", "it is a finite number >= 0", "Choose, say, 0.1")


def _check_name(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ParameterError(f"{name} is {value!r}", f"it is one of {listed(allowed)}", "Pick one")


def _seed_sequence(seed: object) -> np.random.SeedSequence:
    if isinstance(seed, int | np.integer) and seed >= 0:
        return np.random.SeedSequence(int(seed))
    raise ParameterError(f"seed is {seed!r}", "it is a whole number >= 0 or a SeedSequence", "Choose, say, 0")
