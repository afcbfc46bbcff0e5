"""Tolerances of residuals that are larger at hubs, and their supersolution, kept true while edges change.

With null the vector for which L_rho null = ridge null, write reach = null ratio and shape = null share. Then
L_rho reach >= shape says share <= lift / scale + ridge ratio, with lift = L ratio (L combinatorial) and scale 1, or the
degree where L_rho is normalised. So a changed edge moves the lift of its two ends, and nobody else's.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.graphs.edits import Edit
from coterie.kernels.growing_rows import GrowingRows, Room

LEAST_SHARE = 0.5
MOST_TURNS = 200
LONGEST = 1.5  # times the reach where nobody waits, as when a kernel is made
MARGIN = 1e-6  # of a share, for sums that are kept up to date


class Hubs:
    """What `shape` and `reach` are made of, for users and edges that come and go.

    Args:
        rows: The graph.
        ridge: The paper's rho.
        kept: Ratio, share and lift of each user.
    """

    def __init__(self, rows: GrowingRows, ridge: float, kept: dict[str, Array]) -> None:
        self._rows, self._ridge, self._room = rows, ridge, Room()
        self.ratio, self.share, self.lift = (np.array(kept[name]) for name in ("ratio", "share", "lift"))

    def state(self) -> dict[str, Any]:
        """Returns what makes the same again, to the bit."""
        return {"ratio": self.ratio, "share": self.share, "lift": self.lift}

    def follow(self, n_users: int, edits: Iterable[Edit]) -> set[int] | None:
        """Takes newcomers, and edges that the rows have taken already; returns whose reach or share may have changed.

        Whose share would fall below a half gets a longer reach instead, which takes from the lift of the neighbours,
        and so on. None if that goes too far, or weights are so heavy that rounding matters: hubs cannot wait then.
        """
        n_before = len(self.ratio)
        self._room.lengthen(self, n_users, ratio=1 / self._ridge, share=1.0, lift=0.0)
        touched: set[int] = set()
        for row, other, old, new in edits:
            if abs(new - old) * 1e-15 > MARGIN * self._ridge * min(self._scales([row, other])):
                return None
            pull = (new - old) * float(self.ratio[row] - self.ratio[other])
            self.lift[row] += pull
            self.lift[other] -= pull
            touched.update((row, other))
        return touched if self._settled(touched, n_before) else None

    def _settled(self, touched: set[int], n_before: int) -> bool:
        """Lengthens reaches until every share is at least a half, a newcomer's 1; returns whether that went well."""
        met = np.array(sorted(touched), dtype=np.intp)
        short, turns = deque(dict.fromkeys([*met[met >= n_before].tolist(), *self._below(met)])), 0
        while short:
            user, turns = short.popleft(), turns + 1
            near = self._lengthened(user)
            if turns > MOST_TURNS or self.ratio[user] * self._ridge > LONGEST:
                return False
            touched.update(near.tolist())
            short.extend(set(self._below(near)) - set(short))
        whom = np.array(sorted(touched), dtype=np.intp)
        self.share[whom] = np.minimum(self.share[whom], (1 - MARGIN) * self._cover(whom))
        return True

    def _lengthened(self, user: int) -> Any:
        """Lengthens a reach until the user's share can be 1, and returns the neighbours."""
        near, weights = self._rows.row(user)
        scale, degree = self._scales([user])[0], self._rows.degrees[user]
        self.lift[user] = weights @ (self.ratio[user] - self.ratio[near])  # recomputed: rounding would accumulate
        more = (1 - self._cover([user])[0]) * scale / (degree + self._ridge * scale)
        self.ratio[user] += more
        self.lift[user] += degree * more
        self.lift[near] -= weights * more
        return near

    def _below(self, users: Any) -> list[int]:
        return [int(user) for user in users[self._cover(users) < LEAST_SHARE]]

    def _cover(self, users: Any) -> Array:
        """Returns the largest share that is true."""
        return np.asarray(self.lift[users] / self._scales(users) + self._ridge * self.ratio[users])

    def _scales(self, users: Any) -> Array:
        degrees = self._rows.degrees[users]
        return np.where(degrees > 0, degrees, 1.0) if self._rows.normalised else np.ones(len(degrees))
