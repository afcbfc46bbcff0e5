"""What each part of a graph that was cut holds: its users' rows of A, their rewards, and whom it needs of others."""

from typing import Any, NamedTuple

import numpy as np

from coterie.contracts import Array, Index
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models.engines.sparse.reward_table import COLUMNS, Columns


class PartGraph(NamedTuple):
    """The rows of L_rho = diag(diagonal) - weights that belong to the users of a part.

    Attributes:
        users: Their rows of the whole graph, ascending.
        starts: Where the entries of each row of `weights` start.
        ends: Where they end.
        indices: Their columns: the part's own users from 0 on, and then the halo.
        weights: The entries.
        diagonal: That of L_rho.
        shape: The tolerance of each user's residual beside others'.
        null: The null vector of the Laplacian at these users.
        halo: The parts that other parts' users in these rows are of, and their numbers there, in the order of columns.
        sends: The parts that have users of this one in their halo, and these users' numbers here, in their order.
    """

    users: Index
    starts: Any
    ends: Any
    indices: Any
    weights: Array
    diagonal: Array
    shape: Array
    null: Array
    halo: tuple[tuple[int, Index], ...]
    sends: tuple[tuple[int, Index], ...]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        exchanged = sum(each.nbytes for _, each in (*self.halo, *self.sends))
        return exchanged + sum(each.nbytes for each in self[:-2])

    @property
    def halo_size(self) -> int:
        """How many users of other parts it needs."""
        return sum(len(each) for _, each in self.halo)


def cut_kernel(kernel: GraphKernel, parts: Index, n_parts: int) -> list[PartGraph]:
    """Returns the rows of each part. O(edges)."""
    place = np.empty(len(parts), np.int64)
    members = [np.flatnonzero(parts == part) for part in range(n_parts)]
    for users in members:
        place[users] = np.arange(len(users))
    cut = [_cut_one(kernel, parts, place, users, part) for part, users in enumerate(members)]
    sends: list[list[tuple[int, Index]]] = [[] for _ in range(n_parts)]
    for part, each in enumerate(cut):
        for other, places in each.halo:
            sends[other].append((part, places))
    return [each._replace(sends=tuple(sends[part])) for part, each in enumerate(cut)]


def _cut_one(kernel: GraphKernel, parts: Index, place: Index, users: Index, part: int) -> PartGraph:
    rows = kernel.weights[users]
    columns, outside = rows.indices, parts[rows.indices] != part
    others = np.unique(columns[outside])  # by row; the halo goes by part, and by row there
    by_part = np.argsort(parts[others], kind="stable")
    column = np.empty(len(others), np.int32)
    column[by_part] = len(users) + np.arange(len(others))
    indices = place[columns].astype(np.int32)
    indices[outside] = column[np.searchsorted(others, columns[outside])]
    owners = parts[others]
    halo = tuple((int(owner), place[others[owners == owner]]) for owner in np.unique(owners))
    return PartGraph(
        users,
        rows.indptr[:-1].astype(np.int64),
        rows.indptr[1:].astype(np.int64),
        indices,
        np.ascontiguousarray(rows.data),
        kernel.diagonal[users],
        kernel.shape[users],
        kernel.null[users],
        halo,
        (),
    )


def cut_rows(columns: Columns, parts: Index, n_parts: int) -> list[Columns]:
    """Returns the rows of rewards of each part's users, who are numbered there from 0. O(rows)."""
    place = np.empty(len(parts), np.int64)
    for part in range(n_parts):
        users = np.flatnonzero(parts == part)
        place[users] = np.arange(len(users))
    owners = parts[columns["users"]]
    out = []
    for part in range(n_parts):
        rows = np.flatnonzero(owners == part)
        mine = {name: columns[name][rows] for name in COLUMNS}
        out.append(mine | {"users": place[mine["users"]].astype(np.int32)})
    return out
