"""Policies that write out a matrix over all users, made for engine "sparse" by what they amount to."""

from collections.abc import Callable, Mapping
from typing import Any

from coterie.contracts import ArmId, UserId
from coterie.graphs import UserGraph, make_graph
from coterie.kernels import ArmPool
from coterie.policies import make_policy
from coterie.policies.making.recipes import RECIPES

# Users who share nothing are a graph without edges, and ridge 1 is their prior variance of 1.
ALONE = {
    "per-user-linucb": "gob-lin",
    "per-user-lints": "gob-lin-ts",
    "per-user-gp-ucb": "lk-gp-ucb",
    "per-user-gp-ts": "lk-gp-ts",
}
TOGETHER = {"pooled-linucb": "gob-lin", "pooled-lints": "gob-lin-ts", "gp-ucb": "lk-gp-ucb", "gp-ts": "lk-gp-ts"}
EVERYBODY = "everybody"


def make_suited(policy: str, *, graph: UserGraph, arms: ArmPool, **options: Any) -> Any:
    """Returns the policy; on engine "sparse" users who share nothing have no edges, and users alike are one user.

    Examples:
        >>> from coterie.graphs import make_graph
        >>> pool = ArmPool([[0.0], [1.0]])
        >>> make_suited("pooled-linucb", graph=make_graph("ring", 4), arms=pool, engine="sparse").select(3, [1]).arm
        1
    """
    made: Callable[..., Any] = make_policy
    if options.get("engine") != "sparse" or policy not in {**ALONE, **TOGETHER}:
        return made(policy, graph=graph, arms=arms, **options)
    given = {**_as_given(policy, options), "laplacian_ridge": 1.0, "arms": arms}
    if policy in ALONE:
        return made(ALONE[policy], graph=without_edges(graph), **given)
    return AsOne(made(TOGETHER[policy], graph=UserGraph.from_edges([], users=[EVERYBODY]), **given))


def _as_given(policy: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options with the policy's own defaults where they are not given: its stand-in has others."""
    return {"noise_var": RECIPES[policy].noise_var, "width": RECIPES[policy].width, **options}


def without_edges(graph: UserGraph) -> UserGraph:
    """Returns the same users, alone."""
    return UserGraph.from_matrix(make_graph("empty", graph.n_users).weights, users=graph.users)


class AsOne:
    """A policy that takes everybody to be one user."""

    __slots__ = ("_inside",)

    def __init__(self, inside: Any) -> None:
        self._inside = inside

    def select(self, user: UserId, candidates: Any) -> Any:  # noqa: ARG002 - whoever it is
        """Returns the choice."""
        return self._inside.select(EVERYBODY, candidates)

    def update(self, user: UserId, arm: ArmId, reward: float) -> None:  # noqa: ARG002 - whoever it was
        """Learns a reward."""
        self._inside.update(EVERYBODY, arm, reward)
