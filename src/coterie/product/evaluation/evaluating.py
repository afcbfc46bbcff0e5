"""Would another policy have earned more? Asked of a log."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from coterie.contracts import Array
from coterie.errors import ParameterError
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.logs import read_log
from coterie.logs.log import Log
from coterie.policies import Policy, make_policy
from coterie.policies.factory.recipes import RECIPES
from coterie.product.evaluation.asked import N_DRAWS, Asked, Progress, Target, check_binary, silent
from coterie.product.evaluation.cautions import doubts, drifts, few, tiny_propensities
from coterie.product.evaluation.estimators import NEED_A_MODEL, Sample
from coterie.product.evaluation.judging import Measured, sampled, tuned
from coterie.product.evaluation.logged import Logged
from coterie.product.evaluation.report import Evaluation
from coterie.product.evaluation.targets import (
    check_freezable,
    check_known,
    choice_probabilities,
    predictions,
    replay_learning,
    taught,
)
from coterie.product.inputs.arm_inputs import as_arm_pool


def evaluate(
    logged: Logged | Log | str | Path,
    *,
    graph: UserGraph | None = None,
    arms: Any = None,
    policy: str = "lk-gp-ucb",
    estimators: Sequence[str] | None = None,
    learning: bool = False,
    fit_share: float = 0.5,
    offset: float | Literal["mean"] = 0.0,
    threshold: float | None = None,
    reward_model: str = "auto-ucb",
    reward_options: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    **options: Any,
) -> Evaluation:
    """Returns what a policy would have earned on a log of another's decisions.

    The policy learns the earlier part of the log and is frozen; the later part judges it. Intervals are of the
    bootstrap over decisions, given the fitted policy and reward model.

    Args:
        logged: The decisions: a log, the folder of one (see `read_log`), or rows of graph and arms (`Logged`).
        graph: Who is near whom; by default the log's.
        arms: The pool, as a Bandit takes it; by default the log's.
        policy: By name.
        estimators: Some of `coterie.product.evaluation.ESTIMATORS`; none means all that the log serves.
        learning: Whether a fresh policy is to learn as it is replayed on the whole log, from the decisions it agrees
            with. Only replay can tell.
        fit_share: The share of the log, in order of time, that the policy and the reward model are fitted on.
        offset: What is taken off the rewards that the policy learns; "mean" is the mean of the earlier part.
        threshold: The weight above which SWITCH believes the model; default the root of the number of decisions.
        reward_model: A policy whose believed mean is the reward model.
        reward_options: What `make_policy` takes, for the reward model.
        confidence: Of the intervals.
        n_draws: Of the bootstrap.
        seed: Fixes the policy's randomness, the coins of replay and the bootstrap.
        **options: What `make_policy` takes, for the policy.

    Examples:
        >>> graph = UserGraph.from_edges([("ana", "bo")])
        >>> log = Logged.of([0, 1] * 200, [[0, 1]] * 400, [0, 0, 1, 1] * 100, [0.0, 0.0, 1.0, 1.0] * 100, [0.5] * 400)
        >>> found = evaluate(log, graph=graph, arms=[[0.0], [1.0]], policy="greedy", estimators=["ips", "snips"])
        >>> found.estimates["snips"].value, found.estimates["snips"].ess, found.warnings
        (1.0, 100.0, ())
    """
    asked = Asked(
        estimators=estimators,
        learning=learning,
        fit_share=fit_share,
        offset=offset,
        threshold=threshold,
        reward_model=reward_model,
        reward_options=reward_options or {},
        confidence=confidence,
        n_draws=n_draws,
        seed=seed,
    )
    target = Target(policy, options, label=policy)
    rows, people, pool = _read(logged, graph, arms)
    found = next(measured(rows, [target], graph=people, arms=pool, asked=asked))
    return found.judged(confidence=confidence, n_draws=n_draws, seed=seed)


def _read(logged: Any, graph: UserGraph | None, arms: Any) -> tuple[Logged, UserGraph, ArmPool]:
    """Returns the decisions as rows, the graph and the arms, the log's own where none are given."""
    from coterie.product.evaluation.command.folders import material_of

    if isinstance(logged, str | Path):
        logged = read_log(logged)
    if isinstance(logged, Log):
        found = material_of(logged)
        return found.logged, graph or found.graph, found.arms if arms is None else as_arm_pool(arms)
    if not isinstance(logged, Logged):
        rule = "it is a Log, the folder of one, or a Logged"
        raise ParameterError(f"the log is a {type(logged).__name__}", rule, "Pass read_log(folder), or Logged.of(...)")
    if graph is None or arms is None:
        rule = "a Logged has rows alone, and neither users nor arms"
        raise ParameterError("graph or arms were not given", rule, "Pass graph=... and arms=...")
    return logged, graph, as_arm_pool(arms)


def measured(
    logged: Logged,
    targets: Sequence[Target],
    *,
    graph: UserGraph,
    arms: ArmPool,
    asked: Asked,
    progress: Progress = silent,
) -> Iterator[Measured]:
    """Yields what the log says about each policy; what is wrong with one is told before any is fitted."""
    check_known(logged, graph, arms)
    names, log = asked.served(logged), logged.in_order()
    shared: dict[str, Any] = {"graph": graph, "arms": arms, "seed": asked.seed}
    for target in targets:
        check_binary(log, target.options)
        made = make_policy(target.name, **{**shared, **target.options})
        if not asked.learning:
            check_freezable(made)
    worries = list(drifts(log))
    if asked.learning:
        for target in targets:
            yield _replayed(make_policy(target.name, **{**shared, **target.options}), log, target, asked, progress)
        return
    earlier, later = parted(log, asked.fit_share)
    predicted, model = _reward_model(earlier, later, names, asked, shared, progress)
    tuning = tuned(len(later), asked.threshold, asked.seed)
    for target in targets:
        policy = make_policy(target.name, **{**shared, **target.options})
        chances = _frozen(policy, earlier, later, target, asked, progress)
        about = {"policy": target.label, "n_fitted": len(earlier), "model": model}
        yield sampled(Sample(later, chances, predicted), names, tuning=tuning, worries=worries, **about)


def parted(log: Logged, share: float) -> tuple[Logged, Logged]:
    """Returns the earlier part, which is learned, and the later one, which judges."""
    if len(log) < 2:
        raise ParameterError("the log has one decision", "one part is learned and one judges", "Bring a longer log")
    rows = np.arange(len(log))
    first = min(max(1, round(share * len(log))), len(log) - 1)
    return log.take(rows[:first]), log.take(rows[first:])


def _replayed(policy: Policy, log: Logged, target: Target, asked: Asked, progress: Progress) -> Measured:
    offset = 0.0 if RECIPES[policy.name].auto or asked.offset == "mean" else asked.offset
    found = replay_learning(policy, log, offset=offset, seed=asked.seed, progress=progress, label=target.label)
    terms = {"replay": found}
    told = [
        *tiny_propensities(log),
        *few("Replay has accepted", found.effective),
        *doubts(terms, log.rewards),
        *drifts(log),
    ]
    return Measured(log=log, terms=terms, worries=told, policy=target.label, learning=True)


def _frozen(policy: Policy, earlier: Logged, later: Logged, target: Target, asked: Asked, progress: Progress) -> Array:
    """Returns the choice probabilities, on the later part, of a policy that has learned the earlier one."""
    progress(f"{target.label}: learns", 0, len(earlier))
    taught(policy, earlier, _offset(policy, earlier, asked.offset))
    return choice_probabilities(policy, later, seed=asked.seed, progress=progress, label=target.label)


def _reward_model(
    earlier: Logged, later: Logged, names: Sequence[str], asked: Asked, shared: Mapping[str, Any], progress: Progress
) -> tuple[Array | None, str]:
    """Returns what the reward model expects of the later candidates, and what it is; nothing where none is needed."""
    if not NEED_A_MODEL & set(names):
        return None, ""
    check_binary(earlier, asked.reward_options)
    check_binary(later, asked.reward_options)
    believer = make_policy(asked.reward_model, **{**shared, **asked.reward_options})
    progress(f"reward model, {asked.reward_model}: learns", 0, len(earlier))
    offset = _offset(believer, earlier, "mean")
    predicted = predictions(taught(believer, earlier, offset), later, offset)
    return predicted, f"mean of {asked.reward_model}, fitted on the earlier part"


def _offset(policy: Policy, earlier: Logged, offset: float | Literal["mean"]) -> float:
    """Returns what is taken off the rewards that a policy learns; `auto-*` centre them."""
    if RECIPES[policy.name].auto:
        return 0.0
    return float(earlier.rewards.mean()) if offset == "mean" else offset
