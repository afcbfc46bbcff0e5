"""The pictures of a study on logs: reward in all, hits over time, and hits by a user's visits."""

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.runs.recorded.outcome import LogWorld, Outcome
from coterie.runs.recorded.report.numbers import by_rate, by_visit, over_time
from coterie.runs.report.figures import Picture
from coterie.runs.report.style import Look, finish, looks, new_figure, plain, save_figure

MOST_OTHERS = 5  # beside the reference on its graphs, popularity and chance: more lines cannot be told apart
Curve = Callable[[LogWorld, str], tuple[Array, Array]]


def draw_outcome(outcome: Outcome, folder: Path) -> list[Picture]:
    """Returns the pictures of a study on logs, drawn into the folder as PNG and SVG."""
    kept = _shown(outcome)
    gone = len({policy for world in outcome.worlds for policy in world.rewards}) - len(kept)
    rest = f" The other {gone} policies stand in the tables." if gone else ""
    drawn = (
        ("Reward in all", "reward", cumulated, "round", "reward so far", "Mean over trials; higher is better."),
        ("Hits over time", "over-time", over_time, "round", "reward a round", "In twenty windows of the rounds."),
        (
            "Cold start",
            "cold-start",
            by_visit,
            "visit of the user",
            "reward a round",
            "By a user's first, second, third ... visit: what is known of others counts most at the left.",
        ),
    )
    return [
        _picture(title, save_figure(_panels(outcome, kept, curve, x, y), folder / stem), f"{caption}{rest}")
        for title, stem, curve, x, y, caption in drawn
    ]


def _picture(title: str, paths: Sequence[Path], caption: str) -> Picture:
    return Picture(title=title, png=paths[0], svg=paths[1], caption=caption)


def cumulated(world: LogWorld, policy: str) -> tuple[Array, Array]:
    """Returns some rounds and the reward until then, the mean over trials."""
    rewards = np.array([np.nan_to_num(world.rewards[policy][trial]) for trial in world.trials(policy)])
    sums = np.cumsum(rewards.mean(axis=0))
    kept = np.unique(np.linspace(0, len(sums) - 1, 60).astype(int))
    return kept + 1.0, sums[kept]


def _shown(outcome: Outcome) -> list[str]:
    """Returns whom to draw: the reference on all its graphs, the best others, popularity and chance."""
    policies = {each.label: each.policy for each in outcome.study.policies}
    main = policies[outcome.study.reference]
    met = {label for world in outcome.worlds for label in world.rewards}
    first = [label for label, policy in policies.items() if label in met and policy in (main, "popularity", "random")]
    places: dict[str, list[int]] = {}
    for world in outcome.worlds:
        for place, label in enumerate(by_rate(world)):
            places.setdefault(label, []).append(place)
    others = sorted(places.keys() - set(first), key=lambda label: (np.mean(places[label]), label))
    return [*first, *others[:MOST_OTHERS]]


def _panels(outcome: Outcome, policies: Sequence[str], curve: Curve, xlabel: str, ylabel: str) -> Any:
    styles = looks(policies)
    columns = len(outcome.worlds)
    rows = ceil(len(policies) / 3)
    figure, axes = new_figure(7.2 if columns == 1 else 4.4 * columns, 3.4 + 0.22 * rows, columns=columns)
    for panel, world in zip(np.ravel(axes), outcome.worlds, strict=True):
        for place, policy in enumerate(each for each in policies if each in world.rewards):
            x, y = curve(world, policy)
            every = max(len(x) // 3, 1)
            mark = (place * every // max(len(policies), 1), every)
            panel.plot(x, y, **styles[policy], linewidth=1.6, markersize=4.5, markevery=mark)
        finish(panel, title=plain(world.setting), xlabel=xlabel, ylabel=ylabel)
        panel.set_ylim(bottom=0.0)
        panel.set_xlim(left=0.0)
        panel.xaxis.get_major_locator().set_params(integer=True, nbins=5)
    _legend(figure, styles)
    return figure


def _legend(figure: Any, styles: dict[str, Look]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], **style, linewidth=1.6, markersize=4.5) for style in styles.values()]
    names = [plain(policy) for policy in styles]
    figure.legend(lines, names, loc="outside lower center", ncols=3, frameon=False, fontsize=8, handlelength=3.6)
