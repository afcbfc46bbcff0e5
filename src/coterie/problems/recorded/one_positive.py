"""k candidates, one of them liked: what can be asked of a log that says who liked what."""

from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import ArmId, Array
from coterie.errors import CandidatesError, ParameterError, listed
from coterie.kernels import ArmPool
from coterie.logs.log import Log
from coterie.problems.recorded.others import Others
from coterie.problems.rounds import Round
from coterie.problems.setting_rules import choice, whole
from coterie.problems.streams import stream

Negatives: TypeAlias = Literal["uniform", "popularity"]
Ints = NDArray[np.int64]

LEAST_POSITIVES = 10
_CHUNK = 512  # rounds drawn at once; drawn whole, so that the first rounds are the same whatever the horizon


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
        >>> from coterie.logs.log import Events
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
            >>> from coterie.logs.log import Events
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
        if arm not in shown.candidates:
            rule = f"candidates were {listed(shown.candidates)}"
            raise CandidatesError(f"arm {arm!r} was not shown", rule, "Choose one of these")
        reward = self._pays(shown, arm)
        return reward, 1.0 - reward

    def best(self, shown: Round) -> ArmId:
        """Returns the candidate that the user liked."""
        return max(shown.candidates, key=lambda arm: self._pays(shown, arm))

    def _pays(self, shown: Round, arm: ArmId) -> float:
        pair = self.graph.index_of(shown.user) * len(self.arms) + self.arms.index_of(arm)
        place = int(np.searchsorted(self._positives, pair))
        return float(place < len(self._positives) and self._positives[place] == pair)


def can_ask_for_positives(log: Log, least: int = LEAST_POSITIVES) -> bool:
    """Returns whether some user has so many positives that rounds of one positive can be drawn.

    Examples:
        >>> from coterie.graphs import UserGraph
        >>> from coterie.logs.log import Events
        >>> events = Events(user=np.array([0, 1]), arm=np.array([1, 2]), reward=np.ones(2))
        >>> log = Log(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool(np.eye(3)), events=events)
        >>> can_ask_for_positives(log), can_ask_for_positives(log, least=1)
        (False, True)
    """
    liked = log.events.user[log.events.reward > 0]
    return bool(len(liked)) and int(np.bincount(liked).max()) >= least


def pool_of(log: Log) -> ArmPool:
    """Returns the arms; ids alone have one indicator each, so that no two are alike."""
    return log.arms if isinstance(log.arms, ArmPool) else ArmPool(np.eye(len(log.arms)), ids=log.arms)


def _pairs(log: Log) -> Ints:
    return np.asarray(log.events.user * len(log.arm_ids) + log.events.arm)


def _had(log: Log) -> Ints:
    """Returns everything that users had, whatever they thought of it."""
    besides = [] if log.had is None else [log.had.user * len(log.arm_ids) + log.had.arm]
    return np.unique(np.concatenate([_pairs(log), *besides]))
