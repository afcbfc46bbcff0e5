"""Would another policy have earned more? Asked of a log."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
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
from coterie.product.evaluation.cautions import cautions, drifts, few, tiny_propensities, unreliable
from coterie.product.evaluation.estimators import ESTIMATORS, NEED_A_MODEL, Sample, Terms, by_slate
from coterie.product.evaluation.intervals import Bootstrapped, bootstrap
from coterie.product.evaluation.logged import Logged
from coterie.product.evaluation.material import Material, material_of
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
    fitted,
    options_of,
    predictions,
    replay_learning,
    silent,
)
from coterie.product.inputs.arm_inputs import as_arm_pool

LOGGER = "the log"


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What each estimator makes of a log, decision by decision, or slate by slate.

    Attributes:
        log: The decisions that judge.
        terms: By the name of the estimator.
        about: What an `Evaluation` says of the target: `policy`, `learning`, `n_fitted`, `model` and `warnings`.
    """

    log: Logged
    terms: Mapping[str, Terms]
    about: Mapping[str, Any]

    def bootstrapped(self, *, n_draws: int, seed: int) -> dict[str, Bootstrapped]:
        """Returns the estimates, and what the logger earned in the same decisions, on the same resamples."""
        n = len(self.log)
        earned = by_slate(Terms(self.log.rewards, np.ones(n), float(n)), self.log)
        return bootstrap({LOGGER: earned, **self.terms}, n_draws=n_draws, seed=seed)

    def ends(self, confidence: float) -> tuple[float, float, float]:
        """Returns what an interval is made with: its confidence, the smallest and the largest reward."""
        return confidence, float(self.log.rewards.min()), float(self.log.rewards.max())

    def judged(self, found: Mapping[str, Bootstrapped], confidence: float) -> Evaluation:
        """Returns the estimates with their intervals, beside what the logger earned."""
        ends = self.ends(confidence)
        made = {
            name: Estimate(each.value, *each.interval(*ends), each.effective, *each.gain_over(found[LOGGER], *ends))
            for name, each in found.items()
        }
        logger = made.pop(LOGGER)
        return Evaluation(n_decisions=len(self.log), confidence=confidence, logger=logger, estimates=made, **self.about)


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

    The options are those of `evaluate`, and what `Measured` has about the target.
    """
    found = sampled(replace(sample, threshold=threshold, seed=seed), estimators, **about)
    return found.judged(found.bootstrapped(n_draws=n_draws, seed=seed), confidence)


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
            with. Only replay can judge that.
        fit_share: The share of the log, in order of time, that the policy and the reward model are fitted on.
        offset: What is subtracted from the rewards that the policy learns; "mean" is the mean of the earlier part. All
            but `auto-*`, which centre rewards themselves, have a prior mean of 0.
        threshold: The weight above which SWITCH uses the model; default the root of the number of decisions.
        reward_model: A policy whose posterior mean is the reward model. The default is the Laplacian kernel regression
            whose scales are learned from the rewards; "lk-gp-ucb" has the fixed ones of `reward_options`, as
            `LaplacianKernelRegressor`, and both go to engine "sparse" where size demands. Rewards are centred.
        reward_options: What `make_policy` takes, for the reward model.
        confidence: Of the intervals.
        n_draws: Of the bootstrap.
        seed: Fixes the policy's randomness, the coins of replay and the bootstrap.
        **options: What `make_policy` takes, for the policy. A log's contexts are shown to `auto-*`, unless
            context_schema=None is among these (for the reward model, among `reward_options`).

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
    given, target = _material(logged, graph, arms), Target(policy, options, label=policy)
    found = next(measured(given.logged, [target], graph=given.graph, arms=given.arms, asked=asked))
    return found.judged(found.bootstrapped(n_draws=n_draws, seed=seed), confidence)


def _material(logged: Any, graph: UserGraph | None, arms: Any) -> Material:
    """Returns the decisions, the graph and the arms, the log's own where none are given."""
    if isinstance(logged, str | Path):
        logged = read_log(logged)
    if isinstance(logged, Log):
        found = material_of(logged)
        return replace(found, graph=graph or found.graph, arms=found.arms if arms is None else as_arm_pool(arms))
    if not isinstance(logged, Logged):
        rule = "it is a Log, the folder of one, or a Logged"
        raise ParameterError(f"the log is a {type(logged).__name__}", rule, "Pass read_log(folder), or Logged.of(...)")
    if graph is None or arms is None:
        rule = "a Logged has rows alone, and neither users nor arms"
        raise ParameterError("graph or arms were not given", rule, "Pass graph=... and arms=...")
    return Material(logged, graph, as_arm_pool(arms))


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

    They are ordered by the first trusted estimator that has an estimate of each.

    Args:
        logged: The decisions.
        targets: The policies.
        graph: Who is near whom.
        arms: The pool, as a Bandit takes it.
        asked: How they are to be judged; none means as `Asked` has it.
        progress: Called with what is done, how much of it, and of how much.

    Examples:
        >>> graph = UserGraph.from_edges([("ana", "bo")])
        >>> log = Logged.of([0, 1] * 200, [[0, 1]] * 400, [0, 0, 1, 1] * 100, [0.0, 0.0, 1.0, 1.0] * 100, [0.5] * 400)
        >>> targets = [Target.of("random"), Target.of("greedy")]
        >>> found = compare(log, targets, graph=graph, arms=[[0.0], [1.0]], asked=Asked(estimators=["snips"]))
        >>> found.best, found.gaps[0].behind, round(found.gaps[0].value, 2)
        ('greedy', 'random', 0.5)
    """
    how = asked or Asked()
    _check_labels([target.label for target in targets])
    found = list(measured(logged, targets, graph=graph, arms=as_arm_pool(arms), asked=how, progress=progress))
    resampled = {each.about["policy"]: each.bootstrapped(n_draws=how.n_draws, seed=how.seed) for each in found}
    judged = tuple(map(Measured.judged, found, resampled.values(), repeat(how.confidence)))
    common = [name for name in trusted(judged[0]) if all(name in trusted(each) for each in judged)]
    if not common:
        return Comparison(judged)
    by, ends = common[0], found[0].ends(how.confidence)
    best = max(judged, key=lambda each: each.estimates[by].value).policy
    first = resampled[best][by]
    gaps = (Gap(name, *first.gain_over(other[by], *ends)) for name, other in resampled.items() if name != best)
    return Comparison(judged, by, best, tuple(gaps))


def _check_labels(labels: list[str]) -> None:
    if not labels:
        raise ParameterError("there is no policy", "at least one is judged", "Name one, such as lk-gp-ucb")
    again = next((label for place, label in enumerate(labels) if label in labels[:place]), None)
    if again is not None:
        raise ParameterError(f"policy {again!r} is given twice", "each is judged once", "Drop one, or change an option")


def measured(
    logged: Logged,
    targets: Sequence[Target],
    *,
    graph: UserGraph,
    arms: ArmPool,
    asked: Asked,
    progress: Progress = silent,
) -> Iterator[Measured]:
    """Yields what the log says about each policy; what is wrong with one is reported before any is fitted."""
    check_known(logged, graph, arms)
    names, log = asked.served(logged), logged.in_order()
    shared: dict[str, Any] = {"graph": graph, "arms": arms, "seed": asked.seed}
    targets = [target._replace(options=options_of(target.name, target.options, log)) for target in targets]
    for target in targets:
        check_binary(log, target.options)
        policy = make_policy(target.name, **{**shared, **target.options})
        if not asked.learning:
            check_freezable(policy)
    drift = list(drifts(log))
    if asked.learning:
        for target in targets:
            policy = make_policy(target.name, **{**shared, **target.options})
            yield _replayed(policy, log, target, asked, drift, progress)
        return
    earlier, later = split_in_time(log, asked.fit_share)
    predicted, model = _reward_model(earlier, later, names, asked, shared, progress)
    for target in targets:
        policy = make_policy(target.name, **{**shared, **target.options})
        progress(f"{target.label}: learns", 0, len(earlier))
        fitted(policy, earlier, _offset(policy, earlier, asked.offset))
        chances = choice_probabilities(policy, later, seed=asked.seed, progress=progress, label=target.label)
        sample = Sample(later, chances, predicted, asked.threshold, asked.seed)
        yield sampled(sample, names, warnings=drift, policy=target.label, n_fitted=len(earlier), model=model)


def split_in_time(log: Logged, share: float) -> tuple[Logged, Logged]:
    """Returns the earlier part, which is learned, and the later one, which judges; no slate is in both."""
    starts = log.slate_starts
    if len(starts) < 2:
        what = "slate" if len(log) > 1 else "decision"
        raise ParameterError(f"the log has one {what}", "one part is learned and one judges", "Bring a longer log")
    rows = np.arange(len(log))
    first = min(max(1, round(share * len(log))), len(log) - 1)
    slate = min(max(1, int(np.searchsorted(starts, first))), len(starts) - 1)
    first = int(starts[slate])
    return log.take(rows[:first]), log.take(rows[first:])


def sampled(sample: Sample, estimators: Sequence[str], *, warnings: Iterable[str] = (), **about: Any) -> Measured:
    """Returns what estimators make of a target of known choice probabilities."""
    terms = {name: by_slate(ESTIMATORS[name](sample), sample.log) for name in estimators}
    found = [*cautions(sample), *unreliable(terms, sample.log.rewards), *warnings]
    if "replay" in terms:
        found += few("Replay has accepted", terms["replay"].effective)
    return Measured(sample.log, terms, about | {"warnings": tuple(found)})


def _replayed(
    policy: Policy, log: Logged, target: Target, asked: Asked, drift: Sequence[str], progress: Progress
) -> Measured:
    offset = _offset(policy, log, asked.offset)
    found = replay_learning(policy, log, offset=offset, seed=asked.seed, progress=progress, label=target.label)
    terms = {"replay": by_slate(found, log)}
    warnings = [*tiny_propensities(log), *few("Replay has accepted", found.effective)]
    warnings += [*unreliable(terms, log.rewards), *drift]
    return Measured(log, terms, {"policy": target.label, "learning": True, "warnings": tuple(warnings)})


def _reward_model(
    earlier: Logged, later: Logged, names: Sequence[str], asked: Asked, shared: Mapping[str, Any], progress: Progress
) -> tuple[Array | None, str]:
    """Returns what the reward model expects of the later candidates, and what it is; nothing where none is needed."""
    if not NEED_A_MODEL & set(names):
        return None, ""
    check_binary(earlier, asked.reward_options)
    check_binary(later, asked.reward_options)
    options = options_of(asked.reward_model, asked.reward_options, earlier)
    policy = make_policy(asked.reward_model, **{**shared, **options})
    progress(f"reward model, {asked.reward_model}: learns", 0, len(earlier))
    offset = _offset(policy, earlier, "mean")
    predicted = predictions(fitted(policy, earlier, offset), later, offset)
    return predicted, f"mean of {asked.reward_model}, fitted on the earlier part"


def _offset(policy: Policy, learned: Logged, offset: float | Literal["mean"]) -> float:
    """Returns what is subtracted from the rewards that a policy learns; `auto-*` centre them."""
    if RECIPES[policy.name].auto:
        return 0.0
    return float(learned.rewards.mean()) if offset == "mean" else offset
