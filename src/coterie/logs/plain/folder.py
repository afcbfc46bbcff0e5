"""The files of a log in a folder, the columns that each may have, and mistakes in their rows."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coterie.errors import (
    ArmError,
    ContextError,
    GraphError,
    InputError,
    RewardError,
    UnknownUserError,
    listed,
    or_similar,
)
from coterie.graphs.build import edge_pair
from coterie.logs.plain.cells import ROWS, Batch, Lists, read_batches
from coterie.logs.tables import Table

ENDINGS = (".csv", ".parquet")
CONTEXT = "context."  # what the columns of a context begin with
RULE = "a log is a folder with edges, arms and events, each a .csv or a .parquet file"


@dataclass(frozen=True, slots=True)
class Form:
    """The columns that a table must have and may have; the others of `arms` are features.

    Attributes:
        needed: Those it must have.
        optional: Those it may have.
        error: What a mistake in it is.
        required: Whether there must be such a table.
        prefix: What further columns begin with that it may have; empty where it may have none.
    """

    needed: tuple[str, ...]
    optional: tuple[str, ...]
    error: type[InputError]
    required: bool = True
    prefix: str = ""

    def may_have(self, column: str) -> bool:
        """Returns whether such a table may have this column."""
        more = bool(self.prefix) and column.startswith(self.prefix) and column != self.prefix
        return more or column in self.needed + self.optional


FORMS = {
    "users": Form(("user",), (), UnknownUserError, required=False),
    "edges": Form(("user", "other"), ("weight",), GraphError),
    "arms": Form(("arm",), (), ArmError),
    "contexts": Form(("name",), ("kind", "default"), ContextError, required=False),
    "events": Form(
        ("user", "arm", "reward"),
        ("candidates", "propensity", "time", "slate", "place"),
        RewardError,
        prefix=CONTEXT,
    ),
    "had": Form(("user", "arm"), (), RewardError, required=False),
}


def open_table(folder: Path, name: str, faults: "Faults") -> tuple[Table, Iterator["Rows"]] | None:
    """Returns a table whose columns are as they must be, and its rows in batches; none if there need be no such table.

    Mistakes that were marked in a batch are reported before the next one is read.
    """
    path = find_table(folder, name)
    return None if path is None else open_file(path, name, faults)


def open_file(path: Path, name: str, faults: "Faults") -> tuple[Table, Iterator["Rows"]]:
    """Returns what `open_table` does, of a file that is a table of this name."""
    if not path.is_file():
        rule = "a table is a file of CSV or Parquet"
        raise FORMS[name].error(f"there is no file {str(path)!r}", rule, "Check the path, from the folder you are in")
    table, batches = read_batches(path, FORMS[name].error, faults.batch_rows)
    names = list(table.names or ())
    form = _form(name, names)
    for column in form.needed:
        if column not in names:
            problem = f"{path.name} has no column {column!r}" + (
                f" among {listed(names)}" if names else ": it is empty"
            )
            rule = f"its first line names the columns, {_columns(form)}" if table.unit == "line" else _columns(form)
            raise form.error(problem, rule, f"Name the column {column!r}")
    _check_names(table, name, form)
    return table, _reported(table, batches, faults)


def find_table(folder: Path, name: str) -> Path | None:
    """Returns the file of a table, or none if there need be none; raises if there is no such folder, or two files."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}", RULE, "Check the path, from the folder you are in")
    files = [folder / f"{name}{ending}" for ending in ENDINGS]
    held = [file for file in files if file.is_file()]
    if len(held) > 1:
        raise InputError(f"there are {held[0].name} and {held[1].name}", "a table is one file", "Keep one of the two")
    if not held and FORMS[name].required:
        what = f"there is neither {files[0].name} nor {files[1].name} in {str(folder)!r}"
        raise InputError(what, RULE, f"Add a table with the columns {', '.join(FORMS[name].needed)}")
    return held[0] if held else None


def _reported(table: Table, batches: Iterator[Batch], faults: "Faults") -> Iterator["Rows"]:
    for batch in batches:
        for column, cells in batch.columns.items():
            if isinstance(cells, Lists) and column != "candidates":
                problem = f"{table.path.name}, column {column!r}: it holds lists"
                raise table.error(problem, "only candidates are lists", "Write one value a row")
        rows = Rows(table, batch, faults.limit)
        yield rows
        for row in sorted(rows.marked):
            faults.add(rows.marked[row])


def _form(name: str, names: list[str]) -> Form:
    """Returns the columns of a table; the users of an edge go by any of the usual names."""
    pair = edge_pair(names) if name == "edges" else None
    return replace(FORMS[name], needed=pair) if pair else FORMS[name]


def _check_names(table: Table, name: str, form: Form) -> None:
    names = list(table.names or ())
    for place, column in enumerate(names):
        if not column or column in names[:place]:
            problem = f"{table.path.name}, column {place + 1}: the name is {column!r}"
            raise form.error(problem, "every column has a name of its own", "Name it, or drop the column")
        if name != "arms" and not form.may_have(column):
            problem, rule = f"{table.path.name} has a column {column!r}", f"the columns are {_columns(form)}"
            raise form.error(problem, rule, or_similar(column, form.needed + form.optional, "Drop it, or rename it"))


def _columns(form: Form) -> str:
    more = [f"{form.prefix}NAME (optional)"] if form.prefix else []
    return ", ".join([*form.needed, *(f"{name} (optional)" for name in form.optional), *more])


class EnoughError(Exception):
    """As many mistakes as were asked for have been found."""


@dataclass(slots=True)
class Faults:
    """The mistakes found so far, at most `limit` of them, in tables of which so many rows are read at once."""

    limit: int
    batch_rows: int = ROWS
    found: list[InputError] = field(default_factory=list)

    def add(self, error: InputError) -> None:
        """Adds a mistake; raises if these are enough."""
        self.found.append(error)
        if len(self.found) >= self.limit:
            raise EnoughError


def by_kind(mistakes: Iterable[InputError]) -> list[list[InputError]]:
    """Returns mistakes in groups that break the same rule in the same file, in the order of their first ones.

    Examples:
        >>> rule = "a reward is a number", "Mend it"
        >>> wrong = [InputError(f"events.csv, line {line}: it is 'x'", *rule) for line in (2, 5)]
        >>> [len(group) for group in by_kind(wrong)]
        [2]
    """
    kinds: dict[tuple[str, str], list[InputError]] = {}
    for mistake in mistakes:
        kinds.setdefault((mistake.problem.partition(",")[0], mistake.rule), []).append(mistake)
    return list(kinds.values())


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a batch under inspection; of a row with several mistakes the first that was marked counts."""

    table: Table
    batch: Batch
    most: int
    marked: dict[int, InputError] = field(default_factory=dict)

    def mark(self, mask: NDArray[np.bool_], column: str, problem: Callable[[int], str], rule: str, remedy: str) -> None:
        """Marks the rows of a mask, as many as are reported; `problem` is called with a row's place in the batch."""
        names = list(self.table.names or ())
        for row in np.flatnonzero(mask)[: self.most].tolist():
            number = int(self.batch.numbers[row])
            error = self.table.wrong(number, problem(row), rule, remedy, column=names.index(column))
            self.marked.setdefault(row, error)

    def missing(self, *columns: str) -> None:
        """Marks the rows where one of these columns says nothing."""
        for column in columns:
            empty = self.batch.columns[column].empty()
            self.mark(empty, column, lambda _: "it is empty", f"every {self.table.unit} has one", "Fill it in")

    def text(self, column: str) -> Callable[[int], str]:
        """Returns the problem of a row: what it has in a column."""
        return lambda row: f"it is {self.batch.columns[column].text(row)!r}"
