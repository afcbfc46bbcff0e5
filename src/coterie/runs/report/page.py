"""The report of a study: what is said of it on the terminal and on its page, and in which order."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coterie.runs.report import regret, reward
from coterie.runs.report.figures import draw_regrets, draw_rewards
from coterie.runs.report.real_data import summary_of
from coterie.runs.report.sheet import Section, write_page
from coterie.runs.report.style import Picture
from coterie.runs.report.tables import (
    TextTable,
    comparison,
    difference_tables,
    final_tables,
    rank_table,
    reward_tables,
    time_tables,
)
from coterie.runs.report.trial_means import MISSING, counted
from coterie.runs.results import LogResults, Results

AGAIN = "coterie run manifest.json --out again"

REGRET = (
    "Regret is how much more the best choice of each round would have paid in expectation, added up over the rounds. "
    "Less is better; who knew the truth would have none."
)
REWARD = (
    "The reward of a round is 1 where the choice is the arm that the user liked and else 0, so that its mean is the "
    "share of hits; in a replay it is the logged reward, where the choice is the logged one. More is better."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is said of a study: drawn worlds are judged by regret, logs by reward, and the rest is the same.

    Attributes:
        answer: What came of it, in a few sentences.
        tables: The tables of the terminal.
        draw: Draws the pictures into a folder.
        setup: Sections of the page before the pictures.
        paragraphs: Words beside the pictures.
        found: Sections after the pictures.
        details: Sections after these, before the settings.
        repeats: What a second run gives, in words.
        summary: The study in a few kilobytes; empty where nothing is made of it.
    """

    answer: str
    tables: Sequence[TextTable]
    draw: Callable[[Path], list[Picture]]
    setup: Sequence[Section]
    found: Sequence[Section]
    paragraphs: Sequence[str] = ()
    details: Sequence[Section] = ()
    repeats: str = ""
    summary: Mapping[str, Any] = field(default_factory=dict)


def report_of(results: Results) -> Report:
    """Returns what is said of a study."""
    return _of_rewards(results) if results.logs else _of_regrets(results)


def _of_regrets(results: Results) -> Report:
    return Report(
        answer=regret.answer(results),
        tables=comparison(results),
        draw=lambda folder: draw_regrets(results, folder),
        setup=list(_setup(results)),
        paragraphs=[REGRET, *_not_drawn(results)],
        found=[*_worlds(results), *_tables(results)],
        details=list(_pilot(results)),
        repeats="The same settings and the same seed give the same regrets.",
    )


def _of_rewards(results: Results) -> Report:
    tables = list(reward_tables(results))
    return Report(
        answer=reward.answer(results),
        tables=tables,
        draw=lambda folder: draw_rewards(results, folder),
        setup=[Section(title="What was run", points=list(_log_setup(results)))],
        paragraphs=[REWARD],
        found=[Section(title=table.title, tables=[table]) for table in tables],
        summary=summary_of(results),
    )


def write_report(
    results: Results, folder: Path, *, extra_sections: Sequence[Section] = (), command: str = AGAIN
) -> Path:
    """Returns the path of folder/report.html, written with its pictures beside it in folder/figures.

    Args:
        results: The study.
        folder: Where to write.
        extra_sections: What else the page says, after the tables.
        command: How to run the study again; if none, from the manifest in this folder.
    """
    report = report_of(results)
    sections = [
        Section(title="Pictures", paragraphs=report.paragraphs, pictures=report.draw(folder / "figures")),
        *report.found,
        *extra_sections,
        *report.setup,
        *report.details,
        settings_section(results.settings),
        _rerun(results, report.repeats, command),
    ]
    return write_page(folder / "report.html", title=results.title, answer=report.answer, sections=sections)


def _worlds(results: Results) -> Iterator[Section]:
    if len(results.worlds) > 1:
        yield Section(title="World by world", points=regret.findings(results))


def _setup(results: Results) -> Iterator[Section]:
    """Yields what was run, in a line a world and a table of the policies."""
    worlds = [each for each in results.settings.get("worlds", []) if each["name"] in results.worlds]
    policies = results.settings.get("policies", [])
    if worlds and policies:
        points = [_world_line(results, each) for each in worlds]
        yield Section(title="What was run", points=points, tables=[_played(results, policies)])


def _played(results: Results, policies: Sequence[Mapping[str, Any]]) -> TextTable:
    """Returns the policies and their options, all in one column: a column an option is too wide for a printed page."""
    rows = tuple((each["label"], each["policy"], _options(each)) for each in policies)
    columns = ("label", "policy", "options")
    words = frozenset(range(len(columns)))
    return TextTable(title="The policies", columns=columns, rows=rows, note=_tuned_note(results), words=words)


def _options(policy: Mapping[str, Any]) -> str:
    """Returns the options of a policy in words.

    Examples:
        >>> _options({"label": "mine", "policy": "gp-ucb", "graph": "shown", "tune": {}, "fixed": [], "width": 2.0})
        'graph shown; width 2'
    """
    shown = (key for key in policy if key not in ("label", "policy", "tune", "fixed"))
    return "; ".join(f"{key} {_short(policy[key])}" for key in shown)


def _world_line(results: Results, world: Mapping[str, Any]) -> str:
    graph = f"{world['n_users']} users on a graph of the family {world['graph']}"
    arms = f"{world['n_arms']} arms of {world['dimension']} features, {world['n_candidates']} shown in a round"
    rounds = f"{world['horizon']} rounds, noise {world['noise_std']:g}"
    trials = counted(results.n_trials(world["name"]), "trial")
    return f"{world['name']}: {world['kind']}; {graph}; {arms}; {rounds}, {trials}."


def _tuned_note(results: Results) -> str:
    tuning = results.settings.get("tuning")
    if not tuning:
        return "No pilot was run: every policy plays with the options listed."
    pilot = f"{counted(tuning['trials'], 'trial')} of at most {tuning['horizon']} rounds"
    return f"What the pilot ({pilot}) chose takes the place of width and the other tuned options; see below."


def _not_drawn(results: Results) -> list[str]:
    """Returns a sentence on the policies that know the truth, if there are any."""
    absent = {policy for world in results.worlds for policy in results.policies(world)}
    absent -= {policy for world in results.worlds for policy in regret.contenders(results, world)}
    return [f"Not drawn and not ranked, for it knows the truth: {', '.join(sorted(absent))}."] if absent else []


def _tables(results: Results) -> Iterator[Section]:
    yield Section(title="Final regret", tables=list(final_tables(results)))
    yield Section(title="Difference to the reference", tables=list(difference_tables(results)))
    yield Section(title="Ranks", tables=[rank_table([results])])
    if times := list(time_tables(results)):
        yield Section(title="Time per round", tables=times)


def _pilot(results: Results) -> Iterator[Section]:
    if results.tuned:
        yield Section(title="What the pilot chose", tables=[_chosen(results)])
    if results.pilot:
        tables = [_grid(results, world) for world in results.pilot]
        yield Section(title="All settings the pilot tried", tables=tables, folded=True)


def _chosen(results: Results) -> TextTable:
    """Returns what the pilot chose, one row a world and policy."""
    found = [
        {"world": world, "policy": policy, **values}
        for world, policies in results.tuned.items()
        for policy, values in policies.items()
    ]
    note = "The setting with the least mean pilot regret, frozen for the trials."
    return _records("What the pilot chose", found, words=("world", "policy"), note=note)


def _grid(results: Results, world: str) -> TextTable:
    """Returns every setting that the pilot tried in this world, and what came of it."""
    tuned = results.tuned.get(world, {})
    found = [
        {"policy": policy, **record, "chosen": _is_chosen(record, tuned.get(policy))}
        for policy, records in results.pilot[world].items()
        for record in records
    ]
    return _records(f"Pilot on {world}", found, words=("policy", "chosen"))


def _is_chosen(record: Mapping[str, Any], chosen: Mapping[str, Any] | None) -> str:
    return "chosen" if chosen and all(record.get(key) == value for key, value in chosen.items()) else ""


def _records(title: str, found: Sequence[Mapping[str, Any]], *, words: Sequence[str], note: str = "") -> TextTable:
    """Returns records as a table; its columns are all keys they have, in the order of their appearance."""
    columns = tuple(dict.fromkeys(key for record in found for key in record))
    rows = tuple(tuple(_short(record.get(column)) for column in columns) for record in found)
    kinds = frozenset(i for i, column in enumerate(columns) if column in words)
    return TextTable(title=title, columns=columns, rows=rows, note=note, words=kinds)


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else _written(value)


def settings_section(settings: Mapping[str, Any]) -> Section:
    """Returns every setting of the study, defaults included."""
    rows = tuple(flat(settings))
    table = TextTable(
        title="Every setting, defaults included", columns=("setting", "value"), rows=rows, words=frozenset({0, 1})
    )
    return Section(title="Every setting, defaults included", tables=[table], folded=True)


def flat(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yields the path and the value of every leaf of nested settings.

    Examples:
        >>> list(flat({"seed": 7, "worlds": [{"noise": 0.1}], "widths": [1, 2]}))
        [('seed', '7'), ('worlds[0].noise', '0.1'), ('widths', '1, 2')]
    """
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and any(isinstance(each, Mapping | list | tuple) for each in value):
        for position, inner in enumerate(value):
            yield from flat(inner, f"{path}[{position}]")
    else:
        yield path, _written(value)


def _written(value: object) -> str:
    """Returns a value as a person writes it; nothing at all is a dash."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, value)) or MISSING
    return MISSING if value is None or value == {} else str(value)


def _rerun(results: Results, repeats: str, command: str) -> Section:
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    said = [repeats, f"It ran on {versions}." if versions else ""]
    return Section(title="How to run it again", paragraphs=[each for each in said if each], commands=[command])


def _log_setup(results: Results) -> Iterator[str]:
    for world in results.logs.values():
        yield _log_line(results, world)
        for what, count in world.facts.get("left_out", {}).items():
            if world.name == results.worlds[0]:
                yield f"Left out of the log: {what}, {count:,}."
    if left_out := results.settings.get("left_out"):
        yield f"Too slow for a quick run, and left out: {', '.join(left_out)}."
    yield "Settings are those of the study file; the run itself tunes none."
    yield "Every policy met the same users and candidates; a trial is one seed."


def _log_line(results: Results, world: LogResults) -> str:
    facts, settings = world.facts, world.settings
    people = f"{facts['n_users']:,} users, {facts['n_edges']:,} edges"
    log = f"{people}, {facts['n_arms']:,} arms of {facts['dimension']} features"
    trials = f"{facts['rounds']:,} rounds, {counted(results.settings['trials'], 'trial')}"
    online = settings["online_features"]
    own = f"; learners see their own past as features: {', '.join(online)}" if online else ""
    if world.replays:
        return f"{world.name}: {log}; candidates as logged, learned where the choice was the logged one; {trials}{own}."
    short = f" ({facts['n_short']:,} more have too few arms left)" if facts.get("n_short") else ""
    served = f"{facts['n_served']:,} users with at least {settings['least_positives']} positives come{short}"
    how = "uniformly" if settings["negatives"] == "uniform" else "in proportion to popularity"
    shown = f"{settings['n_candidates']} candidates, one of them liked, the others drawn {how}"
    return f"{world.name}: {log}; {served}; {shown}; {trials}{own}."
