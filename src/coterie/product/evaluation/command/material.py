"""What policies are judged on, wherever it came from."""

from dataclasses import dataclass

import scipy.sparse as sp

from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.product.evaluation.logged import Logged


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What policies are judged on.

    Attributes:
        logged: The decisions.
        graph: Who is near whom.
        arms: The arms.
        notes: What was made of things that were not logged, a sentence each.
    """

    logged: Logged
    graph: UserGraph
    arms: ArmPool
    notes: tuple[str, ...] = ()


def without_edges(graph: UserGraph) -> UserGraph:
    """Returns the same users, who have nothing to do with each other.

    Examples:
        >>> without_edges(UserGraph.from_edges([("ana", "bo")]))
        UserGraph(n_users=2, n_edges=0)
    """
    return UserGraph.from_matrix(sp.csr_array((graph.n_users, graph.n_users)), users=graph.users)
