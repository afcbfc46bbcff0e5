"""How every figure looks: one colour and line style per policy, readable in colour-blind vision and in grey."""

from pathlib import Path
from typing import Any

from coterie.runs.extras import require_extra


def new_figure(width: float = 7.2, height: float = 4.2, *, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """Returns a figure of this size in inches and its axes: one, or an array of them if there are several."""
    with require_extra("lab", "a picture"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns)


def look(policy: str) -> dict[str, Any]:
    """Returns the colour and the line style of a policy, the same in every figure."""
    raise NotImplementedError(policy)


def finish(axes: Any, *, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """Writes titles and takes away what is not data."""
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Writes the figure as stem.png and stem.svg, the same bytes for the same figure, and returns both paths."""
    from matplotlib import rc_context

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.parent / f"{stem.name}.png", stem.parent / f"{stem.name}.svg"]
    with rc_context({"svg.hashsalt": "coterie", "svg.fonttype": "none"}):
        figure.savefig(paths[0], dpi=150, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None, "Creator": None})
    return paths
