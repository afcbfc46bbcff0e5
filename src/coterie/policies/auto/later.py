"""What comes while a fit goes on, rewards and changes of graph, as plain values to be saved."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from coterie.graphs import Difference, UserGraph
from coterie.graphs.versions import Edit

Step = tuple[int, int, float] | Difference


def later_state(steps: list[Step]) -> dict[str, Any]:
    """Returns what `later_steps` makes the same steps from.

    Examples:
        >>> later_state([(3, 1, 0.5), Difference(1, ())])["values"]
        [0.5]
    """
    rewards = [step for step in steps if not isinstance(step, Difference)]
    users, arms, values = zip(*rewards, strict=True) if rewards else ((), (), ())
    changes = [
        {"at": at, "newcomers": step.newcomers, "edges": [_plain(edge) for edge in step.edges]}
        for at, step in enumerate(steps)
        if isinstance(step, Difference)
    ]
    return {"users": list(users), "arms": list(arms), "values": list(values), "changes": changes}


def later_steps(state: dict[str, Any]) -> list[Step]:
    """Returns the steps of a state; files of before know nothing of changes.

    Examples:
        >>> steps = [(3, 1, 0.5), Difference(1, (Edit(0, 4, 0.0, 2.0),)), (4, 0, 1.5)]
        >>> later_steps(later_state(steps)) == steps
        True
    """
    steps: list[Step] = list(zip(state["users"], state["arms"], state["values"], strict=True))
    for change in state.get("changes", ()):
        edges = tuple(Edit(int(i), int(j), old, new) for i, j, old, new in change["edges"])
        steps.insert(change["at"], Difference(change["newcomers"], edges))
    return steps


def _plain(edge: Edit) -> list[float]:
    return [int(edge.row), int(edge.other), float(edge.old), float(edge.new)]


def graph_state(graph: UserGraph) -> dict[str, Any]:
    """Returns the weights of a graph as arrays; its users are the first ones of the graph that came of it."""
    weights = graph.weights
    return {"starts": weights.indptr, "near": weights.indices, "weights": weights.data}


def graph_before(graph: UserGraph, state: dict[str, Any]) -> UserGraph:
    """Returns the graph of a state, its users the first ones of this graph."""
    n_users = len(state["starts"]) - 1
    held = (np.asarray(state[name]) for name in ("weights", "near", "starts"))
    weights = sp.csr_array(tuple(held), shape=(n_users, n_users))
    return UserGraph(users=graph.users[:n_users], weights=weights)
