"""Policies by name."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coterie.errors import ParameterError, UnknownNameError, listed, or_similar
from coterie.graphs import UserGraph
from coterie.kernels import ArmKernel, ArmPool, FreeKernel, JointKernel, UserKernel, pool_kernel
from coterie.kernels.arm import median_distance
from coterie.models import make_model
from coterie.policies.draws import checked_seed
from coterie.policies.policy import Policy
from coterie.policies.recipes import RECIPES, Recipe
from coterie.policies.schedules import SpectralSchedule
from coterie.policies.scores import Score
from coterie.policies.similarity import LearnedSimilarity
from coterie.policies.widths import Width, checked_width


def list_policies() -> list[str]:
    """Returns the names that `make_policy` knows, sorted.

    Examples:
        >>> "lk-gp-ucb" in list_policies()
        True
    """
    return sorted(RECIPES)


def make_policy(
    name: str,
    *,
    graph: UserGraph,
    arms: ArmPool | None = None,
    arm_kernel: ArmKernel | None = None,
    user_kernel: UserKernel | None = None,
    laplacian_ridge: float | None = None,
    noise_var: float | SpectralSchedule | None = None,
    width: Width | None = None,
    sampling: str | None = None,
    similarity: str | None = None,
    engine: str = "auto",
    expected_rounds: int | None = None,
    engine_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    **unknown: Any,
) -> Policy:
    """Returns a policy by name; see `list_policies`.

    Args:
        name: Which policy.
        graph: The users and who is near whom.
        arms: The pool of arms. Without one, candidates are rows of an array, `arm_kernel` must be given with a number
            as its lengthscale, and the engine is "exact" or "dense".
        arm_kernel: How alike two arms are; default SquaredExponential("median"). The linear policies have their own.
        user_kernel: How alike two users are; default the paper's Green(laplacian_ridge=laplacian_ridge).
        laplacian_ridge: The paper's rho, > 0, where no user_kernel is given; the smaller, the farther users share.
            Default 0.1 (gob-lin: 1).
        noise_var: The model's noise variance, or a SpectralSchedule. Default 0.01 (linear policies: 1).
        width: What multiplies std: beta for UCB, nu for Thompson sampling; a number or a function of (t, model).
            Default 1. For the linear policies it multiplies std / sqrt(noise_var), the norm in the inverse design
            matrix; for epsilon-greedy it is the probability of a random choice, default 0.1.
        sampling: For Thompson sampling, "independent" by candidate (the paper's, default) or "joint".
        similarity: For coop-kernel-*, "learned_mmd" (the default: from the arms chosen for each user, refreshed every
            200 rounds), "laplacian_inv", "heat", "spectral_rbf" or "all_ones".
        engine: "auto", "dense", "exact", "features", "grid", "hybrid" or "linear".
        expected_rounds: A hint for "auto".
        engine_options: memory_limit in bytes (all but dense and exact); block_size (grid); switch_after (hybrid);
            user_rank, arm_rank, correction (features).
        seed: Fixes the randomness; a decision's depends on (seed, decision number) only.
        **unknown: Refused, with the list of what is known.

    Examples:
        >>> graph = UserGraph.from_edges([("ana", "bo")])
        >>> policy = make_policy("lk-gp-ucb", graph=graph, arms=ArmPool([[0.0], [1.0]], ids=["tea", "coffee"]))
        >>> policy.update("ana", "tea", reward=1.0)
        >>> choice = policy.select("bo", ["tea", "coffee"])
        >>> choice.arm, round(choice.mean, 2), round(choice.std, 2)     # bo has learned of coffee too, but less
        ('coffee', 0.55, 1.91)
    """
    recipe = _recipe(name)
    if unknown:
        wrong = sorted(unknown)[0]
        raise UnknownNameError(
            f"option {wrong!r} is unknown",
            f"options are {listed(_OPTION_NAMES, 20)}",
            or_similar(wrong, _OPTION_NAMES, "Use one of these"),
        )
    _check_types(graph=graph, arms=arms, arm_kernel=arm_kernel, user_kernel=user_kernel)
    noise_var = recipe.noise_var if noise_var is None else noise_var
    schedule = noise_var if isinstance(noise_var, SpectralSchedule) else None
    if isinstance(noise_var, SpectralSchedule):
        expected_rounds = expected_rounds or noise_var.horizon
        noise_var = noise_var.value(0, spectral_ratio=graph.spectral_ratio)
    score, seed = _score(name, recipe, sampling), checked_seed(seed)
    width = checked_width(recipe.width if width is None else width)
    chosen = _similarity(name, recipe, similarity)
    if chosen is not None and recipe.similarities is not None:
        recipe = replace(recipe, users=recipe.similarities[chosen])
    users = _user_kernel(name, recipe, user_kernel, laplacian_ridge)
    kernel = _joint_kernel(users, graph, _arm_kernel(name, recipe, arm_kernel), arms)
    learned = _learned(arms, seed) if chosen == "learned_mmd" else None
    model = make_model(
        kernel, noise_var=noise_var, engine=engine, expected_rounds=expected_rounds, engine_options=engine_options
    )
    return Policy(
        name=name,
        graph=graph,
        arms=arms,
        model=model,
        score=score,
        width=width,
        schedule=schedule,
        similarity=learned,
        seed=seed,
    )


_OPTION_NAMES = ["graph", *(make_policy.__kwdefaults__ or {})]


def _recipe(name: str) -> Recipe:
    if isinstance(name, str) and name in RECIPES:
        return RECIPES[name]
    remedy = or_similar(name, RECIPES, "Use one of these")
    raise UnknownNameError(f"policy {name!r} is unknown", f"policies are {listed(list_policies(), 40)}", remedy)


def _score(name: str, recipe: Recipe, sampling: str | None) -> Score:
    if sampling is None:
        return next(iter(recipe.scores.values()))
    if isinstance(sampling, str) and sampling and sampling in recipe.scores:
        return recipe.scores[sampling]
    known = f"it knows {listed(recipe.scores)}" if len(recipe.scores) > 1 else "it draws no samples"
    raise UnknownNameError(f"sampling {sampling!r} was given to {name!r}", known, "Leave it out, or use 'lk-gp-ts'")


def _similarity(name: str, recipe: Recipe, given: str | None) -> str | None:
    """Returns the name of the user similarity, if the policy has a choice of them."""
    known = recipe.similarities or {}
    if given is None:
        return next(iter(known), None)
    if isinstance(given, str) and given in known:
        return given
    rule = f"it knows {listed(known)}" if known else "it has no choice of similarities"
    remedy = or_similar(given, known, "Leave it out, or use 'coop-kernel-ucb'")
    raise UnknownNameError(f"similarity {given!r} was given to {name!r}", rule, remedy)


def _learned(arms: ArmPool | None, seed: int) -> LearnedSimilarity:
    """Returns the learned similarity, its bandwidth the median distance over the pool, or 1 without one."""
    return LearnedSimilarity(lengthscale=1.0 if arms is None else median_distance(arms.features), seed=seed)


def _user_kernel(name: str, recipe: Recipe, given: UserKernel | None, laplacian_ridge: float | None) -> UserKernel:
    if given is None:
        return recipe.users(recipe.laplacian_ridge if laplacian_ridge is None else laplacian_ridge)
    if recipe.own_users:
        raise _not_open(name, "user_kernel", "lk-gp-ucb")
    return given


def _arm_kernel(name: str, recipe: Recipe, given: ArmKernel | None) -> ArmKernel:
    if given is None:
        return recipe.arm_kernel
    if recipe.linear:
        raise _not_open(name, "arm_kernel", "lk-gp-ucb")
    return given


def _not_open(name: str, what: str, instead: str) -> ParameterError:
    return ParameterError(f"{what} was given to {name!r}", f"{name!r} has one of its own", f"Use {instead!r}")


def _joint_kernel(users: UserKernel, graph: UserGraph, arm_kernel: ArmKernel, arms: ArmPool | None) -> JointKernel:
    if arms is not None:
        return pool_kernel(users.matrix(graph), arm_kernel, arms)
    if not arm_kernel.resolved:
        raise ParameterError(
            f"arm_kernel is {arm_kernel!r}, the default perhaps, and there is no pool of arms",
            'lengthscale "median" is the median distance over a pool',
            "Pass arm_kernel=SquaredExponential(1.0) or another with a number, or arms=ArmPool(...)",
        )
    return FreeKernel(users.matrix(graph), arm_kernel)


_HINTS: Mapping[str, tuple[type, str]] = {
    "graph": (UserGraph, "Use UserGraph.from_edges, from_networkx, from_matrix or from_table"),
    "arms": (ArmPool, "Pass ArmPool(features, ids=...)"),
    "arm_kernel": (ArmKernel, "Pass an instance, such as SquaredExponential(1.0)"),
    "user_kernel": (UserKernel, "Pass an instance, such as Heat(time=1.0), or GivenMatrix(matrix)"),
}


def _check_types(**given: Any) -> None:
    for what, value in given.items():
        kind, remedy = _HINTS[what]
        if value is not None and not isinstance(value, kind):
            met = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
            raise ParameterError(f"{what} is {met}", f"it must be a coterie.{kind.__name__}", remedy)
    graph = given["graph"]
    if graph is None or graph.n_users == 0:
        remedy = 'Pass UserGraph.from_edges(...), or make_graph("empty", n) for users without friends'
        raise ParameterError(f"graph is {graph!r}", "a policy has at least one user", remedy)
