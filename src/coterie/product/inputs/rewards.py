"""Tables of rewards, batch by batch: a Parquet file, a dataframe, or any iterable of batches of columns."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from coterie.errors import InputError, SavedFileError, listed
from coterie.errors.extras import require_extra
from coterie.product.inputs.arm_inputs import is_frame, narwhals_for

ROWS = 2**17
NAMES = ("user", "arm", "reward")


def read_rewards(source: Any, *, user: str = "user", arm: str = "arm", reward: str = "reward") -> Iterator[Any]:
    """Returns batches of three columns, users, arms and rewards, for `fit`; a file is never held whole.

    Args:
        source: The path of a Parquet file, a dataframe or a mapping of columns, or an iterable of such or of three
            columns each.
        user: The column of users.
        arm: The column of arms.
        reward: The column of rewards.

    Examples:
        >>> table = {"user": ["ana", "bo"], "arm": ["tea", "tea"], "reward": [1.0, 0.5], "when": [3, 4]}
        >>> list(read_rewards(table))
        [(['ana', 'bo'], ['tea', 'tea'], [1.0, 0.5])]
    """
    names = user, arm, reward
    if isinstance(source, str | Path):
        return _of_file(Path(source), names)
    if isinstance(source, Mapping) or is_frame(source):
        return iter([_of_batch(source, names)])
    if isinstance(source, Iterable):
        return (_of_batch(each, names) for each in source)
    raise InputError(f"rewards are a {type(source).__name__}", "they are a path, a dataframe or batches", "Pass one")


def parquet() -> Any:
    """Returns pyarrow.parquet, or says which extra brings it."""
    with require_extra("data", "a Parquet file"):
        import pyarrow.parquet
    return pyarrow.parquet


def _of_file(path: Path, names: tuple[str, ...]) -> Iterator[Any]:
    pq = parquet()
    try:
        with pq.ParquetFile(path) as file:
            _check_names(names, file.schema_arrow.names)
            for batch in file.iter_batches(ROWS, columns=list(names)):
                yield tuple(_values(batch.column(batch.schema.get_field_index(name))) for name in names)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise SavedFileError(
            f"{str(path)!r} cannot be read: {error}",
            "rewards are in a Parquet file",
            "Check the path, or pass a dataframe",
        ) from None


def _values(column: Any) -> Any:
    """Returns a column of pyarrow: numbers as an array, all else, and what has gaps, as a list."""
    import pyarrow.types as kinds

    if column.null_count == 0 and (kinds.is_integer(column.type) or kinds.is_floating(column.type)):
        return column.to_numpy(zero_copy_only=False)
    return column.to_pylist()


def _of_batch(batch: Any, names: tuple[str, ...]) -> Any:
    if isinstance(batch, Mapping):
        _check_names(names, batch)
        return tuple(batch[name] for name in names)
    if is_frame(batch):
        frame = _eager(batch)
        _check_names(names, frame.columns)
        return tuple(_plain(frame[name]) for name in names)
    if isinstance(batch, tuple | list) and len(batch) == len(names):
        return tuple(batch)
    raise InputError(
        f"a batch of rewards is a {type(batch).__name__}", "it is a dataframe, a mapping or three columns", "Pass these"
    )


def _eager(batch: Any) -> Any:
    nw = narwhals_for("rewards")
    try:
        return nw.from_native(batch, eager_only=True)
    except TypeError:
        what, remedy = f"the rewards are a {type(batch).__name__}", "Collect it first, or pass batches"
        raise InputError(what, "they are a dataframe in memory that narwhals knows", remedy) from None


def _plain(column: Any) -> Any:
    """Returns a column of a dataframe: numbers as an array, all else, and what has gaps, as a list."""
    if column.dtype.is_numeric() and not column.null_count():
        return np.asarray(column.to_numpy())
    return column.to_list()


def _check_names(names: Iterable[str], held: Iterable[Any]) -> None:
    held = list(held)
    missing = [name for name in names if name not in held]
    if missing:
        raise InputError(
            f"there is no column {missing[0]!r} among {listed(held)}",
            "a table of rewards has a column of users, one of arms and one of rewards",
            "Say which they are: read_rewards(source, user=..., arm=..., reward=...)",
        )
