"""Users and their edges from tables."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from coterie.contracts import WEIGHT_RULE, is_weight
from coterie.errors import GraphError
from coterie.graphs import UserGraph
from coterie.graphs.adjacency import from_pairs
from coterie.graphs.build import edge_pair
from coterie.logs.log import Floats, Ints
from coterie.logs.plain.cells import Batch, Cells
from coterie.logs.plain.folder import find_table, open_table
from coterie.logs.plain.row_errors import Faults, Rows
from coterie.logs.tables import Table

Edges = tuple[Ints, Ints, Floats, Ints]  # user, other, weight, the number of the row


@dataclass(slots=True)
class Roster:
    """Ids in the order in which they came, and where each of them is."""

    index: dict[str, int] = field(default_factory=dict)

    def add(self, cells: Cells) -> Ints:
        """Returns where the ids of a column are, of which those that are new are added."""
        for text in cells.distinct():
            self.index.setdefault(text, len(self.index))
        return cells.places(self.index)

    def add_new(self, rows: Rows, column: str) -> None:
        """Adds ids of which none may have come before."""
        cells = rows.batch.columns[column]
        again = np.zeros(len(cells), dtype=bool)
        for row in range(len(cells)):
            text, size = cells.text(row), len(self.index)
            again[row] = text != "" and self.index.setdefault(text, size) != size
        rows.mark(again, column, rows.text(column), "ids are unique, and this one was there before", "Drop one of them")


def read_graph(folder: Path, faults: Faults) -> UserGraph:
    """Returns the graph of a folder: the users of `users` in that order, then those that only `edges` names."""
    roster = Roster()
    users, edges = find_table(folder, "users"), find_table(folder, "edges")
    if users is not None:
        table, batches = open_table(users, "users")
        for batch in batches:
            rows = Rows(table, batch, faults.limit)
            rows.missing("user")
            roster.add_new(rows, "user")
            rows.report(faults)
    assert edges is not None  # find_table refuses a folder without them
    table, batches = open_table(edges, "edges")
    found = [_edges(table, batch, roster, faults) for batch in batches]
    if not roster.index:
        rule, remedy = "a log has at least one user", "Add edges, or a table users of those who have none"
        raise GraphError(f"{table.path.name} has no rows", rule, remedy)
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] if found else [np.zeros(0, np.int64)] * 4
    return _graph(table, tuple(roster.index), columns, faults)


def _edges(table: Table, batch: Batch, roster: Roster, faults: Faults) -> Edges:
    rows = Rows(table, batch, faults.limit)
    pair = edge_pair(list(batch.columns))
    assert pair is not None  # open_table refuses a table without them
    rows.missing(*pair)
    user, other = (roster.add(batch.columns[column]) for column in pair)
    rule = "an edge joins two different users"
    rows.mark(user == other, pair[1], rows.text(pair[1]), f"{rule}, and the user is the same", "Drop that edge")
    weight = np.ones(len(user))
    if "weight" in batch.columns:
        weight = batch.columns["weight"].numbers()
        odd = ~is_weight(weight)
        rows.mark(odd, "weight", rows.text("weight"), WEIGHT_RULE, "Correct or drop that edge")
        weight = np.where(odd, np.nan, weight)
    rows.report(faults)
    return user, other, weight, batch.numbers


def _graph(table: Table, users: tuple[str, ...], columns: list[Ints], faults: Faults) -> UserGraph:
    user, other, weight, number = columns
    low, high = np.minimum(user, other), np.maximum(user, other)
    order = np.lexsort((number, high, low))
    low, high, weight, number = (column[order] for column in (low, high, weight, number))
    again = np.zeros(len(low), dtype=bool)
    again[1:] = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    differs = again & (weight != np.roll(weight, 1)) & (low >= 0) & ~np.isnan(weight + np.roll(weight, 1))
    for place in sorted(np.flatnonzero(differs).tolist(), key=number.__getitem__):
        pair = f"{users[low[place]]!r} and {users[high[place]]!r} have weight {weight[place]:g}"
        problem = f"{pair}, and {weight[place - 1]:g} in {table.unit} {number[place - 1]}"
        rule = "a pair has one weight in both directions"
        faults.add(table.wrong(int(number[place]), problem, rule, "Keep one of the two"))
    once = ~again & (low >= 0) & (low != high) & (weight >= 0)  # what is wrong was told; the rest can still be checked
    return UserGraph.from_matrix(from_pairs(len(users), low[once], high[once], weight[once]), users=users)
