"""What was observed, with repeats of a (user, arm) pair collapsed to a count, a mean and a sum of squares."""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, Self

import numpy as np

from coterie.contracts import Array, Index


class History:
    """The observations, one row for each distinct pair, in order of first appearance.

    With Gaussian noise of equal variance the collapse loses nothing: a pair's rewards enter the posterior through
    their count and mean only, and the evidence through their scatter besides.

    Attributes:
        pairs_of: How many distinct pairs a user has, for users who have any.
        largest: What no mean of a pair exceeds in size; the rounding errors of a posterior mean are proportional to it.
        spare: How many rewards more there are than the counts say, where some are noisier than others
            (`Model.learn_noisier`): evidence of the noise goes by rewards, the posterior by counts.

    Examples:
        >>> history = History()
        >>> history.add("pair", 0, 3, 1.0)
        >>> history.add("pair", 0, 3, 2.0)
        >>> history.counts, history.means, history.scatters, history.n_observations
        ([2], [1.5], [0.5], 2)
    """

    __slots__ = (
        "arms",
        "counts",
        "largest",
        "means",
        "n_observations",
        "pairs_of",
        "rows",
        "scatters",
        "spare",
        "users",
    )

    def __init__(self) -> None:
        self.rows: dict[Hashable, int] = {}
        self.users: list[int] = []
        self.pairs_of: Counter[int] = Counter()
        self.arms: list[Any] = []
        self.counts: list[float] = []
        self.means: list[float] = []
        self.scatters: list[float] = []
        self.n_observations = 0
        self.largest = self.spare = 0.0

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, key: Any, user: int, arm: Any, reward: float, *, weight: float = 1) -> None:
        """Adds one reward, by Welford's update; one of weight w is as w rewards, w being any number > 0. O(1)."""
        self.n_observations += 1
        self.largest = max(self.largest, abs(reward))
        row = self.rows.get(key)
        if row is None:
            self._append(key, user, arm, weight, reward, 0.0)
            return
        count = self.counts[row] + weight
        gap = reward - self.means[row]
        mean = self.means[row] + gap * weight / count
        self.counts[row] = count
        self.means[row] = mean
        self.scatters[row] += weight * gap * (reward - mean)

    def merge(self, other: "History") -> None:
        """Adds everything another history holds. O(its distinct pairs)."""
        self.n_observations += other.n_observations
        self.spare += other.spare
        self.largest = max(self.largest, other.largest)
        for key, i in other.rows.items():
            count, mean, scatter = other.counts[i], other.means[i], other.scatters[i]
            row = self.rows.get(key)
            if row is None:
                self._append(key, other.users[i], other.arms[i], count, mean, scatter)
                continue
            total = self.counts[row] + count
            gap = mean - self.means[row]
            self.scatters[row] += scatter + gap * gap * self.counts[row] * count / total
            self.means[row] += gap * count / total
            self.counts[row] = total

    def revise(self, row: int, before: float, after: float) -> None:
        """Puts a reward of a row in the place of one that it holds. O(1).

        Examples:
            >>> history = History()
            >>> for reward in (1.0, 5.0): history.add("pair", 0, 3, reward)
            >>> history.revise(0, 5.0, 2.0)
            >>> history.means, history.scatters
            ([1.5], [0.5])
        """
        old = self.means[row]
        new = old + (after - before) / self.counts[row]
        self.scatters[row] = max(self.scatters[row] + (after - before) * (after - new + before - old), 0.0)
        self.means[row] = new
        self.largest = max(self.largest, abs(new))

    def shift(self, amount: float) -> None:
        """Adds the same amount to every reward. O(rows)."""
        self.means = [mean + amount for mean in self.means]
        self.largest = max(map(abs, self.means), default=0.0)

    def rekey(self, key: Callable[[int, Any], Hashable]) -> None:
        """Names the rows by this function of user and arm, so that further rewards find theirs. O(rows)."""
        self.rows = {key(user, arm): row for row, (user, arm) in enumerate(zip(self.users, self.arms, strict=True))}

    def state(self) -> dict[str, Any]:
        """Returns what `restored` makes the same history from."""
        return {
            "n_observations": self.n_observations,
            "largest": self.largest,
            "users": self.user_array(),
            "arms": self.arm_array(),
            "counts": self.count_array(),
            "means": self.mean_array(),
            "scatters": np.array(self.scatters, dtype=np.float64),
            **({"spare": self.spare} if self.spare else {}),
        }

    @classmethod
    def restored(cls, state: dict[str, Any], key: Callable[[int, Any], Hashable]) -> Self:
        """Returns the history of a state, its rows named by this function of user and arm."""
        out = cls()
        out.n_observations = state["n_observations"]
        out.users, out.arms = state["users"].tolist(), as_arms(state["arms"])
        out.pairs_of = Counter(out.users)
        out.counts, out.means, out.scatters = (state[name].tolist() for name in ("counts", "means", "scatters"))
        out.largest, out.spare = largest_in(state), state.get("spare", 0.0)
        out.rekey(key)
        return out

    @classmethod
    def weighted(cls, users: Any, arms: Any, rewards: Any, weights: Array) -> Self:
        """Returns the history in which each reward counts as much as its weight says; none for weight 0."""
        out = cls()
        for user, arm, reward, weight in zip(users, arms, rewards, weights.tolist(), strict=True):
            if weight > 0:
                key = arm.tobytes() if isinstance(arm, np.ndarray) else arm
                out.add((user, key), user, arm, reward, weight=weight)
        return out

    def user_array(self) -> Index:
        """Returns the users of the rows."""
        return np.asarray(self.users, dtype=np.intp)

    def arm_array(self) -> Any:
        """Returns the arms of the rows: integers, or one vector a row."""
        vectors = len(self.arms) > 0 and isinstance(self.arms[0], np.ndarray)
        return np.array(self.arms) if vectors else np.asarray(self.arms, dtype=np.intp)

    def count_array(self) -> Array:
        """Returns the counts of the rows."""
        return np.asarray(self.counts, dtype=np.float64)

    def mean_array(self) -> Array:
        """Returns the mean rewards of the rows."""
        return np.asarray(self.means, dtype=np.float64)

    def _append(self, key: Any, user: int, arm: Any, count: float, mean: float, scatter: float) -> None:
        self.rows[key] = len(self.rows)
        self.users.append(user)
        self.pairs_of[user] += 1
        self.arms.append(arm)
        self.counts.append(count)
        self.means.append(mean)
        self.scatters.append(scatter)


def as_arms(array: Any) -> list[Any]:
    """Returns the arms that an array holds: integers, or one vector a row."""
    return array.tolist() if array.ndim == 1 else list(array)


def largest_in(state: dict[str, Any]) -> float:
    """Returns what no mean of a state exceeds in size; files of version 0.1 do not say, and their means tell."""
    return float(state["largest"] if "largest" in state else np.max(np.abs(state["means"]), initial=0.0))


class GrowingArray:
    """An array that grows at its end, with room to spare so that adding a row is O(1) on average.

    Attributes:
        values: The rows so far.
        size: How many there are.
    """

    __slots__ = ("_room", "size", "values")

    def __init__(self, rows: Any) -> None:
        self._room = np.array(rows)
        self.values: Any = self._room
        self.size = len(rows)

    def extend(self, rows: Any) -> None:
        """Adds rows at the end."""
        total = self.size + len(rows)
        if total > len(self._room):
            room = np.empty((max(2 * len(self._room), total, 64), *self._room.shape[1:]), dtype=self._room.dtype)
            room[: self.size] = self.values
            self._room = room
        self._room[self.size : total] = rows
        self.values, self.size = self._room[:total], total
