"""Arms in the forms that people have them in: a pool, a mapping, an array, or a dataframe that narwhals understands."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from coterie.contracts import FEATURE_RULE, ArmId, Array
from coterie.errors import (
    ArmError,
    CandidatesError,
    ContextError,
    DimensionError,
    DuplicateIdError,
    InputError,
    counted,
    listed,
)
from coterie.errors.extras import require_extra
from coterie.kernels import ArmPool
from coterie.product.inputs.ids import ID_RULE

ID_COLUMNS = ("arm", "id")


def as_arm_pool(arms: Any) -> ArmPool:
    """Returns a pool from a pool, a mapping from ids to features, a dataframe, or an array with one row each.

    Features of an arm are a row of numbers, or a mapping from names to numbers that is the same for every arm. A
    dataframe has ids in a column "arm" or "id" (without one the rows are numbered) and features in all others. The pool
    keeps the names where there are any.

    Examples:
        >>> pool = as_arm_pool({"tea": {"hot": 1, "sweet": 0}, "cola": {"sweet": 1, "hot": 0}})
        >>> pool.features, pool.feature_names
        (array([[1., 0.], [0., 1.]]), ('hot', 'sweet'))
    """
    if isinstance(arms, ArmPool):
        return arms
    if isinstance(arms, list | tuple) and arms and all(isinstance(arm, str) for arm in arms):
        return ArmPool.without_features(arms)
    if not isinstance(arms, Mapping):
        return pool_from_frame(arms) if is_frame(arms) else ArmPool(arms)
    if not arms:
        raise ArmError("there are no arms: the mapping is empty", "a bandit chooses among arms", "Give at least one")
    rows, names = list(arms.values()), None
    if all(isinstance(row, Mapping) for row in rows):
        names = tuple(rows[0])
        for arm, row in arms.items():
            if set(row) != set(names):
                wrong = sorted(map(str, set(row) ^ set(names)))
                raise ArmError(
                    f"arm {arm!r} has other features than the first: {wrong}",
                    "every arm has the same features",
                    "Fill in what is missing",
                )
        rows = [[row[name] for name in names] for row in rows]
    for arm, row in zip(arms, rows, strict=True):
        _check_filled(arm, row, names)
    return ArmPool(rows, ids=list(arms), feature_names=names)


def _check_filled(arm: ArmId, row: Any, names: tuple[str, ...] | None) -> None:
    """Raises and says which feature of the arm is missing; whatever else is odd the pool refuses."""
    for place, value in enumerate(row if isinstance(row, list | tuple) else ()):
        if value is None:
            what = f"feature {place if names is None else names[place]!r} of arm {arm!r} is None"
            raise ArmError(what, FEATURE_RULE, "Fill it in, or drop that arm")


def as_user_table(users: Any) -> dict[Any, Any]:
    """Returns the features of users by id, from a mapping or a dataframe with a column "user" or "id".

    Examples:
        >>> as_user_table({"ana": {"age": 30}})
        {'ana': {'age': 30}}
    """
    if isinstance(users, Mapping):
        return {user: plain_features(each) for user, each in users.items()}
    rule, remedy = "it is a mapping from ids to features, or a dataframe with a column 'user' or 'id'", "Pass one"
    if not is_frame(users):
        raise ContextError(f"the table of users is a {type(users).__name__}", rule, remedy)
    frame = eager_frame(users, "users", ContextError)
    named = [name for name in frame.columns if name in ("user", "id")]
    if len(named) != 1:
        raise ContextError(f"the table of users has columns {listed(frame.columns)}", rule, remedy)
    ids = frame[named[0]].to_list()
    twice = [user for user, times in Counter(ids).items() if times > 1]
    if twice:
        raise DuplicateIdError(f"the table of users has {listed(twice)} twice", "a user has one row", "Drop one")
    rows = frame.drop(named[0]).iter_rows(named=True)
    return dict(zip(ids, rows, strict=True))


def plain_features(features: Any) -> Any:
    """Returns the features of a user as plain values, which JSON can hold, as far as they are any.

    Examples:
        >>> plain_features({"age": np.int64(30)}), plain_features(np.array([0.5, 1.0]))
        ({'age': 30}, [0.5, 1.0])
    """
    if isinstance(features, Mapping):
        return {name: _plain(value) for name, value in features.items()}
    is_row = isinstance(features, Iterable) and not isinstance(features, str | bytes)
    return [_plain(value) for value in features] if is_row else features


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def with_arms(arms: ArmPool, new: ArmPool) -> ArmPool:
    """Returns the pool with new arms, or with other features of those it has; features go by name where both have them.

    Examples:
        >>> pool = as_arm_pool({"tea": {"hot": 1, "sweet": 0}})
        >>> with_arms(pool, as_arm_pool({"cola": {"sweet": 1, "hot": 0}})).features
        array([[1., 0.], [0., 1.]])
    """
    if arms.has_features != new.has_features:
        have, rule = ("features", "have none") if new.has_features else ("no features", "have some")
        what, remedy = f"arm {new.ids[0]!r} has {have}", "Give features to all arms, or to none"
        raise ArmError(what, f"the arms that are there {rule}", remedy)
    if not arms.has_features:
        return ArmPool.without_features([*arms.ids, *(arm for arm in new.ids if arm not in arms.index)])
    order = _order(arms.feature_names, new)
    if len(order) != arms.dimension:
        what, rule = (
            f"arm {new.ids[0]!r} has {counted(len(order), 'feature')}",
            f"the arms that are there have {arms.dimension}",
        )
        raise DimensionError(what, rule, "Give every arm the same features")
    features = dict(zip(arms.ids, arms.features, strict=True))
    features |= dict(zip(new.ids, new.features[:, order], strict=True))
    return ArmPool(list(features.values()), ids=list(features), feature_names=arms.feature_names)


def _order(names: tuple[str, ...] | None, new: ArmPool) -> list[int]:
    """Returns the column of the newcomers for each feature of the pool, or raises if they have other ones."""
    if names is None or new.feature_names is None:
        return list(range(new.dimension))
    odd = {"lacks": [name for name in names if name not in new.feature_names]}
    odd["brings the unknown"] = [name for name in new.feature_names if name not in names]
    if any(odd.values()):
        wrong = " and ".join(f"{words} {listed(which)}" for words, which in odd.items() if which)
        rule = f"the features are {listed(names, 20)}"
        raise ArmError(f"arm {new.ids[0]!r} {wrong}", rule, "Give every arm these features, in any order")
    return [new.feature_names.index(name) for name in names]


def without_arms(ids: Iterable[ArmId], retired: set[ArmId]) -> list[ArmId]:
    """Returns the arms that are not retired, or raises if there are none."""
    left = [arm for arm in ids if arm not in retired]
    if not left:
        raise CandidatesError("every arm is retired", "at least one is left to choose", "Add arms first")
    return left


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
    columns = {column.name: column for column in eager_frame(arms, "arms", ArmError).iter_columns()}
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


def eager_frame(native: Any, what: str, error: type[InputError]) -> Any:
    """Returns a dataframe as narwhals has it, or raises if this is none in memory."""
    nw = narwhals_for(what)
    try:
        frame = nw.from_native(native, pass_through=True)
    except nw.exceptions.DuplicateError:
        problem = f"the dataframe of {what} has two columns of one name"
        raise error(problem, "columns have names of their own", "Rename one") from None
    if isinstance(frame, nw.LazyFrame):
        problem = f"the {what} are a lazy {type(native).__name__}"
        raise error(problem, "they are a dataframe in memory", "Collect it first")
    if not isinstance(frame, nw.DataFrame):
        problem = f"the {what} are a {type(native).__name__}, which has columns but is no dataframe that narwhals knows"
        raise error(problem, "they are a dataframe, a mapping or an array", "Pass one of these")
    return frame


def narwhals_for(what: str) -> Any:
    """Returns narwhals, or says which extra brings it."""
    with require_extra("data", f"a dataframe of {what}", otherwise="or pass a mapping or an array"):
        import narwhals
    return narwhals


def _ids(name: str, column: Any) -> list[ArmId]:
    ids = column.to_list()
    rows: dict[Any, int] = {}
    for row, arm in enumerate(ids):
        if not isinstance(arm, str | int):
            raise ArmError(f"column {name!r} of the arms holds {arm!r} at row {row}", ID_RULE, "Mend that row")
        first = rows.setdefault(arm, row)
        if first != row:
            what = f"column {name!r} of the arms holds {arm!r} at row {first} and at row {row}"
            raise DuplicateIdError(what, "ids are unique", "Rename or drop one of the two")
    return ids  # type: ignore[no-any-return]


def _check_index(arms: Any) -> None:
    """Raises if the rows of pandas are named by an index, for numbering them would lose what may be the ids."""
    nw = narwhals_for("arms")
    index = nw.maybe_get_index(nw.from_native(arms))
    if index is not None and list(index) != list(range(len(index))):
        raise ArmError(
            f"there is no column 'arm' or 'id', and the index holds {listed(index, 3)}",
            "the ids are in a column, or else the rows are numbered from 0",
            "Call reset_index(names='arm') if the index holds the ids, else reset_index(drop=True)",
        )


def _numbers(name: Any, column: Any) -> Array:
    """Returns a column of finite numbers, or raises and says where it is not."""
    if not (column.dtype.is_numeric() or column.dtype == narwhals_for("arms").Boolean):
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
