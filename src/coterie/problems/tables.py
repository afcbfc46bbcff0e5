"""Expected rewards by user and arm: tables that a round is looked up in."""

from collections.abc import Mapping

from coterie.contracts import ArmId, Array, UserId

MOST_NAMED = 2_000  # beyond so many users a table is an array: the names would take some ten times its room


class LargeTable:
    """An array with a row for each user and a column for each arm, read by their names.

    Examples:
        >>> import numpy as np
        >>> LargeTable(np.array([[1.0, 2.0]]), {"ana": 0}, {"tea": 0, "milk": 1})["ana"]["milk"]
        2.0
    """

    __slots__ = ("_arms", "_users", "_values")

    def __init__(self, values: Array, users: Mapping[UserId, int], arms: Mapping[ArmId, int]) -> None:
        self._values, self._users, self._arms = values, users, arms

    def __getitem__(self, user: UserId) -> "LargeRow":
        return LargeRow(self._values[self._users[user]], self._arms)


class LargeRow:
    """A user's row of such a table."""

    __slots__ = ("_arms", "_values")

    def __init__(self, values: Array, arms: Mapping[ArmId, int]) -> None:
        self._values, self._arms = values, arms

    def __getitem__(self, arm: ArmId) -> float:
        return self._values.item(self._arms[arm])


NamedTable = dict[UserId, dict[ArmId, float]]
Table = NamedTable | LargeTable
