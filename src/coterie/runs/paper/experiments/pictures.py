"""What the pictures of the theory share: colours for lines that are not policies, logarithmic axes, legends."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coterie.runs.report.style import save_figure

Drawn = tuple[str, Path, str]

# Okabe and Ito's colours: told apart in colour-blind vision; markers and dashes tell the lines apart in grey.
BLUE, ORANGE, GREEN, PURPLE, SKY, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#000000"
# From dark to light, for lines in an order.
SHADES = ("#440154", "#3b528b", "#21918c", "#5ec962", "#c8b400", "#d55e00")
MANY = (BLUE, ORANGE, GREEN, PURPLE, SKY, BLACK, "#E69F00", "#882255", "#999933")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)), (0, (3, 1)), (0, (6, 2, 2, 2)))


def log_axis(axis: Any) -> None:
    """Makes an axis logarithmic with plain numbers at 1, 2 and 5, or at powers of 10 where they are many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    numticks = 6 if axis.axis_name == "x" else 9
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 150 else (1,), numticks=numticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if 1e-3 <= value < 1e5 else f"{value:.0e}"))
    axis.set_minor_formatter(NullFormatter())


def draw_lines(axes: Any, x: Sequence[float], lines: Mapping[str, Sequence[float]]) -> None:
    """Draws labelled lines on logarithmic axes, no two of them alike."""
    for (label, values), colour, marker, dashes in zip(lines.items(), MANY, MARKERS, DASHES, strict=False):
        axes.plot(x, values, label=label, color=colour, marker=marker, linestyle=dashes, markersize=4)
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)


def legend_below(figure: Any, axes: Any, *, columns: int) -> None:
    """Writes the legend of these axes under the whole figure, where it covers no data."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def saved(figure: Any, stem: Path, title: str, caption: str) -> Drawn:
    """Returns title, path without ending and caption of a figure, written as PNG and SVG."""
    save_figure(figure, stem)
    return title, stem, caption
