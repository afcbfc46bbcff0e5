"""Replay of logged choices: a learner learns only where it chooses what was logged."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import ArmId
from coterie.errors import CandidatesError, ParameterError, listed
from coterie.logs.log import Events, Log
from coterie.problems.recorded.one_positive import pool_of
from coterie.problems.rounds import Round
from coterie.problems.setting_rules import whole


class Replay:
    """The rows of a log, one after the other, by time where every row has one.

    What a learner would have got is known only where it chooses what was logged (rejection): there it is told the
    reward, and every other row passes without trace. That is honest where the logger chose at random, each candidate
    as likely as any other; a log of a better logger flatters those who choose alike. About one row in k is used.

    Args:
        log: What happened; a row without candidates could have been any arm.

    Attributes:
        graph: The users.
        arms: The pool.

    Examples:
        >>> from coterie.graphs import UserGraph
        >>> from coterie.kernels import ArmPool
        >>> from coterie.logs.log import Events
        >>> events = Events(user=np.array([0, 1]), arm=np.array([1, 0]), reward=np.array([0.5, 2.0]))
        >>> log = Log(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool(np.eye(2), ids="xy"), events=events)
        >>> replay = Replay(log)
        >>> [(shown.user, replay.judge(shown, "x")) for shown in replay.rounds()]
        [('ana', (nan, nan)), ('bo', (2.0, nan))]
    """

    __slots__ = ("_arm", "_order", "_reward", "_shown", "_user", "arms", "graph")

    def __init__(self, log: Log) -> None:
        events = log.events
        if not len(events):
            raise ParameterError("the log has no events", "a replay needs logged choices", "Add events")
        self.graph, self.arms = log.graph, pool_of(log)
        self._user, self._arm, self._reward, self._shown = events.user, events.arm, events.reward, events.candidates
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
            yield Round(t, self.graph.users[self._user[row]], candidates, 0.0)

    def judge(self, shown: Round, arm: ArmId) -> tuple[float, float]:
        """Returns the reward if this arm was logged, and NaN if another was; the regret is NaN, for it is not known.

        Examples:
            >>> from coterie.graphs import make_graph
            >>> from coterie.logs.log import Events
            >>> one = Events(user=np.array([0]), arm=np.array([1]), reward=np.array([3.0]))
            >>> replay = Replay(Log(graph=make_graph("ring", 3), arms=("tea", "milk"), events=one))
            >>> replay.judge(next(replay.rounds()), "milk")
            (3.0, nan)
        """
        if arm not in shown.candidates:
            rule = f"candidates were {listed(shown.candidates)}"
            raise CandidatesError(f"arm {arm!r} was not shown", rule, "Choose one of these")
        row = self._order[shown.t]
        reward = float(self._reward[row]) if self.arms.index_of(arm) == self._arm[row] else np.nan
        return reward, np.nan


def _order(events: Events) -> NDArray[np.int64]:
    """Returns the rows by time, or as they stand if some have none."""
    if events.time is None or np.isnan(events.time).any():
        return np.arange(len(events))
    return np.argsort(events.time, kind="stable")
