"""Arms in a dataframe of any library that narwhals understands: pandas, polars, pyarrow, modin and others."""

from typing import Any

import numpy as np

from coterie.contracts import ArmId, Array
from coterie.errors import ArmError, DuplicateIdError, listed
from coterie.errors.extras import require_extra
from coterie.kernels import ArmPool

ID_COLUMNS = ("arm", "id")


def is_frame(arms: Any) -> bool:
    """Returns whether this has named columns; its type is asked, for a lazy frame would go and look."""
    return hasattr(type(arms), "columns")


def pool_from_frame(arms: Any) -> ArmPool:
    """Returns the arms of an eager dataframe: ids in a column "arm" or "id", else row numbers; the rest are features.

    Examples:
        >>> import pyarrow
        >>> pool = pool_from_frame(pyarrow.table({"arm": ["tea", "cola"], "hot": [1, 0], "sweet": [0.1, 0.9]}))
        >>> pool.ids, pool.features.tolist()
        (('tea', 'cola'), [[1.0, 0.1], [0.0, 0.9]])
        >>> pool.feature_names
        ('hot', 'sweet')
    """
    columns = _columns(arms)
    named = [name for name in columns if name in ID_COLUMNS]
    if len(named) > 1:
        raise ArmError("there are columns 'arm' and 'id'", "one of them holds the ids", "Drop or rename the other")
    if not named:
        _check_index(arms)
    ids = _ids(named[0], columns.pop(named[0])) if named else None
    if not columns:
        held = f"only the column {named[0]!r}" if named else "no columns"
        raise ArmError(f"the dataframe of arms has {held}", "an arm has features", "Add columns of numbers")
    features = np.column_stack([_numbers(name, column) for name, column in columns.items()])
    return ArmPool(features, ids=ids, feature_names=columns)


def _columns(arms: Any) -> dict[Any, Any]:
    """Returns the columns by their names, or raises if this is no dataframe in memory."""
    nw = narwhals_for()
    try:
        frame = nw.from_native(arms, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise ArmError(
            "the dataframe of arms has two columns of one name", "columns have names of their own", "Rename one"
        ) from None
    if isinstance(frame, nw.LazyFrame):
        what, remedy = f"the arms are a lazy {type(arms).__name__}", "Collect it first"
        raise ArmError(what, "they are a dataframe in memory", remedy)
    if not isinstance(frame, nw.DataFrame):
        what = f"the arms are a {type(arms).__name__}, which has columns but is no dataframe that narwhals knows"
        raise ArmError(what, "they are a dataframe, a mapping or an array", "Pass one of these")
    return {column.name: column for column in frame.iter_columns()}


def narwhals_for(what: str = "arms") -> Any:
    """Returns narwhals, or says which extra brings it."""
    with require_extra("data", f"a dataframe of {what}", otherwise="or pass a mapping or an array"):
        import narwhals
    return narwhals


def _ids(name: str, column: Any) -> list[ArmId]:
    ids = column.to_list()
    rows: dict[Any, int] = {}
    for row, arm in enumerate(ids):
        if not isinstance(arm, str | int):
            rule = "ids are texts or whole numbers"
            raise ArmError(f"column {name!r} of the arms holds {arm!r} at row {row}", rule, "Mend that row")
        first = rows.setdefault(arm, row)
        if first != row:
            what = f"column {name!r} of the arms holds {arm!r} at row {first} and at row {row}"
            raise DuplicateIdError(what, "ids are unique", "Rename or drop one of the two")
    return ids  # type: ignore[no-any-return]


def _check_index(arms: Any) -> None:
    """Raises if the rows of pandas are named by an index, for numbering them would lose what may be the ids."""
    nw = narwhals_for()
    index = nw.maybe_get_index(nw.from_native(arms))
    if index is not None and list(index) != list(range(len(index))):
        raise ArmError(
            f"there is no column 'arm' or 'id', and the index holds {listed(index, 3)}",
            "the ids are in a column, or else the rows are numbered from 0",
            "Call reset_index(names='arm') if the index holds the ids, else reset_index(drop=True)",
        )


def _numbers(name: Any, column: Any) -> Array:
    """Returns a column of finite numbers, or raises and says where it is not."""
    if not (column.dtype.is_numeric() or column.dtype == narwhals_for().Boolean):
        held = f", such as {column.to_list()[0]!r}" if len(column) else ""
        raise ArmError(
            f"column {name!r} of the arms is of type {column.dtype}{held}",
            "features are numbers, and ids are in a column 'arm' or 'id'",
            "Encode texts and categories as numbers, rename the column of ids, or drop it",
        )
    missing, values = column.is_null().to_list(), column.to_list()
    numbers = np.array([np.nan if gone else value for gone, value in zip(missing, values, strict=True)], dtype=float)
    odd = np.flatnonzero(~np.isfinite(numbers))
    if odd.size:
        row = int(odd[0])
        what = f"column {name!r} of the arms holds {values[row]!r} at row {row}"
        raise ArmError(what, "features are finite numbers", "Fill in or drop that row")
    return numbers
