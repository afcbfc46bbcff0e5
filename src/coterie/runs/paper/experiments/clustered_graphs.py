"""Disjoint clusters in the regime T = C n: the effective dimension against their number, and the operator bound."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.runs.paper.experiments import spectral
from coterie.runs.paper.experiments.experiment import (
    MARKERS,
    SHADES,
    Record,
    Report,
    finding,
    legend_below,
    log_axis,
    mean_and_error,
    slope,
    span,
    verdict_of,
)
from coterie.runs.report.style import BLUE, VERMILLION, Picture, finish, new_figure, save_picture


@dataclass(frozen=True, slots=True, kw_only=True)
class ClustersSettings:
    """n users in k equal complete graphs; C rounds a user."""

    n_users: int = 240
    n_clusters: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 24, 60, 120, 240)
    rounds_per_user: int = 4
    laplacian_ridge: float = 0.1
    noise_vars: tuple[float, ...] = (0.01, 0.1, 1.0)
    sizes: tuple[int, ...] = (24, 48, 96, 192, 384)
    clusters_over_sizes: tuple[int, ...] = (1, 4)
    repeats: int = 8
    seed: int = 2


FULL = ClustersSettings()
QUICK = ClustersSettings(n_users=60, n_clusters=(1, 2, 4, 12, 60), sizes=(12, 24, 48), repeats=2)


def measure(settings: ClustersSettings, report: Report) -> Record:
    """Returns for each k and lambda the gain, the effective dimension, and the operator bound with and without 1/n."""
    cells = []
    for n_clusters in settings.n_clusters:
        report(f"theory (1): {n_clusters} clusters of {settings.n_users // n_clusters} users")
        cells += _cells(settings, n_clusters)
    sizes = []
    for n_users in settings.sizes:
        report(f"theory (1): {n_users} users")
        for n_clusters in settings.clusters_over_sizes:
            sizes += _cells(replace(settings, n_users=n_users), n_clusters)
    return {"cells": cells, "sizes": sizes}


def _cells(settings: ClustersSettings, n_clusters: int) -> list[Record]:
    gains = _gains(settings, n_clusters)
    return [
        {"n_users": settings.n_users, "n_clusters": n_clusters, "noise_var": noise_var}
        | _cell(settings, n_clusters, noise_var, column)
        for column, noise_var in zip(gains.T, settings.noise_vars, strict=True)
    ]


def _gains(settings: ClustersSettings, n_clusters: int) -> Array:
    """Returns the gains of i.i.d. designs: repeats x noise variances."""
    seeds = [[settings.seed, settings.n_users, n_clusters, repeat] for repeat in range(settings.repeats)]
    graph = spectral.disjoint_cliques(settings.n_users, n_clusters)
    horizons = [settings.n_users * settings.rounds_per_user]
    noise_vars, ridge = settings.noise_vars, settings.laplacian_ridge
    return spectral.iid_gains(graph, ridge, seeds, noise_vars=noise_vars, horizons=horizons)[..., 0]


def _cell(settings: ClustersSettings, n_clusters: int, noise_var: float, gains: Array) -> Record:
    graph = spectral.disjoint_cliques(settings.n_users, n_clusters)
    horizon = settings.n_users * settings.rounds_per_user
    most = spectral.largest_variance(graph, settings.laplacian_ridge)
    dims = spectral.effective_dim(gains, horizon=np.array(horizon), max_variance=most, noise_var=noise_var)
    dim, error = mean_and_error(dims)
    values = spectral.user_eigenvalues(graph, settings.laplacian_ridge)
    operator = spectral.operator_bounds(values, horizon=horizon, noise_var=noise_var)
    return {"gain": float(gains.mean()), "dim": dim, "dim_error": error, "max_variance": most} | operator


def findings(record: Record) -> list[Record]:
    """Returns what the clusters say of the paper's generalisation, and of the operator bound."""
    return [_proportional(record), _bounded(record), _falls(record), _over_log(record), _operator(record)]


def _line(record: Record, noise_var: float) -> list[Record]:
    return [cell for cell in record["cells"] if cell["noise_var"] == noise_var]


def _proportional(record: Record) -> Record:
    cases, rises = [], []
    for noise_var in record["settings"]["noise_vars"]:
        few = [cell for cell in _line(record, noise_var) if cell["n_clusters"] <= record["settings"]["n_users"] / 10]
        rises += list(np.diff([cell["dim"] for cell in few]) > 0)
        steep = slope([cell["n_clusters"] for cell in few], [cell["dim"] for cell in few])
        cases.append(f"{steep:.2f} at lambda = {noise_var:g} ({few[0]['dim']:.3g} to {few[-1]['dim']:.3g})")
    most = few[-1]["n_clusters"]
    return finding(
        "The effective dimension counts the clusters: it is a soft proxy for k.",
        "holds partly" if all(rises) else "does not hold",
        f"From k = 1 to {most} it rises in {sum(rises)} of {len(rises)} steps, with a log-log slope of "
        f"{'; '.join(cases)}. A count of clusters would have slope 1, and begin at 1.",
    )


def _bounded(record: Record) -> Record:
    settings = record["settings"]
    ratios = []
    for cell in record["cells"]:
        bound = cell["n_clusters"] * spectral.clique_bound(
            settings["rounds_per_user"], laplacian_ridge=settings["laplacian_ridge"], noise_var=cell["noise_var"]
        )
        ratios.append(bound / cell["gain"])
    return finding(
        "With k disjoint clusters and T <= C n the gain is at most k C / lambda (1 / rho + 1)",
        None,
        f"It is in {sum(r >= 1 for r in ratios)} of {len(ratios)} cells, as the trace says it must; the bound is "
        f"{span(ratios)} times the gain. Note that the small eigenvalues are about k / n, not 1 / n.",
    )


def _over_sizes(record: Record) -> list[tuple[str, Array, Array]]:
    """Returns for each k and lambda a name, the effective dimension and its product with log T, over the sizes."""
    out = []
    for n_clusters in record["settings"]["clusters_over_sizes"]:
        for noise_var in record["settings"]["noise_vars"]:
            where = (n_clusters, noise_var)
            cells = [each for each in record["sizes"] if (each["n_clusters"], each["noise_var"]) == where]
            dims = np.array([cell["dim"] for cell in cells])
            horizons = np.array([cell["n_users"] for cell in cells]) * record["settings"]["rounds_per_user"]
            out.append((f"k = {n_clusters}, lambda = {noise_var:g}", dims, dims * np.log(horizons)))
    return out


def _falls(record: Record) -> Record:
    lines = [(name, dims) for name, dims, _ in _over_sizes(record) if name.startswith("k = 1,")]
    falls = [bool(step) for _, dims in lines for step in np.diff(dims) < 0]
    cases = "; ".join(f"{name}: {dims[0]:.3g} to {dims[-1]:.3g}" for name, dims in lines)
    return finding(
        "For T <= C n on a complete graph the effective dimension is O(1 / log T), slowly decreasing.",
        verdict_of(sum(falls), len(falls)),
        f"It falls in {sum(falls)} of {len(falls)} steps from n = {record['settings']['sizes'][0]} to "
        f"{record['settings']['sizes'][-1]} ({cases}). Its denominator is log(1 + T K_max / lambda), and K_max falls "
        "as 1 / n there, so that T K_max stays the same: the denominator is no log T.",
    )


def _over_log(record: Record) -> Record:
    lines = _over_sizes(record)
    bounded = [products[-1] <= 1.05 * products[-2] for _, _, products in lines]
    cases = "; ".join(f"{name}: {products[0]:.3g} to {products[-1]:.3g}" for name, _, products in lines)
    return finding(
        "With k disjoint clusters and T <= C n the effective dimension is O(k / log T).",
        verdict_of(sum(bounded), len(bounded)),
        f"Then d-tilde log T would stay below a constant; over the sizes it goes, {cases}, and has stopped growing (by "
        f"less than 5 % in the last doubling) in {sum(bounded)} of {len(bounded)} cells.",
    )


def _operator(record: Record) -> Record:
    printed = [cell["operator"] / cell["gain"] for cell in record["cells"]]
    uniform = [cell["operator_uniform"] / cell["gain"] for cell in record["cells"]]
    held = sum(r >= 1 for r in uniform)
    return finding(
        "The operator bound with and without the 1/n of uniform users",
        None,
        f"From one clique to users without any edge, the printed bound is {span(printed)} times the i.i.d. gain; with "
        f"1/n it is {span(uniform)} times, and still above it in {held} of {len(uniform)} cells.",
    )


def draw(record: Record, folder: Path) -> list[Picture]:
    """Returns the pictures of the clusters: effective dimension, and operator bound over gain, against k."""
    figure, (left, right) = new_figure(9.5, 3.9, columns=2)
    for noise_var, colour, marker in zip(record["settings"]["noise_vars"], SHADES[::2], MARKERS, strict=False):
        _dimension_line(left, _line(record, noise_var), f"lambda = {noise_var:g}", colour, marker)
    _operator_lines(right, record)
    finish(left, title="effective dimension", xlabel="clusters k", ylabel="effective dimension")
    finish(right, title="operator bound / i.i.d. gain", xlabel="clusters k", ylabel="ratio")
    left.legend(frameon=False, fontsize=9)
    legend_below(figure, right, columns=3)
    settings = record["settings"]
    title = "Disjoint clusters in the regime T = C n"
    caption = (
        f"{settings['n_users']} users in k complete graphs of equal size, T = {settings['rounds_per_user']} n, "
        f"rho = {settings['laplacian_ridge']:g}, means of {settings['repeats']} i.i.d. designs. Dotted: proportional "
        "to k. Right: as printed (dashed), and with the 1/n of uniform users (solid)."
    )
    return [save_picture(figure, folder / "theory-1-clusters", title, caption)]


def _dimension_line(axes: Any, cells: list[Record], label: str, colour: str, marker: str) -> None:
    clusters = np.array([cell["n_clusters"] for cell in cells])
    dims = [cell["dim"] for cell in cells]
    errors = [cell["dim_error"] for cell in cells]
    axes.errorbar(clusters, dims, yerr=errors, color=colour, marker=marker, markersize=4, label=label)
    axes.plot(clusters[:6], dims[0] * clusters[:6], color=colour, linestyle=":", linewidth=1)
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)


def _operator_lines(axes: Any, record: Record) -> None:
    for noise_var, marker in zip(record["settings"]["noise_vars"], MARKERS, strict=False):
        cells = _line(record, noise_var)
        clusters = [cell["n_clusters"] for cell in cells]
        for key, label, colour, dashes in (
            ("operator", "as printed", BLUE, "--"),
            ("operator_uniform", "with 1/n", VERMILLION, "-"),
        ):
            ratio = [cell[key] / cell["gain"] for cell in cells]
            style = {"color": colour, "linestyle": dashes, "marker": marker, "markersize": 4}
            axes.plot(clusters, ratio, label=f"{label}, lambda = {noise_var:g}", **style)
    axes.axhline(1, color="#555555", linewidth=0.8)
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)
