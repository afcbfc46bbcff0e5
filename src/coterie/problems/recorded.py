"""Logs as problems: choose the arm that was liked among others, or choose again what was logged."""

from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import ArmId, Array
from coterie.errors import ParameterError
from coterie.kernels import ArmPool
from coterie.logs.log import Events, Ints, Log
from coterie.logs.slates import candidates_left
from coterie.problems.rounds import Round, stream
from coterie.problems.setting_rules import choice, whole

Negatives: TypeAlias = Literal["uniform", "popularity"]

LEAST_POSITIVES = 10
_CHUNK = 512  # rounds drawn at once; drawn whole, so that the first rounds are the same whatever the horizon
_DRAWS = 3  # arms drawn at once for each other that is wanted: most are new, so few rounds need more


class OnePositive:
    """Rounds of k candidates: one that the user liked, and others that the user never had.

    A user comes uniformly among those with enough positives, and one of their positives uniformly (it may come
    again). A positive is an event with a reward above 0. The others are distinct, and neither in an event of the user
    nor in `log.had`. A learner is given `graph` and `arms`, never this; only the runner asks `judge`, after the choice.

    Args:
        log: What happened.
        n_candidates: k.
        negatives: How the others are drawn: "uniform", or in proportion to an arm's "popularity", the number of its
            positives in the log. Uniform ones reward mere popularity: look at both.
        least_positives: How many positives a user has at least who comes.

    Attributes:
        graph: The users.
        arms: The pool.
        served: The rows of the users who can come.
        n_short: Users with enough positives who cannot come, since too few arms are left that they never had.

    Examples:
        >>> from coterie.graphs import UserGraph
        >>> events = Events(user=np.array([0, 1]), arm=np.array([1, 2]), reward=np.ones(2))
        >>> log = Log(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool(np.eye(3), ids="xyz"), events=events)
        >>> problem = OnePositive(log, n_candidates=2, least_positives=1)
        >>> shown = next(problem.rounds(1, seed=0))
        >>> shown.user, problem.best(shown), problem.judge(shown, problem.best(shown))
        ('ana', 'y', (1.0, 0.0))
    """

    __slots__ = ("_others", "_positives", "_rows", "_starts", "arms", "graph", "n_candidates", "n_short", "served")

    def __init__(
        self,
        log: Log,
        *,
        n_candidates: int = 25,
        negatives: Negatives = "uniform",
        least_positives: int = LEAST_POSITIVES,
    ) -> None:
        choice(get_args(Negatives))("negatives", negatives)
        whole(2)("n_candidates", n_candidates)
        whole(1)("least_positives", least_positives)
        self.graph, self.arms, self.n_candidates = log.graph, pool_of(log), n_candidates
        self._positives = np.unique(_pairs(log)[log.events.reward > 0])
        users, self._rows = np.divmod(self._positives, len(self.arms))
        counts = np.bincount(users, minlength=self.graph.n_users)
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._others = Others(had=_had(log), weights=self._weights(negatives))
        enough, left = counts >= least_positives, self._others.left(self.graph.n_users) >= n_candidates - 1
        self.served, self.n_short = np.flatnonzero(enough & left), int(np.count_nonzero(enough & ~left))
        if not len(self.served):
            raise ParameterError(
                f"n_candidates is {n_candidates}, and no user can come",
                f"a user has at least {least_positives} positives, and {n_candidates - 1} arms that they never had",
                "Show fewer candidates, or ask for fewer positives",
            )

    def _weights(self, negatives: Negatives) -> Array:
        if negatives == "uniform":
            return np.ones(len(self.arms))
        return np.bincount(self._rows, minlength=len(self.arms)).astype(float)

    @property
    def facts(self) -> dict[str, int]:
        """How many users can come, and how many more have enough positives but too few arms left."""
        return {"n_served": len(self.served), "n_short": self.n_short}

    def rounds(self, horizon: int, *, seed: int | np.random.SeedSequence) -> Iterator[Round]:
        """Returns `horizon` rounds. They depend on the seed alone, never on a choice; about 0.02 ms each.

        Users, positives and others have streams of their own, and the first rounds are the same whatever the horizon.

        Examples:
            >>> from coterie.graphs import UserGraph
            >>> events = Events(user=np.array([0, 1]), arm=np.array([1, 2]), reward=np.ones(2))
            >>> log = Log(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool(np.eye(3)), events=events)
            >>> problem = OnePositive(log, n_candidates=3, least_positives=1)
            >>> [sorted(shown.candidates) for shown in problem.rounds(2, seed=0)]
            [[0, 1, 2], [0, 1, 2]]
        """
        whole(0)("horizon", horizon)
        trial = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(whole(0)("seed", seed))
        return self._named(horizon, *(stream(trial, part) for part in ("users", "truth", "candidates")))

    def _named(self, horizon: int, *streams: np.random.Generator) -> Iterator[Round]:
        names, ids, t = self.graph.users, self.arms.ids, 0
        while t < horizon:
            for user, rows in zip(*self._drawn(*streams), strict=True):
                if t == horizon:
                    return
                yield Round(t, names[user], tuple([ids[row] for row in rows]), 0.0)
                t += 1

    def _drawn(
        self, by_user: np.random.Generator, by_positive: np.random.Generator, by_other: np.random.Generator
    ) -> tuple[list[int], list[list[int]]]:
        """Returns the users and the candidates of the next rounds, in random order."""
        users = self.served[by_user.integers(len(self.served), size=_CHUNK)]
        starts, ends = self._starts[users], self._starts[users + 1]
        liked = self._rows[starts + (by_positive.random(_CHUNK) * (ends - starts)).astype(np.int64)]
        others = self._others.draw(users, self.n_candidates - 1, by_other)
        shown = by_other.permuted(np.column_stack([liked, others]), axis=1)
        return users.tolist(), shown.tolist()

    def judge(self, shown: Round, arm: ArmId) -> tuple[float, float]:
        """Returns 1 if the user liked the chosen arm and else 0, and the regret: what is missing to 1."""
        shown.place_of(arm)
        reward = self._pays(shown, arm)
        return reward, 1.0 - reward

    def best(self, shown: Round) -> ArmId:
        """Returns the candidate that the user liked."""
        return max(shown.candidates, key=lambda arm: self._pays(shown, arm))

    def _pays(self, shown: Round, arm: ArmId) -> float:
        pair = self.graph.index_of(shown.user) * len(self.arms) + self.arms.index_of(arm)
        place = int(np.searchsorted(self._positives, pair))
        return float(place < len(self._positives) and self._positives[place] == pair)


class Others:
    """Draws arms one after the other, each in proportion to its weight, without those had and those drawn before.

    Args:
        had: Pairs of user and arm that are never drawn, as user * n_arms + arm, sorted and distinct.
        weights: One for each arm, >= 0; an arm of weight 0 is never drawn.

    Examples:
        >>> others = Others(had=np.array([0, 4]), weights=np.ones(3))
        >>> sorted(others.draw(np.array([0]), 2, np.random.default_rng(0))[0].tolist())
        [1, 2]
    """

    __slots__ = ("_bounds", "_had", "_weights")

    def __init__(self, *, had: Ints, weights: Array) -> None:
        self._had, self._weights = had, weights
        sums = np.cumsum(weights)
        self._bounds = sums / sums[-1]

    def left(self, n_users: int) -> Ints:
        """Returns for each user how many arms can be drawn."""
        n_arms = len(self._weights)
        users, arms = np.divmod(self._had, n_arms)
        drawable = self._weights > 0
        return np.asarray(drawable.sum() - np.bincount(users[drawable[arms]], minlength=n_users))

    def draw(self, users: Ints, count: int, rng: np.random.Generator) -> Ints:
        """Returns `count` arms for each of these users, a row each. O(count log events) a row, seldom O(arms).

        An arm that may not be drawn is drawn again, which leaves the law of the others as it is.
        """
        tried = np.searchsorted(self._bounds, rng.random((len(users), _DRAWS * count)), side="right")
        fresh = ~self._is_had(users[:, None] * len(self._weights) + tried) & _first_of_its_row(tried)
        found = np.argsort(~fresh, axis=1, kind="stable")[:, :count]  # the fresh ones in the order they were drawn
        chosen = np.take_along_axis(tried, found, axis=1)
        for row in np.flatnonzero(fresh.sum(axis=1) < count):
            chosen[row] = self._finished(int(users[row]), tried[row][fresh[row]], count, rng)
        return np.asarray(chosen)

    def _is_had(self, pairs: Ints) -> NDArray[np.bool_]:
        if not len(self._had):
            return np.zeros(pairs.shape, dtype=bool)
        places = np.minimum(np.searchsorted(self._had, pairs), len(self._had) - 1)
        return np.asarray(self._had[places] == pairs)

    def _finished(self, user: int, drawn: Ints, count: int, rng: np.random.Generator) -> Ints:
        """Returns the arms drawn so far and the missing ones: the first of exponential clocks, one for each arm."""
        n_arms = len(self._weights)
        rates = self._weights.copy()
        start, end = np.searchsorted(self._had, [user * n_arms, (user + 1) * n_arms])
        rates[self._had[start:end] - user * n_arms] = 0.0
        rates[drawn] = 0.0
        open_ = np.flatnonzero(rates)
        clocks = rng.standard_exponential(len(open_)) / rates[open_]
        return np.concatenate([drawn, open_[np.argsort(clocks)[: count - len(drawn)]]])


class Replay:
    """The rows of a log, one after the other, by time where every row has one.

    What a learner would have got is known only where it chooses what was logged (rejection): there it learns the
    reward, and every other row passes without trace. That is honest where the logger chose at random, each candidate as
    likely as any other; a log of a better logger flatters those who choose alike. About one row in k is used. A round
    has the context of its row; the places of a slate are rounds like any others, among the arms that were left.

    Args:
        log: What happened; a row without candidates could have been any arm.

    Attributes:
        graph: The users.
        arms: The pool.
        context_schema: What the contexts of the log hold; None where there are none.

    Examples:
        >>> from coterie.graphs import UserGraph
        >>> events = Events(user=np.array([0, 1]), arm=np.array([1, 0]), reward=np.array([0.5, 2.0]))
        >>> log = Log(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool(np.eye(2), ids="xy"), events=events)
        >>> replay = Replay(log)
        >>> [(shown.user, replay.judge(shown, "x")) for shown in replay.rounds()]
        [('ana', (nan, nan)), ('bo', (2.0, nan))]
    """

    __slots__ = ("_arm", "_contexts", "_order", "_reward", "_shown", "_user", "arms", "context_schema", "graph")

    def __init__(self, log: Log) -> None:
        events = log.events
        if not len(events):
            raise ParameterError("the log has no events", "a replay needs logged choices", "Add events")
        self.graph, self.arms, self._contexts = log.graph, pool_of(log), events.context
        self.context_schema = None if events.context is None else events.context.schema
        if events.context is not None and not isinstance(log.arms, ArmPool):
            self.arms = ArmPool.without_features(log.arms)
        self._user, self._arm, self._reward = events.user, events.arm, events.reward
        self._shown = candidates_left(events, len(self.arms))
        self._order = _order(events)

    def __len__(self) -> int:
        return len(self._order)

    @property
    def facts(self) -> dict[str, int]:
        """Nothing beyond the sizes of graph and pool."""
        return {}

    def rounds(self, horizon: int | None = None, *, seed: object = None) -> Iterator[Round]:  # noqa: ARG002
        """Returns the rows as rounds, the first `horizon` of them or all; no seed changes them."""
        last = len(self) if horizon is None else min(whole(0)("horizon", horizon), len(self))
        ids = self.arms.ids
        for t, row in enumerate(self._order[:last].tolist()):
            rows = [] if self._shown is None else self._shown[row].tolist()
            candidates = tuple([ids[each] for each in rows]) if rows else ids
            context = None if self._contexts is None else self._contexts[row]
            yield Round(t, self.graph.users[self._user[row]], candidates, 0.0, context)

    def judge(self, shown: Round, arm: ArmId) -> tuple[float, float]:
        """Returns the reward if this arm was logged, and NaN if another was; the regret is NaN, for it is not known.

        Examples:
            >>> from coterie.graphs import make_graph
            >>> one = Events(user=np.array([0]), arm=np.array([1]), reward=np.array([3.0]))
            >>> replay = Replay(Log(graph=make_graph("ring", 3), arms=("tea", "milk"), events=one))
            >>> replay.judge(next(replay.rounds()), "milk")
            (3.0, nan)
        """
        shown.place_of(arm)
        row = self._order[shown.t]
        reward = float(self._reward[row]) if self.arms.index_of(arm) == self._arm[row] else np.nan
        return reward, np.nan


def can_ask_for_positives(log: Log, least: int = LEAST_POSITIVES) -> bool:
    """Returns whether some user has so many positives, each arm counted once, that rounds of one positive can be drawn.

    Examples:
        >>> from coterie.graphs import UserGraph
        >>> events = Events(user=np.array([0, 1]), arm=np.array([1, 2]), reward=np.ones(2))
        >>> log = Log(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool(np.eye(3)), events=events)
        >>> can_ask_for_positives(log), can_ask_for_positives(log, least=1)
        (False, True)
    """
    users = np.unique(_pairs(log)[log.events.reward > 0]) // len(log.arm_ids)
    return bool(len(users)) and int(np.bincount(users).max()) >= least


def pool_of(log: Log) -> ArmPool:
    """Returns the arms; ids alone have one indicator each, so that no two are alike."""
    return log.arms if isinstance(log.arms, ArmPool) else ArmPool(np.eye(len(log.arms)), ids=log.arms)


def _pairs(log: Log) -> Ints:
    return np.asarray(log.events.user * len(log.arm_ids) + log.events.arm)


def _had(log: Log) -> Ints:
    """Returns everything that users had, whatever they thought of it."""
    besides = [] if log.had is None else [log.had.user * len(log.arm_ids) + log.had.arm]
    return np.unique(np.concatenate([_pairs(log), *besides]))


def _first_of_its_row(table: Ints) -> NDArray[np.bool_]:
    """Returns where an entry is the first of its value in its row."""
    order = np.argsort(table, axis=1, kind="stable")
    ordered = np.take_along_axis(table, order, axis=1)
    first = np.ones(table.shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    out = np.empty_like(first)
    np.put_along_axis(out, order, first, axis=1)
    return out


def _order(events: Events) -> NDArray[np.int64]:
    """Returns the rows by time, or as they stand if some have none."""
    if events.time is None or np.isnan(events.time).any():
        return np.arange(len(events))
    return np.argsort(events.time, kind="stable")
