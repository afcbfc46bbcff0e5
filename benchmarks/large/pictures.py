"""The pictures of docs/scale.md."""

from pathlib import Path
from typing import Any

from benchmarks.large.cases import EPS, FIGURE_EPS, KINDS, RIDGES, SIZES, play_key
from benchmarks.large.store import Kept

BLUE, VERMILLION = "#0072B2", "#D55E00"
COLOURS = dict(zip(KINDS, (BLUE, VERMILLION), strict=True))
STROKES = {1.0: "--", 0.1: "-"}
LOOK: dict[Any, Any] = {
    "font.size": 11,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw_all(kept: Kept, folder: Path) -> list[str]:
    """Draws what was measured, and returns the names of the files."""
    import matplotlib as mpl

    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(LOOK):
        drawn = {"scale-reward.png": _reward(kept), "scale-error.png": _error(kept)}
    for name, figure in drawn.items():
        if figure is not None:
            figure.savefig(folder / name, dpi=110, bbox_inches="tight")
    return [name for name, figure in drawn.items() if figure is not None]


def _reward(kept: Kept) -> Any:
    """Milliseconds over users, a panel for each rho."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2))
    panels = figure.subplots(1, len(RIDGES), sharey=True)
    any_line = False
    for panel, ridge in zip(panels, RIDGES, strict=True):
        for kind in KINDS:
            for eps in EPS:
                found = [(n, kept.median(play_key(kind, n, ridge, eps))) for n in SIZES]
                found = [(n, numbers) for n, numbers in found if numbers]
                if not found:
                    continue
                any_line, sizes = True, [n for n, _ in found]
                look = {"color": COLOURS[kind], "linestyle": STROKES[eps]}
                label = f"{kind}, eps {eps:g}"
                panel.plot(sizes, [each["reward_p50"] for _, each in found], "o", label=label, **look)
                panel.plot(sizes, [each["reward_p99"] for _, each in found], "^", alpha=0.45, markersize=5, **look)
        panel.set(xscale="log", yscale="log", title=f"rho = {ridge:g}", xlabel="users")
    panels[0].set_ylabel("milliseconds a reward")
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=4, frameon=False)
    figure.suptitle("A reward: median (circles) and 99 in 100 (pale triangles)", y=1.02)
    return figure if any_line else None


def _error(kept: Kept) -> Any:
    """Error over milliseconds of a reward, a point for each eps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.4))
    panels = figure.subplots(1, 2, sharey=True)
    any_line = False
    for panel, ridge in zip(panels, (0.1, 1.0), strict=True):
        found = [(eps, kept.median(f"error rho={ridge:g} eps={eps:g}")) for eps in FIGURE_EPS]
        found = [(eps, numbers) for eps, numbers in found if numbers]
        if not found:
            continue
        any_line, work = True, [each["reward"] for _, each in found]
        for name, label, marker, colour in (
            ("stated", "stated bound, largest", "s", VERMILLION),
            ("largest", "true error, largest", "o", BLUE),
            ("median", "true error, median user", "v", "#56B4E9"),
        ):
            panel.plot(work, [each[name] for _, each in found], marker=marker, color=colour, label=label)
        for eps, each in found:
            panel.annotate(f"eps {eps:g}", (each["reward"], each["stated"]), xytext=(5, 5), textcoords="offset points")
        panel.margins(x=0.2, y=0.12)
        panel.set(xscale="log", yscale="log", title=f"rho = {ridge:g}", xlabel="milliseconds a reward")
        _plain_ticks(panel)
    panels[0].set_ylabel("error of a mean, in prior stds")
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=3, frameon=False)
    return figure if any_line else None


def _plain_ticks(panel: Any) -> None:
    """Marks 1, 2 and 5 of each decade: there may be less than one."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
