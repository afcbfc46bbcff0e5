"""Regret against the number of users in the regime T = C n, for the paper's learner and for independent ones."""

from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.graphs import UserGraph
from coterie.kernels import Green, SquaredExponential
from coterie.policies import Policy, make_policy
from coterie.problems import World, gp_world, sphere_pool
from coterie.runs.paper.experiments.experiment import (
    Record,
    Report,
    Verdict,
    finding,
    legend_below,
    log_axis,
    mean_and_error,
    slope_and_error,
    verdict_of,
)
from coterie.runs.paper.experiments.spectral import disjoint_cliques, largest_variance
from coterie.runs.report.style import Picture, finish, looks, new_figure, save_picture
from coterie.runs.trial import play

LEARNER, ALONE, CONTROL = POLICIES = ("lk-gp-ucb", "per-user-gp-ucb", "random")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthSettings:
    """GP draws with L_rho^-1 on k complete graphs; the noise is in proportion to the world's own spread sqrt(K_max)."""

    n_users: tuple[int, ...] = (12, 24, 48, 96, 192)
    n_clusters: tuple[int, ...] = (1, 4)
    rounds_per_user: int = 8
    n_arms: int = 10
    n_candidates: int = 5
    dimension: int = 5
    lengthscale: float = 1.0
    laplacian_ridge: float = 0.1
    noise_to_spread: float = 0.3
    trials: int = 20
    seed: int = 3


FULL = GrowthSettings()
QUICK = GrowthSettings(n_users=(12, 24, 48), trials=3)


def measure(settings: GrowthSettings, report: Report) -> Record:
    """Returns for each graph, policy and n the final regret over the trials, and the log-log slopes in n."""
    lines = []
    for n_clusters in settings.n_clusters:
        regrets = []
        for n_users in settings.n_users:
            report(f"theory (2): {n_users} users in {n_clusters} cluster(s), T = {settings.rounds_per_user * n_users}")
            regrets.append([_trial(settings, n_users, n_clusters, trial) for trial in range(settings.trials)])
        spreads = [sqrt(_most(settings, n_users, n_clusters)) for n_users in settings.n_users]
        for name, table in zip(POLICIES, np.array(regrets).transpose(2, 1, 0), strict=True):
            lines.append({"n_clusters": n_clusters, "policy": name} | _line(settings, table, np.array(spreads)))
    return {"lines": lines}


def _most(settings: GrowthSettings, n_users: int, n_clusters: int) -> float:
    return largest_variance(disjoint_cliques(n_users, n_clusters), settings.laplacian_ridge)


def _trial(settings: GrowthSettings, n_users: int, n_clusters: int, trial: int) -> list[float]:
    """Returns the final regret of each policy on one world, all meeting the same rounds."""
    graph, spread = disjoint_cliques(n_users, n_clusters), sqrt(_most(settings, n_users, n_clusters))
    seed = [settings.seed, n_users, n_clusters, trial]
    world = gp_world(
        graph=graph,
        arms=sphere_pool(settings.n_arms, settings.dimension, seed=np.random.default_rng([*seed, 1])),
        user_kernel=Green(laplacian_ridge=settings.laplacian_ridge),
        arm_kernel=SquaredExponential(settings.lengthscale),
        noise_std=settings.noise_to_spread * spread,
        seed=np.random.default_rng([*seed, 2]),
    )
    horizon = settings.rounds_per_user * n_users
    rounds = list(world.rounds(horizon, n_candidates=settings.n_candidates, seed=np.random.SeedSequence([*seed, 3])))
    policies = (_policy(settings, name, graph, world, spread) for name in POLICIES)
    return [sum(regret for _, _, regret in play(policy, world, rounds)) for policy in policies]


def _policy(settings: GrowthSettings, name: str, graph: UserGraph, world: World, spread: float) -> Policy:
    """Returns a policy with the world's own prior; that of independent users is 1, so they need everything rescaled."""
    scale = spread if name == ALONE else 1.0
    own: dict[str, dict[str, Any]] = {
        LEARNER: {"laplacian_ridge": settings.laplacian_ridge},
        ALONE: {"width": scale},
        CONTROL: {},
    }
    return make_policy(
        name,
        graph=graph,
        arms=world.arms,
        arm_kernel=SquaredExponential(settings.lengthscale),
        noise_var=(settings.noise_to_spread * spread / scale) ** 2,
        expected_rounds=settings.rounds_per_user * graph.n_users,
        **own[name],
    )


def _line(settings: GrowthSettings, table: Array, spreads: Array) -> Record:
    """Returns mean, error and slope of the regret, as it is and in units of the world's spread."""
    line: Record = {}
    for unit, rows in (("raw", table), ("scaled", table / spreads)):
        means, errors = zip(*(mean_and_error(column) for column in rows.T), strict=True)
        steep, error = slope_and_error(settings.n_users, rows)
        line |= {unit: means, f"{unit}_error": errors, f"{unit}_slope": steep, f"{unit}_slope_error": error}
    return line


def findings(record: Record) -> list[Record]:
    """Returns what the growth of the regret says of the paper's comparison with independent learners."""
    return [_square_root(record), _no_learning(record), _independent_of_users(record)]


def _of(record: Record, policy: str) -> list[Record]:
    return [line for line in record["lines"] if line["policy"] == policy]


def _slopes(lines: list[Record], unit: str) -> str:
    cases = (f"{x[f'{unit}_slope']:.2f} ± {x[f'{unit}_slope_error']:.2f} (k = {x['n_clusters']})" for x in lines)
    return ", ".join(cases)


def _at_most(lines: list[Record], unit: str, limit: float) -> bool:
    return all(line[f"{unit}_slope"] <= limit + 2 * line[f"{unit}_slope_error"] for line in lines)


def _square_root(record: Record) -> Record:
    learner, control = _of(record, LEARNER), _of(record, CONTROL)
    verdict: Verdict = "holds" if _at_most(learner, "raw", 0.5) else "does not hold"
    return finding(
        "In the regime T ~ n the Laplacian kernelized bandit has regret O(sqrt(T)) under strong homophily.",
        verdict,
        f"The log-log slope of its regret in n is {_slopes(learner, 'raw')}. But that of a uniformly random policy is "
        f"{_slopes(control, 'raw')}, so that the rate alone says little: with a prior, or a norm bound, of L_rho^-1 "
        "the rewards themselves shrink as "
        "sqrt(K_max) ~ n^-1/2, so that no policy regrets more than the order of T sqrt(K_max) ~ sqrt(T). In units of "
        f"sqrt(K_max) the learner's slope is {_slopes(learner, 'scaled')}.",
    )


def _no_learning(record: Record) -> Record:
    alone = _of(record, ALONE)
    linear = [abs(line["scaled_slope"] - 1) <= max(2 * line["scaled_slope_error"], 0.05) for line in alone]
    ratios = [_over_control(record, line)[-1] for line in alone]
    return finding(
        "For independent learners in the regime T ~ n the regret is of order T: no learning occurs.",
        "holds partly" if all(linear) and max(ratios) < 0.95 else "holds" if all(linear) else "does not hold",
        f"In units of sqrt(K_max) the slope of {ALONE} is {_slopes(alone, 'scaled')}, where order T is 1. With "
        f"{record['settings']['rounds_per_user']} rounds a user it regrets {', '.join(f'{r:.0%}' for r in ratios)} of "
        "what a random policy does: what a user alone can learn from those rounds, whatever n is.",
    )


def _independent_of_users(record: Record) -> Record:
    cases, better = [], []
    for learner, alone in zip(_of(record, LEARNER), _of(record, ALONE), strict=True):
        first, *_, last = _over_control(record, learner)
        alone_last = _over_control(record, alone)[-1]
        cases.append(f"from {first:.0%} to {last:.0%} ({ALONE}: {alone_last:.0%}; k = {learner['n_clusters']})")
        better.append(last < first and learner["raw"][-1] < alone["raw"][-1])
    few, many = record["settings"]["n_users"][0], record["settings"]["n_users"][-1]
    return finding(
        "The advantage over independent learners becomes evident under strong homophily, in the regime T ~ n.",
        verdict_of(sum(better), len(better)),
        f"From n = {few} to {many} at {record['settings']['rounds_per_user']} rounds a user the regret of {LEARNER} "
        f"goes, as a share of the random policy's, {'; '.join(cases)}.",
    )


def _over_control(record: Record, line: Record) -> list[float]:
    control = next(x for x in _of(record, CONTROL) if x["n_clusters"] == line["n_clusters"])
    return [mine / other for mine, other in zip(line["raw"], control["raw"], strict=True)]


def draw(record: Record, folder: Path) -> list[Picture]:
    """Returns the picture of regret against n, as it is and in units of the world's spread."""
    settings = record["settings"]
    rows = settings["n_clusters"]
    figure, panels = new_figure(9.0, 3.0 * len(rows) + 0.4, rows=len(rows), columns=2)
    for row, n_clusters in zip(panels, rows, strict=True):
        lines = [line for line in record["lines"] if line["n_clusters"] == n_clusters]
        shape = "complete graph" if n_clusters == 1 else f"{n_clusters} clusters"
        for axes, unit, label in zip(row, ("raw", "scaled"), ("regret", "regret / sqrt(K_max)"), strict=True):
            _panel(axes, settings["n_users"], lines, unit)
            finish(axes, title=f"{shape}: {label}", xlabel="users n", ylabel=f"final {label}")
    legend_below(figure, panels[0][0], columns=3)
    caption = (
        f"T = {settings['rounds_per_user']} n, GP draws with L_rho^-1, rho = {settings['laplacian_ridge']:g}, "
        f"{settings['n_arms']} arms, {settings['n_candidates']} shown, noise {settings['noise_to_spread']:g} "
        f"sqrt(K_max); mean and standard error of {settings['trials']} worlds, whose prior and noise the learners are "
        "given; slopes of log regret on log n at the lines' ends. K_max shrinks as 1/n, so without any learning the "
        "slope is 1/2 on the left."
    )
    return [save_picture(figure, folder / "theory-2-growth", "Regret against n in the regime T = C n", caption)]


def _panel(axes: Any, n_users: list[int], lines: list[Record], unit: str) -> None:
    styles = looks([line["policy"] for line in lines])
    for line in lines:
        style = styles[line["policy"]]
        axes.errorbar(n_users, line[unit], yerr=line[f"{unit}_error"], label=line["policy"], markersize=4, **style)
        text = f"{line[f'{unit}_slope']:.2f} ± {line[f'{unit}_slope_error']:.2f}"
        end = {"xy": (n_users[-1], line[unit][-1]), "xytext": (7, 0), "textcoords": "offset points"}
        axes.annotate(text, **end, va="center", fontsize=8, color=style["color"])
    axes.set_xlim(n_users[0] * 0.85, n_users[-1] * 2.2)
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)
