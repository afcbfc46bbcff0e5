"""What goes into a policy: a recipe's parts, or the caller's own where the recipe leaves room."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from coterie.errors import ParameterError, UnknownNameError, listed, or_similar
from coterie.errors.checks import as_list, is_number
from coterie.graphs import UserGraph
from coterie.kernels import ArmKernel, ArmPool, FreeKernel, Green, JointKernel, UserKernel, pool_kernel
from coterie.kernels.arm import median_distance
from coterie.kernels.graph_kernel import GraphKernel, graph_kernel
from coterie.kernels.group_kernel import group_kernel
from coterie.kernels.input_space import InputSpace
from coterie.kernels.schema import ContextSchema
from coterie.models import Model, make_model
from coterie.models.choose import INPUT_ENGINES, LARGE_ENGINES, only_limit
from coterie.models.engines.local import LocalModel
from coterie.models.requirements import check_users_fit
from coterie.policies.adaptation.clusters import Clusters
from coterie.policies.adaptation.followers import Follower, ScheduledNoise, SpectralSchedule
from coterie.policies.adaptation.joined_clusters import JoinedClusters, joined_at_first
from coterie.policies.adaptation.similarity import LearnedSimilarity
from coterie.policies.auto import AutoPolicy, make_auto_policy
from coterie.policies.auto.auto_policy import LIKELIHOODS
from coterie.policies.factory.engine_choice import group_labels
from coterie.policies.factory.recipes import RECIPES, Recipe
from coterie.policies.rules.scores import Score, ScoreFunction, as_score

CLUSTER_WIDTH = 0.5
LEARNED = "learned"  # the effect of places of a slate

_HINTS: Mapping[str, tuple[type, str]] = {
    "graph": (UserGraph, "Use UserGraph.from_edges, from_networkx, from_matrix or from_table"),
    "arms": (ArmPool, "Pass ArmPool(features, ids=...)"),
    "arm_kernel": (ArmKernel, "Pass an instance, such as SquaredExponential(1.0)"),
    "user_kernel": (UserKernel, "Pass an instance, such as Heat(time=1.0), or GivenMatrix(matrix)"),
}


def check_types(**given: Any) -> None:
    """Raises if one of these parts is not what it must be, or if there are no users."""
    for what, value in given.items():
        kind, remedy = _HINTS[what]
        if value is not None and not isinstance(value, kind):
            met = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
            raise ParameterError(f"{what} is {met}", f"it must be a coterie.{kind.__name__}", remedy)
    graph = given["graph"]
    if graph is None:
        remedy = 'Pass UserGraph.from_edges(...), or make_graph("empty", n) for users without friends'
        raise ParameterError("graph is None", "a policy has at least one user", remedy)
    if graph.n_users == 0:
        rule, remedy = "there is at least one", "Name users; they may be without friends"
        raise ParameterError("the graph has no users", rule, remedy)


def refuse_unused(name: str, recipe: Recipe, given: Mapping[str, Any]) -> None:
    """Raises if the caller gives an option that would change nothing; a score of their own may use the width."""
    taken = [*recipe.takes, *(["width"] if given["score"] is not None else [])]
    for what in (each for each, value in given.items() if value is not None and each not in taken):
        rule = f"{name!r} takes {listed(recipe.takes, 10)}"
        instead = next(other for other, each in RECIPES.items() if what in each.takes)
        raise ParameterError(f"{what} was given to {name!r}", rule, f"Leave it out, or use {instead!r}")


def pool_for_auto(name: str, arms: ArmPool | None) -> ArmPool:
    """Returns the pool, or raises if there is none."""
    if arms is None:
        rule = "it learns how alike arms are from a pool of them"
        raise ParameterError(f"{name!r} was asked for without arms", rule, "Pass arms=ArmPool(...)")
    return arms


def checked_likelihood(likelihood: Any, name: str, recipe: Recipe) -> str:
    """Returns the likelihood, or raises if there is none of this name, or the policy cannot have it."""
    if not isinstance(likelihood, str) or likelihood not in LIKELIHOODS:
        remedy = or_similar(likelihood, LIKELIHOODS, "Use one of these")
        raise UnknownNameError(f"likelihood {likelihood!r} is unknown", f"it is one of {listed(LIKELIHOODS)}", remedy)
    if likelihood == "bernoulli" and not recipe.auto:
        rule = "only policies that learn their hyperparameters have it"
        raise ParameterError(f"likelihood 'bernoulli' was asked for with {name!r}", rule, "Use 'auto-ucb' or 'auto-ts'")
    return likelihood


def auto_maker(engine: str, likelihood: str) -> Callable[..., AutoPolicy]:
    """Returns what makes a policy that learns its hyperparameters, for this engine and likelihood."""
    if engine in LARGE_ENGINES:
        raise ParameterError(
            f"engine {engine!r} was asked for with a policy that learns its hyperparameters",
            "these run on 'local' at any size, or on an exact engine by name",
            "Leave the engine out",
        )
    return partial(make_auto_policy, likelihood=likelihood, matrices=engine not in ("auto", "local"))


def inputs_for(
    name: str,
    recipe: Recipe,
    likelihood: str,
    engine: str,
    arms: ArmPool | None,
    context_schema: Any,
    request_features: Any,
    places: Any,
) -> InputSpace:
    """Returns what makes rows of arms and contexts, for a policy that takes contexts; raises for others."""
    if not recipe.auto or likelihood != "gaussian":
        raise ParameterError(
            f"contexts, places or features of users were given to {name!r} with likelihood {likelihood!r}",
            "an auto-* policy of likelihood 'gaussian' learns from them",
            "Use 'auto-ucb' or 'auto-ts' with that likelihood, or leave them out",
        )
    if engine not in ("auto", *INPUT_ENGINES):
        rule = f"engines that know them are {listed(INPUT_ENGINES)}"
        what = f"engine {engine!r} was asked for with contexts, or features of users"
        raise ParameterError(what, rule, "Leave the engine out")
    schema = ContextSchema() if context_schema is None else ContextSchema.of(context_schema)
    named = tuple(as_list("request_features", request_features or ()))
    if len(set(named)) < len(named) or not all(isinstance(each, str) for each in named):
        raise ParameterError(f"request_features are {listed(named)}", "they are distinct names", "Name each once")
    twice = [name for name in named if arms is not None and name in (arms.feature_names or ())]
    if twice:
        what, rule = f"request_features {listed(twice)} are features of the arms", "a name is one or the other"
        raise ParameterError(what, rule, "Rename it, or leave it out of the pool")
    if places not in (None, LEARNED):
        rule = f"it is {LEARNED!r}, or None where they have no effect"
        raise ParameterError(f"places is {places!r}", rule, "Choose one; a Bandit takes given effects too")
    return InputSpace(pool_for_auto(name, arms), schema, named, has_places=places == LEARNED)


def model_maker(
    engine: str, expected_rounds: int | None, engine_options: Mapping[str, Any] | None
) -> Callable[..., Model]:
    """Returns what makes the model of a policy that learns its hyperparameters, on a kernel."""
    if engine == "auto":
        only_limit(engine_options)
        return bounded_model
    return partial(make_model, engine=engine, expected_rounds=expected_rounds, engine_options=engine_options)


def bounded_model(kernel: JointKernel, *, noise_var: float) -> Model:
    """Returns the model that a policy that learns its hyperparameters has unless another is asked for."""
    model = LocalModel(kernel, noise_var=noise_var)
    model.reason = "chosen because its cost is bounded, whatever the sizes"
    return model


def score_for(name: str, recipe: Recipe, sampling: str | None, given: ScoreFunction | None) -> Score:
    """Returns the caller's score, or the recipe's for this way of sampling."""
    if given is not None:
        return _own_score(sampling, given)
    if sampling is None:
        return next(iter(recipe.scores.values()))
    if isinstance(sampling, str) and sampling in recipe.scores:
        return recipe.scores[sampling]
    remedy = or_similar(sampling, recipe.scores, "Use one of these")
    raise UnknownNameError(f"sampling is {sampling!r}", f"{name!r} knows {listed(recipe.scores)}", remedy)


def _own_score(sampling: str | None, given: Any) -> Score:
    if sampling is not None:
        raise ParameterError(
            f"both score and sampling={sampling!r} were given", "a score does its own sampling", "Leave one out"
        )
    if not callable(given) or isinstance(given, type):
        rule = "it is a function of mean, std, width and keywords that returns one number for each candidate"
        raise ParameterError(f"score is {given!r}", rule, "Pass such a function, as in coterie.policies.rules.scores")
    return as_score(given)


def similarity_for(name: str, recipe: Recipe, given: str | None) -> str | None:
    """Returns the name of the user similarity, if the policy has a choice of them."""
    known = recipe.similarities or {}
    if given is None:
        return next(iter(known), None)
    if isinstance(given, str) and given in known:
        return given
    remedy = or_similar(given, known, "Use one of these")
    raise UnknownNameError(f"similarity is {given!r}", f"{name!r} knows {listed(known)}", remedy)


def user_kernel_for(
    recipe: Recipe, given: UserKernel | None, laplacian_ridge: float | None, similarity: str | None
) -> UserKernel:
    """Returns the caller's user kernel, or the recipe's."""
    if given is None:
        make = recipe.users if similarity is None else (recipe.similarities or {})[similarity]
        return make(recipe.laplacian_ridge if laplacian_ridge is None else laplacian_ridge)
    if laplacian_ridge is not None:
        raise ParameterError(
            "both user_kernel and laplacian_ridge were given",
            "the ridge is that of the kernel which a policy has by default",
            "Leave it out, or pass user_kernel=Green(laplacian_ridge=...)",
        )
    return given


def joint_kernel_for(
    users: UserKernel,
    graph: UserGraph,
    arm_kernel: ArmKernel,
    arms: ArmPool | None,
    engine: str,
    features: Mapping[str, Any] | None = None,
) -> JointKernel:
    """Returns the product of the two kernels, on the pool if there is one; engine "sparse" takes the graph itself.

    Engine "groups" takes the group of each user.
    """
    if engine == "sparse":
        return _graph_kernel_for(users, graph, arm_kernel, arms, features or {})
    if engine == "groups":
        labels = group_labels(users, graph, arms)
        assert arms is not None
        return group_kernel(labels, arm_kernel, arms, **(features or {}))
    check_users_fit(graph.n_users)
    if arms is not None:
        return pool_kernel(users.matrix(graph), arm_kernel, arms)
    if not arm_kernel.resolved:
        raise ParameterError(
            f"arm_kernel is {arm_kernel!r}, the default perhaps, and there is no pool of arms",
            'lengthscale "median" is the median distance over a pool',
            "Pass arm_kernel=SquaredExponential(1.0) or another with a number, or arms=ArmPool(...)",
        )
    return FreeKernel(users.matrix(graph), arm_kernel)


def _graph_kernel_for(
    users: UserKernel, graph: UserGraph, arm_kernel: ArmKernel, arms: ArmPool | None, features: Mapping[str, Any]
) -> GraphKernel:
    if not isinstance(users, Green) or users.power != 1.0 or arms is None:
        raise ParameterError(
            f"engine 'sparse' was asked for with {users!r} and {arms!r}",
            "it knows the user kernel Green of power 1, and a pool of arms",
            "Pass user_kernel=Green(...) and arms=ArmPool(...), or use another engine",
        )
    ridge, normalised = users.laplacian_ridge, users.normalised
    return graph_kernel(graph, arm_kernel, arms, laplacian_ridge=ridge, normalised=normalised, **features)


def learned_similarity(arms: ArmPool | None, seed: int) -> LearnedSimilarity:
    """Returns the learned similarity, its bandwidth the median distance over the pool, or 1 without one."""
    if arms is None:
        return LearnedSimilarity(lengthscale=1.0, seed=seed)
    return LearnedSimilarity(lengthscale=median_distance(arms.features), pool=arms.features, seed=seed)


def clusters_for(
    recipe: Recipe, given: Any, graph: UserGraph, arms: ArmPool | None, engine: str, seed: int
) -> list[Follower]:
    """Returns the clusters of users, if the policy has them, in the form that the engine can follow."""
    if not recipe.clustered:
        return []
    width = CLUSTER_WIDTH if given is None else given
    if not (is_number(width) and width > 0):
        raise ParameterError(
            f"cluster_width is {given!r}", "it is a finite number > 0", f"Choose, say, {CLUSTER_WIDTH}"
        )
    if engine == "groups" and arms is not None:
        return [JoinedClusters(joined_at_first(graph.n_users, seed), width=float(width), pool=arms.features)]
    check_users_fit(graph.n_users)
    return [Clusters(graph.n_users, width=float(width), pool=None if arms is None else arms.features)]


def scheduled_noise(noise_var: float | SpectralSchedule, graph: UserGraph) -> tuple[float, list[Follower]]:
    """Returns the noise variance to begin with, and what lets it follow its schedule, if it has one."""
    if not isinstance(noise_var, SpectralSchedule):
        return noise_var, []
    follower = ScheduledNoise(schedule=noise_var, spectral_ratio=graph.spectral_ratio)
    return noise_var.value(0, spectral_ratio=graph.spectral_ratio), [follower]
