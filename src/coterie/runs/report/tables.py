"""A study's numbers as tables of plain text, which the terminal and the page show alike."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from coterie.errors.extras import require_extra
from coterie.runs.report.regret import by_regret, differences, final_regrets, microseconds, ranks, reference
from coterie.runs.report.reward import SAME_LOG, Gain, by_rate, gain, rate, thirds, without_graph
from coterie.runs.report.trial_means import FEWEST, MISSING, decimals, signed, with_error
from coterie.runs.results import LogResults, Results

WORLDS_A_TABLE = 3  # what a terminal of a hundred columns and a printed page can hold
REWARD_DIGITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A table of plain text: the first column names the row, the others are numbers unless `words` says otherwise.

    Attributes:
        title: What the table shows.
        columns: The names of the columns.
        rows: One tuple of cells a row.
        note: How to read it.
        words: The columns that hold words, by position.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    words: frozenset[int] = frozenset({0})


def comparison(*studies: Results) -> list[TextTable]:
    """Returns all tables of one study or several: final regret, differences, ranks and time per round.

    Examples:
        >>> import numpy as np
        >>> results = Results(name="tiny", title="", settings={}, versions={},
        ...                   regrets={"easy": {"random": np.ones((1, 5)), "greedy": np.zeros((1, 5))}})
        >>> [table.title for table in comparison(results)]
        ['Final regret', 'Difference to the reference', 'Ranks']
        >>> comparison(results)[0].rows
        (('greedy', '0.000 ± -'), ('random', '5.000 ± -'))
    """
    if len(studies) == 1:
        return [*_of_study(studies[0]), rank_table(studies)]
    named = dict(zip(_names(studies), studies, strict=True))
    each = [replace(t, title=f"{name}: {t.title}") for name, results in named.items() for t in _of_study(results)]
    return [*each, *cross_tables(named), rank_table(studies)]


def _of_study(results: Results) -> Iterator[TextTable]:
    for make in (final_tables, difference_tables, time_tables):
        yield from make(results)


def _names(studies: Sequence[Results]) -> list[str]:
    """Returns a name for each study, numbered where two studies have the same."""
    names = [results.name for results in studies]
    return [name if names.count(name) == 1 else f"{name} #{i}" for i, name in enumerate(names, start=1)]


def ordered(studies: Sequence[Results]) -> list[str]:
    """Returns all policies, the best first: by the mean over worlds of the place that their mean regret takes."""
    places: dict[str, list[int]] = {}
    for results in studies:
        for world in results.worlds:
            for place, policy in enumerate(by_regret(results, world)):
                places.setdefault(policy, []).append(place)
    return sorted(places, key=lambda policy: float(np.mean(places[policy])))


def final_tables(results: Results) -> Iterator[TextTable]:
    """Yields the final regret of each policy in each world: mean and standard error."""
    found = {world: final_regrets(results, world) for world in results.worlds}
    digits = decimals(each.mean for world in found.values() for each in world.values())
    cells = {world: {name: with_error(each, digits) for name, each in found[world].items()} for world in found}
    yield from _by_world(
        "Final regret",
        cells,
        ordered([results]),
        note="Mean ± one standard error; less is better. In the order of the mean place over the worlds.",
    )


def difference_tables(results: Results) -> Iterator[TextTable]:
    """Yields how much more regret each policy had than the reference of its world, trial by trial."""
    to = {world: reference(results, world) for world in results.worlds}
    found = {world: differences(results, world, to=to[world]) for world in results.worlds}
    digits = decimals(each.mean for world in found.values() for each in world.values())
    cells = {
        world: {name: "0 (reference)" if name == to[world] else signed(each, digits) for name, each in policies.items()}
        for world, policies in found.items()
    }
    note = (
        "Final regret minus the reference's, paired by trial; 95 % bootstrap intervals, each pair by itself, "
        f"none with fewer than {FEWEST} trials."
    )
    yield from _by_world("Difference to the reference", cells, ordered([results]), note=note)


def time_tables(results: Results) -> Iterator[TextTable]:
    """Yields the time of one round of each policy in each world, where it was kept."""
    cells = {
        world: {
            name: f"{time:.1f}"
            for name in results.policies(world)
            if (time := microseconds(results, world, name)) is not None
        }
        for world in results.worlds
    }
    if any(cells.values()):
        note = "Microseconds to decide and to learn, the median over trials."
        yield from _by_world("Time per round", cells, ordered([results]), note=note)


def rank_table(studies: Sequence[Results]) -> TextTable:
    """Returns the mean rank and the wins of each policy over all trials of all worlds."""
    rows = [(each.policy, f"{each.mean_rank:.2f}", str(each.wins), str(each.n_trials)) for each in ranks(studies)]
    note = (
        "Over all trials of all worlds that a policy played. It wins a trial if no other had less regret. "
        "Policies that know the truth are not ranked."
    )
    return TextTable(title="Ranks", columns=("policy", "mean rank", "wins", "trials"), rows=tuple(rows), note=note)


def cross_tables(studies: Mapping[str, Results]) -> Iterator[TextTable]:
    """Yields the mean final regret of each policy in every world of several studies side by side."""
    found = {
        f"{study}: {world}": {name: each.mean for name, each in final_regrets(results, world).items()}
        for study, results in studies.items()
        for world in results.worlds
    }
    digits = decimals(mean for world in found.values() for mean in world.values())
    cells = {world: {name: f"{mean:.{digits}f}" for name, mean in found[world].items()} for world in found}
    yield from _by_world("Mean final regret", cells, ordered(list(studies.values())))


def _by_world(
    title: str, cells: Mapping[str, Mapping[str, str]], policies: Sequence[str], *, note: str = ""
) -> Iterator[TextTable]:
    """Yields tables of policies by worlds, at most three worlds each and as even as can be."""
    worlds = list(cells)
    n_tables = ceil(len(worlds) / WORLDS_A_TABLE)
    for part in np.array_split(np.arange(len(worlds)), n_tables):
        shown = [worlds[i] for i in part]
        rows = ((policy, *(cells[world].get(policy, MISSING) for world in shown)) for policy in policies)
        yield TextTable(title=title, columns=("policy", *shown), rows=tuple(rows), note=note)


def reward_tables(results: Results) -> Iterator[TextTable]:
    """Yields all tables of a study on logs: what each policy got in each world, and for whom the graph did what."""
    for world in results.logs.values():
        yield rates(results, world)
    yield from whom(results)
    for world in results.logs.values():
        yield from learned(results, world)
    if any(world.failed for world in results.logs.values()):
        yield failures(results)


def rates(results: Results, world: LogResults) -> TextTable:
    """Returns what each policy got, the best first: a round, in all, against itself without a graph; and its cost."""
    rows = tuple(_row(results, world, policy) for policy in by_rate(world))
    used = ("rows used",) if world.replays else ()
    note = f"{_over_trials(world)} Time to decide and learn, memory of the process at most."
    columns = ("policy", "a round", "in all", *used, "against none", "ms a round", "MiB")
    return TextTable(title=f"Reward: {world.setting}", columns=columns, rows=rows, note=note)


def _over_trials(world: LogResults) -> str:
    """Returns what the means over trials are."""
    if world.replays:
        return f"Mean over trials. Against none: minus the same policy without a graph. {SAME_LOG}"
    return (
        "Mean ± one standard error over trials. Against none: minus the same policy without a graph, paired by trial, "
        f"with a 95 % bootstrap interval (none with fewer than {FEWEST} trials)."
    )


def _row(results: Results, world: LogResults, policy: str) -> tuple[str, ...]:
    rewards = [world.rewards[policy][trial] for trial in world.trials(policy)]
    used = (f"{np.mean([np.count_nonzero(~np.isnan(each)) for each in rewards]):.0f}",) if world.replays else ()
    alone = without_graph(results, policy)
    found = gain(world, policy, alone) if alone else None
    seconds = list(world.seconds.get(policy, {}).values())
    return (
        policy,
        with_error(rate(world, policy), REWARD_DIGITS),
        f"{np.mean([np.nansum(each) for each in rewards]):.0f}",
        *used,
        MISSING if found is None else signed(found.gap, REWARD_DIGITS),
        f"{1e3 * np.median(seconds):.2f}" if seconds else MISSING,
        f"{world.memory[policy] / 2**20:.0f}" if policy in world.memory else MISSING,
    )


def whom(results: Results) -> Iterator[TextTable]:
    """Yields for whom the graph did what: by number of neighbours and by visits so far, each in thirds."""
    policy = results.settings["reference"]
    alone = without_graph(results, policy)
    if alone is None:
        return
    for kind, title in (("degree", "number of neighbours"), ("visits", "visit of the user")):
        rows = tuple(
            _whom_row(world, name, found)
            for world in results.logs.values()
            if world.trials(policy, alone)
            for name, found in thirds(world, policy, alone, kind)
        )
        if rows:
            columns = ("shown", title, "with", "without", "difference", "times")
            note = f"{policy} with the graph and without, in thirds of the rounds; intervals as above."
            yield TextTable(
                title=f"For whom: by {title}", columns=columns, rows=rows, note=note, words=frozenset({0, 1})
            )


def _whom_row(world: LogResults, name: str, found: Gain) -> tuple[str, ...]:
    rates = (f"{each:.{REWARD_DIGITS}f}" for each in (found.mine, found.other))
    return (world.setting, name, *rates, signed(found.gap, REWARD_DIGITS), f"{found.ratio:.2f}")


def learned(results: Results, world: LogResults) -> Iterator[TextTable]:
    """Yields what the policy that is spoken of learned of its hyperparameters, fit by fit, in its first trial."""
    policy = results.settings["reference"]
    for trial, fits in sorted(world.fits.get(policy, {}).items())[:1]:
        shares = ("graph", "own", "common", "linear")
        rest = ("ridge", "lengthscale", "noise")
        rows = tuple(
            (f"{fit['rewards']:.0f}", *(f"{fit[name]:.0%}" for name in shares), *(f"{fit[name]:.3g}" for name in rest))
            for fit in fits
        )
        note = (
            f"{policy}, trial {trial + 1}. Of what users' tastes vary by: the part that follows the graph, is a user's "
            "own, is common to all; how much of it is linear in the features; ridge, length-scale, noise variance."
        )
        title = f"What was learned: {world.setting}"
        yield TextTable(title=title, columns=("rewards", *shares, *rest), rows=rows, note=note)


def failures(results: Results) -> TextTable:
    """Returns what could not run at this size, and why."""
    rows = tuple(
        (world.name, policy, reason)
        for world in results.logs.values()
        for policy, reason in sorted(world.failed.items())
    )
    words = frozenset({0, 1, 2})
    return TextTable(title="What could not run", columns=("world", "policy", "reason"), rows=rows, words=words)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Returns a table in Markdown.

    Examples:
        >>> print(markdown_table(("policy", "regret"), [("a|b", "5")]))
        | policy | regret |
        | --- | --- |
        | a\|b | 5 |
    """
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def for_terminal(table: TextTable) -> Any:
    """Returns a table for the terminal; what is too wide for it is wrapped, never cut."""
    with require_extra("lab", "a table"):
        from rich import box
        from rich import table as rich_table
        from rich.text import Text
    shown = rich_table.Table(
        title=Text(table.title, style="bold"),
        title_justify="left",
        caption=Text(table.note),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for position, column in enumerate(table.columns):
        shown.add_column(Text(column), justify="left" if position in table.words else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*map(Text, row))  # text, not markup: a label may hold brackets
    return shown
