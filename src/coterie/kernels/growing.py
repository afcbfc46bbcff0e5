"""A graph's kernel that takes newcomers and changed edges in place, in amortised constant time."""

from collections.abc import Mapping
from copy import copy
from math import inf
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from coterie.algebra.gaps import gap, gap_of_matrices
from coterie.contracts import Array
from coterie.graphs import Difference
from coterie.kernels.growing_rows import Entries, GraphRows, GrowingRows, Room
from coterie.kernels.hubs import Hubs

Index = NDArray[np.intp]
NEARLY = 1e-5  # shares are kept up to date, and have a margin of their own


class Growth(NamedTuple):
    """What a change of graph did to L_rho = diag(diagonal) - weights.

    Attributes:
        entries: By how much weights have grown.
        diagonal: By how much entries of the diagonal have.
        covariance_grows: Whether some covariance may have become larger.
        reshaped: Whose shape may have changed; none for everybody, where hubs have no larger one any more.
        null_squares: By how much squares of `null` have; none under the combinatorial Laplacian, where it is all ones.
        uneven: Where the shape of somebody fell, the largest of all shapes there ever were over the smallest; else 1.
    """

    entries: tuple[Entries, ...]
    diagonal: Mapping[int, float]
    covariance_grows: bool
    reshaped: Index | None
    null_squares: Mapping[int, float]
    uneven: float


class OnGraph:
    """The part of a kernel that is the graph: L_rho, and what residuals on it amount to; see `GraphKernel`."""

    diagonal: Array
    shape: Array
    reach: Array
    null: Array
    rows: GraphRows
    ridge: float
    normalised: bool
    _matrices: tuple[Any, Any]  # entries and plain weights, in CSR
    _degrees: Array
    _hubs_wait: bool
    _span: tuple[float, float]  # the smallest and the largest shape there ever were
    _growing: GrowingRows | None = None
    _hubs: Hubs | None = None
    _room: Room

    @property
    def weights(self) -> Any:
        """The off-diagonal entries of L_rho, their sign changed, in CSR; O(edges) after each growth."""
        return self._both()[0]

    def _both(self) -> tuple[Any, Any]:
        if self._growing is not None and self._growing.changed:
            self._matrices = self._growing.matrices()
        return self._matrices

    def growing(self, growth: Mapping[str, Any] | None = None) -> Self:
        """Returns this kernel, all its settings kept, in room of its own where `follow` can change it. O(edges).

        Args:
            growth: That of a kernel which has grown to this graph: it is then the same as that one, to the bit.
        """
        kept = self.growth() if growth is None else growth
        out = copy(self)
        out._growing = GrowingRows(self._both()[1], kept["degrees"], normalised=self.normalised)
        out._matrices, out._room = (None, None), Room()
        out._hubs_wait, out.shape, out.reach = "hubs" in kept, np.array(kept["shape"]), np.array(kept["reach"])
        out._hubs = Hubs(out._growing, self.ridge, kept["hubs"]) if "hubs" in kept else None
        out._span = kept["smallest"], kept["largest"]
        out._read()
        out.null = out._null(out._degrees)
        out.diagonal = out._diagonal_at(np.arange(len(out.shape)))
        return out

    @property
    def has_grown(self) -> bool:
        """Whether this kernel was made by `growing`."""
        return self._growing is not None

    def mismatch(self) -> float:
        """Returns how far degrees, shape and reach are from those of the graph; infinity if residuals are not bounded.

        A kernel that has not grown was made from the graph.
        """
        if not self.has_grown:
            return 0.0
        weights, plain = self._both()
        lifted = self.diagonal * self.reach - weights @ self.reach
        if not np.all((self.shape > 0) & (lifted >= (1 - NEARLY) * self.shape)) or self._span[0] > self._span[1]:
            return inf
        hubs, null = self._hubs, self._null(self._degrees)
        share, ratio = (1.0, 1 / self.ridge) if hubs is None else (hubs.share, hubs.ratio)
        of_lift = 0.0 if hubs is None else gap_of_matrices(hubs.lift, self._degrees * ratio - plain @ ratio)
        of_shape = max(gap(self.shape, null * share), gap(self.reach, null * ratio))
        return max(of_lift, of_shape, gap(self._degrees, np.asarray(plain.sum(axis=1)).ravel()))

    def growth(self) -> dict[str, Any]:
        """Returns what a kernel made anew on the same graph may not have to the bit."""
        smallest, largest = self._span if self.has_grown else (float(self.shape.min()), float(self.shape.max()))
        hubs = {"hubs": self._waiting_hubs()} if self._hubs_wait else {}
        kept = {"degrees": self._degrees, "shape": self.shape, "reach": self.reach}
        return {"smallest": smallest, "largest": largest, **kept, **hubs}

    def _waiting_hubs(self) -> dict[str, Any]:
        if self._hubs is not None:
            return self._hubs.state()
        null, plain = self._null(self._degrees), self._both()[1]
        ratio, share = self.reach / null, self.shape / null
        return {"ratio": ratio, "share": share, "lift": self._degrees * ratio - plain @ ratio}

    def follow(self, change: Difference) -> Growth:
        """Takes newcomers and changed edges, in place; only for a kernel made by `growing`.

        Amortised O(1) for an edge to a newcomer, else O(degree) within numpy; all edges of both ends change with their
        degrees where the Laplacian is normalised. O(users) at most once, where hubs waited and no longer can.
        """
        assert self._growing is not None
        n_users = len(self.diagonal) + change.newcomers
        self._growing.lengthen(n_users)
        self._room.lengthen(self, n_users, diagonal=self.ridge, shape=1.0, reach=1 / self.ridge, null=1.0)
        before = {end: float(self.diagonal[end]) for edit in change.edges for end in (edit.row, edit.other)}
        entries = [each for edit in change.edges for each in self._growing.set_edge(edit.row, edit.other, edit.new)]
        self._read()
        ends = np.array(list(before), dtype=np.intp)
        self.diagonal[ends] = self._diagonal_at(ends)
        diagonal = {end: float(self.diagonal[end]) - old for end, old in before.items()}
        shrinks = all(edit.new >= edit.old and not self.normalised for edit in change.edges)
        reshaped = self._whose_shape(ends, change)
        squares = self._renull(ends) if self.normalised else {}
        return Growth(tuple(entries), diagonal, not shrinks, reshaped, squares, self._reshape(reshaped))

    def _renull(self, users: Index) -> dict[int, float]:
        """Takes `null` of these users as it is by now, and returns by how much its squares have grown."""
        before, self.null[users] = self.null[users] ** 2, self._null(self._degrees[users])
        return dict(zip(users.tolist(), (self.null[users] ** 2 - before).tolist(), strict=True))

    def _read(self) -> None:
        assert self._growing is not None
        self.rows, self._degrees = self._growing.rows, self._growing.degrees

    def _whose_shape(self, ends: Index, change: Difference) -> Index | None:
        """Returns whose shape and reach may have to change; none for everybody, where hubs cannot wait any longer."""
        if self._hubs is None:
            return ends
        touched = self._hubs.follow(len(self.diagonal), change.edges)
        if touched is not None:
            return np.array(sorted(touched), dtype=np.intp)
        self._hubs, self._hubs_wait = None, False
        return None

    def _reshape(self, users: Index | None) -> float:
        """Takes shape and reach of these users as they must be by now; without hubs L_rho null = ridge null does.

        Returns:
            How uneven shapes were if one fell, else 1.
        """
        whom = np.arange(len(self.diagonal)) if users is None else users
        if len(whom) == 0:
            return 1.0
        null, hubs = self._null(self._degrees[whom]), self._hubs
        fresh = null if hubs is None else null * hubs.share[whom]
        fell = bool(np.any(fresh < self.shape[whom]))
        self.shape[whom] = fresh
        self.reach[whom] = null / self.ridge if hubs is None else null * hubs.ratio[whom]
        self._span = min(self._span[0], float(fresh.min())), max(self._span[1], float(fresh.max()))
        return self._span[1] / self._span[0] if fell else 1.0

    def _diagonal_at(self, users: Index) -> Array:
        degrees = self._degrees[users]
        return np.asarray(((degrees > 0) if self.normalised else degrees) + self.ridge)

    def _null(self, degrees: Array) -> Array:
        """Returns the vector with L_rho null = ridge null: all ones, or the roots of the degrees."""
        return np.sqrt(np.where(degrees > 0, degrees, 1.0)) if self.normalised else np.ones(len(degrees))
