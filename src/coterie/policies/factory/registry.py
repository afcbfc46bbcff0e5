"""Policies by name."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from coterie.errors import ParameterError, UnknownNameError, listed, or_similar
from coterie.errors.checks import check_whole
from coterie.graphs import UserGraph
from coterie.kernels import ArmKernel, ArmPool, UserKernel
from coterie.kernels.user_features import user_rows
from coterie.models import make_model
from coterie.models.requirements import check_users_fit
from coterie.policies.adaptation.followers import SpectralSchedule
from coterie.policies.auto.context_policy import make_context_policy
from coterie.policies.certified import CertifiedPolicy, check_certifiable, is_certified, refuse_certified
from coterie.policies.factory.engine_choice import feature_options, suited_engine, suited_groups
from coterie.policies.factory.ingredients import (
    auto_maker,
    check_types,
    checked_likelihood,
    clusters_for,
    inputs_for,
    joint_kernel_for,
    learned_similarity,
    model_maker,
    pool_for_auto,
    refuse_unused,
    scheduled_noise,
    score_for,
    similarity_for,
    user_kernel_for,
)
from coterie.policies.factory.recipes import OUT_OF_REACH, RECIPES, Recipe
from coterie.policies.policy import Policy
from coterie.policies.rules.draws import checked_seed
from coterie.policies.rules.scores import ScoreFunction
from coterie.policies.rules.widths import Width, checked_width
from coterie.policies.staged import DEFAULT_ROUNDS, StagedPolicy, refuse_bounds


def list_policies() -> list[str]:
    """Returns the names of the policies, sorted: those that `make_policy` knows, and the laboratory's "oracle".

    Examples:
        >>> "lk-gp-ucb" in list_policies()
        True
    """
    return sorted([*RECIPES, *OUT_OF_REACH])


def summary(name: str) -> str:
    """Returns one line about a policy of `list_policies`.

    Examples:
        >>> summary("random")
        'anything, always'
    """
    return OUT_OF_REACH[name] if name in OUT_OF_REACH else RECIPES[name].summary


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
    score: ScoreFunction | None = None,
    cluster_width: float | None = None,
    likelihood: str = "gaussian",
    context_schema: Any = None,
    request_features: Iterable[str] | None = None,
    users: Mapping[Any, Any] | None = None,
    places: str | None = None,
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
        score: Your own: a function of mean, std, width and keywords (see `coterie.policies.rules.scores`) that
            returns one number for each candidate, the highest to be chosen. It takes the place of the policy's.
        cluster_width: For club, how far apart two users' estimates may be before they part. Default 0.5.
        likelihood: For auto-*, "gaussian" or, for rewards of 0 and 1, "bernoulli": it learns logits of probabilities.
        context_schema: For auto-*, what a context holds: a mapping from names to "number", "flag", "category" or a list
            of categories, or how many numbers a row has. `select` and `update` then take `context=`.
        request_features: For auto-*, names of features of an arm that each request gives, such as a price.
        users: For auto-*, what is known of each user beside the graph: mappings, or rows of numbers, by id.
        places: For auto-*, "learned" if rewards may depend on the place of a slate (`rank`), as on a category of the
            context; by default they do not.
        engine: "dense", "exact", "features", "grid", "hybrid", "linear" or, for large graphs, "sparse", or "groups"
            where users are pooled, alone or in clusters; "auto" chooses by cost and memory, and `describe()` says why.
        expected_rounds: A hint for "auto"; for sup-kernel-ucb also the T that its stages are laid out for, default
            1000.
        engine_options: memory_limit in bytes (all but dense and exact); block_size (grid); switch_after (hybrid);
            user_rank, arm_rank, correction (features); near_rows (local); trend_features, exact_rows (local, and
            features where arms have contexts); eps, accuracy, max_work, certified (sparse); feature_error, max_features
            (sparse, groups).
        seed: Fixes the randomness; a decision's depends on (seed, decision number) only.
        **unknown: Refused, with the list of what is known.

    Examples:
        >>> graph = UserGraph.from_edges([("ana", "bo")])
        >>> arms = ArmPool([[0.0], [1.0]], ids=["tea", "coffee"])
        >>> policy = make_policy("lk-gp-ucb", graph=graph, arms=arms)
        >>> policy.update("ana", "tea", reward=1.0)
        >>> choice = policy.select("bo", ["tea", "coffee"])
        >>> choice.arm, round(choice.mean, 2), round(choice.std, 2)     # bo has learned of coffee too, but less
        ('coffee', 0.55, 1.91)
        >>> def careful(mean, std, width, **_):
        ...     return mean - width * std
        >>> mine = make_policy("gp-ucb", graph=graph, arms=arms, score=careful)
        >>> mine.update("ana", "tea", reward=1.0)
        >>> mine.select("bo").arm
        'tea'
    """
    recipe = _recipe(name)
    refuse_unknown(unknown, OPTION_NAMES)
    check_types(graph=graph, arms=arms, arm_kernel=arm_kernel, user_kernel=user_kernel)
    likelihood = checked_likelihood(likelihood, name, recipe)
    given: dict[str, Any] = {"arm_kernel": arm_kernel, "user_kernel": user_kernel, "laplacian_ridge": laplacian_ridge}
    given |= {"noise_var": noise_var, "width": width, "sampling": sampling, "similarity": similarity}
    refuse_unused(name, recipe, {**given, "score": score, "cluster_width": cluster_width})
    inputs = None
    if any(each is not None for each in (context_schema, request_features, users, places)):
        inputs = inputs_for(name, recipe, likelihood, engine, arms, context_schema, request_features, places)
    if recipe.auto:
        pool = pool_for_auto(name, arms)
        refuse_certified(name, engine_options)
        maker = auto_maker(engine, likelihood)
        if likelihood == "bernoulli" or engine not in ("auto", "local"):
            check_users_fit(graph.n_users)
        parts: dict[str, Any] = {
            "make": model_maker(engine, expected_rounds, engine_options),
            "name": name,
            "graph": graph,
            "score": score_for(name, recipe, sampling, score),
            "width": checked_width(recipe.width if width is None else width),
            "seed": checked_seed(seed),
        }
        if inputs is None:
            return maker(arms=pool, **parts)
        traits = None if users is None else user_rows(graph.users, users)
        matrices = engine not in ("auto", "local")
        return make_context_policy(inputs=inputs, traits=traits, matrices=matrices, **parts)
    given_noise = recipe.noise_var if noise_var is None else noise_var
    if isinstance(given_noise, SpectralSchedule):
        expected_rounds = expected_rounds or given_noise.horizon
    if recipe.staged:
        refuse_bounds(name, engine)
        expected_rounds = DEFAULT_ROUNDS if expected_rounds is None else expected_rounds
    first_noise, followers = scheduled_noise(given_noise, graph)
    rule, seed = score_for(name, recipe, sampling, score), checked_seed(seed)
    chosen = similarity_for(name, recipe, similarity)
    alike = user_kernel_for(recipe, user_kernel, laplacian_ridge, chosen)
    learned = learned_similarity(arms, seed) if chosen == "learned_mmd" else None
    similar_arms = recipe.arm_kernel if arm_kernel is None else arm_kernel
    suited, why = engine, ""
    if not (learned or recipe.staged):
        suited, why = suited_groups(engine, alike, graph, arms)
    followers += clusters_for(recipe, cluster_width, graph, arms, suited, seed)
    if suited == engine and not (followers or learned or recipe.staged):
        # these change the covariance of all users, or ask for it
        suited, why = suited_engine(engine, alike, graph, similar_arms, arms, expected_rounds, engine_options)
    features, engine_options = feature_options(engine, engine_options)
    make = partial(
        make_model,
        joint_kernel_for(alike, graph, similar_arms, arms, suited, features),
        engine=engine,
        why=why,
        expected_rounds=expected_rounds,
        refresh_every=learned.every if learned else None,
        clusters=recipe.clustered,
        engine_options=engine_options,
    )
    parts = {
        "name": name,
        "graph": graph,
        "arms": arms,
        "width": checked_width(recipe.width if width is None else width),
        "followers": [*followers, *([learned] if learned else [])],
        "seed": seed,
        "user_kernel": alike,
    }
    certified = engine == "sparse" and is_certified(engine_options)
    if certified:
        check_certifiable(name, rule, parts["width"])
    if expected_rounds is not None and recipe.staged:
        check_whole("expected_rounds", expected_rounds)
        return StagedPolicy(make=make, noise_var=first_noise, rounds=expected_rounds, **parts)
    return (CertifiedPolicy if certified else Policy)(model=make(noise_var=first_noise), score=rule, **parts)


OPTION_NAMES = ["graph", *(make_policy.__kwdefaults__ or {})]


def _recipe(name: str) -> Recipe:
    if isinstance(name, str) and name in RECIPES:
        return RECIPES[name]
    if isinstance(name, str) and name in OUT_OF_REACH:
        rule = "it must know the truth, which no policy can reach"
        raise ParameterError(f"policy {name!r} was asked for", rule, "Name it in a study: the laboratory builds it")
    known = sorted(RECIPES)
    remedy = or_similar(name, known, "Use one of these")
    raise UnknownNameError(f"policy {name!r} is unknown", f"policies are {listed(known, 40)}", remedy)


def refuse_unknown(options: Iterable[str], known: Sequence[str]) -> None:
    """Raises if one of these options is not known."""
    for wrong in sorted(set(options) - set(known)):
        raise UnknownNameError(
            f"option {wrong!r} is unknown",
            f"options are {listed(dict.fromkeys(known), 40)}",
            or_similar(wrong, known, "Use one of these"),
        )
