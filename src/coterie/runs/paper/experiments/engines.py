"""What each engine costs in time and memory, against rounds and against users."""

import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import numpy as np

from coterie.contracts import ArmId
from coterie.graphs import make_graph
from coterie.kernels import ArmKernel, ArmPool, Linear, SquaredExponential
from coterie.policies import Policy, make_policy
from coterie.problems import sphere_pool
from coterie.runs.paper.experiments.experiment import (
    Record,
    Report,
    draw_lines,
    finding,
    legend_below,
    slope,
)
from coterie.runs.report.style import Picture, finish, new_figure, save_picture

Shown = tuple[int, list[ArmId], float]


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine with its options; the linear one is shown on the kernel it is for, of few features."""

    engine: str
    options: Mapping[str, int]
    arm_kernel: ArmKernel


_SMOOTH = SquaredExponential(1.0)
ENGINES: Mapping[str, Engine] = {
    "grid": Engine("grid", {}, _SMOOTH),
    "exact": Engine("exact", {}, _SMOOTH),
    "hybrid": Engine("hybrid", {}, _SMOOTH),
    "features": Engine("features", {}, _SMOOTH),
    "features, 8 frequencies": Engine("features", {"user_rank": 8}, _SMOOTH),
    "linear, linear arms": Engine("linear", {}, Linear()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginesSettings:
    """The paper's medium level, with 50 users where n is fixed."""

    n_arms: int = 20
    n_candidates: int = 5
    dimension: int = 10
    edge_prob: float = 0.2
    laplacian_ridge: float = 0.1
    noise_var: float = 0.01
    fixed_users: int = 50
    horizons: tuple[int, ...] = (100, 300, 1000, 3000, 6000)
    fixed_horizon: int = 500
    n_users: tuple[int, ...] = (10, 20, 50, 100, 200)
    seed: int = 6


FULL = EnginesSettings()
QUICK = EnginesSettings(horizons=(50, 100, 200), fixed_horizon=60, n_users=(10, 20, 40), fixed_users=20)


def measure(settings: EnginesSettings, report: Report) -> Record:
    """Returns time per round and memory of each engine, against T at a fixed n and against n at a fixed T."""
    return {
        "settings": asdict(settings) | {"engines": list(ENGINES)},
        "rounds": _in_rounds(settings, report),
        "users": _in_users(settings, report),
    }


def _in_rounds(settings: EnginesSettings, report: Report) -> list[Record]:
    """Returns for each engine the cost of the rounds up to each T, at a fixed n."""
    lines = []
    for name in ENGINES:
        report(f"scaling: {name}, {settings.fixed_users} users, up to {settings.horizons[-1]} rounds")
        lines.append({"engine": name} | _cost(settings, name, settings.fixed_users, settings.horizons))
    return lines


def _in_users(settings: EnginesSettings, report: Report) -> list[Record]:
    """Returns for each engine the cost of a fixed number of rounds for each n."""
    lines = []
    for name in ENGINES:
        report(f"scaling: {name}, up to {settings.n_users[-1]} users, {settings.fixed_horizon} rounds")
        costs = [_cost(settings, name, n_users, (settings.fixed_horizon,)) for n_users in settings.n_users]
        lines.append({"engine": name} | {key: [cost[key][0] for cost in costs] for key in costs[0]})
    return lines


def _cost(settings: EnginesSettings, name: str, n_users: int, horizons: tuple[int, ...]) -> Record:
    """Returns microseconds a round since the horizon before, and MiB held and allocated, at each horizon.

    Time and peak are taken from two runs, since tracing memory slows a run down; the making of the policy is in both.
    """
    seconds = list(_watch(settings, name, n_users, horizons, clock=perf_counter))
    tracemalloc.start()
    try:
        peaks = list(_watch(settings, name, n_users, horizons, clock=lambda: tracemalloc.get_traced_memory()[1]))
    finally:
        tracemalloc.stop()
    spent, rounds = np.diff([each for each, _ in seconds], prepend=0.0), np.diff(horizons, prepend=0)
    return {
        "microseconds": 1e6 * spent / rounds,
        "held_mib": [held / 2**20 for _, held in seconds],
        "peak_mib": [peak / 2**20 for peak, _ in peaks],
    }


def _watch(
    settings: EnginesSettings, name: str, n_users: int, horizons: tuple[int, ...], *, clock: Callable[[], float]
) -> Iterator[tuple[float, int]]:
    """Yields at each horizon what the clock has gained since the start, and the bytes that the belief holds."""
    rounds = _random_rounds(settings, n_users, horizons[-1])
    start = clock()
    policy = _policy(settings, name, n_users)
    for begin, end in pairwise((0, *horizons)):
        for user, candidates, reward in rounds[begin:end]:
            policy.update(user, policy.select(user, candidates).arm, reward)
        yield clock() - start, policy.model.nbytes


def _random_rounds(settings: EnginesSettings, n_users: int, horizon: int) -> list[Shown]:
    rng, ids = np.random.default_rng([settings.seed, 1]), _pool(settings).ids
    draws = (rng.choice(settings.n_arms, settings.n_candidates, replace=False) for _ in range(horizon))
    return [(int(rng.integers(n_users)), [ids[row] for row in rows], float(rng.standard_normal())) for rows in draws]


def _pool(settings: EnginesSettings) -> ArmPool:
    return sphere_pool(settings.n_arms, settings.dimension, seed=np.random.default_rng([settings.seed, 2]))


def _policy(settings: EnginesSettings, name: str, n_users: int) -> Policy:
    engine = ENGINES[name]
    return make_policy(
        "lk-gp-ucb",
        graph=make_graph("erdos-renyi", n_users, edge_prob=settings.edge_prob, seed=settings.seed),
        arms=_pool(settings),
        arm_kernel=engine.arm_kernel,
        laplacian_ridge=settings.laplacian_ridge,
        noise_var=settings.noise_var,
        engine=engine.engine,
        engine_options=engine.options,
    )


def findings(record: Record) -> list[Record]:
    """Returns what was measured; there is no claim of the paper to judge."""
    settings = record["settings"]
    return [
        _time_in(record, "rounds", "T", settings["horizons"], f"n = {settings['fixed_users']}"),
        _time_in(record, "users", "n", settings["n_users"], f"T = {settings['fixed_horizon']}"),
        _memory(record),
    ]


def _time_in(record: Record, part: str, letter: str, x: list[int], fixed: str) -> Record:
    cases = [
        f"{line['engine']} {line['microseconds'][0]:.3g} to {line['microseconds'][-1]:.3g} us "
        f"({letter}^{slope(x, line['microseconds']):.2f})"
        for line in record[part]
    ]
    return finding(
        f"Time per round of each engine against {letter}, at {fixed}.",
        None,
        f"From {letter} = {x[0]} to {x[-1]}, on the machine that ran this: {'; '.join(cases)}.",
    )


def _memory(record: Record) -> Record:
    users = record["settings"]["n_users"]
    cases = [
        f"{line['engine']} {line['held_mib'][-1]:.3g} held, {line['peak_mib'][-1]:.3g} at the peak (n^"
        f"{slope(users, line['peak_mib']):.2f})"
        for line in record["users"]
    ]
    return finding(
        f"Memory of each engine at n = {users[-1]}, T = {record['settings']['fixed_horizon']}, in MiB.",
        None,
        f"{'; '.join(cases)}.",
    )


def draw(record: Record, folder: Path) -> list[Picture]:
    """Returns the picture of time and memory, against T and against n."""
    settings = record["settings"]
    figure, panels = new_figure(9.5, 6.6, rows=2, columns=2)
    for row, key, unit in zip(panels, ("microseconds", "peak_mib"), ("microseconds a round", "peak MiB"), strict=True):
        for axes, part, x, name in (
            (row[0], "rounds", settings["horizons"], f"rounds T, with {settings['fixed_users']} users"),
            (row[1], "users", settings["n_users"], f"users n, in {settings['fixed_horizon']} rounds"),
        ):
            draw_lines(axes, x, {line["engine"]: line[key] for line in record[part]})
            finish(axes, title=f"{unit} against {part}", xlabel=name, ylabel=unit)
    legend_below(figure, panels[0][0], columns=3)
    caption = (
        f"lk-gp-ucb by each engine on an ER graph, {settings['n_arms']} arms, {settings['n_candidates']} shown, one "
        "run on the machine that ran this. Above: time of a decision and an update, mean over the rounds since the "
        "point before, the making of the policy in the first. Below: the peak of what Python and NumPy allocate."
    )
    return [save_picture(figure, folder / "scaling-engines", "Time and memory of the engines", caption)]
