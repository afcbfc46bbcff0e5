"""Columns of a long table, a batch of rows at a time: texts with each repeat kept once, numbers, and lists."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.kernels.schema import CATEGORY, FLAG, NUMBER
from coterie.logs.log import Floats, Ints, Ragged
from coterie.logs.tables import Table, as_number, as_text, csv_rows, is_parquet, open_parquet, parquet_names

ROWS = 2**17
BETWEEN = "|"  # the ids of a list that stands in one cell


@dataclass(frozen=True, slots=True)
class Texts:
    """Cells of text.

    Attributes:
        texts: What the cells say, each once.
        codes: Which of these each cell says.
        kind: What the file says that they are, "number", "flag" or "category" for texts; None where it does not.

    Examples:
        >>> cells = Texts.of(["bo", "", "bo", "0.5"])
        >>> cells.places({"bo": 7}).tolist(), cells.numbers().tolist(), cells.empty().tolist()
        ([7, -1, 7, -1], [nan, nan, nan, 0.5], [False, True, False, False])
    """

    texts: list[str]
    codes: Ints
    kind: str | None = None

    @classmethod
    def of(cls, cells: list[str] | tuple[str, ...]) -> "Texts":
        """Returns these cells."""
        index: dict[str, int] = {}
        codes = np.fromiter((index.setdefault(cell, len(index)) for cell in cells), np.int64, len(cells))
        return cls(list(index), codes)

    def __len__(self) -> int:
        return len(self.codes)

    def text(self, row: int) -> str:
        """Returns what a cell says."""
        return self.texts[int(self.codes[row])]

    def empty(self) -> NDArray[np.bool_]:
        """Returns which cells say nothing."""
        return np.array([not text for text in self.texts], dtype=bool)[self.codes]

    def numbers(self) -> Floats:
        """Returns the finite numbers, NaN where there is none."""
        found = (as_number(text) for text in self.texts)
        return np.array([np.nan if each is None else each for each in found], dtype=float)[self.codes]

    def places(self, known: Mapping[str, int]) -> Ints:
        """Returns where each id is known to be, -1 where it is unknown."""
        return np.array([known.get(text, -1) for text in self.texts], dtype=np.int64)[self.codes]

    def distinct(self) -> list[str]:
        """Returns what the cells say, each once, in order of appearance."""
        codes, first = np.unique(self.codes, return_index=True)
        return [self.texts[code] for code in codes[np.argsort(first)].tolist() if self.texts[code]]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Cells of numbers, none of them empty.

    Examples:
        >>> cells = Numbers(np.array([7.0, 0.5, np.inf]))
        >>> cells.places({"7": 0}).tolist(), cells.numbers().tolist(), cells.text(0)
        ([0, -1, -1], [7.0, 0.5, nan], '7')
    """

    values: NDArray[Any]
    kind: ClassVar[str | None] = NUMBER

    def __len__(self) -> int:
        return len(self.values)

    def text(self, row: int) -> str:
        """Returns what a cell says."""
        return as_text(self.values[row].item())

    def empty(self) -> NDArray[np.bool_]:
        """Returns which cells say nothing: none."""
        return np.zeros(len(self.values), dtype=bool)

    def numbers(self) -> Floats:
        """Returns the finite numbers, NaN where there is none."""
        values = self.values.astype(float)
        return np.where(np.isfinite(values), values, np.nan)

    def places(self, known: Mapping[str, int]) -> Ints:
        """Returns where each id is known to be, -1 where it is unknown."""
        return self._texts().places(known)

    def distinct(self) -> list[str]:
        """Returns what the cells say, each once, in order of appearance."""
        return self._texts().distinct()

    def _texts(self) -> Texts:
        each, codes = np.unique(self.values, return_inverse=True)
        return Texts([as_text(value) for value in each.tolist()], codes)


Cells: TypeAlias = Texts | Numbers  # a column of a batch


@dataclass(frozen=True, slots=True)
class Lists:
    """Cells that are lists of ids.

    Attributes:
        items: The ids of all lists.
        starts: Where each list starts among these, and at last where the last one ends.
    """

    items: Cells
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    def text(self, row: int) -> str:
        """Returns the ids of a list, as they would stand in a cell."""
        return BETWEEN.join(map(self.items.text, range(self.starts[row], self.starts[row + 1])))

    def lists(self, known: Mapping[str, int]) -> Ragged:
        """Returns where each id of each list is known to be, -1 where it is unknown."""
        return Ragged(self.starts, self.items.places(known).astype(np.int32))


def as_lists(cells: Any) -> Lists:
    """Returns cells as lists: what they are already, or texts of ids with a bar between them.

    Examples:
        >>> as_lists(Texts.of(["tea|milk", "", "tea"])).lists({"tea": 0, "milk": 1})[0].tolist()
        [0, 1]
    """
    if isinstance(cells, Lists):
        return cells
    split = [_split(cells.text(row)) for row in range(len(cells))]
    starts = np.cumsum([0, *map(len, split)], dtype=np.int64)
    return Lists(Texts.of([item for items in split for item in items]), starts)


def _split(text: str) -> list[str]:
    return [item.strip() for item in text.split(BETWEEN)] if text else []


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a table: the number of each, as an editor shows it, and the columns by their names."""

    numbers: Ints
    columns: dict[str, Any]


def read_batches(path: Path, error: type[InputError], n_rows: int = ROWS) -> tuple[Table, Iterator[Batch]]:
    """Returns a table without its rows, and these in batches; a file is never held whole."""
    if is_parquet(path):
        with open_parquet(path, error) as file:
            names = parquet_names(file)
        table = Table(path=path, unit="row", names=names, rows=[], error=error)
        return table, _of_parquet(table, n_rows)
    rows = csv_rows(path, error)
    _, names = next(rows, (0, []))
    table = Table(path=path, unit="line", names=names, rows=[], error=error)
    return table, _of_csv(table, rows, n_rows)


def _of_csv(table: Table, rows: Iterator[tuple[int, list[str]]], n_rows: int) -> Iterator[Batch]:
    names = list(table.names or ())
    while some := list(islice(rows, n_rows)):
        table.check_widths(some, len(names))
        numbers = np.array([number for number, _ in some], dtype=np.int64)
        columns = zip(*(cells for _, cells in some), strict=True)
        yield Batch(numbers, {name: Texts.of(column) for name, column in zip(names, columns, strict=True)})


def _of_parquet(table: Table, n_rows: int) -> Iterator[Batch]:
    names, first = list(table.names or ()), 1
    with open_parquet(table.path, table.error) as file:
        for batch in file.iter_batches(n_rows, columns=names):
            numbers = np.arange(first, first + len(batch), dtype=np.int64)
            yield Batch(numbers, {name: _cells(batch.column(name)) for name in names})
            first += len(batch)


def _cells(column: Any) -> Cells | Lists:
    """Returns the cells of a column of pyarrow."""
    import pyarrow
    import pyarrow.types as kinds

    if kinds.is_fixed_size_list(column.type):
        return _cells(column.cast(pyarrow.list_(column.type.value_type)))
    if kinds.is_list(column.type) or kinds.is_large_list(column.type):
        lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return Lists(_cells(column.flatten()), starts)  # type: ignore[arg-type] # lists of lists are not checked here
    if column.null_count == 0 and (kinds.is_integer(column.type) or kinds.is_floating(column.type)):
        return Numbers(column.to_numpy(zero_copy_only=False))
    coded = column if kinds.is_dictionary(column.type) else column.dictionary_encode()
    texts = [*(as_text(value) for value in coded.dictionary.to_pylist()), ""]
    codes = coded.indices.cast("int64").fill_null(len(texts) - 1)  # those of an own dictionary may be too short for it
    return Texts(texts, codes.to_numpy(zero_copy_only=False), _kind(coded.type.value_type))


def _kind(of: Any) -> str | None:
    """Returns what the cells of a type of pyarrow are; None where nothing but their texts is known."""
    import pyarrow.types as kinds

    if kinds.is_boolean(of):
        return FLAG
    if kinds.is_integer(of) or kinds.is_floating(of) or kinds.is_decimal(of):
        return NUMBER
    return CATEGORY if kinds.is_string(of) or kinds.is_large_string(of) else None
