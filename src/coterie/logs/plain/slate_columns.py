"""The columns of slates in a table of events: which slate, which place; and that the rows of a slate agree."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.logs.log import Events, Ints
from coterie.logs.plain.folder import Faults, Rows
from coterie.logs.slates import in_slates, shown_before, slate_order
from coterie.logs.tables import WHOLE, Table

LEAST = {"slate": 0, "place": 1}
NONE = -1


def read_slates(rows: Rows) -> dict[str, NDArray[Any]]:
    """Returns the columns `slate` and `place` of a batch that it has, and the numbers of its rows; marks mistakes."""
    columns = rows.batch.columns
    found: dict[str, NDArray[Any]] = {name: _whole(rows, name) for name in LEAST if name in columns}
    if "slate" in found:
        empty = found.get("place", np.full(len(found["slate"]), NONE)) == NONE
        column = "place" if "place" in found else "slate"
        odd = (found["slate"] != NONE) & empty
        rule = "a row of a slate has a place"
        rows.mark(odd, column, lambda _: "there is no place", rule, "Fill in the place, or empty the slate")
        found["number"] = rows.batch.numbers
    return found


def _whole(rows: Rows, name: str) -> Ints:
    cells = rows.batch.columns[name]
    values, empty, least = cells.numbers(), cells.empty(), LEAST[name]
    odd = ~((values >= least) & (values <= WHOLE) & (np.floor(values) == values)) & ~empty
    rule = f"it is a whole number, {least} or more"
    rows.mark(odd, name, rows.text(name), rule, "Correct it, or leave it empty")
    return np.where(odd | empty, NONE, np.nan_to_num(values)).astype(np.int64)


def check_slates(events: Events, table: Table, numbers: Ints, faults: Faults) -> None:
    """Reports rows of a slate that are of another user, at a place that is taken, or of an arm shown before."""
    names = list(table.names or ())
    for column, odd, problem, rule in _mistakes(events):
        for row in odd.tolist():
            assert events.slate is not None  # or there is nothing to check
            which = f"{problem} in slate {events.slate[row]}"
            faults.add(table.wrong(int(numbers[row]), which, rule, "Correct that row", column=names.index(column)))


def _mistakes(events: Events) -> Iterator[tuple[str, Ints, str, str]]:
    """Yields columns, the rows that are wrong there, what is wrong, and the rule."""
    assert events.place is not None  # a row of a slate has one
    order, slates = slate_order(events), in_slates(events)
    first = order[np.searchsorted(slates[order], slates)]  # of each row's slate
    apart = np.flatnonzero(events.user != events.user[first])
    yield "user", apart, "it is another than at the first place", "a slate is shown to one user"
    taken = (np.diff(slates[order]) == 0) & (np.diff(events.place[order]) == 0)
    yield "place", np.sort(order[1:][taken]), "it is taken already", "each place of a slate has one row"
    key = slates * (int(events.arm.max()) + 1) + events.arm
    order = np.argsort(key, kind="stable")
    again = np.sort(order[1:][np.diff(key[order]) == 0])
    yield "arm", again, "it is shown twice", "the arms of a slate are different"
    if (lists := events.candidates) is not None and not again.size:
        row = np.repeat(np.arange(len(lists)), lists.lengths)
        gone = shown_before(events, row, lists.flat.astype(np.int64))
        rule = "candidates of a place are those that earlier places have left"
        yield "candidates", np.unique(row[gone]), "one of them was shown before", rule
