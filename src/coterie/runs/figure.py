"""The picture of a duel."""

from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from coterie.runs.duel import Duel
from coterie.runs.extras import require_extra

# Okabe and Ito's colours: told apart in colour-blind vision; line styles tell them apart in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))


def draw_regret(duel: Duel, path: Path, *, title: str, subtitle: str) -> None:
    """Writes the mean cumulative regret of each policy, with a band of one standard error, as a PNG."""
    with require_extra("lab", "a picture"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(7.2, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    rounds = np.arange(1, duel.horizon + 1)
    finals = []
    for name, colour, style in zip(duel.names, cycle(COLOURS), cycle(STYLES), strict=False):
        regret = duel.cum_regret(name)
        mean, error = regret.mean(axis=0), regret.std(axis=0, ddof=1 if len(regret) > 1 else 0) / np.sqrt(len(regret))
        axes.plot(rounds, mean, color=colour, linestyle=style, linewidth=1.8)
        axes.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.18, linewidth=0)
        finals.append((float(mean[-1]), name, colour))
    _label_lines(axes, finals, duel.horizon)
    axes.set(xlabel="round", ylabel="cumulative regret (mean, ± 1 standard error)", xlim=(0, duel.horizon))
    axes.set_ylim(bottom=0)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", pad=20)
    axes.text(0, 1.02, subtitle, transform=axes.transAxes, fontsize=8.5, color="#444444")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _label_lines(axes: Any, finals: list[tuple[float, str, str]], horizon: int) -> None:
    """Writes each name at the end of its line, moved up where two would overlap."""
    gap = 0.055 * max(value for value, _, _ in finals)
    lowest = -gap
    for value, name, colour in sorted(finals):
        height = max(value, lowest + gap)
        axes.annotate(
            f"{name}  {value:.0f}",
            (horizon, height),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=9,
            annotation_clip=False,
        )
        lowest = height
