"""The part of a user's weights that nobody shares, eliminated: the rest of the engine only meets what is shared.

With w = v + o and o ~ N(0, own I) independent for each user, rewards of w are rewards of v with other rows and noise.
"""

from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.models.engines.sparse.blocks import LACKING, NONE, RENEW_EVERY, DataBlocks, UserBlocks, shrink, symmetric
from coterie.models.engines.sparse.needs import load_own
from coterie.models.engines.sparse.workspace import Workspace


class OwnParts(UserBlocks):
    """For users with data Cov(o_u | rewards, v_u), and t_u, the sum of features * reward / noise.

    With E_u = (I / own + B_u)^-1 that covariance, the mean of w_u given v_u is F_u v_u + E_u t_u, F_u = E_u / own. Both
    come from the rows of the table, and are made when a user first needs them.
    """

    without = LACKING

    def __init__(self, data: DataBlocks, features: Array, own: float) -> None:
        width = data.width
        self.covariance, self.moment, self.added = np.zeros((0, 0, 0)), np.zeros((0, 0)), np.zeros(0)
        super().__init__(len(data.slot), width, covariance=(width, width), moment=(width,), added=())
        self.slot[data.slot != NONE] = LACKING
        self.own, self._data, self._features = own, data, features
        self._seen = np.zeros((0, width))

    def shared(self, user: int, row: Array, value: float, noise: float) -> tuple[Array, float, float]:
        """Returns row, value and noise that a reward is to the shared part of the weights, before it is added."""
        if self.slot[user] == NONE:
            return row, value, noise + self.own * float(row @ row)
        place = self.make(user)
        column = self.covariance[place] @ row
        return column / self.own, value - float(column @ self.moment[place]), noise + max(float(row @ column), 0.0)

    def add(self, user: int, row: Array, value: float, noise: float) -> None:
        """Adds a reward, before the table has it. The covariance follows by Sherman-Morrison, or anew."""
        place = self.make(user)
        self.added[place] += 1
        if self.added[place] % RENEW_EVERY == 0:
            self.covariance[place] = self.fresh_covariance(user)
        self.moment[place] += row * (value / noise)
        shrink(self.covariance[place], row, noise)

    def make(self, user: int) -> int:
        """Returns the place of a user, made from the table if there was none."""
        known = self.slot[user] >= 0
        place = self.open(user)
        if not known:
            self.covariance[place], self.moment[place] = self.fresh_covariance(user), self.fresh_moment(user)
        return place

    def fresh_covariance(self, user: int) -> Array:
        """Returns E_u, computed anew."""
        eye = np.eye(self.width)
        if self._data.table.lengths[user] == 0:
            return self.own * eye
        return symmetric(np.asarray(np.linalg.inv(eye / self.own + self._data.precision(user))))

    def fresh_moment(self, user: int) -> Array:
        """Returns t_u, computed anew."""
        table = self._data.table
        rows = table.of_user(user)
        amounts = table.counts[rows] * table.means[rows] / self._data.noise_var
        return np.asarray(amounts @ self._features[table.arms[rows]])

    def drift(self) -> float:
        """Returns how far the covariances are from ones computed anew, relative to their size."""
        fresh = ((self.covariance[place], self.fresh_covariance(user)) for place, user in enumerate(self.users))
        return float(max((np.abs(kept - new).max() / np.abs(new).max() for kept, new in fresh), default=0.0))

    def renew(self) -> None:
        """Lets go of everything: it is made anew when it is needed."""
        self._let_go()

    def rows(self, user: int, rows: Array) -> tuple[Array, Array | float]:
        """Returns the rows that give the mean of w from v, and what is to be added to it: rows F_u and rows E_u t_u."""
        if self.slot[user] == NONE:
            return rows, 0.0
        place = self.make(user)
        columns = rows @ self.covariance[place]
        return columns / self.own, columns @ self.moment[place]

    def whole(self, user: int, shared: Array) -> Array:
        """Returns the covariance of w_u from that of v_u: E_u + F_u Cov F_u'; an upper bound stays one."""
        if self.slot[user] == NONE:
            return shared + self.own * np.eye(self.width)
        place = self.make(user)  # first: it may take another array
        covariance = self.covariance[place]
        kept = covariance / self.own
        return symmetric(covariance + kept @ shared @ kept)

    def whole_rows(self, work: Workspace, wanted: Any) -> Array:
        """Returns how a solution moves the whole weights of users reached who are wanted; others' rows are void."""
        if len(self._seen) < len(work.solution):
            self._seen = np.zeros_like(work.solution)
        fixed = self.slot, self.covariance, self.own, self._seen
        load_own().whole_rows(work.nodes, work.count, work.solution, wanted, *fixed)
        return self._seen
