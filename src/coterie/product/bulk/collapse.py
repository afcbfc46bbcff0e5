"""Events of pairs of (user, arm) as a count, a mean and a scatter each: what a fit needs of them.

Partial results can be merged in any grouping: those of two parts give what both together do, up to the rounding of
sums. So parts can be combined in other processes, and their columns sent back.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from coterie.models.engines.sparse.reward_table import RewardTable
from coterie.policies.reward_batches import WAITING, Combined
from coterie.product.bulk.sources import ROWS, EventPart, IdRows, as_rows, read_part

Columns = dict[str, Any]  # users, arms, counts, means and scatters of the pairs; n_observations
RowsRead = Callable[[int, int], None]


def combine_parts(
    parts: Iterable[EventPart],
    users: IdRows,
    arms: IdRows,
    *,
    rows: int = ROWS,
    waiting: int = WAITING,
    progress: RowsRead | None = None,
) -> Columns:
    """Returns the pairs of all events of some parts, sorted by user and arm.

    Args:
        parts: Of the files.
        users: Rows of users by id.
        arms: Rows of arms by id.
        rows: How many rows are read at a time.
        waiting: How many rewards are held before repeats of pairs are collapsed, at least.
        progress: Called after each batch with how many rows were read, and how many distinct pairs are known.
    """
    found = Combined(len(arms), waiting=waiting)
    for part in parts:
        for batch in read_part(part, rows):
            found.add(*as_rows(batch, users, arms))
            if progress is not None:
                progress(found.n_rows, found.n_pairs)
    return found.columns()


def merge_columns(several: Iterable[Mapping[str, Any]], n_arms: int) -> Columns:
    """Returns the pairs of several results of `combine_parts` as one.

    Examples:
        >>> import numpy as np
        >>> def one(reward):
        ...     found = Combined(2)
        ...     found.add(np.array([0]), np.array([1]), np.array([reward]))
        ...     return found.columns()
        >>> both = merge_columns([one(1.0), one(2.0)], 2)
        >>> both["counts"], both["means"], both["scatters"], both["n_observations"]
        (array([2.]), array([1.5]), array([0.5]), 2)
    """
    found = Combined(n_arms)
    for columns in several:
        found.merge(columns)
    return found.columns()


def table_of(columns: Mapping[str, Any], n_users: int, n_arms: int) -> RewardTable:
    """Returns columns as the table that a fit takes; it takes over the arrays."""
    return RewardTable.from_columns(dict(columns), n_users, n_arms)
