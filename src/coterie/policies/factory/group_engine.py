"""Where users are pooled, alone or in clusters: groups that share nothing, which need no matrix over users."""

import numpy as np
from numpy.typing import NDArray

from coterie.errors import ParameterError
from coterie.graphs import UserGraph
from coterie.kernels import AllOnes, ArmPool, Independent, UserKernel
from coterie.kernels.arm_features import MOST_EIGEN
from coterie.policies.adaptation.joined_clusters import ALL_JOINED

Labels = NDArray[np.int64]


def suited_groups(engine: str, users: UserKernel, graph: UserGraph, arms: ArmPool | None) -> tuple[str, str]:
    """Returns "groups" if "auto" is to mean that, and why; else the engine asked for.

    Up to 2,000 users and 2,000 arms the exact engines have matrices over both.

    Examples:
        >>> from coterie.graphs import make_graph
        >>> suited_groups("auto", AllOnes(), make_graph("empty", 3_000), ArmPool(np.eye(2)))
        ('groups', '; a matrix over all 3000 users, or over all 2 arms, is spared')
        >>> suited_groups("auto", AllOnes(), make_graph("empty", 300), ArmPool(np.eye(2)))
        ('auto', '')
    """
    many = graph.n_users > ALL_JOINED or (arms is not None and len(arms) > MOST_EIGEN)
    if engine != "auto" or arms is None or not many or not isinstance(users, AllOnes | Independent):
        return engine, ""
    return "groups", f"; a matrix over all {graph.n_users} users, or over all {len(arms)} arms, is spared"


def group_labels(users: UserKernel, graph: UserGraph, arms: ArmPool | None) -> Labels:
    """Returns the group of each user: one for everybody, or one each.

    Raises:
        ParameterError: If users are not in groups, or there is no pool.
    """
    if arms is not None and isinstance(users, AllOnes):
        return np.zeros(graph.n_users, dtype=np.int64)
    if arms is not None and isinstance(users, Independent):
        return np.arange(graph.n_users)
    raise ParameterError(
        f"engine 'groups' was asked for with {users!r} and {arms!r}",
        "it knows users who are pooled, alone or in clusters (AllOnes, Independent, 'club'), and a pool of arms",
        "Pass arms=ArmPool(...) and one of these, or use another engine",
    )
