"""Which columns of a table hold the two users of an edge, and which its weight: by their names."""

from collections.abc import Hashable, Sequence
from typing import Any

from coterie.errors import GraphError, listed

EDGE_PAIRS = (("user", "other"), ("user", "friend"), ("source", "target"), ("from", "to"))
WEIGHT = "weight"
RULE = f"an edge has two users, and a weight in a column {WEIGHT!r} only"


def edge_pair(names: Sequence[Any]) -> tuple[str, str] | None:
    """Returns the columns of the two users, if they have names that say so.

    Examples:
        >>> edge_pair(["weight", "friend", "user"]), edge_pair(["a", "b"])
        (('user', 'friend'), None)
    """
    return next((pair for pair in EDGE_PAIRS if set(pair) <= set(names)), None)


def edge_columns(names: Sequence[Any], weight: Hashable | None = None) -> list[Any]:
    """Returns the columns of the two users and, if there is one, of the weight, which any other name does not make.

    Two columns beside the weight hold the users, in that order, whatever they are called. Of more, those with the names
    that say so do, and only where the weight has a name too are the rest left out.

    Args:
        names: The columns of the table.
        weight: The column of the weights; none means "weight", if there is such a column.

    Examples:
        >>> edge_columns(["since", "weight", "friend", "user"]), edge_columns(["a", "b"])
        (['user', 'friend', 'weight'], ['a', 'b'])
        >>> edge_columns(["user", "friend", "since"], weight="since")
        ['user', 'friend', 'since']
        >>> edge_columns(["user", "friend", "since"])
        Traceback (most recent call last):
        coterie.errors.GraphError: the table has 3 columns ('user', 'friend', 'since'); an edge has two users, and ...
    """
    if weight is not None and weight not in names:
        raise GraphError(
            f"there is no column {weight!r} of weights", f"columns are {listed(names)}", "Name one of these"
        )
    held = [name for name in names if name == (WEIGHT if weight is None else weight)]
    others = [name for name in names if name not in held]
    pair = edge_pair(others)
    if len(others) == 2 or (pair and held):
        return [*(pair or others), *held]
    problem = f"the table has {len(names)} columns ({listed(names)})"
    raise GraphError(
        problem, RULE, f"Call the column of weights {WEIGHT!r}, if there is one, and leave out what is more"
    )
