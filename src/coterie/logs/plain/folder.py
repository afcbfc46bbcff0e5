"""The files of a log in a folder, and the columns that each may have."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from coterie.errors import ArmError, GraphError, InputError, RewardError, UnknownUserError, listed, or_similar
from coterie.graphs.build import edge_pair
from coterie.logs.plain.cells import Batch, Lists, read_batches
from coterie.logs.tables import Table

ENDINGS = (".csv", ".parquet")
RULE = "a log is a folder with edges, arms and events, each a .csv or a .parquet file"


@dataclass(frozen=True, slots=True)
class Form:
    """The columns that a table must have and may have; the others of `arms` are features.

    Attributes:
        needed: Those it must have.
        optional: Those it may have.
        error: What a mistake in it is.
        required: Whether there must be such a table.
    """

    needed: tuple[str, ...]
    optional: tuple[str, ...]
    error: type[InputError]
    required: bool = True


FORMS = {
    "users": Form(("user",), (), UnknownUserError, required=False),
    "edges": Form(("user", "other"), ("weight",), GraphError),
    "arms": Form(("arm",), (), ArmError),
    "events": Form(("user", "arm", "reward"), ("candidates", "propensity", "time"), RewardError),
    "had": Form(("user", "arm"), (), RewardError, required=False),
}


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


def open_table(path: Path, name: str) -> tuple[Table, Iterator[Batch]]:
    """Returns a table whose columns are as they must be, and its rows in batches."""
    table, batches = read_batches(path, FORMS[name].error)
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
    return table, (_flat(table, batch) for batch in batches)


def _flat(table: Table, batch: Batch) -> Batch:
    """Returns a batch of which no column but the candidates holds lists."""
    for column, cells in batch.columns.items():
        if isinstance(cells, Lists) and column != "candidates":
            problem = f"{table.path.name}, column {column!r}: it holds lists"
            raise table.error(problem, "only candidates are lists", "Write one value a row")
    return batch


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
        if name != "arms" and column not in form.needed + form.optional:
            problem, rule = f"{table.path.name} has a column {column!r}", f"the columns are {_columns(form)}"
            raise form.error(problem, rule, or_similar(column, form.needed + form.optional, "Drop it, or rename it"))


def _columns(form: Form) -> str:
    return ", ".join([*form.needed, *(f"{name} (optional)" for name in form.optional)])
