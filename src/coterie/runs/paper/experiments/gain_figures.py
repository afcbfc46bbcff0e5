"""The pictures of figure 1, drawn from its record alone."""

from pathlib import Path
from typing import Any

import numpy as np

from coterie.runs.paper.experiments.pictures import (
    BLACK,
    BLUE,
    GREEN,
    MARKERS,
    ORANGE,
    PURPLE,
    SHADES,
    Drawn,
    legend_below,
    log_axis,
    saved,
)
from coterie.runs.paper.experiments.record import Record
from coterie.runs.report.style import finish, new_figure


def draw(record: Record, folder: Path) -> list[Drawn]:
    """Returns title, path without ending, and caption of each picture, written as PNG and SVG."""
    return [picture(record, folder) for picture in (draw_gain, draw_dimension, draw_proposition)]


def draw_gain(record: Record, folder: Path) -> Drawn:
    """Returns panel (a): the gain against n, and the expressions for it."""
    settings = record["settings"]
    rows, columns = settings["noise_vars"], settings["horizons"]
    figure, panels = new_figure(9.5, 2.5 * len(rows) + 0.4, rows=len(rows), columns=len(columns))
    for row, noise_var in zip(panels, rows, strict=True):
        for axes, horizon in zip(row, columns, strict=True):
            cells = [c for c in record["gain"] if (c["noise_var"], c["horizon"]) == (noise_var, horizon)]
            _gain_panel(axes, cells)
            finish(axes, title=f"T = {horizon}, lambda = {noise_var:g}", xlabel="users n", ylabel="information gain")
    legend_below(figure, panels[0][0], columns=4)
    title = "Information gain on a complete graph: the i.i.d. design and the paper's two expressions"
    caption = (
        f"Mean and standard error of {settings['repeats']} designs: users uniform, arms uniform in "
        f"[0,1]^{settings['dimension']}, kernel {settings['arm_kernel']}, rho = {settings['laplacian_ridge']:g}. "
        "Blue: the operator expression as printed, and with the 1/n that uniform users bring."
    )
    return saved(figure, folder / "figure-1a-gain", title, caption)


def _gain_panel(axes: Any, cells: list[Record]) -> None:
    users = [cell["n_users"] for cell in cells]
    for key, label, style in (
        ("operator", "operator bound, as printed", {"color": BLUE, "linestyle": "--", "marker": "s"}),
        ("operator_uniform", "operator bound with 1/n", {"color": BLUE, "linestyle": "-", "marker": "^"}),
        ("iid", "i.i.d. design", {"color": ORANGE, "linestyle": "-", "marker": "o"}),
        ("regular", "regular design", {"color": GREEN, "linestyle": ":", "marker": "D"}),
    ):
        errors = [cell.get(f"{key}_error", 0.0) for cell in cells]
        axes.errorbar(users, [cell[key] for cell in cells], yerr=errors, label=label, markersize=4, **style)
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)


def draw_dimension(record: Record, folder: Path) -> Drawn:
    """Returns panels (b) and (c): the effective dimension against (log T)^d."""
    settings = record["settings"]
    rows = settings["noise_vars"]
    figure, panels = new_figure(9.5, 2.7 * len(rows) + 0.4, rows=len(rows), columns=2)
    for row, noise_var in zip(panels, rows, strict=True):
        for axes, graph in zip(row, ("empty", "complete"), strict=True):
            _dimension_panel(axes, record, graph, noise_var)
            finish(
                axes,
                title=f"{graph} graph, lambda = {noise_var:g}",
                xlabel=f"(log T)^{settings['dimension']}",
                ylabel="effective dimension",
            )
    legend_below(figure, panels[0][0], columns=len(settings["dim_users"]))
    title = f"Effective dimension against (log T)^{settings['dimension']}, empty and complete graphs"
    caption = (
        f"Means of {settings['repeats']} i.i.d. designs, T from {settings['dim_horizons'][0]} to "
        f"{settings['dim_horizons'][-1]}. K_max in the denominator is 1/rho on the empty graph and falls with n on the "
        "complete one, so heights of the two columns are not on one scale."
    )
    return saved(figure, folder / "figure-1bc-dimension", title, caption)


def _dimension_panel(axes: Any, record: Record, graph: str, noise_var: float) -> None:
    settings = record["settings"]
    x = np.log(settings["dim_horizons"]) ** settings["dimension"]
    lines = [line for line in record["dimension"] if (line["graph"], line["noise_var"]) == (graph, noise_var)]
    for line, colour, marker in zip(lines, SHADES, MARKERS, strict=False):
        axes.errorbar(
            x,
            line["dim"],
            yerr=line["dim_error"],
            color=colour,
            marker=marker,
            markersize=4,
            label=f"n = {line['n_users']}",
        )
    axes.set_ylim(bottom=0)


def draw_proposition(record: Record, folder: Path) -> Drawn:
    """Returns panel (d): the gain in the regime T = C n, and its bounds."""
    settings = record["settings"]
    rows, columns = settings["noise_vars"], settings["rounds_per_user"]
    figure, panels = new_figure(9.5, 2.5 * len(rows) + 0.4, rows=len(rows), columns=len(columns))
    for row, noise_var in zip(panels, rows, strict=True):
        for axes, each in zip(row, columns, strict=True):
            cells = [c for c in record["proposition"] if (c["noise_var"], c["rounds_per_user"]) == (noise_var, each)]
            _proposition_panel(axes, cells)
            finish(axes, title=f"T = {each} n, lambda = {noise_var:g}", xlabel="users n", ylabel="information gain")
    legend_below(figure, panels[0][0], columns=4)
    title = "The proposition in the regime T = C n on a complete graph"
    caption = (
        "The bound C / lambda (1 / rho + 1) holds for every design, by the trace. T log(1 + K_max / lambda) holds for "
        f"every design too. rho = {settings['laplacian_ridge']:g}; means of {settings['repeats']} designs."
    )
    return saved(figure, folder / "figure-1d-proposition", title, caption)


def _proposition_panel(axes: Any, cells: list[Record]) -> None:
    users = [cell["n_users"] for cell in cells]
    for key, label, style in (
        ("bound", "the proposition's bound", {"color": BLACK, "linestyle": "--"}),
        ("hadamard", "T log(1 + K_max / lambda)", {"color": PURPLE, "linestyle": "-."}),
        ("iid", "i.i.d. design", {"color": ORANGE, "linestyle": "-", "marker": "o"}),
        ("regular", "regular design", {"color": GREEN, "linestyle": ":", "marker": "D"}),
    ):
        axes.plot(users, [cell[key] for cell in cells], label=label, markersize=4, **style)
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)
