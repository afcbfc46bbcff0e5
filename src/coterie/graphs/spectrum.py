"""Eigenvalues of the Laplacian: all of them by a dense method, or the few smallest by Lanczos.

The multiplicity of eigenvalue 0 is the number of components, and its eigenvectors are known. So Lanczos
works on one component at a time and away from the known vector; no threshold decides what is zero.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu

from coterie.errors import MemoryLimitError, NumericalError, ParameterError
from coterie.errors.checks import is_whole
from coterie.graphs.adjacency import Floats
from coterie.graphs.laplacian import Components, blocks, degrees, laplacian


@dataclass(frozen=True, slots=True)
class SpectrumLimits:
    """Sizes at which another method is taken.

    Attributes:
        dense: Up to so many users the method is dense: a second or two.
        full: Beyond so many all eigenvectors are refused, which alone take more than 3 GB.
        factor: The entries that a sparse factor may have: at worst 2 GB, in practice far less.
        restarts: Of Lanczos, before it has failed.
    """

    dense: int = 2_000
    full: int = 20_000
    factor: int = 100_000_000
    restarts: int = 3_000


LIMITS = SpectrumLimits()


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Eigenvalues in ascending order with their orthonormal eigenvectors.

    Attributes:
        values: Shape (k,).
        vectors: Shape (n_users, k); column i belongs to value i.
    """

    values: Floats
    vectors: Floats


def spectrum(
    weights: sp.csr_array, parts: Components, *, k: int | None, normalised: bool, limits: SpectrumLimits = LIMITS
) -> Spectrum:
    """Returns the k smallest eigenpairs of the Laplacian, or all; O(n^3) dense, O(edges) a step by Lanczos."""
    n_users = weights.shape[0]
    wanted = _checked_k(k, n_users, limits)
    if n_users <= limits.dense or k is None:
        values, vectors = _dense(laplacian(weights, normalised=normalised))
        # Exact zeros, as many as there are components, and no rounding below zero.
        values = np.concatenate([np.zeros(parts.count), np.maximum(values[parts.count :], 0.0)])
        return _frozen(values[:wanted], vectors[:, :wanted])
    return _by_component(weights, parts, wanted, normalised, limits)


def extremes(weights: sp.csr_array, parts: Components, limits: SpectrumLimits = LIMITS) -> tuple[float, float]:
    """Returns the smallest non-zero and the largest eigenvalue of L; (0, 0) without edges.

    Components of up to 2,000 users cost O(size^3), larger ones a Lanczos run at either end.

    Examples:
        >>> from coterie.graphs.adjacency import canonical
        >>> from coterie.graphs.laplacian import components
        >>> w = canonical([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 4], [0, 0, 4, 0]])
        >>> extremes(w, components(w))
        (2.0, 8.0)
    """
    ends = [_block_extremes(block, limits) for _, block in blocks(weights, parts)]
    if not ends:
        return 0.0, 0.0
    return min(low for low, _ in ends), max(high for _, high in ends)


def _checked_k(k: int | None, n_users: int, limits: SpectrumLimits) -> int:
    if k is None:
        if n_users > limits.full:
            problem = f"a full spectrum of {n_users} users takes {16e-9 * n_users**2:.0f} GB"
            raise MemoryLimitError(problem, f"it is offered up to {limits.full} users", "Pass k for the k smallest")
        return n_users
    if not is_whole(k, 1, n_users):
        raise ParameterError(f"k = {k!r} eigenpairs", f"k is an integer from 1 to {n_users}", "Pass such a k")
    return int(k)


def _frozen(values: Floats, vectors: Floats) -> Spectrum:
    values.flags.writeable = vectors.flags.writeable = False
    return Spectrum(values=values, vectors=vectors)


def _dense(matrix: sp.csr_array) -> tuple[Floats, Floats]:
    values, vectors = np.linalg.eigh(matrix.toarray())
    return values, vectors


def _by_component(
    weights: sp.csr_array, parts: Components, k: int, normalised: bool, limits: SpectrumLimits
) -> Spectrum:
    values, vectors = np.zeros(k), np.zeros((weights.shape[0], k))
    n_zero = min(k, parts.count)
    null = np.sqrt(degrees(weights)) if normalised else np.ones(weights.shape[0])
    null[null == 0] = 1.0
    members = np.flatnonzero(parts.labels < n_zero)
    labels = parts.labels[members]
    size = np.sqrt(np.bincount(parts.labels, weights=np.square(null), minlength=parts.count))
    vectors[members, labels] = null[members] / size[labels]
    if k == n_zero:
        return _frozen(values, vectors)
    found = []
    for users, block in blocks(weights, parts):
        matrix = laplacian(block, normalised=normalised)
        own = null[users] / np.linalg.norm(null[users])
        low, columns = _non_zero(matrix, min(k - n_zero, len(users) - 1), own, limits)
        found += [(value, users, column) for value, column in zip(low, columns.T, strict=True)]
    found.sort(key=lambda pair: float(pair[0]))
    for place, (value, users, column) in enumerate(found[: k - n_zero], start=n_zero):
        values[place], vectors[users, place] = value, column
    return _frozen(values, vectors)


def _block_extremes(block: sp.csr_array, limits: SpectrumLimits) -> tuple[float, float]:
    matrix = laplacian(block)
    n_users = matrix.shape[0]
    if n_users <= limits.dense:
        values = np.linalg.eigvalsh(matrix.toarray())
        return max(float(values[1]), 0.0), float(values[-1])
    null = np.full(n_users, n_users**-0.5)
    low, _ = _non_zero(matrix, 1, null, limits)
    # The top end of L is the low end of bound I - L, so one routine serves both.
    bound = _bound(matrix)
    flipped, _ = _lanczos(sp.csr_array(bound * sp.eye_array(n_users) - matrix), 1, None, limits)
    return float(low[0]), bound - float(flipped[0])


def _non_zero(matrix: sp.csr_array, k: int, null: Floats, limits: SpectrumLimits) -> tuple[Floats, Floats]:
    """Returns the k smallest non-zero eigenpairs of the Laplacian of a connected graph."""
    n_users = matrix.shape[0]
    # ARPACK needs a basis of some 2 k vectors; when that is most of the space, dense is both safer and faster.
    if n_users <= limits.dense or 4 * k > n_users:
        _checked_k(None, n_users, limits)
        values, vectors = _dense(matrix)
        return np.maximum(values[1 : k + 1], 0.0), vectors[:, 1 : k + 1]
    return _lanczos(matrix, k, null, limits)


def _lanczos(matrix: sp.csr_array, k: int, null: Floats | None, limits: SpectrumLimits) -> tuple[Floats, Floats]:
    """Returns the k smallest eigenpairs of a positive semi-definite matrix, orthogonal to its null vector."""
    n_users = matrix.shape[0]
    profile = _profile(matrix)
    # A graph that spreads out at once fills its factors, but its spectrum has gaps that plain Lanczos finds
    # quickly. A graph with narrow cuts is the opposite. The profile of the reordered matrix tells them apart.
    direct = profile <= limits.factor and profile <= n_users**2 / 4
    known = np.empty((n_users, 0)) if null is None else null[:, None]
    try:
        return _all_copies(matrix, _inverse(matrix) if direct else _complement(matrix), k, known, limits.restarts)
    except ArpackNoConvergence as error:
        if direct or profile > limits.factor:
            problem = f"the {k} smallest eigenvalues of {n_users} users did not converge"
            rule = f"Lanczos has {limits.restarts} restarts"
            raise NumericalError(problem, rule, "Ask for fewer eigenpairs, or drop very weak edges") from error
        return _all_copies(matrix, _inverse(matrix), k, known, limits.restarts)


def _all_copies(
    matrix: sp.csr_array, apply: Callable[[Floats], Floats], k: int, known: Floats, restarts: int
) -> tuple[Floats, Floats]:
    """Returns the k smallest eigenpairs outside `known`; a repeated eigenvalue is found as often as it occurs."""
    values, vectors = _ritz(matrix, _run(apply, k, known, restarts))
    # One Krylov space can miss copies of an eigenvalue; the space orthogonal to those found still holds them.
    # The first is never missed and each pass finds at least one more, so k - 1 passes are enough.
    for _ in range(k - 1):
        extra, missed = _ritz(matrix, _run(apply, min(k, 4), np.hstack([known, vectors]), restarts))
        if extra[0] >= values[-1] - 1e-8 * max(values[-1], extra[-1]):
            break
        values, vectors = _ritz(matrix, np.hstack([vectors, missed]))
        values, vectors = values[:k], vectors[:, :k]
    return values, vectors


def _ritz(matrix: sp.csr_array, vectors: Floats) -> tuple[Floats, Floats]:
    """Returns the best eigenpairs in the span of the vectors, at full accuracy whatever operator found them."""
    basis, _ = np.linalg.qr(vectors)
    values, turn = np.linalg.eigh(basis.T @ (matrix @ basis))
    return np.maximum(values, 0.0), basis @ turn


def _run(apply: Callable[[Floats], Floats], k: int, known: Floats, restarts: int) -> Floats:
    n_users = len(known)

    def away(vector: Floats) -> Floats:
        return vector - known @ (known.T @ vector)

    operator = LinearOperator((n_users, n_users), matvec=lambda x: away(apply(away(x.ravel()))), dtype=np.float64)
    start = away(np.random.default_rng(known.shape[1]).standard_normal(n_users))
    basis_size = min(n_users - 1, max(2 * k + 1, 40))
    vectors: Floats = eigsh(operator, k=k, which="LA", v0=start, ncv=basis_size, maxiter=restarts, tol=1e-12)[1]
    return vectors


def _bound(matrix: sp.csr_array) -> float:
    return float(abs(matrix).sum(axis=1).max())


def _complement(matrix: sp.csr_array) -> Callable[[Floats], Floats]:
    bound = _bound(matrix)
    return lambda vector: bound * vector - matrix @ vector


def _inverse(matrix: sp.csr_array) -> Callable[[Floats], Floats]:
    # The shift only makes the matrix invertible; what it does to the null vector is projected away.
    shift = 1e-9 * _bound(matrix) * sp.eye_array(matrix.shape[0])
    options = {"SymmetricMode": True}
    factor = splu(sp.csc_array(matrix + shift), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    solve: Callable[[Floats], Floats] = factor.solve
    return solve


def _profile(matrix: sp.csr_array) -> int:
    """Returns a bound on the fill of a factor: the entries between first non-zero and diagonal, reordered."""
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    turned = matrix[order][:, order].tocoo()
    first = np.arange(matrix.shape[0])
    np.minimum.at(first, turned.row, turned.col)
    return int((np.arange(matrix.shape[0]) - first).sum())
