"""The columns of contexts in a table of events: their kinds, stated or seen in the first cell, and their values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import LARGEST_FEATURE
from coterie.errors import listed
from coterie.kernels.schema import CATEGORY, FLAG, KINDS, NUMBER
from coterie.logs.contexts import ContextColumn, Contexts
from coterie.logs.plain.cells import Cells
from coterie.logs.plain.folder import CONTEXT, Faults, Rows, open_table
from coterie.logs.tables import as_number

FLAGS = {"true": 1, "1": 1, "false": 0, "0": 0}
RULE = f"this column has numbers, finite and at most {LARGEST_FEATURE:g} in size"
STATE_IT = "state its kind in a table contexts"


@dataclass(slots=True)
class ContextCells:
    """What was read of a name so far.

    Attributes:
        kind: "number", "flag" or "category"; None while no cell was filled and none was stated.
        default: What an empty cell stands for, as the column holds it; None where every cell must be filled.
        parts: The values, in pieces.
        index: The categories that came, by their text.
    """

    kind: str | None = None
    default: float | None = None
    parts: list[NDArray[Any]] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)

    def read(self, rows: Rows, column: str) -> None:
        """Reads a batch, and marks the rows that are no good."""
        cells, empty = rows.batch.columns[column], rows.batch.columns[column].empty()
        if self.default is None:
            rule = f"every {rows.table.unit} has one, unless a table contexts states a default"
            rows.mark(empty, column, lambda _: "it is empty", rule, "Fill it in, or state a default")
        if self.kind is None:
            self.kind = _kind_of(cells)
        if self.kind is None:
            return
        values, odd, rule = self._values(cells, self.kind)
        stated = "" if self.kind == CATEGORY else f", or {STATE_IT}"
        rows.mark(odd & ~empty, column, rows.text(column), rule, f"Correct it{stated}")
        self.parts.append(np.where(empty, 0 if self.default is None else self.default, values))

    def _values(self, cells: Cells, kind: str) -> tuple[NDArray[Any], NDArray[np.bool_], str]:
        """Returns the values of cells, which of them are none of this kind, and the rule."""
        if kind == NUMBER:
            numbers = cells.numbers()
            return numbers, ~(np.abs(numbers) <= LARGEST_FEATURE), RULE
        if kind == FLAG:
            flags = cells.places({text: FLAGS[text.lower()] for text in cells.distinct() if text.lower() in FLAGS})
            return flags, flags < 0, "this column has true and false"
        for text in cells.distinct():
            self.index.setdefault(text, len(self.index))
        return cells.places(self.index), np.zeros(len(cells), dtype=bool), "this column has texts"

    def state(self, rows: Rows, row: int) -> None:
        """Takes kind and default that a row of the table contexts states."""
        said = {name: cells.text(row) for name, cells in rows.batch.columns.items()}
        mask = np.arange(len(rows.batch.numbers)) == row
        if said.get("kind") in KINDS:
            self.kind = said["kind"]
        elif said.get("kind"):
            rows.mark(mask, "kind", rows.text("kind"), f"a kind is {listed(KINDS)}", "Use one of these")
        if said.get("default"):
            cells = rows.batch.columns["default"]
            self.kind = self.kind or _kind_of_text(said["default"])
            values, odd, rule = self._values(cells, self.kind)
            rows.mark(mask & odd, "default", rows.text("default"), rule, "Correct it, or correct the kind")
            self.default = float(values[row])

    def column(self) -> ContextColumn:
        """Returns the column whole."""
        values = np.concatenate(self.parts)
        if self.kind == CATEGORY:
            return ContextColumn(CATEGORY, values.astype(np.int32), tuple(self.index))
        return ContextColumn(self.kind or NUMBER, values.astype(bool if self.kind == FLAG else np.float64))


def _kind_of(cells: Cells) -> str | None:
    """Returns the kind of a column, as its file or its first filled cell has it; None if there is no such cell."""
    filled = np.flatnonzero(~cells.empty())
    if cells.kind is not None or not filled.size:
        return cells.kind
    return _kind_of_text(cells.text(int(filled[0])))


def _kind_of_text(text: str) -> str:
    """Returns the kind of a cell of CSV.

    Examples:
        >>> _kind_of_text("21"), _kind_of_text("True"), _kind_of_text("phone")
        ('number', 'flag', 'category')
    """
    if as_number(text) is not None:
        return NUMBER
    return FLAG if text.lower() in ("true", "false") else CATEGORY


@dataclass(slots=True)
class ContextColumns:
    """The contexts of events, batch by batch.

    Attributes:
        cells: What was read of each name.
        stated: The names of which a table contexts has said something.
    """

    cells: dict[str, ContextCells]
    stated: set[str] = field(default_factory=set)

    @classmethod
    def opened(cls, folder: Path, names: list[str], faults: Faults) -> "ContextColumns":
        """Returns those of a table of events with these columns, of which a table contexts may state the kinds."""
        out = cls({name.removeprefix(CONTEXT): ContextCells() for name in names if name.startswith(CONTEXT)})
        stated = open_table(folder, "contexts", faults)
        for rows in stated[1] if stated is not None else ():
            out._state(rows)
        return out

    def _state(self, rows: Rows) -> None:
        rows.missing("name")
        names = rows.batch.columns["name"]
        known: Mapping[str, int] = {name: place for place, name in enumerate(self.cells)}
        rule = f"names are those of columns {CONTEXT}NAME of events"
        rows.mark(names.places(known) < 0, "name", rows.text("name"), rule, "Add such a column, or drop that row")
        for row in range(len(names)):
            name = names.text(row)
            rule = "a name has one row, and this one was there before"
            again = np.arange(len(names)) == row
            rows.mark(again & (name in self.stated), "name", rows.text("name"), rule, "Drop one of them")
            if name in self.cells:
                self.cells[name].state(rows, row)
            self.stated.add(name)

    def read(self, rows: Rows) -> None:
        """Reads a batch, and marks the rows that are no good."""
        for name, cells in self.cells.items():
            cells.read(rows, f"{CONTEXT}{name}")

    def whole(self) -> Contexts | None:
        """Returns all of them; None if there are no such columns, or nothing was read but mistakes."""
        if not self.cells or not all(cells.parts for cells in self.cells.values()):
            return None
        return Contexts({name: cells.column() for name, cells in self.cells.items()})
