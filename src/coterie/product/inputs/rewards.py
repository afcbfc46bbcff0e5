"""Tables of rewards, batch by batch: a Parquet file, a dataframe, or any iterable of rows or of batches of columns."""

from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import InputError, SavedFileError, listed
from coterie.errors.extras import require_extra
from coterie.product.inputs.arm_inputs import eager_frame, is_frame

ROWS = 2**17
RULE = "rewards are a path, a dataframe, or an iterable of rows or of batches of columns"
REMEDY = "Pass a dataframe, rows [('ana', 'tea', 1.0)], or batches [(users, arms, rewards)]"


def read_rewards(
    source: Any,
    *,
    user: str = "user",
    arm: str = "arm",
    reward: str = "reward",
    context: str = "context.",
    rows: int = ROWS,
) -> Iterator[Any]:
    """Returns batches of three columns, users, arms and rewards, for `fit`; a file is never held whole.

    Where there are contexts a batch has a fourth column: columns by name, or a list of contexts.

    Args:
        source: The path of a Parquet file, a dataframe or a mapping of columns; or an iterable of such tables, of
            batches (users, arms, rewards), or of rows: tuples (user, arm, reward) or dicts. Batches and tuples may have
            contexts at their end.
        user: The column of users.
        arm: The column of arms.
        reward: The column of rewards.
        context: What the names of the columns of a context begin with: `context.hour` is its `hour`.
        rows: How many rows of a file, or of an iterable of rows, make a batch.

    Examples:
        >>> table = {"user": ["ana", "bo"], "arm": ["tea", "tea"], "reward": [1.0, 0.5], "when": [3, 4]}
        >>> list(read_rewards(table))
        [(['ana', 'bo'], ['tea', 'tea'], [1.0, 0.5])]
        >>> list(read_rewards([("ana", "tea", 1.0), {"user": "bo", "arm": "tea", "reward": 0.5}]))
        [(['ana', 'bo'], ['tea', 'tea'], [1.0, 0.5])]
        >>> list(read_rewards({"user": ["ana"], "arm": ["tea"], "reward": [1.0], "context.hour": [9]}))
        [(['ana'], ['tea'], [1.0], {'hour': [9]})]
    """
    names = Names((user, arm, reward), context)
    if isinstance(source, str | Path):
        return _of_file(Path(source), names, rows)
    if isinstance(source, Mapping) or is_frame(source):
        return iter([_of_batch(source, names)])
    if isinstance(source, Iterable):
        return _of_iterable(source, names, rows)
    raise InputError(f"rewards are a {type(source).__name__}", RULE, REMEDY)


class Names(NamedTuple):
    """The columns of a table of rewards.

    Attributes:
        needed: Those of users, arms and rewards.
        context: What the names of the columns of a context begin with.
    """

    needed: tuple[str, str, str]
    context: str

    def of_contexts(self, held: Iterable[Any]) -> dict[str, str]:
        """Returns which of a table's columns are a context's, by the name that they have there."""
        start = len(self.context)
        return {name[start:]: name for name in held if isinstance(name, str) and name.startswith(self.context)}


def first_context(batch: Any) -> Any:
    """Returns the context of the first row of a batch, None if it has none.

    Examples:
        >>> first_context((["ana"], ["tea"], [1.0], {"hour": [9]})), first_context((["ana"], ["tea"], [1.0]))
        ({'hour': 9}, None)
    """
    contexts = batch[3] if len(batch) > 3 else None
    if isinstance(contexts, Mapping):
        return {name: next(iter(column), None) for name, column in contexts.items()}
    return None if contexts is None else next(iter(contexts), None)


def parquet() -> Any:
    """Returns pyarrow.parquet, or says which extra brings it."""
    with require_extra("data", "a Parquet file"):
        import pyarrow.parquet
    return pyarrow.parquet


def _of_file(path: Path, names: Names, rows: int) -> Iterator[Any]:
    pq = parquet()
    try:
        with pq.ParquetFile(path) as file:
            _check_names(names.needed, file.schema_arrow.names)
            contexts = names.of_contexts(file.schema_arrow.names)
            for batch in file.iter_batches(rows, columns=[*names.needed, *contexts.values()]):
                columns = dict(zip(batch.schema.names, map(_values, batch.columns), strict=True))
                yield _batch(names, contexts, columns)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise SavedFileError(
            f"{str(path)!r} cannot be read: {error}",
            "rewards are in a Parquet file",
            "Check the path, or pass a dataframe",
        ) from None


def _batch(names: Names, contexts: Mapping[str, str], columns: Mapping[Any, Any]) -> Any:
    """Returns the columns of a batch, with those of contexts by name if there are any."""
    plain = tuple(columns[name] for name in names.needed)
    return (*plain, {name: columns[held] for name, held in contexts.items()}) if contexts else plain


def _values(column: Any) -> Any:
    """Returns a column of pyarrow: numbers as an array, all else, and what has gaps, as a list."""
    import pyarrow.types as kinds

    if column.null_count == 0 and (kinds.is_integer(column.type) or kinds.is_floating(column.type)):
        return column.to_numpy(zero_copy_only=False)
    return column.to_pylist()


def _of_iterable(source: Iterable[Any], names: Names, size: int) -> Iterator[Any]:
    """Yields the batches of an iterable, rows in it gathered to batches of this size.

    A list is no row, and a tuple holds none: they may be the columns themselves, of numbers as well.
    """
    rows: list[Any] = []
    for each in source:
        batch = _of_batch(each, names)
        is_row = batch[2] is None or isinstance(batch[2], Real | str | bytes)  # a text is no reward: it is named later
        is_row = is_row and not isinstance(each, list) and not isinstance(source, tuple)
        if is_row:
            rows.append(batch)
        if rows and (not is_row or len(rows) == size):
            yield _columns(rows)
            rows = []
        if not is_row:
            yield batch
    if rows:
        yield _columns(rows)


def _columns(rows: list[Any]) -> Any:
    if any(len(row) > 3 for row in rows):  # a row without a context among others that have one is named later
        rows = [row if len(row) > 3 else (*row, None) for row in rows]
    return tuple(list(column) for column in zip(*rows, strict=True))


def _of_batch(batch: Any, names: Names) -> Any:
    if isinstance(batch, Mapping):
        _check_names(names.needed, batch)
        return _batch(names, names.of_contexts(batch), batch)
    if is_frame(batch):
        frame = eager_frame(batch, "rewards", InputError)
        _check_names(names.needed, frame.columns)
        contexts = names.of_contexts(frame.columns)
        columns = {name: _plain(frame[name]) for name in names.needed}
        return _batch(names, contexts, columns | {name: _with_gaps(frame[name]) for name in contexts.values()})
    if isinstance(batch, tuple | list) and len(batch) in (3, 4):
        return tuple(batch)
    raise InputError(f"a batch of rewards is a {type(batch).__name__}", RULE, REMEDY)


def _plain(column: Any) -> Any:
    """Returns a column of a dataframe: numbers as an array, all else, and what has gaps, as a list."""
    if column.dtype.is_numeric() and not column.null_count():
        return np.asarray(column.to_numpy())
    return column.to_list()


def _with_gaps(column: Any) -> list[Any]:
    """Returns a column of a dataframe as a list, None where nothing is: pandas has nan there."""
    missing = column.is_null().to_list()
    return [None if gone else value for gone, value in zip(missing, column.to_list(), strict=True)]


def _check_names(names: Iterable[str], held: Iterable[Any]) -> None:
    held = list(held)
    missing = [name for name in names if name not in held]
    if missing:
        raise InputError(
            f"there is no column {missing[0]!r} among {listed(held)}",
            "a table of rewards has a column of users, one of arms and one of rewards",
            "Say which they are: read_rewards(source, user=..., arm=..., reward=...)",
        )
