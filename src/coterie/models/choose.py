"""Which engine for which problem, by a stated cost model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.errors import ParameterError, UnknownNameError, listed, or_similar
from coterie.kernels.joint import JointKernel, PoolKernel
from coterie.models.base import Model
from coterie.models.dense import DenseModel
from coterie.models.exact import ExactModel
from coterie.models.features import FeaturesModel
from coterie.models.grid import GridModel, grid_bytes
from coterie.models.hybrid import HybridModel
from coterie.models.linear import LinearModel
from coterie.models.memory import available_memory
from coterie.models.need import check_whole

ENGINES: Mapping[str, Callable[..., Model]] = {
    "dense": DenseModel,
    "exact": ExactModel,
    "features": FeaturesModel,
    "grid": GridModel,
    "hybrid": HybridModel,
    "linear": LinearModel,
}
OPTIONS: Mapping[str, frozenset[str]] = {
    "dense": frozenset(),
    "exact": frozenset(),
    "features": frozenset({"user_rank", "arm_rank", "correction", "memory_limit"}),
    "grid": frozenset({"block_size", "memory_limit"}),
    "hybrid": frozenset({"switch_after", "memory_limit"}),
    "linear": frozenset({"memory_limit"}),
}

# The unit of cost is one multiply-add at matrix-matrix speed. Measured in it: what a round costs before any arithmetic,
# what one entry of a new matrix costs, and how much dearer a multiply-add is in a solve with few right-hand sides. The
# dimension of the features plays no part: on a pool K_x is computed once.
GRID_ROUND = 6e5
LINEAR_ROUND = 1e6
EXACT_ROUND = 2e6
NEW_ENTRY = 100
THIN_SOLVE = 2
CANDIDATES = 5
SMALL_GRID = 512


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine chosen, and why."""

    engine: str
    reason: str


def grid_cost(n_pairs: int, rounds: int) -> float:
    """Returns the cost of `rounds` rounds on `grid`: the matrix, then N^2 / 2 multiply-adds each."""
    return NEW_ENTRY * n_pairs**2 + rounds * (n_pairs**2 / 2 + GRID_ROUND)


def linear_cost(n_weights: int, rounds: int) -> float:
    """Returns the cost of `rounds` rounds on `linear`: as `grid`, on users x features instead of users x arms."""
    return NEW_ENTRY * n_weights**2 + rounds * (n_weights**2 / 2 + LINEAR_ROUND)


def exact_cost(n_pairs: int, rounds: int) -> float:
    """Returns the cost of `rounds` rounds on `exact`: candidates * k^2 / 2 each, with k <= N distinct pairs."""
    growing = min(rounds, n_pairs)
    squares = growing**3 / 3 + (rounds - growing) * float(n_pairs) ** 2
    return THIN_SOLVE * CANDIDATES * squares / 2 + rounds * EXACT_ROUND


def choose_engine(
    kernel: JointKernel, *, expected_rounds: int | None = None, memory_limit: int | None = None
) -> EngineChoice:
    """Returns the engine that `engine="auto"` stands for: the cheapest exact one that fits in memory.

    Examples:
        >>> import numpy as np
        >>> choose_engine(PoolKernel(np.eye(20) + 1, np.eye(10))).engine
        'grid'
        >>> choose_engine(PoolKernel(np.eye(200) + 1, np.eye(50)), expected_rounds=100).engine
        'exact'
        >>> choose_engine(PoolKernel(np.eye(200) + 1, np.ones((50, 50)))).engine     # one feature
        'linear'
    """
    if not isinstance(kernel, PoolKernel):
        return EngineChoice("exact", "chosen because there is no pool of arms")
    size = kernel.n_pairs
    n_features = int(np.linalg.matrix_rank(kernel.arm_cov, hermitian=True))
    n_weights = kernel.n_users * n_features
    allowed = available_memory() if memory_limit is None else memory_limit
    pairs = f"{kernel.n_users} users x {kernel.n_arms} arms = {size} pairs"
    if kernel.shares_nothing:
        return EngineChoice("linear", "chosen because the users share nothing, so each has a small belief alone")
    if 2 * n_features <= kernel.n_arms and size > SMALL_GRID and grid_bytes(n_weights) <= allowed:
        smaller = EngineChoice("linear", f"chosen because the {kernel.n_arms} arms have only {n_features} features")
    else:
        smaller = None
    if grid_bytes(size) > allowed:
        needed = f"{grid_bytes(size) / 2**30:.1f} GiB and {allowed / 2**30:.1f} are allowed"
        return smaller or EngineChoice("exact", f"chosen because the grid of {pairs} needs {needed}")
    if expected_rounds is None:
        if size <= SMALL_GRID:
            return EngineChoice("grid", f"chosen because the grid of {pairs} is small")
        return smaller or EngineChoice(
            "hybrid",
            f"chosen because the number of rounds is not known: exact while they are few, then the grid of {pairs}",
        )
    costs = {"grid": grid_cost(size, expected_rounds), "exact": exact_cost(size, expected_rounds)}
    if smaller:
        costs["linear"] = linear_cost(n_weights, expected_rounds)
    told = ", ".join(f"{cost:.2g} on {engine!r}" for engine, cost in costs.items())
    return EngineChoice(
        min(costs, key=lambda engine: costs[engine]),
        f"chosen because {expected_rounds} rounds on {pairs} cost about as many multiply-adds as {told}",
    )


def make_model(
    kernel: JointKernel,
    *,
    noise_var: float = 0.01,
    engine: str = "auto",
    expected_rounds: int | None = None,
    engine_options: Mapping[str, Any] | None = None,
) -> Model:
    """Returns a model on this kernel; `engine="auto"` chooses by cost and `model.explain()` says why.

    Args:
        kernel: How alike two (user, arm) pairs are: `pool_kernel(user_cov, arm_kernel, pool)`, or
            `FreeKernel(user_cov, arm_kernel)` for arms that are not known beforehand.
        noise_var: The noise variance of the rewards.
        engine: "auto", "dense", "exact", "features", "grid", "hybrid" or "linear".
        expected_rounds: A hint for "auto".
        engine_options: memory_limit in bytes (all but dense and exact); block_size (grid); switch_after (hybrid);
            user_rank, arm_rank, correction (features).

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
        limit = options.pop("memory_limit", None)
        if options:
            raise UnknownNameError(
                f"engine_options {listed(sorted(options))} with engine 'auto'",
                "only 'memory_limit' is known there",
                "Name the engine that the options are for",
            )
        choice = choose_engine(kernel, expected_rounds=expected_rounds, memory_limit=limit)
        engine, reason = choice.engine, choice.reason
        if limit is not None and "memory_limit" in OPTIONS[engine]:
            options["memory_limit"] = limit
    if not isinstance(engine, str) or engine not in ENGINES:
        remedy = or_similar(engine, ENGINES, "Use one of these")
        raise UnknownNameError(f"engine {engine!r} is unknown", f"engines are 'auto', {listed(ENGINES)}", remedy)
    unknown = sorted(set(options) - OPTIONS[engine])
    if unknown:
        known = listed(sorted(OPTIONS[engine])) or "none"
        raise UnknownNameError(
            f"engine option {unknown[0]!r} is unknown", f"options of engine {engine!r} are {known}", "Use one of these"
        )
    model = ENGINES[engine](kernel, noise_var=noise_var, **options)
    model.reason = reason
    return model


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
