"""The lemma on cumulative uncertainty over a range of noise variances, and the form of it that always holds."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import expm1, log1p, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from coterie.graphs import make_graph
from coterie.kernels import Green, PoolKernel, SquaredExponential, pool_kernel
from coterie.models import Model, make_model
from coterie.problems import sphere_pool
from coterie.runs.paper.experiments.experiment import (
    MARKERS,
    Record,
    Report,
    finding,
    legend_below,
    log_axis,
    span,
)
from coterie.runs.report.style import GREEN, VERMILLION, Picture, finish, new_figure, save_picture

SEQUENCES = ("bandit", "one pair repeated", "distinct pairs")


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertaintySettings:
    """Worlds with a large and a small K_max; a short lengthscale keeps distinct pairs nearly independent."""

    worlds: tuple[tuple[str, float], ...] = (("empty", 0.1), ("complete", 0.1), ("empty", 10.0))
    n_users: int = 10
    n_arms: int = 20
    dimension: int = 5
    lengthscale: float = 0.3
    horizon: int = 200
    noise_vars: tuple[float, ...] = tuple(float(f"{value:.4g}") for value in np.logspace(-4, 4, 25))
    seed: int = 4


FULL = UncertaintySettings()
QUICK = UncertaintySettings(horizon=60, noise_vars=tuple(10.0**power for power in range(-4, 5)))


def measure(settings: UncertaintySettings, report: Report) -> Record:
    """Returns for each world, sequence and noise variance the summed std over each of the three bounds."""
    lines = []
    for family, ridge in settings.worlds:
        kernel = _kernel(settings, family, ridge)
        report(f"theory (4): the lemma on the {family} graph with rho = {ridge:g}")
        for sequence in SEQUENCES:
            ratios = [_ratios(settings, kernel, sequence, noise_var) for noise_var in settings.noise_vars]
            place = {"graph": family, "laplacian_ridge": ridge, "max_variance": kernel.max_variance([])}
            printed, simple, tight = zip(*ratios, strict=True)
            lines.append(place | {"sequence": sequence, "printed": printed, "simple": simple, "tight": tight})
    return {"lines": lines}


def _kernel(settings: UncertaintySettings, family: str, ridge: float) -> PoolKernel:
    user_cov = Green(laplacian_ridge=ridge).matrix(make_graph(family, settings.n_users))
    pool = sphere_pool(settings.n_arms, settings.dimension, seed=settings.seed)
    return pool_kernel(user_cov, SquaredExponential(settings.lengthscale), pool)


def _ratios(
    settings: UncertaintySettings, kernel: PoolKernel, sequence: str, noise_var: float
) -> tuple[float, float, float]:
    model = make_model(kernel, noise_var=noise_var, engine="grid")
    total = sum(_walk(settings, model, sequence))
    gain, horizon, most = model.info_gain, settings.horizon, model.max_variance
    return (
        total / printed_bound(gain, horizon=horizon, max_variance=most),
        total / simple_bound(gain, horizon=horizon, max_variance=most, noise_var=noise_var),
        total / tight_bound(gain, horizon=horizon, max_variance=most, noise_var=noise_var),
    )


def _walk(settings: UncertaintySettings, model: Model, sequence: str) -> Iterator[float]:
    """Yields the std of the pair of each round before its reward, which the model then learns."""
    rng = np.random.default_rng([settings.seed, 1])
    pairs = list(product(range(settings.n_users), range(settings.n_arms)))
    truth = rng.standard_normal((settings.n_users, settings.n_arms)) * sqrt(model.max_variance)
    for t in range(settings.horizon):
        user, arm = (0, 0) if sequence == "one pair repeated" else pairs[t % len(pairs)]
        if sequence == "bandit":
            user, arm = _choice(model, rng)
        yield float(model.predict(user, [arm])[1][0])
        model.update(user, arm, truth[user, arm])


def _choice(model: Model, rng: np.random.Generator) -> tuple[int, int]:
    """Returns a uniform user and the arm with the highest upper bound of width 1."""
    user = int(rng.integers(model.n_users))
    mean, std = model.predict(user)
    return user, int(np.argmax(mean + std))


def printed_bound(gain: float, *, horizon: int, max_variance: float) -> float:
    """Returns sqrt(2 T max(1, K_max) gain), the lemma as the paper has it."""
    return sqrt(2 * horizon * max(1.0, max_variance) * gain)


def simple_bound(gain: float, *, horizon: int, max_variance: float, noise_var: float) -> float:
    """Returns sqrt(2 T max(noise_var, K_max) gain), what both cases of the paper's proof give when carried through.

    In its first case, noise_var >= K_max, the proof has sum std^2 <= 2 noise_var gain and then puts K_max in place of
    noise_var, which is the smaller of the two.
    """
    return sqrt(2 * horizon * max(noise_var, max_variance) * gain)


def tight_bound(gain: float, *, horizon: int, max_variance: float, noise_var: float) -> float:
    """Returns sqrt(T K_max / log(1 + K_max / noise_var) gain), which bounds the sum of std for every noise_var.

    x / log(1 + x) rises with x, so std^2 <= K_max gives std^2 <= K_max / log(1 + K_max / noise_var) times
    log(1 + std^2 / noise_var), and those logarithms add up to the gain. It is an equality for independent pairs.

    Examples:
        >>> gain = 3 * log1p(2.0 / 50.0)                      # three independent pairs of variance 2
        >>> round(tight_bound(gain, horizon=3, max_variance=2.0, noise_var=50.0) / (3 * sqrt(2.0)), 12)
        1.0
    """
    return sqrt(horizon * max_variance / log1p(max_variance / noise_var) * gain)


def findings(record: Record) -> list[Record]:
    """Returns for which noise variances the lemma holds, and whether the other forms do."""
    return [_printed(record), _in_its_range(record), _others(record)]


def _cells(record: Record, bound: str) -> list[tuple[float, float, float]]:
    """Returns K_max, noise variance and ratio of every cell."""
    noise_vars = record["settings"]["noise_vars"]
    return [
        (line["max_variance"], *pair) for line in record["lines"] for pair in zip(noise_vars, line[bound], strict=True)
    ]


def _broken(ratio: float) -> bool:
    return ratio > 1 + 1e-5  # the record keeps six digits


def _printed(record: Record) -> Record:
    cells = _cells(record, "printed")
    broken = [(noise_var / max(1.0, most), ratio) for most, noise_var, ratio in cells if _broken(ratio)]
    where = f"all at lambda >= {min(scaled for scaled, _ in broken):.3g} max(1, K_max)" if broken else "none"
    worst = max((ratio for _, ratio in broken), default=0.0)
    return finding(
        "The sum of std is at most sqrt(2 T max(1, K_max) gain) for every lambda (the lemma, as printed).",
        "does not hold" if broken else "holds",
        f"It is broken in {len(broken)} of {len(cells)} cells (lambda from {record['settings']['noise_vars'][0]:g} to "
        f"{record['settings']['noise_vars'][-1]:g}, three graphs, three sequences), {where}, by a factor of up to "
        f"{worst:.3g}. In the proof's case lambda >= K_max the factor must be lambda, not K_max; independent pairs "
        f"with K_max >= 1 break it from lambda = K_max / (sqrt(e) - 1) = {1 / expm1(0.5):.3g} K_max on.",
    )


def _in_its_range(record: Record) -> Record:
    ratios = [ratio for most, noise_var, ratio in _cells(record, "printed") if noise_var <= max(1.0, most)]
    held = sum(not _broken(ratio) for ratio in ratios)
    return finding(
        "The lemma for lambda <= max(1, K_max), the range of the paper's experiments",
        None,
        f"It holds in {held} of {len(ratios)} such cells; the sum of std is {span(ratios)} of the bound.",
    )


def _others(record: Record) -> Record:
    simple = [ratio for _, _, ratio in _cells(record, "simple")]
    tight = [ratio for _, _, ratio in _cells(record, "tight")]
    held = sum(not _broken(ratio) for ratio in simple + tight)
    return finding(
        "The lemma mended: for every lambda the sum of std is at most sqrt(2 T max(lambda, K_max) gain), and at most "
        "sqrt(T K_max / log(1 + K_max / lambda) gain)",
        None,
        f"They hold in {held} of {len(simple) + len(tight)} cells. The first is reached to {max(simple):.3g} of its "
        f"value; the second, whose constant is the smallest that can hold, to {max(tight):.6g}.",
    )


def draw(record: Record, folder: Path) -> list[Picture]:
    """Returns the picture of the summed std over its bounds, against lambda."""
    worlds = record["settings"]["worlds"]
    figure, panels = new_figure(10.0, 3.9, columns=len(worlds))
    for axes, (family, ridge) in zip(panels, worlds, strict=True):
        lines = [line for line in record["lines"] if (line["graph"], line["laplacian_ridge"]) == (family, ridge)]
        _panel(axes, record["settings"]["noise_vars"], lines)
        title = f"{family} graph, K_max = {lines[0]['max_variance']:.3g}"
        finish(axes, title=title, xlabel="lambda", ylabel="sum of std / bound")
    legend_below(figure, panels[0], columns=3)
    caption = (
        f"{record['settings']['horizon']} rounds. Above the line the inequality is broken. The printed proof "
        "covers lambda <= max(1, K_max) only; the mended form for every lambda, and independent pairs reach it."
    )
    return [save_picture(figure, folder / "theory-4-uncertainty", "The lemma on cumulative uncertainty", caption)]


def _panel(axes: Any, noise_vars: list[float], lines: list[Record]) -> None:
    for line, marker in zip(lines, MARKERS, strict=False):
        for bound, label, colour, dashes in (
            ("printed", "as printed", VERMILLION, "--"),
            ("tight", "mended, tight", GREEN, "-"),
        ):
            style = {"color": colour, "linestyle": dashes, "marker": marker, "markersize": 3.5, "linewidth": 1}
            axes.plot(noise_vars, line[bound], label=f"{label}: {line['sequence']}", markevery=4, **style)
    axes.axhline(1, color="#555555", linewidth=1)
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)
