"""A log in words."""

from collections.abc import Iterator

import numpy as np

from coterie.logs.log import Log


def describe(log: Log) -> str:
    """Returns the counts of a log, a line each.

    Examples:
        >>> from coterie.graphs import UserGraph
        >>> from coterie.logs.log import Events
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
    if log.had is not None:
        yield "had besides", f"{len(log.had):,}"
    for name, count in log.left_out.items():
        yield f"left out: {name}", f"{count:,}"
