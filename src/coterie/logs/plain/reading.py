"""A log from a folder of tables, checked row by row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coterie.contracts import FEATURE_RULE, LARGEST_FEATURE, WEIGHT_RULE, ArmId, is_weight
from coterie.errors import ArmError, GraphError, InputError
from coterie.graphs import UserGraph
from coterie.graphs.adjacency import from_pairs
from coterie.graphs.build import edge_pair
from coterie.kernels import ArmPool
from coterie.kernels.pool import RESCALE, check_spread
from coterie.logs.log import Floats, Ints, Log
from coterie.logs.plain.cells import ROWS, Cells
from coterie.logs.plain.events_table import read_events, read_had
from coterie.logs.plain.folder import EnoughError, Faults, Rows, find_table, open_file
from coterie.logs.tables import Table

Edges = tuple[Ints, Ints, Floats, Ints]  # user, other, weight, the number of the row


def read_log(folder: str | Path) -> Log:
    """Returns the log of a folder with `edges`, `arms` and `events`, each CSV or Parquet (docs/data.md).

    The first mistake raises an error that names file, row, value, rule and remedy; nothing is skipped.

    Args:
        folder: Where; `users` (people without edges) and `had` (what users had besides) are optional.
    """
    log, mistakes = check_log(folder, limit=1)
    if log is None:
        raise mistakes[0]
    return log


def check_log(folder: str | Path, *, limit: int = 10, batch_rows: int = ROWS) -> tuple[Log | None, list[InputError]]:
    """Returns the log of a folder, or none and its first mistakes.

    Args:
        folder: Where.
        limit: How many mistakes at most.
        batch_rows: Rows of a table that are read at once.
    """
    faults = Faults(limit, batch_rows)
    try:
        log = _read(Path(folder), faults)
    except EnoughError:
        return None, faults.found
    except InputError as error:
        return None, [*faults.found, error]
    return (None, faults.found) if faults.found else (log, [])


def read_graph_and_arms(
    edges: str | Path, arms: str | Path, users: str | Path | None = None
) -> tuple[UserGraph, ArmPool | tuple[ArmId, ...]]:
    """Returns the graph and the arms of tables as a log has them; the first mistake raises an error that names it.

    Args:
        edges: The table of edges.
        arms: The table of arms.
        users: A table of users; they come first, and need no edges.
    """
    faults = Faults(1)
    try:
        graph = graph_of_tables(Path(edges), None if users is None else Path(users), faults)
        return graph, arms_of_table(Path(arms), faults)
    except EnoughError:
        raise faults.found[0] from None


def _read(folder: Path, faults: Faults) -> Log:
    graph, arms = read_graph(folder, faults), read_arms(folder, faults)
    places = _places(arms)
    events = read_events(folder, graph.index, places, faults)
    return Log(graph=graph, arms=arms, events=events, had=read_had(folder, graph.index, places, faults))


def _places(arms: ArmPool | tuple[Any, ...]) -> Mapping[Any, int]:
    return arms.index if isinstance(arms, ArmPool) else {arm: place for place, arm in enumerate(arms)}


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
    edges = find_table(folder, "edges")
    assert edges is not None  # every log has them
    return graph_of_tables(edges, find_table(folder, "users"), faults)


def graph_of_tables(edges: Path, users: Path | None, faults: Faults) -> UserGraph:
    """Returns the graph of a table of edges, with users of another one that come first, if there is one."""
    roster = Roster()
    for rows in open_file(users, "users", faults)[1] if users is not None else ():
        rows.missing("user")
        roster.add_new(rows, "user")
    table, batches = open_file(edges, "edges", faults)
    found = [_edges(rows, roster) for rows in batches]
    if not roster.index:
        rule, remedy = "a log has at least one user", "Add edges, or a table users of those who have none"
        raise GraphError(f"{table.path.name} has no rows", rule, remedy)
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] if found else [np.zeros(0, np.int64)] * 4
    return _graph(table, tuple(roster.index), columns, faults)


def _edges(rows: Rows, roster: Roster) -> Edges:
    batch = rows.batch
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
    once = (
        ~again & (low >= 0) & (low != high) & (weight >= 0)
    )  # what is wrong is reported; the rest can still be checked
    return UserGraph.from_matrix(from_pairs(len(users), low[once], high[once], weight[once]), users=users)


def read_arms(folder: Path, faults: Faults) -> ArmPool | tuple[ArmId, ...]:
    """Returns the arms of a folder: a pool, or the ids alone where there are no features."""
    path = find_table(folder, "arms")
    assert path is not None  # every log has them
    return arms_of_table(path, faults)


def arms_of_table(path: Path, faults: Faults) -> ArmPool | tuple[ArmId, ...]:
    """Returns the arms of a table: a pool, or the ids alone where there are no features."""
    table, batches = open_file(path, "arms", faults)
    roster, features = Roster(), [name for name in table.names or () if name != "arm"]
    found = [_arm_rows(rows, features, roster) for rows in batches]
    if not found:
        raise ArmError(f"{table.path.name} has no rows", "a log has at least one arm", "Add a row for each arm")
    ids = tuple(roster.index)
    if not features or faults.found:
        return ids
    return _pool(table.path, np.concatenate(found), ids, features)


def _pool(path: Path, rows: Floats, ids: tuple[ArmId, ...], names: list[str]) -> ArmPool:
    """Returns the pool, or raises if arms differ by too little for a later command to tell them apart."""
    try:
        check_spread(rows, names=names)
    except ArmError as error:
        raise ArmError(f"{path.name}: {error.problem}", error.rule, error.remedy) from None
    return ArmPool(rows, ids=ids, feature_names=names)


def _arm_rows(rows: Rows, features: list[str], roster: Roster) -> Floats:
    batch = rows.batch
    rows.missing("arm")
    roster.add_new(rows, "arm")
    numbers = np.empty((len(batch.numbers), len(features)))
    for place, name in enumerate(features):
        numbers[:, place] = batch.columns[name].numbers()
        remedy = "Correct it or fill it in; encode texts and categories as numbers"
        rows.mark(np.isnan(numbers[:, place]), name, rows.text(name), FEATURE_RULE, remedy)
        rows.mark(np.abs(numbers[:, place]) > LARGEST_FEATURE, name, rows.text(name), FEATURE_RULE, RESCALE)
    return numbers
