"""Edges and arms from tables, checked row by row."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coterie.contracts import FEATURE_RULE, LARGEST_FEATURE, WEIGHT_RULE, is_weight
from coterie.errors import ArmError, GraphError
from coterie.graphs.build import edge_columns
from coterie.kernels.pool import RESCALE
from coterie.logs.tables import Table, as_number, as_whole, read_table

Id = str | int

HEADERS = {"user", "friend", "other", "from", "to", "source", "target", "src", "dst", "node", "name", "id"}
NO_WEIGHT = {"na", "nan", "inf", "infinity", "null", "none"}


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges of a file, and the header it has, if any."""

    rows: list[tuple[Id, Id, float]]
    header: list[str] | None
    numbered: bool


@dataclass(frozen=True, slots=True)
class Arms:
    """The arms of a file with their features, and the names of its columns."""

    rows: dict[Id, list[float]]
    names: list[str]
    numbered: bool


def read_edges(path: Path, *, header: bool | None = None, int_ids: bool = False) -> Edges:
    """Returns the edges of a table: two users, and perhaps a weight.

    Args:
        path: CSV, or Parquet.
        header: Whether the first line of a CSV file names the columns; none to see for ourselves.
        int_ids: Whether ids are numbers, if all of them are whole numbers.
    """
    table = read_table(path, GraphError)
    first, cells = table.rows[0]
    if len(cells) not in (2, 3):
        what = f"it has {len(cells)} column{'s' if len(cells) != 1 else ''}"
        raise table.wrong(first, what, "an edge is user, user and perhaps weight", "Keep these columns only")
    table = table if table.names is not None else _with_header(table, header)
    if not table.rows:
        raise table.error(f"{path.name} has only a header", "a graph has at least one edge", "Add edges below it")
    places = _places(table)
    to_id, numbered = _reader([cells[place] for _, cells in table.rows for place in places[:2]], int_ids)
    return Edges(_edges(table, places, to_id), None if table.names is None else list(table.names), numbered)


def read_arms(path: Path, *, int_ids: bool = False) -> Arms:
    """Returns the arms of a table: the id, then numbers; the first line of CSV names the columns."""
    table = read_table(path, ArmError)
    if table.names is None:
        table = _headed(table)
    _check_names(table)
    if not table.rows:
        raise table.error(f"{path.name} has only a header", "there is at least one arm", "Add arms below it")
    to_id, numbered = _reader([cells[0] for _, cells in table.rows], int_ids)
    return Arms(_arms(table, to_id), list(table.names or ()), numbered)


def _headed(table: Table) -> Table:
    (_, names), *rows = table.rows
    return Table(path=table.path, unit=table.unit, names=names, rows=rows, error=table.error)


def _with_header(table: Table, header: bool | None) -> Table:
    """Returns the table of edges with its first line as the header, if it is one; raises where nobody can tell."""
    if header is None:
        header = _is_header(table)
    return _headed(table) if header else table


def _is_header(table: Table) -> bool:
    number, cells = table.rows[0]
    below = {cell for _, others in table.rows[1:] for cell in others[:2]}
    if below & set(cells[:2]) or "" in cells:
        return False
    named = all(set(cell.casefold().replace(" ", "_").split("_")) <= HEADERS for cell in cells[:2])
    if not below:
        return named
    if named or (len(cells) == 3 and cells[2].isidentifier() and cells[2].casefold() not in NO_WEIGHT):
        return True
    raise table.wrong(
        number,
        f"{', '.join(map(repr, cells))} may be a header or an edge",
        "neither user is named again below",
        "Say which: --header or --no-header",
    )


def _places(table: Table) -> list[int]:
    """Returns where the two users and perhaps the weight stand: by name, or in that order where no name is."""
    if table.names is None:
        return list(range(len(table.rows[0][1])))
    names = [name.casefold() for name in table.names]
    try:
        return [names.index(name) for name in edge_columns(names)]
    except GraphError as error:
        raise table.error(f"{table.path.name}: {error.problem}", error.rule, error.remedy) from None


def _reader(texts: list[str], int_ids: bool) -> tuple[Callable[[str], Id], bool]:
    """Returns what makes ids of texts, and whether they are numbers: only if that is wanted and all of them can be."""
    if not int_ids or any(as_whole(text) is None for text in texts):
        return str, False
    return int, True


def _edges(table: Table, places: list[int], to_id: Callable[[str], Id]) -> list[tuple[Id, Id, float]]:
    """Returns the edges, each pair once."""
    found: dict[frozenset[Id], tuple[int, tuple[Id, Id, float]]] = {}
    for number, cells in table.rows:
        edge = _edge(table, number, cells, places, to_id)
        before, same = found.setdefault(frozenset(edge[:2]), (number, edge))
        if same[2] != edge[2]:
            problem = f"{edge[0]!r} and {edge[1]!r} have weight {edge[2]:g}, and {same[2]:g} in {table.unit} {before}"
            raise table.wrong(number, problem, "a pair has one weight in both directions", "Keep one of the two")
    return [edge for _, edge in found.values()]


def _edge(
    table: Table, number: int, cells: list[str], places: list[int], to_id: Callable[[str], Id]
) -> tuple[Id, Id, float]:
    for column in places[:2]:
        if not cells[column]:
            raise table.wrong(number, "the user is missing", "an edge has two", "Fill it in", column=column)
    user, other = (to_id(cells[column]) for column in places[:2])
    if user == other:
        raise table.wrong(number, f"{user!r} is joined to themselves", "an edge has two users", "Drop that line")
    return user, other, _weight(table, number, cells, places[2]) if len(places) == 3 else 1.0


def _weight(table: Table, number: int, cells: list[str], column: int) -> float:
    weight = as_number(cells[column])
    if weight is None or not is_weight(weight):
        problem = f"the weight is {cells[column]!r}"
        raise table.wrong(number, problem, WEIGHT_RULE, "Correct or drop that line", column=column)
    return weight


def _check_names(table: Table) -> None:
    names = list(table.names or ())
    if len(names) < 2:
        rule = "arms have an id and at least one feature"
        raise table.error(f"{table.path.name} has {len(names)} column", rule, "Add a column of numbers")
    if all(as_number(name) is not None for name in names[1:]):
        rule = "the first line names the columns"
        raise table.error(
            f"{table.path.name} begins with {names!r}", rule, f"Add a line such as {_example(len(names))}"
        )
    for column, name in enumerate(names[1:], start=1):
        if not name or name in names[:column]:
            problem = f"{table.path.name}, column {column + 1}: the name is {name!r}"
            raise table.error(problem, "every feature has a name of its own", "Rename it")


def _example(width: int) -> str:
    shown = ["arm", *(f"feature_{number}" for number in range(1, min(width, 4)))]
    return ",".join(shown) + (",..." if width > len(shown) else "")


def _arms(table: Table, to_id: Callable[[str], Id]) -> dict[Id, list[float]]:
    found: dict[Id, list[float]] = {}
    lines: dict[Id, int] = {}
    for number, cells in table.rows:
        if not cells[0]:
            raise table.wrong(number, "the id is missing", "every arm has one", "Fill it in", column=0)
        arm = to_id(cells[0])
        if lines.setdefault(arm, number) != number:
            problem = f"{arm!r} is in {table.unit} {lines[arm]} already"
            raise table.wrong(number, problem, "an arm has one id and one row", "Drop one of the two", column=0)
        found[arm] = [_feature(table, number, column, cell) for column, cell in enumerate(cells[1:], start=1)]
    return found


def _feature(table: Table, number: int, column: int, cell: str) -> float:
    value = as_number(cell)
    if value is None:
        remedy = "Fill it in" if not cell else "Correct it; encode texts and categories as numbers"
        if cell.casefold() in ("true", "false", "yes", "no"):
            remedy = f"Write {'1' if cell.casefold() in ('true', 'yes') else '0'} for {cell}: 1 is true and 0 is false"
        raise table.wrong(number, f"the value is {cell!r}", FEATURE_RULE, remedy, column=column)
    if abs(value) > LARGEST_FEATURE:
        raise table.wrong(number, f"the value is {cell!r}", FEATURE_RULE, RESCALE, column=column)
    return value
