"""Tables as people have them, CSV or Parquet, as texts that know where they stand."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TextIO

from coterie.errors import InputError
from coterie.errors.extras import require_extra

PARQUET = b"PAR1"
DELIMITERS = ",;\t"
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # row numbers that pandas adds to Parquet; nobody's feature
WHOLE = 2**53  # up to here a float holds every whole number


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The cells of a file, as texts.

    Attributes:
        path: Which file.
        unit: What a row's number counts: "line" in CSV, "row" in Parquet.
        names: The names of the columns, if they are known.
        rows: Each row's number, from 1, and its cells.
        error: The error that a mistake in the table is.
    """

    path: Path
    unit: str
    names: Sequence[str] | None
    rows: list[tuple[int, list[str]]]
    error: type[InputError]

    def wrong(self, number: int, problem: str, rule: str, remedy: str, *, column: int | None = None) -> InputError:
        """Returns the error that names file, line, column and what is wrong there."""
        place = f"{self.path.name}, {self.unit} {number}"
        if column is not None:
            place += f", column {column + 1 if self.names is None else repr(self.names[column])}"
        return self.error(f"{place}: {problem}", rule, remedy)

    def check_widths(self, rows: list[tuple[int, list[str]]], width: int) -> None:
        """Raises if one of these rows has another number of cells."""
        for number, cells in rows:
            if len(cells) != width:
                rule = f"every {self.unit} has as many as the first, {width}"
                remedy = "Fill in what is missing, or quote the commas"
                raise self.wrong(number, f"it has {len(cells)} cells", rule, remedy)


def read_table(path: Path, error: type[InputError]) -> Table:
    """Returns the table of a file; that of CSV has its first line among the rows, be it a header or not."""
    if not path.is_file():
        rule = "a table is a file of CSV or Parquet"
        raise error(f"there is no file {str(path)!r}", rule, "Check the path, from the folder you are in")
    table = _read_parquet(path, error) if is_parquet(path) else _read_csv(path, error)
    if not table.rows:
        raise error(f"{path.name} has no rows", "a table has at least one", "Check that this is the right file")
    return table


def as_number(text: str) -> float | None:
    """Returns the finite number that a cell holds, if it holds one.

    Examples:
        >>> as_number("0.5"), as_number("1_0"), as_number("nan"), as_number("0,5")
        (0.5, None, None, None)
    """
    try:
        value = float("nan") if "_" in text else float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def as_whole(text: str) -> int | None:
    """Returns the whole number that an id spells, if it does.

    Examples:
        >>> as_whole("007"), as_whole("7.0"), as_whole("song-7")
        (7, None, None)
    """
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def _read_csv(path: Path, error: type[InputError]) -> Table:
    rows = [(number, cells) for number, cells in csv_rows(path, error) if any(cells)]
    table = Table(path=path, unit="line", names=None, rows=rows, error=error)
    table.check_widths(rows, len(rows[0][1]) if rows else 0)
    return table


def csv_rows(path: Path, error: type[InputError]) -> Iterator[tuple[int, list[str]]]:
    """Returns the rows of a CSV file one after the other, each with its line; a line without any cell is no row."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=_delimiter(file), strict=True, skipinitialspace=True)
            for cells in _parsed(reader, Table(path=path, unit="line", names=None, rows=[], error=error)):
                yield reader.line_num, [cell.strip() for cell in cells]
    except UnicodeDecodeError:
        rule = "a table is CSV in UTF-8, or Parquet"
        problem = f"{path.name} is not text in UTF-8 (byte {_odd_byte(path)})"
        raise error(problem, rule, "Save it as one of these") from None


def _parsed(reader: Iterable[list[str]], table: Table) -> Iterator[list[str]]:
    try:
        yield from (cells for cells in reader if cells)
    except csv.Error as odd:
        number = reader.line_num  # type: ignore[attr-defined] # csv's readers have it, their type does not say so
        raise table.wrong(number, str(odd), "a cell in quotes ends with a quote", "Mend that line") from None


def _delimiter(file: TextIO) -> str:
    """Returns what stands between the cells of the first line that is not blank, and goes back to the start."""
    first = next((line for line in file if line.strip()), "")
    file.seek(0)
    return max(DELIMITERS, key=first.count)


def _odd_byte(path: Path) -> int:
    """Returns where a file stops being UTF-8: a stream only knows its place in the piece it read last."""
    try:
        path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as odd:
        return odd.start
    return 0


def _read_parquet(path: Path, error: type[InputError]) -> Table:
    with open_parquet(path, error) as file:
        names = parquet_names(file)
        content = file.read(columns=names)
    columns = [[as_text(value) for value in content.column(name).to_pylist()] for name in names]
    rows = [(number, list(cells)) for number, cells in enumerate(zip(*columns, strict=True), start=1)]
    return Table(path=path, unit="row", names=names, rows=rows, error=error)


@contextmanager
def open_parquet(path: Path, error: type[InputError]) -> Iterator[Any]:
    """Returns the open file of pyarrow, whose failures are errors in our words."""
    with require_extra("data", f"the Parquet file {path.name}", otherwise="or save the table as CSV"):
        import pyarrow
        import pyarrow.parquet
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except pyarrow.ArrowException as odd:
        what = str(odd).partition("\n")[0].rstrip(".")
        raise error(f"{path.name} cannot be read: {what}", "a table is CSV or Parquet", "Write it again") from None


def parquet_names(file: Any) -> list[str]:
    """Returns the names of a file's columns, but for the row numbers that pandas adds."""
    return [name for name in file.schema_arrow.names if not PANDAS_INDEX.fullmatch(name)]


def is_parquet(path: Path) -> bool:
    """Returns whether a file begins as Parquet does, whatever its name."""
    with path.open("rb") as file:
        return file.read(len(PARQUET)) == PARQUET


def as_text(value: Any) -> str:
    """Returns a value as CSV would have it: nothing for none, and whole numbers without a point."""
    if value is None:
        return ""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer() and abs(value) <= WHOLE):
        return str(int(value))
    return str(value).strip()
