"""One matrix for each of the few users who need one: data blocks, and marginal covariances."""

from typing import Any, Self

import numpy as np

from coterie.contracts import Array

FIRST_ROOM = 16
RENEW_EVERY = 64


class UserBlocks:
    """Matrices and numbers of some of the users, found by a table of all of them; room doubles when it runs out."""

    def __init__(self, n_users: int, width: int, **arrays: tuple[int, ...]) -> None:
        self.slot = np.full(n_users, -1, dtype=np.int32)
        self.users: list[int] = []
        self.width = width
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
        """Returns the place of a user, a new one of zeros if they had none."""
        if self.slot[user] >= 0:
            return int(self.slot[user])
        place = len(self.users)
        if place == len(getattr(self, self._names[0])):
            for name in self._names:
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        self.users.append(user)
        self.slot[user] = place
        return place

    def state(self) -> dict[str, Any]:
        """Returns what `take` makes the same blocks from, to the bit; nothing is copied."""
        kept = {name: getattr(self, name)[: len(self)] for name in self._names}
        return {"users": np.array(self.users, dtype=np.int64), **kept}

    def take(self, state: dict[str, Any]) -> Self:
        """Takes the blocks of a state, and returns itself."""
        self.users = state["users"].tolist()
        self.slot[state["users"]] = np.arange(len(self.users))
        for name in self._names:
            room = getattr(self, name)
            setattr(self, name, np.concatenate([state[name], np.zeros((FIRST_ROOM, *room.shape[1:]))]))
        return self


class DataBlocks(UserBlocks):
    """For users with data the precision of their rewards, B_u, and the inverse of diagonal + B_u."""

    def __init__(self, diagonal: Array, width: int) -> None:
        self.precision = self.inverse = np.zeros((0, 0, 0))
        self.added = np.zeros(0)
        super().__init__(len(diagonal), width, precision=(width, width), inverse=(width, width), added=())
        self._diagonal = diagonal

    def add(self, user: int, row: Array, noise: float) -> None:
        """Adds row row' / noise. The inverse follows by Sherman-Morrison, and is made anew now and then."""
        known = self.slot[user] >= 0
        place = self.open(user)
        if not known:
            np.fill_diagonal(self.inverse[place], 1 / self._diagonal[user])
        self.precision[place] += np.outer(row, row / noise)
        self.added[place] += 1
        if self.added[place] % RENEW_EVERY == 0:
            self.inverse[place] = self.fresh_inverse(place)
            return
        shrink(self.inverse[place], row, noise)

    def fresh_inverse(self, place: int) -> Array:
        """Returns the inverse of diagonal + B_u, computed anew."""
        eye = np.eye(self.width)
        return symmetric(np.linalg.inv(self._diagonal[self.users[place]] * eye + self.precision[place]))


class MarginalBlocks(UserBlocks):
    """For users that were decided for an upper bound of the covariance of their weights, [A^-1]_uu.

    `stale` is how much of the trace others' rewards may have taken off since it was computed.
    """

    def __init__(self, n_users: int, width: int) -> None:
        self.matrix, self.stale = np.zeros((0, 0, 0)), np.zeros(0)
        super().__init__(n_users, width, matrix=(width, width), stale=())

    def condition(self, user: int, row: Array, noise: float) -> None:
        """Conditions a user's block on a reward of their own: an upper bound stays one, for this keeps the order."""
        place = self.slot[user]
        if place >= 0:
            shrink(self.matrix[place], row, noise)

    def put(self, user: int, matrix: Array, missed: float) -> None:
        """Takes a fresh upper bound and what it misses, unless the one at hand is lower on the whole."""
        known = self.slot[user] >= 0
        place = self.open(user)
        self.stale[place] = missed
        if not known or np.trace(matrix) < np.trace(self.matrix[place]):
            self.matrix[place] = matrix


def shrink(matrix: Array, row: Array, noise: float) -> None:
    """Conditions a covariance on one observation of a row's product, in place."""
    column = matrix @ row
    matrix -= np.outer(column, column / (noise + max(float(row @ column), 0.0)))


def symmetric(matrix: Array) -> Array:
    """Returns the symmetric part."""
    return np.asarray((matrix + matrix.T) / 2)
