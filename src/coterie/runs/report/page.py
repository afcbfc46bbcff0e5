"""The page of a study: what is on it, in which order."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coterie.runs.report.figures import draw_study
from coterie.runs.report.numbers import contenders
from coterie.runs.report.sheet import Section, write_page
from coterie.runs.report.tables import Table, difference_tables, final_tables, rank_table, time_tables
from coterie.runs.report.words import MISSING, answer, counted, findings
from coterie.runs.results import Results


def write_report(
    results: Results, folder: Path, *, extra_sections: Sequence[Section] = (), command: str | None = None
) -> Path:
    """Returns the path of folder/report.html, written with its pictures beside it in folder/figures.

    Args:
        results: The study.
        folder: Where to write.
        extra_sections: What else the page says, after the tables.
        command: How to run the study again; if none, from the manifest in this folder.
    """
    sections = [
        *_worlds(results),
        *_setup(results),
        _pictures(results, folder / "figures"),
        *_tables(results),
        *extra_sections,
        *_pilot(results),
        settings_section(results.settings),
        _rerun(results, command or "coterie run manifest.json --out again"),
    ]
    return write_page(folder / "report.html", title=results.title, answer=answer(results), sections=sections)


def _worlds(results: Results) -> Iterator[Section]:
    if len(results.worlds) > 1:
        yield Section(title="World by world", points=findings(results))


def _setup(results: Results) -> Iterator[Section]:
    """Yields what was run, in a line a world and a table of the policies."""
    worlds = [each for each in results.settings.get("worlds", []) if each["name"] in results.worlds]
    policies = results.settings.get("policies", [])
    if worlds and policies:
        points = [_world_line(results, each) for each in worlds]
        yield Section(title="What was run", points=points, tables=[_played(results, policies)])


def _played(results: Results, policies: Sequence[Mapping[str, Any]]) -> Table:
    """Returns the policies and their options, all in one column: a column an option is too wide for a printed page."""
    rows = tuple((each["label"], each["policy"], _options(each)) for each in policies)
    columns = ("label", "policy", "options")
    words = frozenset(range(len(columns)))
    return Table(title="The policies", columns=columns, rows=rows, note=_tuned_note(results), words=words)


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


def _pictures(results: Results, folder: Path) -> Section:
    absent = {policy for world in results.worlds for policy in results.policies(world)}
    absent -= {policy for world in results.worlds for policy in contenders(results, world)}
    said = [f"Not drawn and not ranked, for it knows the truth: {', '.join(sorted(absent))}."] if absent else []
    return Section(title="Pictures", paragraphs=said, pictures=draw_study(results, folder))


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


def _chosen(results: Results) -> Table:
    """Returns what the pilot chose, one row a world and policy."""
    found = [
        {"world": world, "policy": policy, **values}
        for world, policies in results.tuned.items()
        for policy, values in policies.items()
    ]
    note = "The setting with the least mean pilot regret, frozen for the trials."
    return _records("What the pilot chose", found, words=("world", "policy"), note=note)


def _grid(results: Results, world: str) -> Table:
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


def _records(title: str, found: Sequence[Mapping[str, Any]], *, words: Sequence[str], note: str = "") -> Table:
    """Returns records as a table; its columns are all keys they have, in the order of their appearance."""
    columns = tuple(dict.fromkeys(key for record in found for key in record))
    rows = tuple(tuple(_short(record.get(column)) for column in columns) for record in found)
    kinds = frozenset(i for i, column in enumerate(columns) if column in words)
    return Table(title=title, columns=columns, rows=rows, note=note, words=kinds)


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else _written(value)


def settings_section(settings: Mapping[str, Any]) -> Section:
    """Returns every setting of the study, defaults included."""
    rows = tuple(flat(settings))
    table = Table(
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


def _rerun(results: Results, command: str) -> Section:
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    said = ["The same settings and the same seed give the same regrets.", f"It ran on {versions}." if versions else ""]
    return Section(title="How to run it again", paragraphs=[each for each in said if each], commands=[command])
