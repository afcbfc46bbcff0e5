"""The observations of a model on a large graph: columns of numbers instead of Python objects, chained user by user."""

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Self

import numpy as np

from coterie.contracts import Array, Index
from coterie.kernels.growing_rows import Room, with_room
from coterie.models.engines.sparse.compiling import load_rows
from coterie.models.history import History, largest_in

FIRST_ROOM = 64
Columns = dict[str, Array]
COLUMNS = {"users": np.int32, "arms": np.int32, "counts": np.float64, "means": np.float64, "scatters": np.float64}


class RewardTable(History):
    """A `History` of pairs of integers in arrays: 40 bytes a row, and the rows of a user without a search.

    Examples:
        >>> table = RewardTable(n_users=3, n_arms=5)
        >>> table.add(4, 0, 4, 1.0)
        >>> table.add(4, 0, 4, 2.0)
        >>> table.counts, table.means, table.rows.get(4), len(table)
        (array([2.]), array([1.5]), 0, 1)
    """

    __slots__ = ("_columns", "_n_arms", "_room", "_size", "compiled", "first", "following", "lengths")

    def __init__(self, n_users: int, n_arms: int) -> None:
        self.compiled = load_rows()
        self._n_arms, self._size, self.n_observations = n_arms, 0, 0
        self.largest = self.spare = 0.0
        self._columns = {name: np.zeros(FIRST_ROOM, kind) for name, kind in COLUMNS.items()}
        self.following = np.zeros(FIRST_ROOM, np.int32)
        self.first, self.lengths = np.full(n_users, -1, np.int32), np.zeros(n_users, np.int32)
        self._room = Room()

    def __len__(self) -> int:
        return self._size

    @classmethod
    def of(cls, history: History, n_users: int, n_arms: int) -> "RewardTable":
        """Returns a history as a table of so many users: itself if it is one."""
        if isinstance(history, RewardTable) and len(history.first) == n_users:
            return history
        columns = history.state()
        own = {name: np.array(columns[name]) for name in COLUMNS}  # a table of fewer users goes on without these
        return cls.from_columns(columns | own, n_users, n_arms)

    @classmethod
    def from_columns(cls, state: dict[str, Any], n_users: int, n_arms: int) -> Self:
        """Returns the table of such columns; it takes over those of the right type."""
        out = cls(n_users, n_arms)
        out.n_observations, out._size = state["n_observations"], len(state["users"])
        out.largest = largest_in(state)
        if out._size:
            out._columns = {name: np.ascontiguousarray(state[name], kind) for name, kind in COLUMNS.items()}
            out.following = np.zeros(out._size, np.int32)
            out.compiled.link_rows(out._columns["users"], 0, out.first, out.following, out.lengths)
        return out

    @classmethod
    def of_rewards(cls, users: Any, arms: Any, rewards: Any, weights: Array, n_users: int, n_arms: int) -> Self:
        """Returns the table in which each reward counts as much as its weight says; none for weight 0."""
        kept = np.flatnonzero(weights > 0)
        columns = (np.array(users)[kept], np.array(arms)[kept], weights[kept], np.array(rewards)[kept])
        named = dict(zip(COLUMNS, (*columns, np.zeros(len(kept))), strict=True))
        return cls.from_columns({"n_observations": len(kept), **collapsed(named, n_arms)}, n_users, n_arms)

    def joined(self, more: History) -> "RewardTable":
        """Returns both as one table, sorted by user and arm; O(rows log rows). A table joined to nothing is itself."""
        n_users, n_arms = len(self.first), self._n_arms
        if not len(self) and isinstance(more, RewardTable):
            return RewardTable.of(more, n_users, n_arms)
        states = self.state(), more.state()
        columns = {
            name: np.concatenate([np.asarray(state[name], kind) for state in states]) for name, kind in COLUMNS.items()
        }
        n_observations = self.n_observations + more.n_observations
        return RewardTable.from_columns(
            {"n_observations": n_observations, **collapsed(columns, n_arms)}, n_users, n_arms
        )

    def lengthen(self, n_users: int) -> None:
        """Makes room for newcomers, who have no rows."""
        self._room.lengthen(self, n_users, first=-1, lengths=0)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        fixed = self.first.nbytes + self.lengths.nbytes + self.following.nbytes
        return int(fixed + sum(column.nbytes for column in self._columns.values()))

    @property
    def chains(self) -> tuple[Any, ...]:
        """What compiled functions take: first, following, arms and counts."""
        return self.first, self.following, self._columns["arms"], self._columns["counts"]

    @property
    def users(self) -> Any:  # type: ignore[override] # the base keeps a list here
        """The users of the rows."""
        return self._column("users")

    @property
    def arms(self) -> Any:  # type: ignore[override] # the base keeps a list or dict here
        """The arms of the rows."""
        return self._column("arms")

    @property
    def counts(self) -> Any:  # type: ignore[override] # the base keeps a list or dict here
        """How many rewards a row stands for."""
        return self._column("counts")

    @property
    def means(self) -> Any:  # type: ignore[override] # the base keeps a list or dict here
        """Their means."""
        return self._column("means")

    @property
    def scatters(self) -> Any:  # type: ignore[override] # the base keeps a list or dict here
        """Their sums of squares about the mean."""
        return self._column("scatters")

    @property
    def rows(self) -> "RowIndex":  # type: ignore[override] # the base keeps a list or dict here
        """Where a pair's row is, by the pair's number."""
        return RowIndex(self, self._n_arms)

    def place(self, user: int, arm: int) -> int:
        """Returns the row of a pair, or -1."""
        return int(self.compiled.find_row(self.first, self.following, self._columns["arms"], user, arm))

    def of_user(self, user: int) -> Index:
        """Returns the rows of a user."""
        out = np.empty(self.lengths[user], np.intp)
        self.compiled.chain(self.first, self.following, user, out)
        return out

    def add(self, key: Any, user: int, arm: Any, reward: float, *, weight: float = 1) -> None:  # noqa: ARG002
        """Adds one reward; a pair is found by user and arm."""
        self.n_observations += 1
        self.put(user, arm, weight, reward, 0.0)

    def put(self, user: int, arm: int, count: float, mean: float, scatter: float) -> None:
        """Adds so many rewards with this mean and sum of squares about it."""
        self.largest = max(self.largest, abs(mean))
        row = self.place(user, arm)
        if row < 0:
            self._put_new(user, arm, count, mean, scatter)
            return
        counts, means, scatters = (self._columns[name] for name in ("counts", "means", "scatters"))
        total, gap = counts[row] + count, mean - means[row]
        scatters[row] += scatter + gap * gap * counts[row] * count / total
        means[row] += gap * count / total
        counts[row] = total

    def merge(self, other: History) -> None:
        """Adds everything another history holds."""
        self.n_observations += other.n_observations
        for each in zip(other.users, other.arms, other.counts, other.means, other.scatters, strict=True):
            self.put(*each)

    def shift(self, amount: float) -> None:
        """Adds the same amount to every reward."""
        self.means[:] += amount
        self.largest = float(np.max(np.abs(self.means), initial=0.0))

    def rekey(self, key: Callable[[int, Any], Hashable]) -> None:
        """Does nothing: pairs are found by user and arm."""

    def state(self) -> dict[str, Any]:
        """Returns what `from_columns` makes the same table from; nothing is copied."""
        counted = {"n_observations": self.n_observations, "largest": self.largest}
        return counted | {name: self._column(name) for name in COLUMNS}

    def mark(self, batch: History) -> tuple[int, int, list[tuple[Any, ...]]]:
        """Returns what `undo` takes, once rows of the batch have been put."""
        values = [self._columns[name] for name in ("counts", "means", "scatters")]
        pairs = zip(batch.user_array().tolist(), batch.arm_array().tolist(), strict=True)
        known = [row for row in (self.place(*pair) for pair in pairs) if row >= 0]
        return len(self), self.n_observations, [(row, *(float(each[row]) for each in values)) for row in known]

    def undo(self, size: int, n_observations: int, rows: list[tuple[Any, ...]]) -> None:
        """Takes back what was put since it had this size: what rows held before, the last change first to go."""
        for row, *values in reversed(rows):
            for name, value in zip(("counts", "means", "scatters"), values, strict=True):
                self._columns[name][row] = value
        for row in range(self._size - 1, size - 1, -1):
            user = self._columns["users"][row]
            self.first[user] = self.following[row]
            self.lengths[user] -= 1
        self._size, self.n_observations = size, n_observations

    def _column(self, name: str) -> Any:
        return self._columns[name][: self._size]

    def _put_new(self, user: int, arm: int, *values: float) -> None:
        row = self._size
        if row == len(self.following):
            self._columns = {name: with_room(column, 2 * len(column)) for name, column in self._columns.items()}
            self.following = with_room(self.following, 2 * row)
        for name, value in zip(COLUMNS, (user, arm, *values), strict=True):
            self._columns[name][row] = value
        self.following[row], self.first[user] = self.first[user], row
        self.lengths[user] += 1
        self._size = row + 1


class RowIndex:
    """The rows of a table by the numbers of their pairs, as a mapping has them."""

    __slots__ = ("_n_arms", "_table")

    def __init__(self, table: RewardTable, n_arms: int) -> None:
        self._table, self._n_arms = table, n_arms

    def __len__(self) -> int:
        return len(self._table)

    def get(self, key: Any) -> int | None:
        """Returns the row of a pair, if there is one."""
        row = self._table.place(*divmod(key, self._n_arms))
        return row if row >= 0 else None

    def items(self) -> Iterator[tuple[int, int]]:
        """Returns pairs' numbers and rows."""
        keys = self._table.user_array() * self._n_arms + self._table.arm_array()
        return zip(keys.tolist(), range(len(keys)), strict=True)


def collapsed(columns: Columns, n_arms: int) -> Columns:
    """Returns columns of rows with one for each pair, sorted: counts added, means and scatters of all their rewards.

    Examples:
        >>> columns = {"users": np.array([1, 0, 1]), "arms": np.array([2, 0, 2]), "counts": np.array([1.0, 1.0, 1.0])}
        >>> found = collapsed(columns | {"means": np.array([1.0, 5.0, 3.0]), "scatters": np.zeros(3)}, 3)
        >>> found["users"], found["counts"], found["means"], found["scatters"]
        (array([0, 1]), array([1., 2.]), array([5., 2.]), array([0., 2.]))
    """
    keys = columns["users"].astype(np.int64) * n_arms + columns["arms"]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.intp)
    if len(starts) == len(keys):
        return {name: column[order] for name, column in columns.items()}
    counts, means = columns["counts"][order], columns["means"][order]
    total = np.add.reduceat(counts, starts)
    middle = np.add.reduceat(counts * means, starts) / total
    means -= np.repeat(middle, np.diff(starts, append=len(keys)))
    scatters = np.add.reduceat(columns["scatters"][order] + counts * means * means, starts)
    users, arms = keys[starts] // n_arms, keys[starts] % n_arms
    kinds = (columns[name].dtype for name in COLUMNS)
    found = zip(COLUMNS, (users, arms, total, middle, scatters), kinds, strict=True)
    return {name: column.astype(kind) for name, column, kind in found}
