"""Features of users as rows of numbers: age band, region, whatever is known of them beside the graph."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from coterie.contracts import Array, UserId
from coterie.errors import ContextError, listed
from coterie.kernels.inputs import InputScaling
from coterie.kernels.schema import ContextSchema


def user_rows(users: Iterable[UserId], table: Mapping[Any, Any]) -> Array:
    """Returns a row for each user: numbers of mean 0 and standard deviation 1, and categories as one-hot columns.

    Args:
        users: The users, in order.
        table: The features of each, all of the same names: a mapping, or a row of numbers.

    Examples:
        >>> user_rows(["ana", "bo"], {"ana": {"age": 20, "region": "north"}, "bo": {"age": 30, "region": "south"}})
        array([[-1.,  1.,  0.],
               [ 1.,  0.,  1.]])
    """
    ids = list(users)
    missing = [user for user in ids if user not in table]
    if missing:
        what, rule = f"users {listed(missing)} have no features", "every user of the graph has them, or none has"
        raise ContextError(what, rule, "Give them features")
    schema, rows = ContextSchema(), []
    for user in ids:
        try:
            schema = schema if schema.fields else ContextSchema.learned(table[user])
            row, schema = schema.encoded(table[user])
        except ContextError as error:
            what = error.problem.replace("the context", f"the features of user {user!r}")
            raise ContextError(what, error.rule, "Give every user the same features") from None
        rows.append(row)
    both = np.array(rows)
    numbers, codes = both[:, : schema.n_numbers], both[:, schema.n_numbers :]
    one_hot = [np.equal.outer(column, np.unique(column)).astype(np.float64) for column in codes.T]
    return np.column_stack([InputScaling.of(numbers).applied(numbers), *one_hot])
