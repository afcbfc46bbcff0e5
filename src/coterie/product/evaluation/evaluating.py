"""Would another policy have earned more? Asked of a log."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from coterie.product.evaluation.cautions import cautions, doubts, drifts, few, tiny_propensities
from coterie.product.evaluation.estimators import ESTIMATORS, NEED_A_MODEL, Sample, Terms, Tuning, default_threshold
from coterie.product.evaluation.intervals import Uncertain, draws_of
from coterie.product.evaluation.logged import Logged
from coterie.product.evaluation.report import Comparison, Estimate, Evaluation, Gap, trusted
from coterie.product.evaluation.targets import (
    N_DRAWS,
    Asked,
    Progress,
    Target,
    check_binary,
    check_freezable,
    check_known,
    choice_probabilities,
    predictions,
    replay_learning,
    silent,
    taught,
)
from coterie.product.inputs.arm_inputs import as_arm_pool

LOGGER = "the log"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Measured:
    """What each estimator makes of a log, decision by decision.

    Attributes:
        log: The decisions that judge.
        terms: By the name of the estimator.
        worries: What speaks against believing them.
        policy: What the target is called.
        learning: Whether it learned as it was replayed.
        n_fitted: How many of the earlier decisions it was fitted on.
        model: What the reward model was, if there was one.
    """

    log: Logged
    terms: Mapping[str, Terms]
    worries: Sequence[str]
    policy: str = "the target"
    learning: bool = False
    n_fitted: int = 0
    model: str = ""

    @property
    def earned(self) -> Terms:
        """What the logger earned in the same decisions."""
        n = len(self.log)
        return Terms(self.log.rewards, np.ones(n), float(n))

    def uncertain(self, *, n_draws: int = N_DRAWS, seed: int = 0) -> dict[str, Uncertain]:
        """Returns the estimates with their draws, and what the logger earned, on the same draws."""
        everything = {LOGGER: self.earned, **self.terms}
        draws = draws_of(everything, n_draws=n_draws, seed=seed)
        return {name: Uncertain.of(each, draws[name]) for name, each in everything.items()}

    def judged(self, *, confidence: float = 0.95, n_draws: int = N_DRAWS, seed: int = 0) -> Evaluation:
        """Returns the estimates with their intervals, beside what the logger earned."""
        found = self.uncertain(n_draws=n_draws, seed=seed)
        ends = confidence, float(self.log.rewards.min()), float(self.log.rewards.max())
        made = {
            name: Estimate(each.value, *each.interval(*ends), each.effective, *each.ahead_of(found[LOGGER], *ends))
            for name, each in found.items()
        }
        return Evaluation(
            policy=self.policy,
            learning=self.learning,
            n_fitted=self.n_fitted,
            n_decisions=len(self.log),
            confidence=confidence,
            logger=made.pop(LOGGER),
            estimates=made,
            warnings=tuple(self.worries),
            model=self.model,
        )


def sampled(
    sample: Sample, estimators: Sequence[str], *, tuning: Tuning, worries: Iterable[str] = (), **about: Any
) -> Measured:
    """Returns what estimators make of a target of known choice probabilities."""
    terms = {name: ESTIMATORS[name](sample, tuning) for name in estimators}
    told = [*cautions(sample), *doubts(terms, sample.log.rewards), *worries]
    if "replay" in terms:
        told += few("Replay has accepted", terms["replay"].effective)
    return Measured(log=sample.log, terms=terms, worries=told, **about)


def tuned(n_decisions: int, threshold: float | None, seed: int) -> Tuning:
    """Returns what estimators leave open, the threshold of SWITCH being the root of the decisions if none is given."""
    return Tuning(default_threshold(n_decisions) if threshold is None else float(threshold), seed)


def estimate(
    sample: Sample,
    estimators: Sequence[str],
    *,
    threshold: float | None = None,
    confidence: float = 0.95,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    **about: Any,
) -> Evaluation:
    """Returns what a target of known choice probabilities would have earned; see `evaluate`.

    Args:
        sample: The log and the target.
        estimators: Some of `ESTIMATORS`.
        threshold: As in `Asked`.
        confidence: As in `Asked`.
        n_draws: As in `Asked`.
        seed: As in `Asked`.
        **about: `policy`, `n_fitted`, `model`, `worries`, as in `Measured`.
    """
    found = sampled(sample, estimators, tuning=tuned(len(sample.log), threshold, seed), **about)
    return found.judged(confidence=confidence, n_draws=n_draws, seed=seed)


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
    from coterie.product.evaluation.material import material_of

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


def compare(
    logged: Logged,
    targets: Sequence[Target],
    *,
    graph: UserGraph,
    arms: Any,
    asked: Asked | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Returns what policies would have earned on a log, each fitted on the same part and judged by the same decisions.

    Args:
        logged: The decisions.
        targets: The policies.
        graph: Who is near whom.
        arms: The pool, as a Bandit takes it.
        asked: How they are to be judged; none means as `Asked` has it.
        progress: Told what is done, how much of it, and of how much.

    Examples:
        >>> graph = UserGraph.from_edges([("ana", "bo")])
        >>> log = Logged.of([0, 1] * 200, [[0, 1]] * 400, [0, 0, 1, 1] * 100, [0.0, 0.0, 1.0, 1.0] * 100, [0.5] * 400)
        >>> targets = [Target.of("random"), Target.of("greedy")]
        >>> found = compare(log, targets, graph=graph, arms=[[0.0], [1.0]], asked=Asked(estimators=["snips"]))
        >>> found.best, found.gaps[0].behind, round(found.gaps[0].value, 2)
        ('greedy', 'random', 0.5)
    """
    how, pool = asked or Asked(), as_arm_pool(arms)
    _check(targets)
    found = list(measured(logged, targets, graph=graph, arms=pool, asked=how, progress=progress))
    settings: dict[str, Any] = {"confidence": how.confidence, "n_draws": how.n_draws, "seed": how.seed}
    return ordered(found, tuple(each.judged(**settings) for each in found), settings)


def ordered(found: Sequence[Measured], told: tuple[Evaluation, ...], settings: dict[str, Any]) -> Comparison:
    """Returns which policy is the best, by the first estimator that tells of all of them, and how far ahead it is."""
    common = [name for name in trusted(told[0]) if all(name in trusted(each) for each in told)]
    if not common:
        return Comparison(told)
    by = common[0]
    best = max(told, key=lambda each: each.estimates[by].value).policy
    made = {each.policy: each.uncertain(n_draws=settings["n_draws"], seed=settings["seed"])[by] for each in found}
    rewards = found[0].log.rewards
    ends = settings["confidence"], float(rewards.min()), float(rewards.max())
    gaps = (Gap(name, *made[best].ahead_of(other, *ends)) for name, other in made.items() if name != best)
    return Comparison(told, by, best, tuple(gaps))


def _check(targets: Sequence[Target]) -> None:
    labels = [target.label for target in targets]
    if not labels:
        raise ParameterError("there is no policy", "at least one is judged", "Name one, such as lk-gp-ucb")
    again = next((label for place, label in enumerate(labels) if label in labels[:place]), None)
    if again is not None:
        raise ParameterError(f"policy {again!r} is given twice", "each is judged once", "Drop one, or change an option")
