"""The pictures of a study: regret over the rounds and at the end; on logs, reward over the rounds and by visits."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.runs.report.regret import contenders, final_regrets
from coterie.runs.report.reward import by_rate, by_visit, over_time
from coterie.runs.report.style import Look, Picture, finish, looks, new_figure, plain, save_picture
from coterie.runs.report.tables import ordered
from coterie.runs.report.trial_means import FEWEST
from coterie.runs.results import LogResults, Results

MOST_POINTS = 400
POINTS_IN_ALL = 11_000  # keeps the SVG of nine worlds and sixteen policies under 300 kB
DIRECT_LABELS = 6
LABEL_GAP = 0.055  # the height of a label as a share of the axis
WIDTHS = {1: 8.0, 2: 9.5, 3: 11.0}  # in inches, by panels in a row
SMALL = 8.5
FAR_UP = 1.5  # times the largest regret of the others
MOST_OTHERS = 5  # beside the reference on its graphs, popularity and chance: more lines cannot be distinguished
SPREAD_OUT = 8.0  # from the least to the largest regret: beyond it a linear axis shows the best as one dot

Curve = Callable[[LogResults, str], tuple[Array, Array]]


def draw_regrets(results: Results, folder: Path) -> list[Picture]:
    """Returns the pictures of regret, drawn into the folder as PNG and SVG."""
    trials = _trials(results)
    band = "" if trials == "one trial" else ", with a band of one standard error"
    enough = all(results.n_trials(world) >= FEWEST for world in results.worlds)
    interval = " with its 95 % bootstrap interval" if enough else ""
    over_rounds = f"Mean cumulative regret over {trials}{band}. {_cut(results)}"
    at_end = f"Mean final regret over {trials}{interval}, the best on top{_scales(results)}."
    return [
        save_picture(draw_curves(results), folder / "regret", "Regret over the rounds", over_rounds),
        save_picture(draw_finals(results), folder / "final-regret", "Regret at the end", at_end),
    ]


def _scales(results: Results) -> str:
    return "; a logarithmic axis where regrets differ by more than a factor of eight" if _wide(results) else ""


def _wide(results: Results) -> list[str]:
    """Returns the worlds whose regrets differ so much that a linear axis would show the best as one dot."""
    ends = {
        world: [results.final(world, each).mean() for each in contenders(results, world)] for world in results.worlds
    }
    return [world for world, means in ends.items() if 0.0 < SPREAD_OUT * means[0] < means[-1]]


def _cut(results: Results) -> str:
    """Returns how to read the panels, and in which of them a line leaves the picture."""
    cut = [world for world in results.worlds if _top(results, world, contenders(results, world)) is not None]
    leaves = f" In {', '.join(cut)} the random policy is far above the others and leaves the panel." if cut else ""
    return f"Lower is better.{leaves}"


def _trials(results: Results) -> str:
    counts = [results.n_trials(world) for world in results.worlds]
    if max(counts) == 1:
        return "one trial"
    return f"{max(counts)} trials" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)} trials"


def draw_curves(results: Results) -> Any:
    """Returns the picture of cumulative regret: one panel a world, one line a policy, a band of one standard error."""
    shown = {world: contenders(results, world) for world in results.worlds}
    policies = [policy for policy in ordered([results]) if any(policy in each for each in shown.values())]
    styles = looks(policies)
    points = POINTS_IN_ALL // (3 * sum(map(len, shown.values())))  # a line, and the two edges of its band
    figure, panels = _panels(len(shown), row_height=3.9 if len(shown) == 1 else 2.9)
    for axes, world in zip(panels, shown, strict=True):
        for place, policy in enumerate(shown[world]):
            marked = (place + 0.5) / len(shown[world])
            _curve(axes, results.cum_regret(world, policy), styles[policy], points=points, marked=marked)
        finish(axes, title=plain(world), xlabel="round", ylabel="cumulative regret")
        axes.set_xlim(0, results.regrets[world][shown[world][0]].shape[1])
        axes.set_ylim(bottom=0.0, top=_top(results, world, shown[world]))
    _name_lines(figure, panels, results, shown, {policy: styles[policy] for policy in policies})
    return figure


def _top(results: Results, world: str, policies: Sequence[str]) -> float | None:
    """Returns where to cut the panel: above all but `random`, if that is so far up that it would flatten the rest."""
    finals = {policy: float(results.final(world, policy).mean()) for policy in policies}
    others = max((value for policy, value in finals.items() if policy != "random"), default=0.0)
    return 1.12 * others if others > 0 and finals.get("random", 0.0) > FAR_UP * others else None


def _curve(axes: Any, regret: Any, style: Look, *, points: int, marked: float) -> None:
    """Draws the mean over trials and its band, thinned; `marked` sets the markers of different lines apart."""
    n_trials, horizon = regret.shape
    # Closer together at the start, where the lines bend.
    share = np.linspace(0.0, 1.0, min(max(points, 25), MOST_POINTS)) ** 1.5
    kept = np.unique((share * (horizon - 1)).round().astype(int))
    mean = regret[:, kept].mean(axis=0)
    step = max(len(kept) // 3, 1)
    axes.plot(kept + 1, mean, **style, linewidth=1.6, markersize=4.5, markevery=(int(step * marked), step))
    if n_trials > 1:
        error = regret[:, kept].std(axis=0, ddof=1) / np.sqrt(n_trials)
        axes.fill_between(kept + 1, mean - error, mean + error, color=style["color"], alpha=0.15, linewidth=0)


def _name_lines(
    figure: Any, panels: Sequence[Any], results: Results, shown: Mapping[str, list[str]], styles: Mapping[str, Look]
) -> None:
    """Names the lines at their ends if there are few and far apart, else in a legend outside the panels."""
    (world, policies), *more = shown.items()
    top = panels[0].get_ylim()[1]
    ends = {policy: min(float(results.final(world, policy).mean()), top) for policy in policies}
    if not more and _far_apart(list(ends.values()), top):
        _label_ends(panels[0], ends)
    else:
        _legend_outside(figure, styles, below=bool(more))


def _far_apart(ends: Sequence[float], top: float) -> bool:
    return len(ends) <= DIRECT_LABELS and bool(np.all(np.diff(sorted(ends)) > LABEL_GAP * top))


def _label_ends(axes: Any, ends: Mapping[str, float]) -> None:
    for policy, value in ends.items():
        axes.annotate(
            plain(policy),
            (axes.get_xlim()[1], value),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            annotation_clip=False,
        )


def _legend_outside(figure: Any, styles: Mapping[str, Look], *, below: bool) -> None:
    columns, rows = _legend_grid(list(styles), figure.get_figwidth()) if below else (1, 0)
    figure.set_figheight(figure.get_figheight() + 0.2 * rows)
    _legend(figure, styles, loc="outside lower center" if below else "outside right upper", ncols=columns)


def _legend(figure: Any, styles: Mapping[str, Look], *, loc: str, ncols: int, fontsize: float = SMALL) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], **style, linewidth=1.6, markersize=4.5) for style in styles.values()]
    names = [plain(policy) for policy in styles]
    figure.legend(lines, names, loc=loc, ncols=ncols, frameon=False, fontsize=fontsize, handlelength=3.6)


def _legend_grid(names: Sequence[str], width: float) -> tuple[int, int]:
    """Returns how many columns of such names fit into this width in inches, and how many rows that makes."""
    columns = int(np.clip(width / (0.8 + 0.075 * max(map(len, names))), 1, len(names)))
    return columns, ceil(len(names) / columns)


def draw_finals(results: Results) -> Any:
    """Returns the picture of final regret: one panel a world, one dot and interval a policy, the best on top."""
    shown = {world: contenders(results, world) for world in results.worlds}
    styles = looks(ordered([results]))
    most, wide = max(map(len, shown.values())), _wide(results)
    figure, panels = _panels(len(shown), row_height=max(0.9 + 0.22 * most, 1.8))
    for axes, world in zip(panels, shown, strict=True):
        _dots(axes, results, world, shown[world], styles)
        if world in wide:
            _log_scale(axes)
        finish(axes, title=plain(world), xlabel="final regret")
    return figure


def _dots(axes: Any, results: Results, world: str, policies: Sequence[str], styles: Mapping[str, Look]) -> None:
    found = final_regrets(results, world)
    for height, policy in enumerate(policies):
        style = {**styles[policy], "linestyle": "none"}
        if (interval := found[policy].interval) is not None:
            axes.plot(interval, (height, height), color=style["color"], linewidth=2.2, solid_capstyle="butt")
        axes.plot([found[policy].mean], [height], **style, markersize=6.5)
    axes.set_yticks(range(len(policies)), [plain(policy) for policy in policies], fontsize=SMALL)
    axes.set_ylim(len(policies) - 0.5, -0.5)
    axes.set_xlim(left=0.0)


def _log_scale(axes: Any) -> None:
    """Sets a logarithmic axis with plain numbers at 1, 2 and 5 of each power of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.autoscale(axis="x")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _panels(count: int, *, row_height: float) -> tuple[Any, list[Any]]:
    """Returns a figure with so many panels, at most three in a row."""
    columns = 2 if count == 4 else min(count, max(WIDTHS))
    rows = ceil(count / columns)
    figure, axes = new_figure(WIDTHS[columns], row_height * rows, rows=rows, columns=columns)
    panels = list(np.ravel(axes))
    for unused in panels[count:]:
        unused.remove()
    for panel in panels[:count]:
        panel.tick_params(labelsize=SMALL)
    return figure, panels[:count]


def draw_rewards(results: Results, folder: Path) -> list[Picture]:
    """Returns the pictures of a study on logs, drawn into the folder as PNG and SVG."""
    kept = _drawn_policies(results)
    gone = len({policy for world in results.logs.values() for policy in world.rewards}) - len(kept)
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
        save_picture(_reward_panels(results, kept, curve, x, y), folder / stem, title, f"{caption}{rest}")
        for title, stem, curve, x, y, caption in drawn
    ]


def cumulated(world: LogResults, policy: str) -> tuple[Array, Array]:
    """Returns some rounds and the reward until then, the mean over trials."""
    rewards = np.array([np.nan_to_num(world.rewards[policy][trial]) for trial in world.trials(policy)])
    sums = np.cumsum(rewards.mean(axis=0))
    kept = np.unique(np.linspace(0, len(sums) - 1, 60).astype(int))
    return kept + 1.0, sums[kept]


def _drawn_policies(results: Results) -> list[str]:
    """Returns whom to draw: the reference on all its graphs, the best others, popularity and chance."""
    policies = {each["label"]: each["policy"] for each in results.settings["policies"]}
    main = policies[results.settings["reference"]]
    met = {label for world in results.logs.values() for label in world.rewards}
    first = [label for label, policy in policies.items() if label in met and policy in (main, "popularity", "random")]
    places: dict[str, list[int]] = {}
    for world in results.logs.values():
        for place, label in enumerate(by_rate(world)):
            places.setdefault(label, []).append(place)
    others = sorted(places.keys() - set(first), key=lambda label: (np.mean(places[label]), label))
    return [*first, *others[:MOST_OTHERS]]


def _reward_panels(results: Results, policies: Sequence[str], curve: Curve, xlabel: str, ylabel: str) -> Any:
    styles = looks(policies)
    columns = len(results.worlds)
    rows = ceil(len(policies) / 3)
    figure, axes = new_figure(7.2 if columns == 1 else 4.4 * columns, 3.4 + 0.22 * rows, columns=columns)
    for panel, world in zip(np.ravel(axes), results.logs.values(), strict=True):
        for place, policy in enumerate(each for each in policies if each in world.rewards):
            x, y = curve(world, policy)
            every = max(len(x) // 3, 1)
            mark = (place * every // max(len(policies), 1), every)
            panel.plot(x, y, **styles[policy], linewidth=1.6, markersize=4.5, markevery=mark)
        finish(panel, title=plain(world.setting), xlabel=xlabel, ylabel=ylabel)
        panel.set_ylim(bottom=0.0)
        panel.set_xlim(left=0.0)
        panel.xaxis.get_major_locator().set_params(integer=True, nbins=5)
    _legend(figure, styles, loc="outside lower center", ncols=3, fontsize=8)
    return figure
