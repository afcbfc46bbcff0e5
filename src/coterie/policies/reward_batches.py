"""Many rewards for a policy at once: the caller's ids become rows, in bounded memory, before anything is learned."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import LARGEST_REWARD, REWARD_RULE
from coterie.errors import (
    ContextError,
    CoterieError,
    DimensionError,
    ParameterError,
    RewardError,
    UnknownArmError,
    UnknownUserError,
)
from coterie.models import History, Model
from coterie.models.engines.sparse.reward_table import COLUMNS, Columns, RewardTable, collapsed

WAITING = 2**22  # rows, before they are collapsed
Batch = tuple[Any, Any, Any]
Progress = Callable[[str, int], None]


class RowReader:
    """Turns batches of ids and rewards into rows and numbers.

    Args:
        users: Rows by id.
        arms: Likewise.

    Attributes:
        n_rows: How many rewards were read.
    """

    def __init__(self, users: Mapping[Any, int], arms: Mapping[Any, int]) -> None:
        self._users, self._arms = users, arms
        self.n_rows = 0

    def read(self, users: Any, arms: Any, rewards: Any) -> Batch:
        """Returns a batch in rows and numbers, or raises and names the first row that is wrong, from 0."""
        users, arms, rewards = map(_checked_column, (users, arms, rewards))
        users, arms = _as_ids(users), _as_ids(arms)
        values = _as_numbers(rewards, self.n_rows)
        if not len(users) == len(arms) == len(values):
            raise DimensionError(
                f"a batch after row {self.n_rows} has {len(users)} users, {len(arms)} arms and {len(values)} rewards",
                "there is one of each for a reward",
                "Pass columns of the same length",
            )
        rows, columns = _places(users, self._users), _places(arms, self._arms)
        odd = np.flatnonzero((rows < 0) | (columns < 0) | ~(np.abs(values) <= LARGEST_REWARD))
        if odd.size:
            first = int(odd[0])
            raise self._wrong(self.n_rows + first, users[first], arms[first], _as_ids(rewards)[first])
        self.n_rows += len(values)
        return rows, columns, values

    def _wrong(self, row: int, user: Any, arm: Any, value: Any) -> CoterieError:
        remedy = "Mend or drop that row; nothing was learned"
        if _place(user, self._users) < 0:
            return UnknownUserError(
                f"row {row}: user {user!r} is not in the graph", "rewards are of users in the graph", remedy
            )
        if _place(arm, self._arms) < 0:
            return UnknownArmError(
                f"row {row}: arm {arm!r} is not in the pool", "rewards are of arms in the pool", remedy
            )
        return RewardError(f"row {row}: the reward is {value!r}", REWARD_RULE, remedy)


class Combined:
    """Rewards of pairs of rows, repeats of a pair collapsed now and then: memory grows with the pairs alone.

    Args:
        n_arms: How many arms there are.
        waiting: How many rewards are held before repeats are collapsed, at least.

    Attributes:
        n_rows: How many rewards there are.

    Examples:
        >>> rewards = Combined(2)
        >>> rewards.add(np.array([1, 0, 1]), np.array([0, 1, 0]), np.array([1.0, 0.0, 2.0]))
        >>> columns = rewards.columns()
        >>> columns["users"], columns["arms"], columns["means"], columns["n_observations"]
        (array([0, 1]), array([1, 0]), array([0. , 1.5]), 3)
    """

    def __init__(self, n_arms: int, *, waiting: int = WAITING) -> None:
        self._n_arms, self._waiting, self._n_waiting = n_arms, waiting, 0
        self._kept: Columns = {name: np.zeros(0, kind) for name, kind in COLUMNS.items()}
        self._parts: list[tuple[Any, Any, Any]] = []
        self.n_rows = 0

    @property
    def n_pairs(self) -> int:
        """How many distinct pairs there are, as of the last collapse."""
        return len(self._kept["users"])

    def add(self, users: Any, arms: Any, rewards: Any) -> None:
        """Adds rewards of rows."""
        self._parts.append((users, arms, rewards))
        self.n_rows += len(rewards)
        self._n_waiting += len(rewards)
        if self._n_waiting > max(self._waiting, self.n_pairs):
            self._collapse()

    def merge(self, columns: Mapping[str, Any]) -> None:
        """Adds what another had gathered, as `columns` gives it."""
        self._collapse()
        self.n_rows += columns["n_observations"]
        self._join([np.asarray(columns[name], kind) for name, kind in COLUMNS.items()])

    def columns(self) -> dict[str, Any]:
        """Returns everything: a row for each pair, sorted by user and arm, and how many rewards there are."""
        self._collapse()
        return {"n_observations": self.n_rows, **self._kept}

    def _collapse(self) -> None:
        if not self._parts:
            return
        users, arms, values = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        self._parts, self._n_waiting = [], 0
        more = [users, arms, np.ones(len(values)), values, np.zeros(len(values))]
        del users, arms, values
        self._join(more)

    def _join(self, more: list[Any]) -> None:
        both = {name: np.concatenate([self._kept[name], new]) for name, new in zip(COLUMNS, more, strict=True)}
        more.clear()
        self._kept = collapsed(both, self._n_arms)


class Gathered(RowReader):
    """Rewards as rows of integers, repeats of a pair collapsed now and then: memory grows with the pairs alone.

    Args:
        users: Rows by id.
        arms: Likewise.
        waiting: How many rewards are held before repeats are collapsed, at least.

    Examples:
        >>> rewards = Gathered({"ana": 0, "bo": 1}, {"tea": 0, "milk": 1})
        >>> _ = rewards.add(["bo", "ana", "bo"], ["tea", "milk", "tea"], [1.0, 0.0, 2.0])
        >>> table = rewards.table()
        >>> table.users, table.arms, table.means, table.n_observations
        (array([0, 1], dtype=int32), array([1, 0], dtype=int32), array([0. , 1.5]), 3)
    """

    def __init__(self, users: Mapping[Any, int], arms: Mapping[Any, int], *, waiting: int = WAITING) -> None:
        super().__init__(users, arms)
        self._combined = Combined(len(arms), waiting=waiting)

    def add(self, users: Any, arms: Any, rewards: Any) -> Batch:
        """Adds a batch and returns it in rows and numbers, or raises and names the first row that is wrong, from 0."""
        batch = self.read(users, arms, rewards)
        self._combined.add(*batch)
        return batch

    def table(self) -> RewardTable:
        """Returns all of them."""
        return RewardTable.from_columns(self._combined.columns(), len(self._users), len(self._arms))

    def history(self) -> History:
        """Returns all of them as a plain history."""
        return History.restored(self._combined.columns(), lambda user, arm: (user, arm))


def fit_model(
    model: Model,
    users: Mapping[Any, int],
    arms: Mapping[Any, int],
    batches: Iterable[Batch],
    progress: Progress | None,
    keep: Callable[..., None] | None,
) -> int:
    """Learns all batches at once, by one solve for all users where the engine can; returns how many rewards came."""
    rewards = _read(users, arms, batches, progress, keep)
    if not model.can_fit:
        more = rewards.history()
        condition_on(model, more)
        return more.n_observations
    table = rewards.table()
    del rewards
    if len(table):
        model.fit(table, None if progress is None else lambda step, _: progress("steps", step))
    return table.n_observations


def condition_on(model: Model, more: History) -> None:
    """Conditions a model on its own rewards and on more, at once; on an error it has not changed."""
    if len(more):
        more.rekey(model.kernel.key)
        both = History()
        both.merge(model.history)
        both.merge(more)
        model.relearn(both)


def gathered(
    users: Mapping[Any, int],
    arms: Mapping[Any, int],
    batches: Iterable[Batch],
    progress: Progress | None,
    keep: Callable[..., None] | None,
) -> History:
    """Returns all batches, collapsed, for a model that keeps a plain history."""
    return _read(users, arms, batches, progress, keep).history()


def _read(
    users: Mapping[Any, int],
    arms: Mapping[Any, int],
    batches: Iterable[Batch],
    progress: Progress | None,
    keep: Callable[..., None] | None,
) -> Gathered:
    rewards = Gathered(users, arms)
    for *batch, contexts in checked_batches(batches):
        if contexts is not None:
            what, rule = f"the batch after row {rewards.n_rows} has contexts", "this policy was made without any"
            raise ContextError(what, rule, "Drop these columns, or make an auto-* policy with context_schema=...")
        checked = rewards.add(*batch)
        if keep is not None:
            keep(*checked)
        if progress is not None:
            progress("rows", rewards.n_rows)
    return rewards


def checked_batches(batches: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Returns users, arms, rewards and contexts (None without any) of each batch, or raises where one is another."""
    remedy = "Pass them through read_rewards, or as [(users, arms, rewards)]; nothing was learned"
    if not isinstance(batches, Iterable):
        raise ParameterError(f"rewards are {batches!r}", "they are batches of three columns", remedy)
    for batch in batches:
        if not isinstance(batch, tuple | list) or len(batch) not in (3, 4):
            raise ParameterError(f"a batch is a {type(batch).__name__}", "it is users, arms and rewards", remedy)
        yield batch[0], batch[1], batch[2], batch[3] if len(batch) == 4 else None


def _checked_column(column: Any) -> Any:
    if isinstance(column, Iterable) and not isinstance(column, str | bytes) and getattr(column, "ndim", 1) == 1:
        return column
    kind = f"an array of shape {column.shape}" if isinstance(column, np.ndarray) else repr(column)
    rule, remedy = "a batch is three columns, each a list or an array of one dimension", "Pass [(users, arms, rewards)]"
    raise DimensionError(f"a column is {kind}", rule, f"{remedy}; nothing was learned")


def _as_ids(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _as_numbers(column: Any, row: int) -> NDArray[np.float64]:
    """Returns a column of rewards; what is missing is not a number."""
    values = column if isinstance(column, np.ndarray) else np.asarray(list(column))
    if values.dtype.kind in "biuf":
        return np.asarray(values, dtype=np.float64)
    held = [float("nan") if each is None or isinstance(each, str | bytes) else each for each in values.tolist()]
    try:
        return np.array(held, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        rule, remedy = "rewards are numbers", "Mend that column; nothing was learned"
        raise RewardError(f"the rewards from row {row} on are {values.dtype}", rule, remedy) from None


def _place(name: Any, index: Mapping[Any, int]) -> int:
    try:
        return index.get(name, -1)
    except TypeError:  # what cannot be hashed is no id
        return -1


def _places(names: list[Any], index: Mapping[Any, int]) -> NDArray[np.int32]:
    get = index.get
    try:
        return np.fromiter((get(name, -1) for name in names), np.int32, len(names))
    except TypeError:
        return np.fromiter((_place(name, index) for name in names), np.int32, len(names))
