"""Would another policy have earned more? Asked of a log."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from coterie.errors import ParameterError, UnknownNameError, listed, or_similar
from coterie.graphs import UserGraph
from coterie.models.need import check_whole
from coterie.policies import Policy, make_policy
from coterie.policies.making.recipes import RECIPES
from coterie.product.checks import check_all_binary
from coterie.product.evaluation.cautions import cautions, drifts, few, tiny_propensities
from coterie.product.evaluation.estimators import (
    ESTIMATORS,
    NEED_A_MODEL,
    Sample,
    Terms,
    Tuning,
    default_threshold,
)
from coterie.product.evaluation.intervals import draws_of, interval, value_of
from coterie.product.evaluation.logged import Logged
from coterie.product.evaluation.report import Estimate, Evaluation
from coterie.product.evaluation.targets import check_known, choice_probabilities, predictions, replay_learning, taught
from coterie.product.inputs.arms import as_arm_pool

N_DRAWS = 1000
LOGGER = "the log"


def evaluate(
    logged: Logged,
    *,
    graph: UserGraph,
    arms: Any,
    policy: str = "lk-gp-ucb",
    estimators: Sequence[str] | None = None,
    learning: bool = False,
    fit_share: float = 0.5,
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
    percentile bootstrap over decisions, given the fitted policy and reward model.

    Args:
        logged: The decisions.
        graph: Who is near whom.
        arms: The pool, as a Bandit takes it.
        policy: By name; it learns the rewards as they are, so centre them where it needs that (README, *Scales*).
        estimators: Some of `ESTIMATORS`; none means all that the log serves.
        learning: Whether a fresh policy is to learn as it is replayed on the whole log, from the decisions it agrees
            with. Only replay can tell.
        fit_share: The share of the log, in order of time, that the policy and the reward model are fitted on.
        threshold: The weight above which SWITCH believes the model; default the root of the number of decisions.
        reward_model: A policy whose believed mean is the reward model. The default is the Laplacian kernel regression
            whose scales are learned from the rewards; "lk-gp-ucb" has the fixed ones of `reward_options`, as
            `LaplacianKernelRegressor`, and both go to engine "sparse" where size demands. Rewards are centred.
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
    pool, settings = as_arm_pool(arms), {"seed": seed, **options}
    check_known(logged, graph, pool)
    names = _named(estimators, logged, learning=learning)
    _check(fit_share, confidence, threshold, n_draws)
    _check_binary(logged, settings)
    _check_binary(logged, reward_options or {})
    log = logged.in_order()
    made = make_policy(policy, graph=graph, arms=pool, **settings)
    if learning:
        terms = {"replay": replay_learning(made, log, seed=seed)}
        worries = [*tiny_propensities(log), *few("Replay has accepted", terms["replay"].effective), *drifts(log)]
        return judged(
            log, terms, worries, policy=policy, learning=True, confidence=confidence, n_draws=n_draws, seed=seed
        )
    earlier, later = _parted(log, fit_share)
    target = choice_probabilities(taught(made, earlier), later, seed=seed)
    predicted, model = None, ""
    if NEED_A_MODEL & set(names):
        given = {"seed": seed, **(reward_options or {})}
        believer = make_policy(reward_model, graph=graph, arms=pool, **given)
        predicted, model = _predicted(believer, earlier, later), f"mean of {reward_model}, fitted on the earlier part"
    sample = Sample(later, target, predicted)
    return estimate(
        sample,
        names,
        threshold=threshold,
        confidence=confidence,
        n_draws=n_draws,
        seed=seed,
        policy=policy,
        n_fitted=len(earlier),
        worries=list(drifts(log)),
        model=model,
    )


def estimate(
    sample: Sample,
    estimators: Sequence[str],
    *,
    threshold: float | None = None,
    confidence: float = 0.95,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    policy: str = "the target",
    n_fitted: int = 0,
    worries: Iterable[str] = (),
    model: str = "",
) -> Evaluation:
    """Returns what a target of known choice probabilities would have earned; see `evaluate`."""
    tuning = Tuning(default_threshold(len(sample.log)) if threshold is None else float(threshold), seed)
    terms = {name: ESTIMATORS[name](sample, tuning) for name in estimators}
    told = [*cautions(sample), *worries]
    if "replay" in terms:
        told += few("Replay has accepted", terms["replay"].effective)
    how: dict[str, Any] = {"confidence": confidence, "n_draws": n_draws, "seed": seed}
    return judged(sample.log, terms, told, policy=policy, n_fitted=n_fitted, model=model, **how)


def judged(
    log: Logged,
    terms: Mapping[str, Terms],
    worries: Iterable[str],
    *,
    confidence: float,
    n_draws: int,
    seed: int,
    **about: Any,
) -> Evaluation:
    """Returns the estimates of these terms with their intervals, beside what the logger earned."""
    n = len(log)
    everything = {LOGGER: Terms(log.rewards, np.ones(n), float(n)), **terms}
    draws = draws_of(everything, n_draws=n_draws, seed=seed)
    earned = value_of(everything[LOGGER])
    made = {
        name: Estimate(
            (value := value_of(each)),
            *interval(draws[name], confidence),
            each.effective,
            value - earned,
            *interval(draws[name] - draws[LOGGER], confidence),
        )
        for name, each in everything.items()
    }
    about = {"learning": False, "n_fitted": 0} | about
    logger, warnings = made.pop(LOGGER), tuple(worries)
    return Evaluation(n_decisions=n, confidence=confidence, logger=logger, estimates=made, warnings=warnings, **about)


def _predicted(believer: Policy, earlier: Logged, later: Logged) -> Any:
    """Returns what a policy that learned the earlier rewards expects of the later candidates; `auto-*` centre them."""
    offset = 0.0 if RECIPES[believer.name].auto else float(earlier.rewards.mean())
    return predictions(taught(believer, earlier, offset), later, offset)


def _named(estimators: Sequence[str] | None, log: Logged, *, learning: bool) -> list[str]:
    """Returns the estimators asked for, or all that this log serves."""
    served = (
        ["replay"] if learning else [name for name in ESTIMATORS if name != "switch-ips" or log.chances is not None]
    )
    if estimators is None:
        return served
    given = [estimators] if isinstance(estimators, str) else list(dict.fromkeys(estimators))
    for name in given:
        if name not in ESTIMATORS:
            remedy = or_similar(name, ESTIMATORS, "Use some of these")
            raise UnknownNameError(f"estimator {name!r} is unknown", f"they are {listed(ESTIMATORS, 9)}", remedy)
        if name not in served:
            rule = "a policy that learns is judged by replay only" if learning else "it needs the log's `chances`"
            raise ParameterError(f"estimator {name!r} was asked for", rule, f"Ask for {listed(served, 9)}")
    return given


def _check(fit_share: float, confidence: float, threshold: float | None, n_draws: int) -> None:
    check_whole("n_draws", n_draws)
    for name, value in (("fit_share", fit_share), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ParameterError(f"{name} is {value!r}", "it lies between 0 and 1", "Choose, say, 0.5 or 0.95")
    if threshold is not None and not threshold >= 0:
        raise ParameterError(f"threshold is {threshold!r}", "it is a weight >= 0", "Choose, say, 10")


def _check_binary(log: Logged, options: Mapping[str, Any]) -> None:
    if options.get("likelihood") == "bernoulli":
        check_all_binary(log.rewards, 0)


def _parted(log: Logged, share: float) -> tuple[Logged, Logged]:
    """Returns the earlier part, which is learned, and the later one, which judges."""
    if len(log) < 2:
        raise ParameterError("the log has one decision", "one part is learned and one judges", "Bring a longer log")
    rows = np.arange(len(log))
    first = min(max(1, round(share * len(log))), len(log) - 1)
    return log.take(rows[:first]), log.take(rows[first:])
