"""The engine that "auto" means, chosen before a kernel is made: one over all pairs of users may not fit."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import ParameterError, UnknownNameError, listed, or_similar
from coterie.errors.checks import check_whole
from coterie.graphs import UserGraph
from coterie.kernels import AllOnes, ArmKernel, ArmPool, Green, Independent, Linear, UserKernel
from coterie.kernels.arm_features import MAX_FEATURES, MOST_EIGEN
from coterie.models.choose import LARGE_ENGINES, OPTIONS
from coterie.models.requirements import check_users_fit
from coterie.models.sparse_choice import GraphSizes, choose_sparse
from coterie.policies.adaptation.joined_clusters import ALL_JOINED

FEATURE_OPTIONS = ("feature_error", "max_features")


def suited_engine(
    engine: str,
    users: UserKernel,
    graph: UserGraph,
    arm_kernel: ArmKernel,
    arms: ArmPool | None,
    expected_rounds: int | None = None,
    engine_options: Mapping[str, Any] | None = None,
) -> tuple[str, str]:
    """Returns "sparse" if "auto" is to mean that, else the engine asked for; and why, where that is a question.

    Examples:
        >>> from coterie.graphs import make_graph
        >>> suited_engine("auto", Green(), make_graph("ring", 10), Linear(), ArmPool(np.eye(2)))
        ('auto', '')
    """
    if engine != "sparse" and isinstance(users, Green) and (engine != "auto" or arms is None or users.power != 1.0):
        check_users_fit(graph.n_users)
    if engine != "auto" or arms is None or not isinstance(users, Green) or users.power != 1.0:
        return engine, ""
    given = engine_options if isinstance(engine_options, Mapping) else {}  # what is not is refused where it is used
    limit = given.get("memory_limit")
    for name, value in (("expected_rounds", expected_rounds), ("memory_limit", limit)):
        if value is not None:
            check_whole(name, value)
    verdict = choose_sparse(
        sizes_of(users, graph, arm_kernel, arms), expected_rounds=expected_rounds, memory_limit=limit
    )
    return ("sparse" if verdict.sparse else engine), verdict.why


def sizes_of(users: Green, graph: UserGraph, arm_kernel: ArmKernel, arms: ArmPool) -> GraphSizes:
    """Returns what the choice depends on; O(users). A kernel that is not linear may need all features it can have."""
    own = arms.dimension + 1 if isinstance(arm_kernel, Linear) else MAX_FEATURES
    diagonal = 1.0 if users.normalised else float(np.mean(graph.degrees))
    return GraphSizes(
        n_users=graph.n_users,
        n_edges=graph.n_edges,
        n_arms=len(arms),
        n_features=min(own, len(arms)),
        ridge=users.laplacian_ridge,
        diagonal=diagonal + users.laplacian_ridge,
    )


def feature_options(engine: str, given: Mapping[str, Any] | None) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    """Returns the options that are the kernel's on "sparse" and "groups", and those that are left for the model.

    Examples:
        >>> feature_options("sparse", {"eps": 0.5, "max_features": 8})
        ({'max_features': 8}, {'eps': 0.5})

    Raises:
        UnknownNameError: If an option is neither's.
    """
    if engine not in list(LARGE_ENGINES) or not isinstance(given, Mapping):
        return {}, given
    known = sorted(OPTIONS[engine].union(FEATURE_OPTIONS))
    for name in given:
        if name not in known and name != "memory_limit":
            rule = f"options of engine {engine!r} are {listed(known, 10)}"
            raise UnknownNameError(
                f"engine option {name!r} is unknown", rule, or_similar(name, known, "Use one of these")
            )
    features = {name: given[name] for name in FEATURE_OPTIONS if name in given}
    return features, {name: value for name, value in given.items() if name not in FEATURE_OPTIONS}


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
