"""The whole diagnosis of a log: what it says before any experiment, and what it cannot say."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from coterie.kernels import ArmPool
from coterie.logs import read_log
from coterie.logs.log import Floats, Log
from coterie.models import History
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.sampling import PairSample
from coterie.problems.recorded import can_ask_for_positives
from coterie.runs.diagnosis.answers import verdict
from coterie.runs.diagnosis.feature_value import FeatureReport, Sampled, effective_dimension, feature_report
from coterie.runs.diagnosis.graph_evidence import Fitted, fit_parts
from coterie.runs.diagnosis.homophily import Alike, affordable, homophily
from coterie.runs.diagnosis.outcomes import Kind, Outcomes, communities, look, outcomes_of
from coterie.runs.diagnosis.payoff import Payoff, Simulation, simulate

AT_ONCE = 1_000  # pairs for eigenvalues and features
SIM_ROUNDS = 1_000


Question: TypeAlias = Literal["liked", "rewards"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kernel:
    """What the fitted kernel says, on which sample.

    Attributes:
        fitted: The kernel, and what each part of it adds.
        n_blocks: In how many blocks the sample was looked at.
        n_users: How many users are in the sample.
        n_pairs: How many pairs of user and arm.
        n_zeros: How many of these are pairs never had, drawn as zeros.
        median_distance: The median distance between two arms.
        reward_var: The variance of the sample's rewards.
        eigenvalues: Of the kernel on some of the pairs, over the noise, in falling order.
        features: What the features are worth.
    """

    fitted: Fitted
    n_blocks: int
    n_users: int
    n_pairs: int
    n_zeros: int
    median_distance: float
    reward_var: float
    eigenvalues: Floats
    features: FeatureReport

    @property
    def effective_dim(self) -> float:
        """Of how many independent quantities these pairs speak."""
        return effective_dimension(self.eigenvalues)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Diagnosis:
    """What a log says before any experiment.

    Attributes:
        name: The log's.
        kind: "one-class", "binary" or "real" rewards.
        question: What evidence judges: "liked" for what users liked against what they never had, as `coterie run`
            asks where it can, or "rewards" as they are.
        level: Above which reward a pair is a positive.
        sizes: How many users, users without edges, edges, arms, features and events there are.
        alike: How alike linked users are, by each measure; empty where nothing can be measured.
        kernel: What the fitted kernel says; none where arms have no features.
        payoff: When the graph pays off; none without edges or features.
        missing: What cannot be said, and why.
        seed: Of everything that was drawn.
    """

    name: str
    kind: Kind
    question: Question
    level: float
    sizes: dict[str, int]
    alike: list[Alike]
    kernel: Kernel | None
    payoff: Payoff | None
    missing: list[str]
    seed: int

    def __str__(self) -> str:
        return f"Diagnosis of {self.name}: {verdict(self)}"

    def figures(self) -> dict[str, Any]:
        """Returns every figure as plain values, for JSON."""
        return {
            "question": self.question,
            "log": {"name": self.name, "rewards": self.kind, "positive_above": self.level, **self.sizes},
            "homophily": {each.name: _alike_figures(each) for each in self.alike},
            "kernel": None if self.kernel is None else _kernel_figures(self.kernel),
            "payoff": None if self.payoff is None else _payoff_figures(self.payoff),
            "missing": self.missing,
            "seed": self.seed,
        }


def diagnose(
    log: Log | str | Path,
    *,
    name: str = "log",
    seed: int = 0,
    n_rewirings: int | None = None,
    rounds: int = SIM_ROUNDS,
    simulation: Simulation | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Diagnosis:
    """Returns the diagnosis of a log.

    Args:
        log: The users, arms and events; or the folder of a log, as for `read_log`.
        name: What to call it.
        seed: Fixes rewirings, sample, drawn zeros and simulation.
        n_rewirings: How many; none given means 99, and fewer beyond 70,000 edges.
        rounds: How many to simulate.
        simulation: How many users, arms and truths it has; none given means the usual.
        say: Called with what is being done.
    """
    if isinstance(log, str | Path):
        log = read_log(log)
    outcomes, simulation = outcomes_of(log), simulation or Simulation()
    question: Question = "liked" if outcomes.kind == "one-class" or can_ask_for_positives(log) else "rewards"
    count = affordable(log.graph.n_edges) if n_rewirings is None else n_rewirings
    if log.graph.n_edges:
        say(f"homophily: {count} rewirings of {log.graph.n_edges:,} edges")
    alike = homophily(log.graph, outcomes, count=count, seed=seed)
    kernel = _kernel(log, outcomes, question, seed, say)
    payoff = None
    if kernel is not None and log.graph.n_edges:
        say(f"pay-off: {simulation.n_truths} truths, {rounds:,} rounds each, with and without the graph")
        payoff = _payoff(log, kernel.fitted, outcomes, simulation, seed, rounds)
    return Diagnosis(
        name=name,
        kind=outcomes.kind,
        question=question,
        level=outcomes.level,
        sizes=_sizes(log),
        alike=alike,
        kernel=kernel,
        payoff=payoff,
        missing=_missing(log, alike),
        seed=seed,
    )


def _sizes(log: Log) -> dict[str, int]:
    return {
        "users": log.graph.n_users,
        "users_without_edges": int(np.count_nonzero(log.graph.degrees == 0)),
        "edges": log.graph.n_edges,
        "arms": len(log.arm_ids),
        "features": log.n_features,
        "events": len(log.events),
    }


def _missing(log: Log, alike: list[Alike]) -> list[str]:
    missing = []
    if not log.graph.n_edges:
        missing.append(
            "There are no edges: whether friends are alike, what the graph adds and when it pays off cannot be said. "
            "Add them to the table edges."
        )
    elif not any(each.name == "shared" for each in alike):
        missing.append("There are too few edges to rewire, so homophily is not known.")
    elif all((each.rewired == each.observed).all() for each in alike):
        missing.append("No edge can be rewired without joining two who are joined already, so homophily is not known.")
    if not log.n_features:
        missing.append(
            "Arms have no features: evidence, hyperparameters, effective dimension and pay-off cannot be said; only "
            "homophily can. Add columns of numbers to the table arms."
        )
    elif isinstance(log.arms, ArmPool) and np.ptp(log.arms.features, axis=0).max() == 0:
        missing.append("All arms have the same features: no two can be distinguished. Check the table arms.")
    return missing


def _kernel(log: Log, outcomes: Outcomes, question: Question, seed: int, say: Callable[[str], None]) -> Kernel | None:
    """Returns what the fitted kernel says; none where arms have no features."""
    if not isinstance(log.arms, ArmPool):
        return None
    context = FitContext(log.graph, log.arms, seed=seed)
    seen = look(log, outcomes, seed=seed, liked=question == "liked")
    say(f"evidence: {len(seen.history):,} pairs of {seen.n_users:,} users")
    fitted = fit_parts(context, seen)
    sampled = Sampled.of(context, seen.history, seen.together(AT_ONCE), fitted.centre)
    means, counts = seen.history.mean_array(), seen.history.count_array()
    scatter = float(counts @ (means - fitted.centre) ** 2 + np.sum(seen.history.scatters))
    return Kernel(
        fitted=fitted,
        n_blocks=len(seen.blocks),
        n_users=seen.n_users,
        n_pairs=len(seen.history),
        n_zeros=seen.n_zeros,
        median_distance=context.median_distance,
        reward_var=scatter / float(counts.sum()),
        eigenvalues=sampled.eigenvalues(fitted.hyper),
        features=feature_report(sampled, fitted.hyper, log.arms),
    )


def _payoff(log: Log, fitted: Fitted, outcomes: Outcomes, simulation: Simulation, seed: int, rounds: int) -> Payoff:
    """Returns what comes of rounds with some communities of users and some of the arms that events have."""
    assert isinstance(log.arms, ArmPool)
    rng = np.random.default_rng([seed, 1])
    users = communities(log.graph, simulation.n_users, simulation.n_communities, rng)
    arms = rng.permutation(np.unique(outcomes.arm))[: simulation.n_arms]
    one_each = History()
    for arm in arms.tolist():
        one_each.add(arm, int(users[0]), arm, 0.0)
    sample = PairSample(users, np.arange(len(arms)), np.zeros(len(arms), dtype=np.intp))
    context = FitContext(log.graph, log.arms, seed=seed)
    kernel = context.sampled_evidence(one_each, sample).parts.kernel(fitted.hyper)
    shown = int(np.clip(_shown(log, simulation.n_candidates), min(2, len(arms)), len(arms)))
    noise_var, n_truths = fitted.hyper.noise_var, simulation.n_truths
    return simulate(kernel, noise_var, rounds=rounds, n_candidates=shown, n_truths=n_truths, seed=seed)


def _shown(log: Log, otherwise: int) -> int:
    """Returns how many candidates an event has on average where they were logged."""
    lists = log.events.candidates
    lengths = lists.lengths[lists.lengths > 0] if lists is not None else np.zeros(0)
    return round(float(lengths.mean())) if len(lengths) else otherwise


def _alike_figures(each: Alike) -> dict[str, Any]:
    return {
        "observed": each.observed,
        "rewired_mean": each.expected,
        "rewired": each.rewired.tolist(),
        "ratio": each.ratio,
        "p_value": each.p_value,
    }


def _kernel_figures(kernel: Kernel) -> dict[str, Any]:
    h, features = kernel.fitted.hyper, kernel.features
    return {
        "sample": {name: getattr(kernel, f"n_{name}") for name in ("blocks", "users", "pairs", "zeros")},
        "log_evidence": kernel.fitted.evidence,
        "log_evidence_gains": dict(kernel.fitted.gains),
        "shares": h.shares(),
        "laplacian_ridge": exp(h.ridge),
        "lengthscale": exp(h.lengthscale),
        "median_distance": kernel.median_distance,
        "linear_share": h.linear_share,
        "noise_var": h.noise_var,
        "reward_var": kernel.reward_var,
        "effective_dim": kernel.effective_dim,
        "effective_dim_pairs": len(kernel.eigenvalues),
        "features_enough": features.enough,
        "feature_losses": dict(zip(features.names, features.losses.tolist(), strict=True)),
        "kept_losses": dict(zip(map(str, features.kept), features.kept_losses.tolist(), strict=True)),
    }


def _payoff_figures(payoff: Payoff) -> dict[str, Any]:
    sizes = ("n_users", "n_arms", "n_candidates", "rounds", "n_truths")
    last = {"ahead": float(payoff.ahead[-1]), "std_err": float(payoff.std_err[-1])}
    return {name: getattr(payoff, name) for name in sizes} | {"pays_from": payoff.pays_from} | last
