"""Policies that write out a matrix over all users, made for large graphs by the engine that spares them it."""

from typing import Any

from coterie.graphs import UserGraph, make_graph
from coterie.kernels import ArmPool
from coterie.policies import Policy, make_policy
from coterie.policies.making.recipes import RECIPES

# Users who are alone, one, or in clusters: a study whose engine is "sparse" means "groups" for these.
ALONE = ("per-user-linucb", "per-user-lints", "per-user-gp-ucb", "per-user-gp-ts")
AS_ONE = ("pooled-linucb", "pooled-lints", "gp-ucb", "gp-ts")
IN_GROUPS = frozenset((*ALONE, *AS_ONE, "club"))


def make_suited(policy: str, *, graph: UserGraph, arms: ArmPool, **options: Any) -> Policy:
    """Returns the policy; where "sparse" is asked for and users are in groups, the engine is "groups".

    Policies that learn their hyperparameters then have their own engine. Options of the engine that was asked for are
    left out.

    Examples:
        >>> pool = ArmPool([[0.0], [1.0]])
        >>> make_suited("pooled-linucb", graph=make_graph("ring", 4), arms=pool, engine="sparse").select(3, [1]).arm
        1
    """
    if options.get("engine") == "sparse" and policy in IN_GROUPS:
        options["engine"], options["engine_options"] = "groups", None
    elif options.get("engine") == "sparse" and policy in RECIPES and RECIPES[policy].auto:
        options["engine"], options["engine_options"] = "auto", None
    return make_policy(policy, graph=graph, arms=arms, **options)


def without_edges(graph: UserGraph) -> UserGraph:
    """Returns the same users, alone."""
    return UserGraph.from_matrix(make_graph("empty", graph.n_users).weights, users=graph.users)
