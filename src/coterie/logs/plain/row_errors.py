"""Mistakes in a table, gathered in the order of its rows until there are enough of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.logs.plain.cells import Batch
from coterie.logs.tables import Table


class EnoughError(Exception):
    """As many mistakes as were asked for have been found."""


@dataclass(slots=True)
class Faults:
    """The mistakes found so far, at most `limit` of them."""

    limit: int
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
        """Marks the rows of a mask, no more than anybody reads; the problem is told of a row's place in the batch."""
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
        """Returns what tells what a row has in a column."""
        return lambda row: f"it is {self.batch.columns[column].text(row)!r}"

    def report(self, faults: Faults) -> None:
        """Adds what was marked to the faults, in the order of the rows."""
        for row in sorted(self.marked):
            faults.add(self.marked[row])
        self.marked.clear()
