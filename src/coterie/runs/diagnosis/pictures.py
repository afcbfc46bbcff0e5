"""The pictures of a diagnosis."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.runs.diagnosis.diagnosis import Diagnosis, Kernel
from coterie.runs.diagnosis.graph_evidence import CLEAR
from coterie.runs.diagnosis.homophily import Alike
from coterie.runs.diagnosis.payoff import CLEARLY, Payoff
from coterie.runs.report.style import (
    BLUE,
    DARK,
    GREEN,
    LIGHT,
    VERMILLION,
    Picture,
    finish,
    new_figure,
    plain,
    save_picture,
)

COLOURS = {"graph": BLUE, "own": VERMILLION, "common": GREEN}
MOST_BARS = 12
LINEAR_UP_TO = 50.0  # lost log evidence
TITLES = {
    "shared": ("Positives that linked users share", "mean over edges"),
    "lift": ("The same over what popularity gives", "times what is expected"),
    "opinions": ("Opinions on arms both have met", "correlation over edges"),
}


def draw_diagnosis(found: Diagnosis, folder: Path) -> dict[str, Picture]:
    """Returns the pictures that this diagnosis has, drawn into the folder as PNG and SVG."""
    out = {}
    if found.alike:
        caption = "Grey: graphs of the same degrees, rewired at random. Blue: the log's own graph."
        title = "Linked users against rewirings"
        out["homophily"] = save_picture(draw_homophily(found.alike), folder / "homophily", title, caption)
    if (kernel := found.kernel) is not None:
        caption = "The kernel is fitted to the sample, and again without each part."
        out["evidence"] = save_picture(draw_evidence(kernel), folder / "evidence", "Graph, own and common", caption)
        caption = (
            "Left and middle: at the fitted kernel, which is not fitted again; below the dotted line nothing clear is "
            "lost. Right: eigenvalues above the dotted line stand out from the noise; red: the effective dimension, "
            f"{kernel.effective_dim:.0f}."
        )
        title = "Features and effective dimension"
        out["features"] = save_picture(draw_features(kernel), folder / "features", title, caption)
    if (payoff := found.payoff) is not None:
        line = "" if payoff.pays_from is None else f"; green: round {payoff.pays_from:,}, from which it stays above 0"
        caption = f"Means over {payoff.n_truths} truths; the band on the right has two standard errors{line}."
        title = "With and without the graph, simulated"
        out["payoff"] = save_picture(draw_payoff(payoff), folder / "payoff", title, caption)
    return out


def draw_homophily(alike: Sequence[Alike]) -> Any:
    """Returns the picture of linked users against rewirings, a panel for each measure."""
    figure, axes = new_figure(3.7 * len(alike), 2.9, columns=len(alike))
    for each, panel in zip(alike, np.ravel(axes), strict=True):
        _draw_alike(panel, each)
    return figure


def _draw_alike(axes: Any, each: Alike) -> None:
    title, label = TITLES[each.name]
    span = float(np.ptp([*each.rewired, each.observed]))
    if span <= 1e-9 * abs(each.observed):  # all are the same but for rounding
        span = abs(each.observed) or 1.0
    middle = float(np.mean(each.rewired))
    spread = max(float(np.abs(each.rewired - middle).max()), 1e-3 * span)
    axes.hist(each.rewired, bins=12, range=(middle - spread, middle + spread), color=LIGHT)
    axes.axvline(each.observed, color=BLUE, linewidth=2.2)
    low, high = min(each.rewired.min(), each.observed), max(each.rewired.max(), each.observed)
    axes.set_xlim(low - 0.08 * span, high + 0.08 * span)
    top = axes.get_ylim()[1] * 1.22
    axes.set_ylim(0, top)
    right = each.observed > (low + high) / 2
    axes.annotate(
        f"the graph: {each.observed:.3g}\np = {each.p_value:.2g}",
        (each.observed, top),
        xytext=(-5 if right else 5, -4),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
        fontsize=8.5,
        color=BLUE,
    )
    finish(axes, title=title, xlabel=label, ylabel="rewirings")


def draw_evidence(kernel: Kernel) -> Any:
    """Returns the picture of what users share, and of what each part adds to the evidence."""
    figure, (left, right) = new_figure(9.5, 2.6, columns=2)
    shares, gains = kernel.fitted.hyper.shares(), kernel.fitted.gains  # without edges the graph has no gain
    _bars(left, {name: 100 * shares[name] for name in gains}, "{:.0f} %")
    left.set_xlim(0, 118)
    finish(left, title="What users like", xlabel="% of the users' variance")
    _bars(right, dict(gains), "{:+.1f}")
    largest = max(*gains.values(), 2 * CLEAR)
    right.set_xlim(min(0.0, 1.35 * min(gains.values())), 1.2 * largest)
    right.axvline(CLEAR, color=DARK, linestyle=":", linewidth=1.2)
    finish(right, title="What each part adds", xlabel=f"log evidence lost without it (dotted: {CLEAR:g}, clear)")
    for axes in (left, right):
        axes.grid(visible=False)
    return figure


def _bars(axes: Any, values: dict[str, float], form: str) -> None:
    names = list(values)
    axes.barh(names, list(values.values()), color=[COLOURS[name] for name in names], height=0.55)
    axes.invert_yaxis()
    for place, value in enumerate(values.values()):
        axes.annotate(
            form.format(value),
            (max(value, 0.0), place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )


def draw_features(kernel: Kernel) -> Any:
    """Returns the picture of what features are worth, how many do, and the kernel's eigenvalues."""
    figure, (left, middle, right) = new_figure(11.0, 3.4, columns=3)
    report = kernel.features
    shown = list(zip(report.names, report.losses, strict=True))[:MOST_BARS]
    left.barh([plain(name) for name, _ in shown], [loss for _, loss in shown], color=BLUE, height=0.6)
    left.invert_yaxis()
    left.tick_params(axis="y", labelsize=8)
    finish(left, title="The most informative features", xlabel="log evidence lost without it")
    left.grid(visible=False)
    _draw_kept(middle, kernel)
    _draw_eigenvalues(right, kernel)
    return figure


def _draw_kept(axes: Any, kernel: Kernel) -> None:
    report = kernel.features
    places = range(len(report.kept))
    axes.plot(places, report.kept_losses, color=BLUE, marker="o", linewidth=1.6)
    axes.axhline(CLEAR, color=DARK, linestyle=":", linewidth=1.2)
    low, high = float(report.kept_losses.min()), float(report.kept_losses.max())
    if high > LINEAR_UP_TO:
        axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(min(-2.0, 1.3 * low), (3 if high > LINEAR_UP_TO else 1.15) * max(high, 2 * CLEAR))
    axes.set_xticks(places, [str(count) for count in report.kept])
    finish(axes, title="How many features do", xlabel="features kept, the most informative", ylabel="log evidence lost")


def _draw_eigenvalues(axes: Any, kernel: Kernel) -> None:
    seen = kernel.eigenvalues[kernel.eigenvalues > 1e-3]
    axes.plot(np.arange(1, len(seen) + 1), seen, color=BLUE, linewidth=1.8)
    axes.axhline(1.0, color=DARK, linestyle=":", linewidth=1.2)
    axes.axvline(kernel.effective_dim, color=VERMILLION, linewidth=1.6)
    axes.set(xscale="log", yscale="log")
    finish(axes, title="Eigenvalues over the noise", xlabel="number", ylabel="eigenvalue / noise")


def draw_payoff(payoff: Payoff) -> Any:
    """Returns the picture of rewards with and without the graph, and of the difference."""
    figure, (left, right) = new_figure(9.5, 3.4, columns=2)
    rounds = np.arange(1, payoff.rounds + 1)
    kept = np.unique(np.linspace(0, payoff.rounds - 1, 200).astype(int))
    for name, earned, colour, dashes in (
        ("with the graph", payoff.with_graph, BLUE, "-"),
        ("without", payoff.without, VERMILLION, "--"),
    ):
        left.plot(rounds[kept], earned.mean(axis=0)[kept], color=colour, linestyle=dashes, linewidth=1.8, label=name)
    left.legend(frameon=False, fontsize=9)
    finish(left, title="Cumulative reward", xlabel="round", ylabel="above the level of all")
    ahead, band = payoff.ahead[kept], CLEARLY * payoff.std_err[kept]
    right.fill_between(rounds[kept], ahead - band, ahead + band, color=BLUE, alpha=0.18, linewidth=0)
    right.plot(rounds[kept], ahead, color=BLUE, linewidth=1.8)
    right.axhline(0.0, color=DARK, linewidth=0.8)
    if payoff.pays_from is not None:
        right.axvline(payoff.pays_from, color=GREEN, linewidth=1.6)
    finish(right, title="How far ahead the graph is", xlabel="round", ylabel="reward more")
    return figure
