"""Which engine for which problem, by a stated cost model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.errors import ParameterError, UnknownNameError, listed, or_similar
from coterie.errors.checks import check_whole
from coterie.kernels.joint import JointKernel, PoolKernel
from coterie.models.base import Model
from coterie.models.costs import exact_cost, grid_cost, linear_cost
from coterie.models.engines.dense import DenseModel
from coterie.models.engines.exact import ExactModel
from coterie.models.engines.features import FeaturesModel
from coterie.models.engines.grid import GridModel, grid_bytes, merged
from coterie.models.engines.groups import GroupsModel
from coterie.models.engines.hybrid import HybridModel
from coterie.models.engines.input_features import InputFeaturesModel
from coterie.models.engines.linear import LinearModel
from coterie.models.engines.local import LocalModel
from coterie.models.engines.sparse import SparseModel
from coterie.models.requirements import available_memory

ENGINES: Mapping[str, type[Model]] = {
    "dense": DenseModel,
    "exact": ExactModel,
    "features": FeaturesModel,
    "grid": GridModel,
    "hybrid": HybridModel,
    "linear": LinearModel,
    "local": LocalModel,
}
# On a GroupKernel and a GraphKernel: these need no matrix over users, and know none.
LARGE_ENGINES: Mapping[str, type[Model]] = {"groups": GroupsModel, "sparse": SparseModel}
ALL_ENGINES: Mapping[str, type[Model]] = {**ENGINES, **LARGE_ENGINES}
# On a kernel of inputs, which are arms in contexts.
INPUT_ENGINES: Mapping[str, type[Model]] = {
    "local": LocalModel,
    "exact": ExactModel,
    "features": InputFeaturesModel,
    "dense": DenseModel,
}
OPTIONS: Mapping[str, frozenset[str]] = {
    "dense": frozenset(),
    "exact": frozenset(),
    "features": frozenset({"user_rank", "arm_rank", "correction", "memory_limit"}),
    "grid": frozenset({"block_size", "memory_limit"}),
    "hybrid": frozenset({"switch_after", "memory_limit"}),
    "linear": frozenset({"memory_limit"}),
    "local": frozenset({"near_rows", "trend_features", "exact_rows"}),
    "groups": frozenset(),
    "sparse": frozenset({"eps", "accuracy", "max_work", "certified"}),
}
INPUT_OPTIONS: Mapping[str, frozenset[str]] = {**OPTIONS, "features": frozenset({"trend_features", "exact_rows"})}

SMALL_GRID = 512
UNSAID_BYTES = 2**28  # that a grid, or weights of all users, may take where nobody says how many rounds there will be


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine chosen, and why."""

    engine: str
    reason: str


def choose_engine(
    kernel: JointKernel,
    *,
    expected_rounds: int | None = None,
    memory_limit: int | None = None,
    refresh_every: int | None = None,
    clusters: bool = False,
) -> EngineChoice:
    """Returns the engine that `engine="auto"` stands for: the cheapest exact one that fits in memory.

    Users who are one and the same to the kernel count once, unless their covariance is to be replaced every
    `refresh_every` rounds: then each such rebuild counts. With `clusters` it will be replaced by others that are 1
    within a cluster and 0 across.

    Examples:
        >>> import numpy as np
        >>> choose_engine(PoolKernel(np.eye(20) + 1, np.eye(10))).engine
        'grid'
        >>> choose_engine(PoolKernel(np.eye(200) + 1, np.eye(50)), expected_rounds=100).engine
        'exact'
        >>> choose_engine(PoolKernel(np.eye(200) + 1, np.ones((50, 50)))).engine     # one feature
        'linear'
        >>> choose_engine(PoolKernel(np.ones((200, 200)), np.eye(50))).engine     # 200 users who are one
        'grid'
    """
    if kernel.only_engine is not None:
        return EngineChoice(kernel.only_engine, f"chosen because {kernel.why_only}")
    if kernel.has_inputs:
        return EngineChoice("local", "chosen because its cost is bounded, whatever the contexts")
    if not isinstance(kernel, PoolKernel):
        return EngineChoice("exact", "chosen because there is no pool of arms")
    smaller = merged(kernel)[1] if refresh_every is None else kernel
    if clusters or (refresh_every is None and smaller.shares_nothing and smaller.n_users > 1):
        return EngineChoice("linear", "chosen because the users share nothing, so each has a small belief alone")
    allowed = available_memory() if memory_limit is None else memory_limit
    if expected_rounds is None and memory_limit is None:
        allowed = min(allowed, UNSAID_BYTES)
    n_features = int(np.linalg.matrix_rank(kernel.arm_cov, hermitian=True))
    few = 2 * n_features <= kernel.n_arms and smaller.n_pairs > SMALL_GRID
    fitting = {
        "grid": grid_bytes(smaller.n_pairs) <= allowed,
        "linear": few and grid_bytes(smaller.n_users * n_features) <= allowed,
    }
    if expected_rounds is None:
        return _without_rounds(kernel, smaller, fitting, n_features, allowed, refresh_every)
    costs = {"exact": exact_cost(kernel.n_pairs, expected_rounds, refresh_every)}
    if fitting["grid"]:
        costs["grid"] = grid_cost(smaller.n_pairs, expected_rounds, refresh_every)
    if fitting["linear"]:
        n_weights = smaller.n_users * n_features
        costs["linear"] = linear_cost(n_weights, kernel.n_pairs, expected_rounds, refresh_every)
    stated = ", ".join(f"{cost:.2g} on {engine!r}" for engine, cost in sorted(costs.items()))
    return EngineChoice(
        min(costs, key=lambda engine: costs[engine]),
        f"chosen because {expected_rounds} rounds on {_pairs(kernel, smaller)} cost about as many multiply-adds as "
        f"{stated}{'' if fitting['grid'] else _too_large(smaller, allowed)}",
    )


def _without_rounds(
    kernel: PoolKernel,
    smaller: PoolKernel,
    fitting: Mapping[str, bool],
    n_features: int,
    allowed: int,
    refresh_every: int | None,
) -> EngineChoice:
    """Returns the engine where nobody says how many rounds there will be."""
    pairs = _pairs(kernel, smaller)
    if fitting["grid"] and smaller.n_pairs <= SMALL_GRID:
        return EngineChoice("grid", f"chosen because the grid of {pairs} is small")
    if refresh_every is not None:
        often = f"the users' covariance is replaced every {refresh_every} rounds"
        return EngineChoice("exact", f"chosen because {often}, which costs too much on the grid of {pairs}")
    if fitting["linear"]:
        return EngineChoice("linear", f"chosen because the {kernel.n_arms} arms have only {n_features} features")
    if not fitting["grid"]:
        return EngineChoice("exact", f"chosen for {pairs}{_too_large(smaller, allowed)}")
    often = "the number of rounds is not known: exact while they are few, then"
    return EngineChoice("hybrid", f"chosen because {often} the grid of {pairs}")


def _pairs(kernel: PoolKernel, smaller: PoolKernel) -> str:
    alike = "" if smaller is kernel else f", {smaller.n_users} of them distinct,"
    return f"{kernel.n_users} users{alike} x {kernel.n_arms} arms = {smaller.n_pairs} pairs"


def _too_large(smaller: PoolKernel, allowed: int) -> str:
    return f"; the grid would need {grid_bytes(smaller.n_pairs) / 2**30:.1f} GiB and {allowed / 2**30:.1f} are allowed"


def make_model(
    kernel: JointKernel,
    *,
    noise_var: float = 0.01,
    engine: str = "auto",
    expected_rounds: int | None = None,
    refresh_every: int | None = None,
    clusters: bool = False,
    engine_options: Mapping[str, Any] | None = None,
    why: str = "",
) -> Model:
    """Returns a model on this kernel; `engine="auto"` chooses by cost and `model.describe()` says why.

    Args:
        kernel: How alike two (user, arm) pairs are: `pool_kernel(user_cov, arm_kernel, pool)`, or
            `FreeKernel(user_cov, arm_kernel)` for arms that are not known beforehand, or
            `graph_kernel(graph, arm_kernel, pool)` for engine "sparse", `group_kernel(labels, arm_kernel, pool)` for
            "groups".
        noise_var: The noise variance of the rewards.
        engine: "auto", "dense", "exact", "features", "grid", "hybrid", "linear"; "sparse" on a GraphKernel, "groups"
            on a GroupKernel.
        expected_rounds: A hint for "auto".
        refresh_every: A hint for "auto": how often, in rounds, the user covariance will be replaced.
        clusters: A hint for "auto": whether it will always be 1 within a cluster of users and 0 across.
        engine_options: memory_limit in bytes (all but dense and exact); block_size (grid); switch_after (hybrid);
            user_rank, arm_rank, correction (features); near_rows (local); trend_features, exact_rows (local, and
            features where arms have contexts); eps, accuracy, max_work, certified (sparse).
        why: What "auto" adds to the reason that `model.describe()` gives: why the kernel was made as it was.

    Examples:
        >>> import numpy as np
        >>> make_model(PoolKernel(np.eye(2), np.eye(3)), engine="exact").engine
        'exact'
    """
    if not isinstance(kernel, JointKernel):
        remedy = "Use pool_kernel(user_cov, arm_kernel, pool), or FreeKernel(user_cov, arm_kernel)"
        raise ParameterError(f"the kernel is a {type(kernel).__name__}", "it must be a JointKernel", remedy)
    options = _checked_options(engine_options)
    if expected_rounds is not None:
        check_whole("expected_rounds", expected_rounds)
    reason = "asked for by name"
    if engine == "auto":
        limit = only_limit(options)
        choice = choose_engine(
            kernel,
            expected_rounds=expected_rounds,
            memory_limit=limit,
            refresh_every=refresh_every,
            clusters=clusters,
        )
        engine, reason, options = choice.engine, choice.reason + why, {}
        if limit is not None and "memory_limit" in OPTIONS[engine]:
            options["memory_limit"] = limit
    if not isinstance(engine, str) or engine not in ALL_ENGINES:
        remedy = or_similar(engine, ALL_ENGINES, "Use one of these")
        raise UnknownNameError(f"engine {engine!r} is unknown", f"engines are 'auto', {listed(ALL_ENGINES, 8)}", remedy)
    allowed = (INPUT_OPTIONS if kernel.has_inputs else OPTIONS)[engine]
    unknown = sorted(set(options) - allowed)
    if unknown:
        known = listed(sorted(allowed)) or "none"
        whose = f"engine {engine!r} with contexts" if kernel.has_inputs else f"engine {engine!r}"
        is_of_inputs = unknown[0] in INPUT_OPTIONS[engine]
        remedy = "State context_schema, with which it is known" if is_of_inputs else "Use one of these"
        raise UnknownNameError(f"engine option {unknown[0]!r} is unknown", f"options of {whose} are {known}", remedy)
    model = _class_of(engine, kernel)(kernel, noise_var=noise_var, **options)
    model.reason = reason
    return model


def restore_model(state: dict[str, Any], kernel: JointKernel) -> Model:
    """Returns the model whose `state()` this is, to the bit, on the kernel that it had; it takes over the arrays.

    `is_sound` says whether it is the posterior that its history gives.

    Examples:
        >>> import numpy as np
        >>> kernel = PoolKernel(np.eye(1), np.eye(2))
        >>> model = make_model(kernel, noise_var=1.0)
        >>> model.update(0, 1, 2.0)
        >>> again = restore_model(model.state(), kernel)
        >>> again.predict(0)[0], again.is_sound()
        (array([0., 1.]), True)
    """
    return _class_of(state["engine"], kernel).restored(state, kernel)


def _class_of(engine: str, kernel: JointKernel) -> type[Model]:
    """Returns the model of an engine, for arms or for inputs."""
    return INPUT_ENGINES.get(engine, ALL_ENGINES[engine]) if kernel.has_inputs else ALL_ENGINES[engine]


def default_options(engine: str) -> dict[str, Any]:
    """Returns what the options of an engine are where nobody names them.

    Examples:
        >>> default_options("sparse")["eps"]
        0.1
    """
    return dict(ALL_ENGINES[engine].__init__.__kwdefaults__ or {})


def only_limit(engine_options: Mapping[str, Any] | None) -> int | None:
    """Returns the memory limit, which engine "auto" takes, and raises if there is any other option."""
    options = _checked_options(engine_options)
    limit: int | None = options.pop("memory_limit", None)
    if options:
        raise UnknownNameError(
            f"engine_options {listed(sorted(options))} with engine 'auto'",
            "only 'memory_limit' is known there",
            "Name the engine that the options are for",
        )
    return limit


def _checked_options(given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise ParameterError(
            f"engine_options is {given!r}", "it maps names of options to values", 'Pass, say, {"user_rank": 8}'
        )
    options = dict(given or {})
    for name in ("memory_limit", "block_size"):
        if options.get(name) is not None:
            check_whole(name, options[name])
    return options
