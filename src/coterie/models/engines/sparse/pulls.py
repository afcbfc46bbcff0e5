"""What moved an estimate: how much each pair's mean reward weighs in the mean of one pair."""

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph import GraphKernel
from coterie.models.base import Index
from coterie.models.engines.sparse.blocks import DataBlocks
from coterie.models.engines.sparse.common import Common
from coterie.models.engines.sparse.joint import Joint, Stop
from coterie.models.engines.sparse.own import OwnParts

FINE = 1e-6  # of the features' size


def shared_field(kernel: GraphKernel, data: DataBlocks, common: Common, user: int, row: Array) -> Array:
    """Returns the covariance of everybody's g + k with the product of a row and one user's; by one solve for all."""
    right = np.zeros((kernel.n_users + 1, len(row)))
    right[user] = right[-1] = row
    goal = FINE * float(np.linalg.norm(row))
    stop = Stop(goal * kernel.shape, np.zeros(kernel.n_users), goal)
    found, _ = Joint(kernel, data, common.precision_above()).solve(right, stop)
    return np.asarray(found[:-1] + found[-1])


def whole_products(own: OwnParts, user: int, row: Array, users: Index, rows: Array, field: Array) -> Array:
    """Returns the covariance of pairs with one, theirs and its users' own parts included.

    Args:
        own: The own parts.
        user: The one's user.
        row: The one's features.
        users: The pairs' users.
        rows: Their features.
        field: The covariance of their users' shared weights with the one.
    """
    out = np.empty(len(users))
    for other in np.unique(users).tolist():
        mine = users == other
        out[mine] = np.einsum("ij,ij->i", own.rows(other, rows[mine])[0], field[mine])
        if other == user:
            out[mine] += rows[mine] @ own.whole(user, np.zeros((len(row), len(row)))) @ row
    return out
