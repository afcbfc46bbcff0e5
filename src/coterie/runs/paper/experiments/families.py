"""The effective dimension against T for each family of graphs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from coterie.graphs import FAMILIES, make_graph
from coterie.kernels import Green, SquaredExponential, pool_kernel
from coterie.models import make_model
from coterie.problems import sphere_pool
from coterie.runs.paper.experiments.experiment import Record, Report, draw_lines, finding, legend_below
from coterie.runs.report.style import Picture, finish, new_figure, save_picture


@dataclass(frozen=True, slots=True, kw_only=True)
class FamiliesSettings:
    """The paper's medium level with 50 users; users and arms uniform, graphs as they are drawn."""

    n_users: int = 50
    n_arms: int = 20
    dimension: int = 10
    lengthscale: float = 1.0
    laplacian_ridge: float = 0.1
    noise_var: float = 0.01
    times: tuple[int, ...] = (10, 30, 100, 300, 1000, 3000)
    repeats: int = 5
    seed: int = 6


FULL = FamiliesSettings()
QUICK = FamiliesSettings(times=(10, 30, 100, 300), repeats=2)


def measure(settings: FamiliesSettings, report: Report) -> Record:
    """Returns for each family of graphs gain and effective dimension against T."""
    lines = []
    for family in FAMILIES:
        report(f"scaling: effective dimension on {family} graphs")
        runs = [list(_course(settings, family, repeat)) for repeat in range(settings.repeats)]
        gain, dim, most = np.array(runs).mean(axis=0).T
        lines.append({"family": family, "gain": gain, "dim": dim, "max_variance": most[-1]})
    return {"lines": lines}


def _course(settings: FamiliesSettings, family: str, repeat: int) -> Iterator[tuple[float, float, float]]:
    """Yields gain, effective dimension and K_max at each time, on one graph, pool and design."""
    rng = np.random.default_rng([settings.seed, repeat])
    graph = make_graph(family, settings.n_users, seed=rng)
    pool = sphere_pool(settings.n_arms, settings.dimension, seed=rng)
    kernel = pool_kernel(
        Green(laplacian_ridge=settings.laplacian_ridge).matrix(graph), SquaredExponential(settings.lengthscale), pool
    )
    model = make_model(kernel, noise_var=settings.noise_var, engine="grid")
    users = rng.integers(settings.n_users, size=settings.times[-1])
    arms = rng.integers(settings.n_arms, size=settings.times[-1])
    for begin, end in pairwise((0, *settings.times)):
        model.update_many(users[begin:end], arms[begin:end], np.zeros(end - begin))
        yield model.info_gain, model.effective_dim, model.max_variance


def findings(record: Record) -> list[Record]:
    """Returns the families in order; there is no claim of the paper to judge."""
    ranked = sorted(record["lines"], key=lambda line: line["dim"][-1])
    cases = [
        f"{line['family']} {line['dim'][-1]:.3g} (gain {line['gain'][-1]:.4g}, K_max {line['max_variance']:.3g})"
        for line in ranked
    ]
    times, n_users = record["settings"]["times"], record["settings"]["n_users"]
    claim = f"Effective dimension of each family of graphs at T = {times[-1]}, n = {n_users}, least first"
    return [finding(claim, None, f"{', '.join(cases)}. K_max differs between graphs and stands in the denominator.")]


def draw(record: Record, folder: Path) -> list[Picture]:
    """Returns the picture of effective dimension and gain against T."""
    settings = record["settings"]
    figure, panels = new_figure(9.5, 4.2, columns=2)
    for axes, key, label in zip(panels, ("dim", "gain"), ("effective dimension", "information gain"), strict=True):
        draw_lines(axes, settings["times"], {line["family"]: line[key] for line in record["lines"]})
        finish(axes, title=label, xlabel="rounds T", ylabel=label)
    legend_below(figure, panels[0], columns=5)
    caption = (
        f"{settings['n_users']} users, {settings['n_arms']} arms on the sphere in dimension {settings['dimension']}, "
        f"users and arms uniform, rho = {settings['laplacian_ridge']:g}, lambda = {settings['noise_var']:g}; means of "
        f"{settings['repeats']} draws. There are {settings['n_users'] * settings['n_arms']} pairs: beyond as many "
        "rounds they mostly repeat."
    )
    return [
        save_picture(figure, folder / "scaling-families", "Effective dimension against T by family of graphs", caption)
    ]
