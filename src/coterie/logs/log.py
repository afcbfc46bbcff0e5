"""A log: who is near whom, what could be chosen, and what came of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import ArmId
from coterie.errors import counted
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.logs.contexts import Contexts

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Lists of whole numbers of any lengths, one after the other in one array.

    Attributes:
        starts: Where each list starts, and at last where the last one ends; one more than there are lists.
        flat: All lists in one.

    Examples:
        >>> lists = Ragged.of([[3, 1], [], [2]])
        >>> len(lists), lists[0].tolist(), lists[1].tolist(), lists.lengths.tolist()
        (3, [3, 1], [], [2, 0, 1])
    """

    starts: Ints
    flat: NDArray[np.int32]

    @classmethod
    def of(cls, lists: list[list[int]]) -> "Ragged":
        """Returns these lists."""
        starts = np.cumsum([0, *(len(each) for each in lists)], dtype=np.int64)
        return cls(starts, np.array([item for each in lists for item in each], dtype=np.int32))

    @property
    def lengths(self) -> Ints:
        """How long each list is."""
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        return self.flat[self.starts[row] : self.starts[row + 1]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Events:
    """What happened, in columns: row i of each is event i. Users and arms are rows of the graph and of the arms.

    Attributes:
        user: Who it happened to.
        arm: What was chosen.
        reward: What came of it.
        candidates: What could be chosen, where it was logged (else an empty list); none if it never was.
        propensity: The logger's probability of this choice, where it was logged (else NaN); none if it never was.
        time: When, in seconds since 1970 or any other unit (NaN where it was not logged); none if it never was.
        context: What was different about each moment; none if it was not logged.
        slate: Which slate an event is a place of (-1 where it is of none); none if there are no slates.
        place: Which place it was shown at, from 1 (-1 where it was not logged); none if it never was.
    """

    user: Ints
    arm: Ints
    reward: Floats
    candidates: Ragged | None = None
    propensity: Floats | None = None
    time: Floats | None = None
    context: Contexts | None = None
    slate: Ints | None = None
    place: Ints | None = None

    def __len__(self) -> int:
        return len(self.user)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Users and arms in columns: each row a pair."""

    user: Ints
    arm: Ints

    def __len__(self) -> int:
        return len(self.user)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Log:
    """Users on a graph, arms, and what happened.

    Attributes:
        graph: The users, also those without edges.
        arms: A pool, or the ids alone where arms have no features.
        events: What happened.
        had: What users had besides the events, as the ratings that features were made of: nothing to learn from, and
            nothing to offer as if it were new.
        left_out: What its maker left out, and how many of it.
    """

    graph: UserGraph
    arms: ArmPool | tuple[ArmId, ...]
    events: Events
    had: Pairs | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def arm_ids(self) -> tuple[ArmId, ...]:
        """The ids of the arms, in order."""
        return self.arms.ids if isinstance(self.arms, ArmPool) else self.arms

    @property
    def n_features(self) -> int:
        """How many features an arm has; 0 if arms are ids alone."""
        return self.arms.dimension if isinstance(self.arms, ArmPool) else 0

    def __str__(self) -> str:
        users, arms = f"users {self.graph.n_users:,}, edges {self.graph.n_edges:,}", f"arms {len(self.arm_ids):,}"
        return f"Log: {users}, {arms}, features {self.n_features:,}, events {len(self.events):,}"


def describe(log: Log) -> str:
    """Returns the counts of a log, a line each.

    Examples:
        >>> from coterie.graphs import UserGraph
        >>> graph = UserGraph.from_edges([("ana", "bo")], users=["ana", "bo", "cy"])
        >>> events = Events(user=np.array([0, 2]), arm=np.array([1, 1]), reward=np.array([0.5, 1.0]))
        >>> print(describe(Log(graph=graph, arms=("tea", "milk"), events=events)))
        users              3
          without edges    1
          with events      2
        edges              1
        arms               2
          features         0
          with events      1
        events             2
          rewards          0.5 to 1
          with candidates  0
          with propensity  0
          with time        0
    """
    lines = list(_lines(log))
    width = max(len(name) for name, _ in lines) + 2
    return "\n".join(f"{name:<{width}}{value}" for name, value in lines)


def _lines(log: Log) -> Iterator[tuple[str, str]]:
    events, graph = log.events, log.graph
    yield "users", f"{graph.n_users:,}"
    yield "  without edges", f"{np.count_nonzero(graph.degrees == 0):,}"
    yield "  with events", f"{len(np.unique(events.user)):,}"
    yield "edges", f"{graph.n_edges:,}"
    yield "arms", f"{len(log.arm_ids):,}"
    yield "  features", f"{log.n_features:,}"
    yield "  with events", f"{len(np.unique(events.arm)):,}"
    yield "events", f"{len(events):,}"
    yield "  rewards", f"{events.reward.min():g} to {events.reward.max():g}"
    yield "  with candidates", f"{0 if events.candidates is None else np.count_nonzero(events.candidates.lengths):,}"
    for name, column in (("propensity", events.propensity), ("time", events.time)):
        yield f"  with {name}", f"{0 if column is None else np.count_nonzero(~np.isnan(column)):,}"
    if events.context is not None:
        yield "  context", ", ".join(f"{name} ({column.kind})" for name, column in events.context.columns.items())
    if events.place is not None:
        yield "  with place", f"{np.count_nonzero(events.place > 0):,}"
    if events.slate is not None:
        slates = events.slate[events.slate >= 0]
        yield "  in slates", f"{len(slates):,} of {counted(len(np.unique(slates)), 'slate')}"
    if log.had is not None:
        yield "had besides", f"{len(log.had):,}"
    for name, count in log.left_out.items():
        yield f"left out: {name}", f"{count:,}"
