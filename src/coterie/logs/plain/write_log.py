"""A log into a folder of tables, as `read_log` reads them."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coterie.errors import ArmError, InputError, UnknownNameError
from coterie.errors.extras import require_extra
from coterie.kernels import ArmPool
from coterie.logs.contexts import ContextColumn
from coterie.logs.log import Events, Log
from coterie.logs.plain.cells import BETWEEN, ROWS
from coterie.logs.plain.folder import CONTEXT, ENDINGS, FORMS

Format: TypeAlias = Literal["csv", "parquet"]
Piece = dict[str, Sequence[Any]]


def write_log(log: Log, folder: str | Path, *, format: Format = "csv") -> list[Path]:
    """Writes a log as tables and returns their paths; a folder that holds such tables already is refused.

    Ids become texts. `read_log` gives the same users, arms and events in the same order, to the bit.

    Args:
        log: What to write.
        folder: Where; it is made if there is none.
        format: "csv" or "parquet" (extra `data`).
    """
    folder = Path(folder)
    _check(log, folder, format)
    folder.mkdir(parents=True, exist_ok=True)
    write = _write_csv if format == "csv" else _write_parquet
    paths = []
    for name, pieces in _tables(log).items():
        paths.append(folder / f"{name}.{format}")
        write(paths[-1], pieces)
    return paths


def _check(log: Log, folder: Path, format: str) -> None:
    if f".{format}" not in ENDINGS:
        raise UnknownNameError(f"format = {format!r} is unknown", "it is 'csv' or 'parquet'", "Pick one of these")
    held = [folder / f"{name}{ending}" for name in FORMS for ending in ENDINGS]
    for path in held:
        if path.exists():
            raise InputError(f"{str(path)!r} is there already", "nothing is overwritten", "Name another folder")
    _check_ids(log.graph.users, "user")
    _check_ids(log.arm_ids, "arm")
    odd = [arm for arm in log.arm_ids if BETWEEN in str(arm)]
    if format == "csv" and log.events.candidates is not None and odd:
        rule = f"in CSV candidates have {BETWEEN!r} between them"
        raise ArmError(f"arm {odd[0]!r} has one in its id", rule, "Write Parquet, or rename the arm")
    for name, column in _context_columns(log.events).items():
        _check_ids([name], "the name of a context")
        _check_ids(column.categories, f"category of {name!r}")


def _check_ids(ids: Sequence[Any], what: str) -> None:
    """Raises if ids would not come back from a file as they are, as texts."""
    met: dict[str, Any] = {}
    for each in ids:
        text = str(each)
        if not text or text != text.strip():
            rule = "texts in a table do not, and are not empty"
            raise InputError(f"{what} {each!r} begins or ends with a blank", rule, "Rename it")
        if met.setdefault(text, each) is not each:
            problem = f"{what}s {met[text]!r} and {each!r} have one text"
            raise InputError(problem, "in a table ids are texts", "Rename one of the two")


def _tables(log: Log) -> dict[str, Iterator[Piece]]:
    users, arms = _texts(log.graph.users), _texts(log.arm_ids)
    tables = {
        "users": iter([{"user": users.tolist()}]),
        "edges": _edges(log, users),
        "arms": _arms(log, arms),
        "events": _events(log.events, users, arms),
    }
    columns = _context_columns(log.events)
    if columns:  # which of them are categories cannot be seen in CSV
        kinds: Piece = {"name": list(columns), "kind": [column.kind for column in columns.values()]}
        tables["contexts"] = iter([kinds])
    if log.had is not None:
        tables["had"] = iter([{"user": users[log.had.user].tolist(), "arm": arms[log.had.arm].tolist()}])
    return tables


def _texts(ids: Sequence[Any]) -> NDArray[np.object_]:
    return np.array([str(each) for each in ids], dtype=object)


def _edges(log: Log, users: NDArray[np.object_]) -> Iterator[Piece]:
    upper = sp.triu(log.graph.weights, k=1).tocoo()
    for some in _slices(max(upper.nnz, 1)):  # a graph without edges is a table without rows
        ends = users[upper.row[some]].tolist(), users[upper.col[some]].tolist()
        yield {"user": ends[0], "other": ends[1], "weight": upper.data[some].tolist()}


def _arms(log: Log, arms: NDArray[np.object_]) -> Iterator[Piece]:
    piece: Piece = {"arm": arms.tolist()}
    if isinstance(log.arms, ArmPool):
        names = log.arms.feature_names or [f"feature_{place}" for place in range(log.arms.dimension)]
        piece |= {name: column.tolist() for name, column in zip(names, log.arms.features.T, strict=True)}
    yield piece


def _events(events: Events, users: NDArray[np.object_], arms: NDArray[np.object_]) -> Iterator[Piece]:
    for some in _slices(max(len(events), 1)):
        piece: Piece = {
            "user": users[events.user[some]].tolist(),
            "arm": arms[events.arm[some]].tolist(),
            "reward": events.reward[some].tolist(),
        }
        if (lists := events.candidates) is not None:
            piece["candidates"] = [arms[lists[row]].tolist() for row in range(*some.indices(len(events)))]
        for name, column in (("propensity", events.propensity), ("time", events.time)):
            if column is not None:
                piece[name] = [None if value != value else value for value in column[some].tolist()]
        for name, numbers in (("slate", events.slate), ("place", events.place)):
            if numbers is not None:
                piece[name] = [None if value < 0 else value for value in numbers[some].tolist()]
        for name, context in _context_columns(events).items():
            piece[f"{CONTEXT}{name}"] = context.take(np.arange(*some.indices(len(events)))).plain()
        yield piece


def _context_columns(events: Events) -> Mapping[str, ContextColumn]:
    return {} if events.context is None else events.context.columns


def _slices(size: int) -> Iterator[slice]:
    return (slice(start, min(start + ROWS, size)) for start in range(0, size, ROWS))


def _write_csv(path: Path, pieces: Iterator[Piece]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for number, piece in enumerate(pieces):
            if number == 0:
                writer.writerow(piece)
            writer.writerows(zip(*(map(_cell, column) for column in piece.values()), strict=True))


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return BETWEEN.join(value) if isinstance(value, list) else value


def _write_parquet(path: Path, pieces: Iterator[Piece]) -> None:
    with require_extra("data", "a Parquet file", otherwise="or write CSV"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    first = next(pieces)
    kinds = dict.fromkeys(set(FORMS[path.stem].needed) - {"reward"}, pa.string())
    if path.stem == "contexts":
        kinds["kind"] = pa.string()
    if path.stem == "events":
        kinds |= {"candidates": pa.list_(pa.string()), "slate": pa.int64(), "place": pa.int64()}
        kinds |= {name: pa.array(column).type for name, column in first.items() if name.startswith(CONTEXT)}
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in first])
    with pq.ParquetWriter(path, schema) as writer:
        for piece in chain([first], pieces):
            writer.write_table(pa.table(piece, schema=schema))
