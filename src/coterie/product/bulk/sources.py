"""The files of a table of events: which they are, whether they are tables of events, and their rows in batches.

Nothing here knows a graph or a model. A part is a file, or some row groups of one: it can be sent to another process
and read there.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from glob import glob, has_magic
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import LARGEST_REWARD, REWARD_RULE
from coterie.errors import InputError, RewardError, UnknownArmError, UnknownUserError, listed
from coterie.errors.extras import require_extra
from coterie.logs.plain.cells import Texts
from coterie.logs.plain.cells import read_batches as read_cells
from coterie.logs.tables import is_parquet, open_parquet

ROWS = 2**17  # of a batch, unless so many are asked for
NEEDED = ("user", "arm", "reward")
WHOLE = "^(0|-?[1-9][0-9]{0,17})$"
ENDINGS = (".parquet", ".csv")
FILES_RULE = "events are a file of Parquet or CSV, a folder of such files, or a pattern such as 'events/*.parquet'"
COLUMNS_RULE = "events have a column user, one of arms (arm), and one of numbers (reward)"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPart:
    """A file of events, or some row groups of one.

    Attributes:
        path: The file.
        n_rows: How many rows there are; of CSV at most so many.
        unit: What a row's number counts: "row" in Parquet, "line" in CSV.
        kinds: The types of user, arm and reward, as the file has them.
        first: The number of the first row, from 1.
        groups: Which row groups of Parquet; none means all.
    """

    path: Path
    n_rows: int
    unit: str
    kinds: tuple[str, ...]
    first: int = 1
    groups: tuple[int, ...] | None = None


class EventBatch(NamedTuple):
    """Some rows of events, one after another.

    Attributes:
        part: Where they are from.
        numbers: The number of each row in its file.
        users: Ids, a column of pyarrow.
        arms: Likewise.
        rewards: Numbers; NaN where there is none.
    """

    part: EventPart
    numbers: NDArray[np.int64]
    users: Any
    arms: Any
    rewards: NDArray[np.float64]


RowBatch = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]  # rows of users and of arms, rewards


def event_parts(events: str | Path) -> list[EventPart]:
    """Returns the files of events in the order of their names, each looked at and found to be one, and all alike.

    Args:
        events: A file, a folder of files, or a pattern; Parquet or CSV.
    """
    with require_extra("data", "a fit from files of events"):
        import pyarrow  # noqa: F401 - by which ids are looked up, those of CSV too
    parts = [_looked_at(path) for path in _paths(str(events))]
    first = parts[0]
    for part in parts[1:]:
        for name, kind, before in zip(NEEDED, part.kinds, first.kinds, strict=True):
            if kind != before:
                problem = f"{part.path.name}, column {name!r}: it holds {kind}, and that of {first.path.name} {before}"
                raise InputError(problem, "all files of events have the same types", "Write that file again")
    return parts


def split_parts(parts: Iterable[EventPart], most_rows: int) -> list[EventPart]:
    """Returns the same in parts of at most so many rows, as far as row groups allow; CSV stays whole."""
    return [piece for part in parts for piece in _split(part, most_rows)]


def n_rows_of(parts: Iterable[EventPart]) -> int:
    """Returns how many rows the parts have; of CSV at most so many."""
    return sum(part.n_rows for part in parts)


def read_part(part: EventPart, rows: int = ROWS) -> Iterator[EventBatch]:
    """Returns the batches of a part; nothing but a batch is held."""
    return _of_csv(part, rows) if part.unit == "line" else _of_parquet(part, rows)


class IdRows:
    """The rows of ids, by which a whole column is looked up at once; made to be sent to other processes.

    An id is the same as text and as whole number: 7 is "7", as in all tables (docs/data.md).

    Args:
        ids: In the order of their rows.

    Examples:
        >>> import pyarrow as pa
        >>> users = IdRows(["ana", "7"])
        >>> users.rows_of(pa.array(["7", "zoe", None])), users.rows_of(pa.array([7, 8]))
        (array([ 1, -1, -1], dtype=int32), array([ 1, -1], dtype=int32))
    """

    def __init__(self, ids: Iterable[Any]) -> None:
        import pyarrow
        import pyarrow.compute

        self._texts = pyarrow.array([str(each) for each in ids], pyarrow.string())
        spelt = pyarrow.compute.match_substring_regex(self._texts, WHOLE)  # as numbers are: 007 is none
        rows = np.flatnonzero(spelt.to_numpy(zero_copy_only=False))
        numbers = self._texts.take(pyarrow.array(rows)).cast("int64").to_numpy(zero_copy_only=False)
        order = np.argsort(numbers)
        self._numbers, self._rows = numbers[order], rows[order]

    def __len__(self) -> int:
        return len(self._texts)

    def rows_of(self, column: Any) -> NDArray[np.int32]:
        """Returns the row of each id of a column of pyarrow, -1 where there is none."""
        import pyarrow.compute
        import pyarrow.types

        kinds = pyarrow.types
        if kinds.is_integer(column.type) and not kinds.is_uint64(column.type) and not column.null_count:
            return self._of_numbers(column.to_numpy(zero_copy_only=False))
        if kinds.is_dictionary(column.type):
            places = np.append(self.rows_of(column.dictionary), np.int32(-1))
            codes = column.indices.cast("int64").fill_null(len(places) - 1)
            return np.asarray(places[codes.to_numpy(zero_copy_only=False)])
        if not kinds.is_string(column.type):
            column = column.cast(pyarrow.string())
        found = pyarrow.compute.index_in(column, value_set=self._texts, skip_nulls=True).fill_null(-1)
        return np.asarray(found.to_numpy(zero_copy_only=False), np.int32)

    def _of_numbers(self, ids: NDArray[Any]) -> NDArray[np.int32]:
        if not len(self._numbers):
            return np.full(len(ids), -1, np.int32)
        place = np.minimum(np.searchsorted(self._numbers, ids), len(self._numbers) - 1)
        return np.where(self._numbers[place] == ids, self._rows[place], -1).astype(np.int32)


def as_rows(batch: EventBatch, users: IdRows, arms: IdRows) -> RowBatch:
    """Returns a batch in rows and numbers, or raises and names the file and the first row that is wrong."""
    rows, columns, rewards = users.rows_of(batch.users), arms.rows_of(batch.arms), batch.rewards
    odd = np.flatnonzero((rows < 0) | (columns < 0) | ~(np.abs(rewards) <= LARGEST_REWARD))
    if odd.size:
        raise _wrong(batch, int(odd[0]), rows, columns)
    return rows, columns, rewards


def _wrong(batch: EventBatch, row: int, users: NDArray[np.int32], arms: NDArray[np.int32]) -> InputError:
    place = f"{batch.part.path.name}, {batch.part.unit} {batch.numbers[row]}"
    if users[row] < 0:
        rule = "users of events are in the graph"
        remedy = "Correct the id, or add the user: an edge in the table of edges, or a row in a table given as --users"
        return UnknownUserError(f"{place}, column 'user': it is {batch.users[row].as_py()!r}", rule, remedy)
    if arms[row] < 0:
        rule, remedy = "arms of events are in the table of arms", "Correct the id, or add the arm there"
        return UnknownArmError(f"{place}, column 'arm': it is {batch.arms[row].as_py()!r}", rule, remedy)
    value = float(batch.rewards[row])
    return RewardError(f"{place}, column 'reward': it is {value!r}", REWARD_RULE, "Correct or drop that row")


def _paths(events: str) -> list[Path]:
    path = Path(events)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = sorted(each for each in path.iterdir() if each.suffix in ENDINGS and each.is_file())
        what = f"the folder {events!r} has no file {' or '.join(f'*{ending}' for ending in ENDINGS)}"
    else:
        found = sorted(each for each in map(Path, glob(events, recursive=True)) if each.is_file())
        what = f"the pattern {events!r} matches no file" if has_magic(events) else f"there is no file {events!r}"
    if not found:
        raise InputError(what, FILES_RULE, "Check the path, from the folder you are in")
    return found


def _looked_at(path: Path) -> EventPart:
    if not is_parquet(path):
        table, _ = read_cells(path, RewardError)
        _check_names(path, list(table.names or ()))
        with path.open("rb") as file:
            lines = sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))
        return EventPart(path=path, n_rows=lines, unit="line", kinds=("texts", "texts", "texts"), first=2)
    with open_parquet(path, RewardError) as file:
        schema = file.schema_arrow
        _check_names(path, schema.names)
        kinds = tuple(_kind(path, name, schema.field(name).type) for name in NEEDED)
        return EventPart(path=path, n_rows=file.metadata.num_rows, unit="row", kinds=kinds)


def _check_names(path: Path, names: list[str]) -> None:
    contexts = [name for name in names if name.startswith("context.")]
    if contexts:
        problem, rule = f"{path.name} has contexts: {listed(contexts)}", "this command learns rewards without contexts"
        raise RewardError(problem, rule, "Use Bandit.fit in Python, which learns them, or drop these columns")
    for name in NEEDED:
        if names.count(name) != 1:
            problem = f"{path.name} has no column {name!r} among {listed(names)}"
            problem = problem if name not in names else f"{path.name} has two columns {name!r}"
            raise RewardError(problem, COLUMNS_RULE, f"Name one column {name!r}")


def _kind(path: Path, name: str, kind: Any) -> str:
    """Returns what a column holds, in words, or raises if it cannot be a column of that name."""
    import pyarrow.types as types

    inner = kind.value_type if types.is_dictionary(kind) else kind
    texts = types.is_string(inner) or types.is_large_string(inner)
    numbers = types.is_floating(inner) or types.is_integer(inner) or types.is_decimal(inner) or types.is_boolean(inner)
    if name == "reward" and numbers:
        return "numbers"
    if name != "reward" and (texts or types.is_integer(inner)):
        return "texts" if texts else "whole numbers"
    rule = "rewards are numbers" if name == "reward" else "ids are texts or whole numbers"
    raise RewardError(f"{path.name}, column {name!r}: its type is {kind}", rule, "Write that column as such")


def _split(part: EventPart, most_rows: int) -> Iterator[EventPart]:
    if part.unit == "line" or part.groups is not None or part.n_rows <= most_rows:
        yield part
        return
    with open_parquet(part.path, RewardError) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    starts = [0]
    for group in range(1, len(sizes)):
        if sum(sizes[starts[-1] : group + 1]) > most_rows:
            starts.append(group)
    for start, end in pairwise([*starts, len(sizes)]):
        groups, first = tuple(range(start, end)), 1 + sum(sizes[:start])
        yield replace(part, n_rows=sum(sizes[start:end]), first=first, groups=groups)


def _of_parquet(part: EventPart, rows: int) -> Iterator[EventBatch]:
    first = part.first
    with open_parquet(part.path, RewardError) as file:
        groups = None if part.groups is None else list(part.groups)
        for batch in file.iter_batches(rows, row_groups=groups, columns=list(NEEDED)):
            numbers = np.arange(first, first + len(batch))
            users, arms, rewards = (batch.column(name) for name in NEEDED)
            yield EventBatch(part, numbers, users, arms, _numbers(rewards))
            first += len(batch)


def _numbers(column: Any) -> NDArray[np.float64]:
    """Returns a column of rewards; NaN where there is none."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pyarrow.types.is_boolean(column.type):
        column = column.cast(pyarrow.int8())
    return np.asarray(column.cast(pyarrow.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False))


def _of_csv(part: EventPart, rows: int) -> Iterator[EventBatch]:
    for batch in read_cells(part.path, RewardError, rows)[1]:
        users, arms = (_as_column(batch.columns[name]) for name in ("user", "arm"))
        yield EventBatch(part, batch.numbers, users, arms, batch.columns["reward"].numbers())


def _as_column(cells: Texts) -> Any:
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(cells.codes), pyarrow.array(cells.texts, pyarrow.string()))
