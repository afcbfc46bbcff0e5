"""One matrix for each of the few users who need one: data blocks, and marginal covariances."""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, ClassVar, Self

import numpy as np

from coterie.algebra.gaps import gap_of_matrices
from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.kernels.growing_rows import Room, with_room
from coterie.models.engines.sparse.limits import Limits
from coterie.models.engines.sparse.reward_table import RewardTable

FIRST_ROOM = 16
RENEW_EVERY = 64
NONE, LACKING = -1, -2  # in `slot`: no matrix; or, as compiled loops know it, one that has not been made yet
NEARLY = 1e-6


class UserBlocks:
    """Matrices and numbers of some of the users, found by a table of all of them; room doubles when it runs out.

    Beyond `limits.block_bytes` all are evicted, for they can be made again.
    """

    evicted: ClassVar[int] = NONE  # what a user's slot says once their matrix is evicted
    inverse: Array

    def __init__(self, n_users: int, width: int, limits: Limits, **arrays: tuple[int, ...]) -> None:
        self._limits = limits
        self.slot = np.full(n_users, -1, dtype=np.int32)
        self.users: list[int] = []
        self.width, self._room = width, Room()
        self._names = tuple(arrays)
        for name, shape in arrays.items():
            setattr(self, name, np.zeros((FIRST_ROOM, *shape)))

    def __len__(self) -> int:
        return len(self.users)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self.slot.nbytes + sum(getattr(self, name).nbytes for name in self._names))

    def open(self, user: int) -> int:
        """Returns the place of a user, a new one if they had none, its matrix left to the caller."""
        if self.slot[user] >= 0:
            return int(self.slot[user])
        room = len(getattr(self, self._names[0]))
        if len(self.users) == room and 2 * room * self.width**2 * 8 > self._limits.block_bytes:
            self._evict()
        elif len(self.users) == room:
            for name in self._names:
                setattr(self, name, with_room(getattr(self, name), 2 * room))
        place = len(self.users)
        for name in self._names:
            if getattr(self, name).ndim == 1:
                getattr(self, name)[place] = 0.0
        self.users.append(user)
        self.slot[user] = place
        return place

    def make(self, user: int) -> int:
        """Returns the place of a user; blocks that are computed are computed here."""
        return self.open(user)

    def lengthen(self, n_users: int) -> None:
        """Makes room for newcomers, who have none."""
        self._room.lengthen(self, n_users, slot=NONE)

    def _evict(self) -> None:
        self.slot[self.users] = self.evicted
        self.users.clear()

    def state(self) -> dict[str, Any]:
        """Returns what `take` makes the same blocks from, to the bit; nothing is copied."""
        kept = {name: getattr(self, name)[: len(self)] for name in self._names}
        return {"users": np.array(self.users, dtype=np.int64), **kept}

    def take(self, state: dict[str, Any]) -> Self:
        """Takes the blocks of a state, and returns itself."""
        self._evict()  # of blocks that a warm-up made: their users may have none in the state
        self.users = state["users"].tolist()
        self.slot[state["users"]] = np.arange(len(self.users))
        for name in self._names:
            if name not in state:  # a file of before knew nothing of it
                setattr(self, name, np.zeros((max(len(self.users), FIRST_ROOM), *getattr(self, name).shape[1:])))
            elif len(self.users) >= FIRST_ROOM:
                setattr(self, name, state[name])  # with no room to spare: it doubles when somebody joins
            else:
                getattr(self, name)[: len(self.users)] = state[name]
        return self


class DataBlocks(UserBlocks):
    """For users with data the inverse of diagonal + B_u, with B_u the precision of their rewards.

    Nothing else is kept of it: the rows of the table give it. A user with rows has no block before one is asked for.
    """

    evicted = LACKING

    def __init__(self, kernel: GraphKernel, table: RewardTable, noise_var: float, limits: Limits) -> None:
        width = kernel.features.shape[1]
        self.inverse, self.added, self.weight = np.zeros((0, 0, 0)), np.zeros(0), np.zeros(0)
        super().__init__(kernel.n_users, width, limits, inverse=(width, width), added=(), weight=())
        self.slot[table.first >= 0] = LACKING
        self.heaviest = 0.0  # the largest trace of a block so far
        self.table, self.noise_var = table, noise_var
        self._kernel, self._features = kernel, kernel.features

    def add(self, user: int, row: Array, noise: float) -> None:
        """Adds row row' / noise, before the table has it. The inverse follows by Sherman-Morrison, or is recomputed."""
        place = self.make(user)
        self.added[place] += 1
        self._weigh(place, float(row @ row) / noise)
        if self.added[place] % RENEW_EVERY == 0:
            self.inverse[place] = self.fresh_inverse(user)
        condition(self.inverse[place], row, noise)

    def _weigh(self, place: int, more: float) -> None:
        self.weight[place] += more
        self.heaviest = max(self.heaviest, float(self.weight[place]))

    def follow(self, kernel: GraphKernel, users: Iterable[int]) -> None:
        """Takes a graph that has changed, its diagonal at these users, and recomputes their inverses."""
        self._kernel = kernel
        for user in users:
            if self.slot[user] >= 0:
                self.inverse[self.slot[user]] = self.fresh_inverse(user)

    def make(self, user: int) -> int:
        """Returns the place of a user, whose inverse is made if there was none."""
        known = self.slot[user] >= 0
        place = self.open(user)
        if not known:
            self.inverse[place] = self.fresh_inverse(user)
            rows = self.table.of_user(user)
            seen = self.table.counts[rows] @ self._kernel.arm_diag(self.table.arms[rows])
            self._weigh(place, float(seen) / self.noise_var)
        return place

    def mark(self) -> tuple[int, float]:
        """Returns what `back_to` takes."""
        return len(self.users), self.heaviest

    def back_to(self, mark: tuple[int, float]) -> None:
        """Evicts the blocks made since a mark: one that follows rewards rounds otherwise than one made later."""
        size, self.heaviest = mark
        self.slot[self.users[size:]] = self.evicted
        del self.users[size:]

    def state(self) -> dict[str, Any]:
        """Returns what `take` makes the same blocks from, to the bit; nothing is copied."""
        return super().state() | {"heaviest": self.heaviest}

    def take(self, state: dict[str, Any]) -> Self:
        """Takes the blocks of a state, and returns itself."""
        super().take(state)
        self.heaviest = state.get("heaviest", float(self.weight[: len(self)].max(initial=0.0)))
        return self

    def inverse_of(self, user: int) -> Array:
        """Returns the inverse of a user with data, made if there was none: `make` may take another array."""
        place = self.make(user)
        return np.asarray(self.inverse[place])

    def precision(self, user: int) -> Array:
        """Returns B_u, from the table."""
        out = np.empty((self.width, self.width))
        self.table.compiled.user_gram(user, *self.table.chains, self._features, out)
        return np.asarray(out / self.noise_var)

    def fresh_inverse(self, user: int) -> Array:
        """Returns the inverse of diagonal + B_u, recomputed from the table."""
        out = np.empty((self.width, self.width))
        rows = *self.table.chains, self._features, self.noise_var
        self.table.compiled.inverse_block(user, *rows, float(self._kernel.diagonal[user]), out)
        return out

    def drift(self) -> float:
        """Returns how far the inverses are from recomputed ones, relative to their size."""
        fresh = ((self.inverse[place], self.fresh_inverse(user)) for place, user in enumerate(self.users))
        return float(max((np.abs(kept - new).max() / np.abs(new).max() for kept, new in fresh), default=0.0))

    def renew(self) -> None:
        """Recomputes all inverses."""
        for place, user in enumerate(self.users):
            self.inverse[place] = self.fresh_inverse(user)

    def known_of(self, users: Any) -> Array:
        """Returns about how many directions of each user's weights their data tell, exactly where there is a block."""
        places, diagonal = self.slot[users], self._kernel.diagonal[users]
        lengths = np.minimum(self.table.lengths[users], self.width)
        usual = np.trace(self._kernel.arm_moment) / self.noise_var
        out = lengths * usual / (diagonal + usual)
        kept = places >= 0
        traces = self.inverse.diagonal(axis1=1, axis2=2)[places[kept]].sum(axis=1)
        out[kept] = self.width - diagonal[kept] * traces
        return np.asarray(out)

    def mismatch(self, blocks_times: Callable[[Array], Array]) -> float:
        """Returns how far the inverses are from those of rows and kernel, by one product of all with random numbers.

        Args:
            blocks_times: Every user's data block times their weights.
        """
        probe = np.random.default_rng(0).standard_normal((len(self.slot), self.width))
        solved = np.zeros_like(probe)
        solved[self.users] = np.einsum("bij,bj->bi", self.inverse[: len(self)], probe[self.users])
        again = self._kernel.diagonal[:, None] * solved + blocks_times(solved)
        return gap_of_matrices(again[self.users], probe[self.users])


class MarginalBlocks(UserBlocks):
    """For users that were decided for an upper bound of the covariance of their weights, [A^-1]_uu.

    `stale` is how much of the trace others' rewards may have taken off since it was computed.
    """

    def __init__(self, n_users: int, width: int, limits: Limits) -> None:
        self.matrix, self.stale = np.zeros((0, 0, 0)), np.zeros(0)
        super().__init__(n_users, width, limits, matrix=(width, width), stale=())

    def condition(self, user: int, row: Array, noise: float) -> None:
        """Conditions a user's block on a reward of their own: an upper bound stays one, for this keeps the order."""
        place = self.slot[user]
        if place >= 0:
            condition(self.matrix[place], row, noise)

    def is_fresh(self, user: int, share: float) -> bool:
        """Returns whether a user has a block, of whose trace others' rewards have taken off no more than this share."""
        place = self.slot[user]
        return bool(place >= 0 and not self.stale[place] > share * np.trace(self.matrix[place]))

    def forget(self) -> None:
        """Forgets all blocks, for none is an upper bound any longer. O(blocks)."""
        self._evict()

    def put(self, user: int, matrix: Array, missed: float) -> None:
        """Takes a fresh upper bound and what it misses, unless the one at hand is lower on the whole."""
        known = self.slot[user] >= 0
        place = self.open(user)
        self.stale[place] = missed
        if not known or np.trace(matrix) < np.trace(self.matrix[place]):
            self.matrix[place] = matrix

    def mismatch(self, most: float) -> float:
        """Returns how far blocks are from symmetric; infinity if one is no covariance, or one beyond the most."""
        bounds = self.matrix[: len(self)]
        variances = np.einsum("bii->bi", bounds)
        if not np.all((variances > 0) & (variances <= (1 + NEARLY) * most)):
            return inf
        return gap_of_matrices(bounds, bounds.transpose(0, 2, 1))


def condition(matrix: Array, row: Array, noise: float) -> None:
    """Conditions a covariance on one observation of a row's product, in place."""
    column = matrix @ row
    matrix -= np.outer(column, column / (noise + max(float(row @ column), 0.0)))


def symmetric(matrix: Array) -> Array:
    """Returns the symmetric part."""
    return np.asarray((matrix + matrix.T) / 2)
