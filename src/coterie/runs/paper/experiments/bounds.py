"""The regret bounds of Theorems 3 and 4, with the constants of their proofs, beside measured regret."""

from dataclasses import dataclass
from itertools import pairwise
from math import log, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.graphs import UserGraph, make_graph
from coterie.kernels import ArmPool, Green, SquaredExponential, joint_penalty, pool_kernel
from coterie.policies import Policy, TheoryWidth, make_policy
from coterie.problems import World, sphere_pool
from coterie.runs.paper.experiments.experiment import (
    Record,
    Report,
    finding,
    legend_below,
    log_axis,
    slope,
    span,
    verdict_of,
)
from coterie.runs.report.style import BLACK, Picture, finish, look, new_figure, save_picture
from coterie.runs.trial import play

POLICIES = ("lk-gp-ucb", "lk-gp-ts")
CONTROL = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsSettings:
    """The paper's easy level on an ER graph; lambda = sigma^2, and the learner knows rho, lengthscale and norm."""

    n_users: int = 20
    n_arms: int = 10
    n_candidates: int = 5
    dimension: int = 5
    lengthscale: float = 1.0
    laplacian_ridge: float = 0.1
    noise_std: float = 0.1
    failure_prob: float = 0.05
    times: tuple[int, ...] = (10, 20, 50, 100, 200, 400, 700, 1000, 1500, 2000, 3000, 5000, 10000)
    trials: int = 10
    seed: int = 5


FULL = BoundsSettings()
QUICK = BoundsSettings(times=(10, 50, 100, 300), trials=2)


def measure(settings: BoundsSettings, report: Report) -> Record:
    """Returns regret and bound over time for each policy and width, in every trial."""
    runs: dict[str, list[Record]] = {}
    for trial in range(settings.trials):
        report(f"theory (3): trial {trial + 1} of {settings.trials}, T = {settings.times[-1]}")
        for label, course in _trial(settings, trial).items():
            runs.setdefault(label, []).append(course)
    lines = [{"label": label} | _line(courses) for label, courses in runs.items()]
    return {"lines": lines}


def _line(runs: list[Record]) -> Record:
    """Returns what is drawn over time, and trial by trial the end and the least room under the bound."""
    table = {key: np.array([course[key] for course in runs]) for key in runs[0]}
    line: Record = {key: values.mean(axis=0) for key, values in table.items()}
    line["regret_error"] = table["regret"].std(axis=0, ddof=1) / sqrt(len(runs))
    if "bound" in table:
        line["final_ratio"] = (table["bound"] / table["regret"])[:, -1]
        line["held"] = [bool(np.all(row)) for row in table["bound"] >= table["regret"]]
    return line


def _trial(settings: BoundsSettings, trial: int) -> dict[str, Record]:
    """Returns the course of each policy on one world, all meeting the same rounds."""
    graph_rng, pool_rng = (np.random.default_rng([settings.seed, trial, part]) for part in (1, 2))
    graph = make_graph("erdos-renyi", settings.n_users, seed=graph_rng, connected="retry")
    arms = sphere_pool(settings.n_arms, settings.dimension, seed=pool_rng)
    world, norm = _world(settings, graph, arms, trial)
    course: dict[str, Record] = {}
    ridge = settings.laplacian_ridge
    for name in POLICIES:
        theory = _width(settings, name, norm)
        course[f"{name}, beta_t"] = _course(settings, name, world, trial, width=theory, laplacian_ridge=ridge)
        course[f"{name}, width 1"] = _course(settings, name, world, trial, width=1.0, laplacian_ridge=ridge)
    course[CONTROL] = _course(settings, CONTROL, world, trial)
    return course


def _world(settings: BoundsSettings, graph: UserGraph, arms: ArmPool, trial: int) -> tuple[World, float]:
    """Returns a GP draw with L_rho^-1 and its norm in the joint RKHS, the least B_rho that is true."""
    arm_kernel = SquaredExponential(settings.lengthscale)
    kernel = pool_kernel(Green(laplacian_ridge=settings.laplacian_ridge).matrix(graph), arm_kernel, arms)
    normal = np.random.default_rng([settings.seed, trial]).standard_normal((settings.n_users, settings.n_arms))
    truth = np.linalg.cholesky(kernel.user_cov) @ normal @ np.linalg.cholesky(kernel.arm_cov).T
    weights = np.linalg.solve(kernel.arm_cov, truth.T).T
    penalty = joint_penalty(
        weights, graph=graph, arms=arms, arm_kernel=arm_kernel, laplacian_ridge=settings.laplacian_ridge
    )
    return World(graph=graph, arms=arms, truth=truth, noise_std=settings.noise_std), sqrt(penalty)


def _width(settings: BoundsSettings, name: str, norm: float) -> TheoryWidth:
    """Returns beta_t; the proof for Thompson sampling wants every round to fail with probability delta / T."""
    share = settings.times[-1] if name == "lk-gp-ts" else 1
    return TheoryWidth(norm_bound=norm, noise_std=settings.noise_std, failure_prob=settings.failure_prob / share)


def _course(settings: BoundsSettings, name: str, world: World, trial: int, **options: Any) -> Record:
    """Returns cumulative regret at each time, with the theorem's bound if the width is the theorem's."""
    policy = make_policy(
        name,
        graph=world.graph,
        arms=world.arms,
        arm_kernel=SquaredExponential(settings.lengthscale),
        noise_var=settings.noise_std**2,
        engine="grid",
        seed=trial,
        **options,
    )
    rounds = list(world.rounds(settings.times[-1], n_candidates=settings.n_candidates, seed=trial))
    regret, bounds, trivial = 0.0, [], []
    regrets = []
    for start, end in pairwise((0, *settings.times)):
        regret += sum(each for _, _, each in play(policy, world, rounds[start:end]))
        regrets.append(regret)
        if isinstance(width := policy.width, TheoryWidth):
            bounds.append(_bound(settings, name, policy, width, end))
            trivial.append(end * largest_gap(width.norm_bound, policy.model.max_variance))
    course: Record = {"regret": regrets}
    return course | ({"bound": bounds, "trivial": trivial} if bounds else {})


def _bound(settings: BoundsSettings, name: str, policy: Policy, width: TheoryWidth, horizon: int) -> float:
    model, norm = policy.model, width.norm_bound
    beta, gain, most = width(horizon, model), model.info_gain, model.max_variance
    if name == "lk-gp-ucb":
        return ucb_bound(beta, gain, horizon=horizon, max_variance=most, norm_bound=norm)
    return ts_bound(
        beta,
        gain,
        horizon=horizon,
        max_variance=most,
        norm_bound=norm,
        n_candidates=settings.n_candidates,
        failure_prob=settings.failure_prob,
    )


def ucb_bound(beta: float, gain: float, *, horizon: int, max_variance: float, norm_bound: float) -> float:
    """Returns 2 beta_T sqrt(2 T max(1, K_max) gain) + B_Delta, the last line of the proof of Theorem 3."""
    return 2 * beta * sqrt(2 * horizon * max(1.0, max_variance) * gain) + largest_gap(norm_bound, max_variance)


def ts_bound(
    beta: float,
    gain: float,
    *,
    horizon: int,
    max_variance: float,
    norm_bound: float,
    n_candidates: int,
    failure_prob: float,
) -> float:
    """Returns 194 c_T sqrt(2 T max(1, K_max) gain) + (4 + pi^2/6 + delta) B_Delta, the proof of Theorem 4.

    c_T = beta_T (1 + sqrt(2 log(T^2 M))) with M candidates; beta_T has failure probability delta / T.
    """
    spread = beta * (1 + sqrt(2 * log(horizon**2 * n_candidates)))
    rest = (4 + pi**2 / 6 + failure_prob) * largest_gap(norm_bound, max_variance)
    return 194 * spread * sqrt(2 * horizon * max(1.0, max_variance) * gain) + rest


def largest_gap(norm_bound: float, max_variance: float) -> float:
    """Returns B_Delta = 2 B sqrt(K_max): no round can regret more, whatever is chosen."""
    return 2 * norm_bound * sqrt(max_variance)


def findings(record: Record) -> list[Record]:
    """Returns whether the bounds hold, how far above the regret they lie, and what the theory's width costs."""
    return [*(_held(record, name) for name in POLICIES), _informative(record), _tuned(record)]


def _of(record: Record, label: str) -> Record:
    found: Record = next(line for line in record["lines"] if line["label"] == label)
    return found


def _held(record: Record, name: str) -> Record:
    line, number = _of(record, f"{name}, beta_t"), 3 if name == "lk-gp-ucb" else 4
    late = slice(len(record["settings"]["times"]) // 2, None)
    times = record["settings"]["times"][late]
    return finding(
        f"Theorem {number}: the regret of {name} with the theory's width is below the bound of the proof.",
        verdict_of(sum(line["held"]), len(line["held"])),
        f"It is, at every time looked at, in {sum(line['held'])} of {len(line['held'])} worlds; at T = {times[-1]} the "
        f"bound is {span(line['final_ratio'])} times the regret. Over the second half the regret grows as "
        f"T^{slope(times, line['regret'][late]):.2f} and the bound as T^{slope(times, line['bound'][late]):.2f}.",
    )


def _informative(record: Record) -> Record:
    control, cases = _of(record, CONTROL)["regret"], []
    for name in POLICIES:
        line = _of(record, f"{name}, beta_t")
        cases.append(
            f"{name}: {line['bound'][-1] / line['trivial'][-1]:.3g} times T B_Delta, which no policy can exceed, and "
            f"{line['bound'][-1] / control[-1]:.3g} times the regret of a random policy"
        )
    return finding(
        f"What the bounds say at the scale of the experiments (T = {record['settings']['times'][-1]})",
        None,
        f"The bound is, for {'; for '.join(cases)}.",
    )


def _tuned(record: Record) -> Record:
    ratios = {
        name: _of(record, f"{name}, beta_t")["regret"][-1] / _of(record, f"{name}, width 1")["regret"][-1]
        for name in POLICIES
    }
    return finding(
        "What the theory's width costs",
        None,
        "With the theory's width the final regret is "
        + ", ".join(f"{ratio:.3g} times that of width 1 for {name}" for name, ratio in ratios.items())
        + ".",
    )


def draw(record: Record, folder: Path) -> list[Picture]:
    """Returns the picture of measured regret and bound over time, one panel a policy."""
    settings = record["settings"]
    figure, panels = new_figure(9.5, 4.2, columns=len(POLICIES))
    for axes, name in zip(panels, POLICIES, strict=True):
        _panel(axes, record, name)
        finish(axes, title=name, xlabel="round T", ylabel="cumulative regret")
    low = min(axes.get_ylim()[0] for axes in panels)
    high = max(axes.get_ylim()[1] for axes in panels)
    for axes in panels:
        axes.set_ylim(low, high)
        log_axis(axes.yaxis)
    legend_below(figure, panels[0], columns=3)
    caption = (
        f"{settings['n_users']} users on ER graphs, {settings['n_arms']} arms, {settings['n_candidates']} shown, GP "
        f"draws with L_rho^-1, rho = {settings['laplacian_ridge']:g}, sigma = {settings['noise_std']:g}, "
        f"lambda = sigma^2, delta = {settings['failure_prob']:g}; means of {settings['trials']} worlds. B_rho is the "
        "norm of the true f. T B_Delta bounds the regret of any policy whatever."
    )
    return [
        save_picture(
            figure, folder / "theory-3-bounds", "Regret bounds of Theorems 3 and 4 beside measured regret", caption
        )
    ]


def _panel(axes: Any, record: Record, name: str) -> None:
    times, theory = record["settings"]["times"], _of(record, f"{name}, beta_t")
    colour = look(name)["color"]
    axes.plot(times, theory["bound"], color=BLACK, linestyle="--", label="the theorem's bound")
    axes.plot(times, theory["trivial"], color="#777777", linestyle=":", label="T B_Delta (any policy)")
    axes.plot(times, _of(record, CONTROL)["regret"], **look(CONTROL) | {"markersize": 4}, label="random policy")
    _measured(axes, times, theory, "with the theory's width", color=colour, linestyle="-", marker="o")
    _measured(axes, times, _of(record, f"{name}, width 1"), "with width 1", color=colour, linestyle="-.", marker="s")
    log_axis(axes.xaxis)
    axes.set_yscale("log")


def _measured(axes: Any, times: list[int], line: Record, label: str, **style: Any) -> None:
    errors: Array = np.array(line["regret_error"])
    axes.errorbar(times, line["regret"], yerr=errors, label=label, markersize=4, **style)
