"""Events from a table, batch by batch into columns of numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import LARGEST_REWARD, LEAST_PROPENSITY, PROPENSITY_RULE, REWARD_RULE
from coterie.errors import RewardError
from coterie.logs.log import Events, Floats, Ints, Pairs, Ragged
from coterie.logs.plain.cells import Lists, as_lists
from coterie.logs.plain.context_columns import ContextColumns
from coterie.logs.plain.folder import Faults, Rows, open_table
from coterie.logs.plain.slate_columns import check_slates, read_slates

USER_RULE = "users are those of edges and of the table users"
USER_REMEDY = "Correct the id, or add it to a table users"
ARM_RULE, ARM_REMEDY = "arms are those of the table arms", "Correct the id, or add it to the table arms"


@dataclass(slots=True)
class Reader:
    """Where users and arms are, what was read so far, and whether times are dates or numbers.

    Attributes:
        users: Where each user is.
        arms: Where each arm is.
        parts: The columns, in pieces.
        dated: Whether times are dates; none while there was no time yet.
    """

    users: Mapping[Any, int]
    arms: Mapping[Any, int]
    parts: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    dated: bool | None = None

    def keep(self, **columns: NDArray[Any]) -> None:
        """Keeps a piece of each of these columns."""
        for name, column in columns.items():
            self.parts.setdefault(name, []).append(column)

    def column(self, name: str) -> NDArray[Any] | None:
        """Returns a column whole, of which nothing is kept; none if there is no such column."""
        pieces = self.parts.pop(name, None)
        return None if pieces is None else np.concatenate(pieces)

    def pairs(self, rows: Rows) -> tuple[Ints, Ints]:
        """Returns where users and arms of these rows are."""
        rows.missing("user", "arm")
        user, arm = rows.batch.columns["user"].places(self.users), rows.batch.columns["arm"].places(self.arms)
        rows.mark(user < 0, "user", rows.text("user"), USER_RULE, USER_REMEDY)
        rows.mark(arm < 0, "arm", rows.text("arm"), ARM_RULE, ARM_REMEDY)
        return user, arm


def read_events(folder: Path, users: Mapping[Any, int], arms: Mapping[Any, int], faults: Faults) -> Events:
    """Returns the events of a folder; besides its columns no more than a batch is held."""
    opened = open_table(folder, "events", faults)
    assert opened is not None  # every log has them
    table, batches = opened
    reader, contexts = Reader(users, arms), ContextColumns.opened(folder, list(table.names or ()), faults)
    for rows in batches:
        _read(reader, rows)
        contexts.read(rows)
    if not reader.parts:
        problem = f"{table.path.name} has no rows"
        raise RewardError(problem, "a log has at least one event", "Add a row for each event")
    numbers = reader.column("number")
    events = Events(
        user=_whole(reader, "user"),
        arm=_whole(reader, "arm"),
        reward=_whole(reader, "reward"),
        candidates=_ragged(reader),
        propensity=_logged(reader, "propensity"),
        time=_logged(reader, "time"),
        context=contexts.whole(),
        slate=_counted(reader, "slate"),
        place=_counted(reader, "place"),
    )
    if numbers is not None and events.slate is not None and not faults.found:
        check_slates(events, table, numbers, faults)
    return events


def read_had(folder: Path, users: Mapping[Any, int], arms: Mapping[Any, int], faults: Faults) -> Pairs | None:
    """Returns what users had besides the events, if a folder has such a table."""
    opened, reader = open_table(folder, "had", faults), Reader(users, arms)
    for rows in opened[1] if opened is not None else ():
        user, arm = reader.pairs(rows)
        reader.keep(user=user, arm=arm)
    return Pairs(user=_whole(reader, "user"), arm=_whole(reader, "arm")) if reader.parts else None


def _read(reader: Reader, rows: Rows) -> None:
    columns = rows.batch.columns
    user, arm = reader.pairs(rows)
    reward = columns["reward"].numbers()
    rows.mark(~(np.abs(reward) <= LARGEST_REWARD), "reward", rows.text("reward"), REWARD_RULE, "Correct that row")
    reader.keep(user=user, arm=arm, reward=reward)
    if "candidates" in columns:
        _read_candidates(reader, rows, arm)
    if "propensity" in columns:
        reader.keep(propensity=_propensities(rows))
    if "time" in columns:
        reader.keep(time=_times(reader, rows))
    reader.keep(**read_slates(rows))


def _read_candidates(reader: Reader, rows: Rows, arm: Ints) -> None:
    cells = as_lists(rows.batch.columns["candidates"])
    lists = cells.lists(reader.arms)
    row = np.repeat(np.arange(len(lists)), lists.lengths)

    def among(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.bincount(row[mask], minlength=len(lists)) > 0

    first_unknown = _first(cells, lists.flat < 0)
    rows.mark(among(lists.flat < 0), "candidates", first_unknown, ARM_RULE, ARM_REMEDY)
    rule, remedy = "candidates are different arms", "Name each once"
    again = _repeated(row, lists.flat)
    rows.mark(among(again), "candidates", _first(cells, again), f"{rule}, and this one is there twice", remedy)
    absent = ~among(lists.flat == arm[row]) & (lists.lengths > 0) & (arm >= 0)
    rule, remedy = "the chosen arm is one of the candidates", "Add it, or leave the candidates empty"
    rows.mark(absent, "candidates", lambda each: f"{rows.batch.columns['arm'].text(each)!r} is absent", rule, remedy)
    reader.keep(lengths=lists.lengths, flat=lists.flat)


def _first(cells: Lists, mask: NDArray[np.bool_]) -> Any:
    """Returns what names the first candidate of a row's list that the mask has."""

    def named(row: int) -> str:
        start = int(cells.starts[row])
        place = start + int(np.argmax(mask[start : int(cells.starts[row + 1])]))
        return f"one of them is {cells.items.text(place)!r}"

    return named


def _repeated(row: Ints, flat: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Returns which candidates their list had before; O(candidates log candidates)."""
    key = row * (int(flat.max(initial=0)) + 2) + flat
    order = np.argsort(key, kind="stable")
    again = np.zeros(len(flat), dtype=bool)
    again[order[1:]] = (key[order[1:]] == key[order[:-1]]) & (flat[order[1:]] >= 0)
    return again


def _propensities(rows: Rows) -> Floats:
    cells = rows.batch.columns["propensity"]
    values: Floats = cells.numbers()
    odd = ~((values >= LEAST_PROPENSITY) & (values <= 1)) & ~cells.empty()
    rows.mark(odd, "propensity", rows.text("propensity"), PROPENSITY_RULE, "Correct it, or leave it empty")
    return values


def _times(reader: Reader, rows: Rows) -> Floats:
    cells = rows.batch.columns["time"]
    numbers, filled = cells.numbers(), ~cells.empty()
    if reader.dated is None:
        reader.dated = _are_dates(cells, numbers)
    values: Floats = _dates(cells) if reader.dated else numbers
    what = "a date such as 2024-05-31T12:00:00+00:00" if reader.dated else "a number"
    rule, remedy = f"a time is {what}, as the first is", "Correct it, or leave it empty"
    rows.mark(np.isnan(values) & filled, "time", rows.text("time"), rule, remedy)
    return values


def _are_dates(cells: Any, numbers: Floats) -> bool | None:
    """Returns whether the first cell that is a time is a date; none if no cell is one."""
    times = np.flatnonzero(~np.isnan(numbers) | ~np.isnan(_dates(cells)))
    return bool(np.isnan(numbers[times[0]])) if times.size else None


def _dates(cells: Any) -> Floats:
    known = {text: _seconds(text) for text in cells.distinct()}
    place = {text: place for place, text in enumerate(known)}
    seconds: Floats = np.array([*known.values(), np.nan])
    places: Ints = cells.places(place)
    return seconds[places]


def _seconds(text: str) -> float:
    """Returns the seconds since 1970 of a date; one without a zone is taken as UTC.

    Examples:
        >>> _seconds("1970-01-02 00:00:00.5"), _seconds("1970-01-01T01:00:00+01:00"), _seconds("soon"), _seconds("12")
        (86400.5, 0.0, nan, nan)
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return float("nan")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _whole(reader: Reader, name: str) -> NDArray[Any]:
    column = reader.column(name)
    assert column is not None  # every table of these has it
    return column


def _logged(reader: Reader, name: str) -> Floats | None:
    column = reader.column(name)
    return None if column is None or np.isnan(column).all() else column


def _counted(reader: Reader, name: str) -> Ints | None:
    column = reader.column(name)
    return None if column is None or (column < 0).all() else column


def _ragged(reader: Reader) -> Ragged | None:
    lengths, flat = reader.column("lengths"), reader.column("flat")
    if lengths is None or flat is None or not len(flat):
        return None
    return Ragged(np.concatenate([[0], np.cumsum(lengths)]), flat)
