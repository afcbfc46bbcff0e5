"""What was different about each moment of a log, in columns: the contexts of its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Index
from coterie.errors import ContextError
from coterie.kernels.schema import CATEGORY, FLAG, ContextSchema


@dataclass(frozen=True, slots=True, eq=False)
class ContextColumn:
    """What a name was in each event.

    Attributes:
        kind: "number", "flag" or "category".
        values: Numbers, true and false, or codes of categories.
        categories: The texts that codes stand for; none where the kind is another.

    Examples:
        >>> column = ContextColumn.of("category", ["phone", "desktop", "phone"])
        >>> column.values.tolist(), column[1], column.take(np.array([2, 1])).plain()
        ([0, 1, 0], 'desktop', ['phone', 'desktop'])
    """

    kind: str
    values: NDArray[Any]
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, kind: str, values: Sequence[Any]) -> "ContextColumn":
        """Returns the column of plain values."""
        if kind != CATEGORY:
            return cls(kind, np.array(values, dtype=bool if kind == FLAG else np.float64))
        index: dict[str, int] = {}
        codes = np.fromiter((index.setdefault(value, len(index)) for value in values), np.int32, len(values))
        return cls(kind, codes, tuple(index))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Any:
        value = self.values[row].item()
        return self.categories[value] if self.kind == CATEGORY else value

    def take(self, rows: Index) -> "ContextColumn":
        """Returns these rows, in this order."""
        return ContextColumn(self.kind, self.values[rows], self.categories)

    def plain(self) -> list[Any]:
        """Returns the values as a list of numbers, of true and false, or of texts."""
        values: list[Any] = self.values.tolist()
        return [self.categories[code] for code in values] if self.kind == CATEGORY else values


@dataclass(frozen=True, slots=True, eq=False)
class Contexts:
    """A context for each event, all of the same names.

    Attributes:
        columns: What each name was, event by event.
        is_named: Whether a context is a mapping; otherwise it is a row of numbers.

    Examples:
        >>> contexts = Contexts.of([{"hour": 9, "device": "phone"}, {"hour": 21, "device": "phone"}])
        >>> len(contexts), contexts[1], contexts.schema
        (2, {'hour': 21.0, 'device': 'phone'}, {'hour': 'number', 'device': 'category'})
    """

    columns: Mapping[str, ContextColumn]
    is_named: bool = True

    @classmethod
    def of(cls, contexts: Sequence[Any], schema: Any = None) -> "Contexts":
        """Returns these contexts, each a mapping from names to values or a row of numbers.

        Args:
            contexts: At least one.
            schema: What they hold, with defaults for what is missing perhaps; by default what the first one holds.

        Raises:
            ContextError: If one is not as the schema says; it names its row.
        """
        if not len(contexts):
            raise ContextError("there are no contexts", "there is one for each decision", "Leave them out")
        stated = ContextSchema.learned(contexts[0]) if schema is None else ContextSchema.of(schema)
        if not stated.fields:
            raise ContextError("row 0: the context is empty", "a context has at least one name", "Leave contexts out")
        filled = [_filled(stated, row, each) for row, each in enumerate(contexts)]
        columns = zip(*(each.values() if stated.is_named else each for each in filled), strict=True)
        made = {
            field.name: ContextColumn.of(field.kind, each) for field, each in zip(stated.fields, columns, strict=True)
        }
        return cls(made, is_named=stated.is_named)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, row: int) -> Any:
        values = {name: column[row] for name, column in self.columns.items()}
        return values if self.is_named else tuple(values.values())

    @property
    def schema(self) -> Any:
        """What the contexts hold, as `context_schema` takes it."""
        if not self.is_named:
            return len(self.columns)
        return {name: column.kind for name, column in self.columns.items()}

    def take(self, rows: Index) -> "Contexts":
        """Returns these rows, in this order."""
        return Contexts({name: column.take(rows) for name, column in self.columns.items()}, self.is_named)

    def codes(self) -> Index:
        """Returns a number for each event, the same where contexts are the same.

        Examples:
            >>> Contexts.of([{"hour": 9}, {"hour": 21}, {"hour": 9}]).codes()
            array([0, 1, 0])
        """
        rows = np.column_stack([column.values.astype(np.float64) for column in self.columns.values()])
        return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1].ravel(), dtype=np.intp)


def _filled(schema: ContextSchema, row: int, context: Any) -> Any:
    try:
        return schema.filled(context)
    except ContextError as error:
        raise ContextError(f"row {row}: {error.problem}", error.rule, "Mend or drop that row") from None
