"""Figure 1: gains of actual designs beside the paper's expressions, the effective dimension, and the proposition."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.graphs import make_graph
from coterie.runs.paper.experiments import spectral
from coterie.runs.paper.experiments.experiment import (
    MARKERS,
    SHADES,
    Record,
    Report,
    legend_below,
    log_axis,
    mean_and_error,
)
from coterie.runs.paper.experiments.gain_findings import findings as findings
from coterie.runs.report.style import BLACK, BLUE, GREEN, PINK, VERMILLION, Picture, finish, new_figure, save_picture


@dataclass(frozen=True, slots=True, kw_only=True)
class GainSettings:
    """The paper gives neither T, rho nor lambda: rho is its learners' 0.1, lambda runs from small to Theta(1)."""

    laplacian_ridge: float = 0.1
    noise_vars: tuple[float, ...] = (0.01, 0.1, 1.0)
    horizons: tuple[int, ...] = (200, 1000, 2000)
    n_users: tuple[int, ...] = (2, 4, 10, 20, 40, 100, 200)
    dim_horizons: tuple[int, ...] = (20, 50, 100, 200, 400, 700, 1000, 1400, 2000)
    dim_users: tuple[int, ...] = (5, 10, 20, 50, 100)
    rounds_per_user: tuple[int, ...] = (1, 2, 5)
    clique_users: tuple[int, ...] = (10, 20, 50, 100, 200, 400)
    repeats: int = 8
    seed: int = 1


FULL = GainSettings()
QUICK = GainSettings(
    noise_vars=(0.01, 1.0),
    horizons=(40, 200),
    n_users=(2, 10, 40),
    dim_horizons=(20, 50, 100, 200),
    dim_users=(5, 20, 50),
    rounds_per_user=(1, 2),
    clique_users=(10, 50, 100),
    repeats=3,
)


def measure(settings: GainSettings, report: Report) -> Record:
    """Returns the data of each panel."""
    return {
        "settings": asdict(settings) | {"dimension": spectral.DIMENSION, "arm_kernel": "exp(-|x - y|^2 / 2)"},
        "gain": _gain_cells(settings, report),
        "dimension": _dimension_lines(settings, report),
        "proposition": _proposition_cells(settings, report),
    }


def _gain_cells(settings: GainSettings, report: Report) -> list[Record]:
    """Returns panel (a): for each n, T and lambda on the complete graph, the gain and the three expressions."""
    cells = []
    for n_users in settings.n_users:
        report(f"figure-1 (a): {n_users} users on a complete graph")
        iid = _iid_gains(settings, "complete", n_users, settings.horizons)
        for i, noise_var in enumerate(settings.noise_vars):
            for j, horizon in enumerate(settings.horizons):
                expressions = _expressions(settings, n_users, horizon, noise_var)
                mean, error = mean_and_error(iid[:, i, j])
                place = {"n_users": n_users, "horizon": horizon, "noise_var": noise_var}
                cells.append(place | {"iid": mean, "iid_error": error} | expressions)
    return cells


def _iid_gains(settings: GainSettings, family: str, n_users: int, horizons: tuple[int, ...]) -> Array:
    """Returns the gains of i.i.d. designs: repeats x noise variances x horizons."""
    seeds = [[settings.seed, n_users, repeat] for repeat in range(settings.repeats)]
    graph, ridge = make_graph(family, n_users), settings.laplacian_ridge
    return spectral.iid_gains(graph, ridge, seeds, noise_vars=settings.noise_vars, horizons=horizons)


def _expressions(settings: GainSettings, n_users: int, horizon: int, noise_var: float) -> Record:
    """Returns both expressions on the complete graph, the operator bound also with the 1/n of uniform users."""
    user_values = spectral.user_eigenvalues(make_graph("complete", n_users), settings.laplacian_ridge)
    regular, error = mean_and_error(_regular_gains(settings, user_values, horizon // n_users, noise_var))
    bounds = spectral.operator_bounds(user_values, horizon=horizon, noise_var=noise_var)
    return {"regular": regular, "regular_error": error} | bounds


def _regular_gains(settings: GainSettings, user_values: Array, n_arms: int, noise_var: float) -> Array:
    """Returns the gains of regular designs on as many sets of common arms as there are repeats."""
    generators = (np.random.default_rng([settings.seed, n_arms, repeat, 7]) for repeat in range(settings.repeats))
    pools = (rng.random((n_arms, spectral.DIMENSION)) for rng in generators)
    return np.array([spectral.regular_gain(user_values, pool, noise_var) for pool in pools])


def _dimension_lines(settings: GainSettings, report: Report) -> list[Record]:
    """Returns panels (b) and (c): gain and effective dimension against T for each graph, n and lambda."""
    lines = []
    for family in ("empty", "complete"):
        for n_users in settings.dim_users:
            report(f"figure-1 (b, c): {n_users} users on the {family} graph")
            gains = _iid_gains(settings, family, n_users, settings.dim_horizons)
            most = spectral.largest_variance(make_graph(family, n_users), settings.laplacian_ridge)
            for i, noise_var in enumerate(settings.noise_vars):
                place = {"graph": family, "n_users": n_users, "noise_var": noise_var, "max_variance": most}
                lines.append(place | _dimensions(settings, gains[:, i], most, noise_var))
    return lines


def _dimensions(settings: GainSettings, gains: Array, max_variance: float, noise_var: float) -> Record:
    horizons = np.array(settings.dim_horizons)
    dims = spectral.effective_dim(gains, horizon=horizons, max_variance=max_variance, noise_var=noise_var)
    errors = [mean_and_error(column)[1] for column in dims.T]
    return {"gain": gains.mean(axis=0), "dim": dims.mean(axis=0), "dim_error": errors}


def _proposition_cells(settings: GainSettings, report: Report) -> list[Record]:
    """Returns panel (d): T = C n on the complete graph, the gain of both designs and the proposition's bound."""
    cells = []
    for n_users in settings.clique_users:
        report(f"figure-1 (d): T = C n with {n_users} users")
        horizons = tuple(each * n_users for each in settings.rounds_per_user)
        iid = _iid_gains(settings, "complete", n_users, horizons).mean(axis=0)
        for i, noise_var in enumerate(settings.noise_vars):
            for j, each in enumerate(settings.rounds_per_user):
                place = {"n_users": n_users, "rounds_per_user": each, "noise_var": noise_var, "iid": iid[i, j]}
                cells.append(place | _clique_expressions(settings, n_users, each, noise_var))
    return cells


def _clique_expressions(settings: GainSettings, n_users: int, each: int, noise_var: float) -> Record:
    graph, ridge = make_graph("complete", n_users), settings.laplacian_ridge
    user_values, most = spectral.user_eigenvalues(graph, ridge), spectral.largest_variance(graph, ridge)
    return {
        "regular": float(_regular_gains(settings, user_values, each, noise_var).mean()),
        "bound": spectral.clique_bound(each, laplacian_ridge=ridge, noise_var=noise_var),
        "trace": each * n_users * most / noise_var,
        "hadamard": spectral.hadamard_bound(each * n_users, max_variance=most, noise_var=noise_var),
    }


def draw(record: Record, folder: Path) -> list[Picture]:
    """Returns title, path without ending, and caption of each picture, written as PNG and SVG."""
    return [picture(record, folder) for picture in (draw_gain, draw_dimension, draw_proposition)]


def draw_gain(record: Record, folder: Path) -> Picture:
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
    return save_picture(figure, folder / "figure-1a-gain", title, caption)


def _gain_panel(axes: Any, cells: list[Record]) -> None:
    users = [cell["n_users"] for cell in cells]
    for key, label, style in (
        ("operator", "operator bound, as printed", {"color": BLUE, "linestyle": "--", "marker": "s"}),
        ("operator_uniform", "operator bound with 1/n", {"color": BLUE, "linestyle": "-", "marker": "^"}),
        ("iid", "i.i.d. design", {"color": VERMILLION, "linestyle": "-", "marker": "o"}),
        ("regular", "regular design", {"color": GREEN, "linestyle": ":", "marker": "D"}),
    ):
        errors = [cell.get(f"{key}_error", 0.0) for cell in cells]
        axes.errorbar(users, [cell[key] for cell in cells], yerr=errors, label=label, markersize=4, **style)
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)


def draw_dimension(record: Record, folder: Path) -> Picture:
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
    return save_picture(figure, folder / "figure-1bc-dimension", title, caption)


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


def draw_proposition(record: Record, folder: Path) -> Picture:
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
    return save_picture(figure, folder / "figure-1d-proposition", title, caption)


def _proposition_panel(axes: Any, cells: list[Record]) -> None:
    users = [cell["n_users"] for cell in cells]
    for key, label, style in (
        ("bound", "the proposition's bound", {"color": BLACK, "linestyle": "--"}),
        ("hadamard", "T log(1 + K_max / lambda)", {"color": PINK, "linestyle": "-."}),
        ("iid", "i.i.d. design", {"color": VERMILLION, "linestyle": "-", "marker": "o"}),
        ("regular", "regular design", {"color": GREEN, "linestyle": ":", "marker": "D"}),
    ):
        axes.plot(users, [cell[key] for cell in cells], label=label, markersize=4, **style)
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)
