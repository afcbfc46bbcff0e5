"""The tables of docs/context.md from the passes that are kept; what they are made of is in docs/context.json."""

import json
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.context.beside import near
from benchmarks.context.data import SETS
from benchmarks.context.many_users import ENTRIES, MANY
from benchmarks.context.ours import OURS
from benchmarks.context.peers import LIBRARIES
from benchmarks.context.store import Kept, Line
from benchmarks.evaluation_page import written

ASKED = {"digits": 0.86, "wine": 0.92, "breast cancer": 0.965}  # of Coterie's mean reward
SLOWER = 3.0  # at most, than the fastest peer that is
PARTS = ("peers", "many users", "every method")
NEW_PAGE = "# Context\n\n" + "\n".join(f"<!-- {name} -->\n<!-- end {name} -->\n" for name in PARTS)
Row = dict[str, Any]
Rows = list[Row]


def versions() -> str:
    """Returns the versions of the peers that are installed."""
    return ", ".join(f"{name} {found}" for name in LIBRARIES if (found := _version(name))) + "."


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def summary(kept: Iterable[Line], times: Iterable[Line] = ()) -> dict[str, Any]:
    """Returns the mean reward, its standard error and the median times of each method on each set."""
    found, timed = _grouped(kept), _grouped(times)
    machine = next((some[-1]["machine"] for some in reversed(found.values())), "Nothing has been measured yet.")
    return {"machine": machine, "rows": [_row(some, timed.get(key, [])) for key, some in found.items()]}


def _grouped(lines: Iterable[Line]) -> dict[tuple[str, str], list[Line]]:
    found: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        found.setdefault((line["set"], line["method"]), []).append(line)
    return found


def _row(lines: list[Line], timed: list[Line]) -> Row:
    rewards = np.array([line["reward"] for line in lines])
    error = float(rewards.std(ddof=1) / np.sqrt(len(rewards))) if len(rewards) > 1 else None
    return {
        "set": lines[0]["set"],
        "library": lines[0]["library"],
        "method": lines[0]["method"],
        "rounds": lines[0]["rounds"],
        "seeds": len(lines),
        "stopped": any(line["stopped"] for line in lines),
        "reward": round(float(rewards.mean()), 4),
        "error": None if error is None else round(error, 4),
        "ms": _median(lines, "ms"),
        "beside": {clock: _median(timed, clock) for clock in ("ms", "wall")} if timed else None,
    }


def _median(lines: list[Line], clock: str) -> float:
    return float(f"{np.median([line[clock] for line in lines]):.3g}")


def best(rows: Rows, data: str, library: str) -> Row | None:
    """Returns the best configuration of a library on a set, among those with the seeds of a trial or more."""
    some = [row for row in rows if (row["set"], row["library"]) == (data, library) and not row["stopped"]]
    enough = min(3, max((row["seeds"] for row in some), default=0))
    return max((row for row in some if row["seeds"] >= enough), key=lambda row: float(row["reward"]), default=None)


def fastest_near(rows: Rows, ours: Row) -> Row | None:
    """Returns the fastest peer whose reward is near that of ours, or above, by the times side by side."""
    timed = [dict(row) for row in near(rows, ours) if row["beside"] is not None]
    return min(timed, key=lambda row: float(row["beside"]["ms"]), default=None)


def against_peers(rows: Rows, machine: str) -> Iterator[str]:
    """Yields the tables of the best of each library on each set, and of times."""
    yield machine
    yield ""
    yield f"| set | rows | asked | Coterie | {' | '.join(LIBRARIES.values())} | ahead |"
    yield "|---" * (5 + len(LIBRARIES)) + "|"
    for data in SETS:
        ours = best(rows, data, OURS.library)
        others = [best(rows, data, library) for library in LIBRARIES]
        asked = ASKED.get(data)
        first = [data, _n_rows(rows, data), "" if asked is None else f"{asked:g}", _asked(ours, asked)]
        yield _line(*first, *(_named(row) for row in others), _ahead(ours, others))
    yield ""
    lacking = [name for library, name in LIBRARIES.items() if all(row["library"] != library for row in rows)]
    if lacking:
        yield f"Not run, as it was not installed: {', '.join(lacking)}."
        yield ""
    yield from _times(rows)


def _times(rows: Rows) -> Iterator[str]:
    yield "| set | Coterie, ms | fastest peer within 5 % | its reward | its ms | ratio (at most 3) | by wall clock |"
    yield "|---|---|---|---|---|---|---|"
    for data in SETS:
        ours = best(rows, data, OURS.library)
        yield _line(data, *(["-"] * 6 if ours is None else _beside(rows, ours)))


def _beside(rows: Rows, ours: Row) -> list[str]:
    if not near(rows, ours):
        return [f"{ours['ms']:.3g}", "none is", *[""] * 4]
    peer = fastest_near(rows, ours)
    if peer is None or ours["beside"] is None:
        return [f"{ours['ms']:.3g}", "not timed yet", *[""] * 4]
    ratios = [ours["beside"][clock] / peer["beside"][clock] for clock in ("ms", "wall")]
    texts = [f"{ratio:.1f}" if ratio <= SLOWER else f"**{ratio:.1f}**" for ratio in ratios]
    return [
        f"{ours['beside']['ms']:.3g}",
        peer["method"],
        f"{peer['reward']:.3f}",
        f"{peer['beside']['ms']:.3g}",
        *texts,
    ]


def many_users(rows: Rows) -> Iterator[str]:
    """Yields the table of the graph against one model for all and one for each user."""
    yield f"| set | {' | '.join(entry.name for entry in ENTRIES)} |"
    yield "|---" * (1 + len(ENTRIES)) + "|"
    for data in MANY:
        cells = []
        for entry in ENTRIES:
            found = [row for row in rows if (row["set"], row["method"]) == (data, entry.key)]
            cells.append(f"{_reward(found[0])}, {found[0]['ms']:.3g} ms" if found else "-")
        yield _line(data, *cells)


def every_method(rows: Rows) -> Iterator[str]:
    """Yields the table of all methods on all sets: mean reward, standard error, milliseconds a round, seeds."""
    yield f"| method | {' | '.join(SETS)} |"
    yield "|---" * (1 + len(SETS)) + "|"
    cells = {(row["method"], row["set"]): row for row in rows}
    for method in dict.fromkeys(row["method"] for row in rows if row["set"] in SETS):
        yield _line(method, *(_cell(cells.get((method, data))) for data in SETS))


def _cell(row: Row | None) -> str:
    if row is None:
        return "-"
    if row["stopped"]:
        return f"stopped after {row['rounds']:,} rounds, {row['ms']:.3g} ms"
    return f"{_reward(row)}, {row['ms']:.3g} ms ({row['seeds']})"


def _reward(row: Row) -> str:
    return f"{row['reward']:.3f}" + ("" if row["error"] is None else f" ± {row['error']:.3f}")


def _named(row: Row | None) -> str:
    return "not run" if row is None else f"{_reward(row)}, {row['ms']:.3g} ms: {row['method'].split(': ', 1)[1]}"


def _asked(ours: Row | None, asked: float | None) -> str:
    if ours is None:
        return "not run"
    missed = asked is not None and ours["reward"] < asked
    return f"**{_reward(ours)}**" if missed else _reward(ours)


def _ahead(ours: Row | None, others: list[Row | None]) -> str:
    rewards = [row["reward"] for row in others if row is not None]
    if ours is None or not rewards:
        return "-"
    lead = ours["reward"] - max(rewards)
    return f"{lead:+.3f}" if lead > 0 else f"**{lead:+.3f}**"


def _n_rows(rows: Rows, data: str) -> str:
    return f"{max((row['rounds'] for row in rows if row['set'] == data), default=0):,}"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def whole(page: str, found: dict[str, Any]) -> str:
    """Returns a page with its tables written again."""
    rows: Rows = found["rows"]
    tables = (against_peers(rows, found["machine"]), many_users(rows), every_method(rows))
    for name, lines in zip(PARTS, tables, strict=True):
        page = written(page, name, lines)
    return page


def _as_json(found: dict[str, Any]) -> str:
    """One line for each method on each set, so that a difference can be read."""
    rows = ",\n".join(json.dumps(row) for row in found["rows"])
    return f'{{"machine": {json.dumps(found["machine"])}, "rows": [\n{rows}\n]}}\n'


def write_page(kept: Kept, times: Kept, folder: Path) -> Path:
    """Writes the tables into the page of a folder, between the marks that name them, and what they are made of."""
    found = summary(kept.lines, times.lines)
    path = folder / "context.md"
    page = path.read_text(encoding="utf-8") if path.exists() else NEW_PAGE
    (folder / "context.json").write_text(_as_json(found), encoding="utf-8")
    path.write_text(whole(page, found), encoding="utf-8")
    return path
