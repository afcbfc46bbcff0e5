"""What rewards say of weights, from rows of (user, arm, count) and no matrix for each user; compiled.

A user's rows are a chain: `first[user]` is one of them, `following[row]` the next, -1 the end. With X a user's features
and C their counts, the data block is X' C X / noise. Whatever is solved is as large as the rows or as the features,
whichever are fewer.
"""

from typing import Any

import numpy as np

from coterie.algebra.iterative import compiled


@compiled
def link_rows(users: Any, start: int, first: Any, following: Any, lengths: Any) -> None:
    """Puts the rows from `start` on at the front of their users' chains."""
    for row in range(start, users.shape[0]):
        user = users[row]
        following[row] = first[user]
        first[user] = row
        lengths[user] += 1


@compiled
def find_row(first: Any, following: Any, arms: Any, user: int, arm: int) -> int:
    """Returns the row of a pair, or -1."""
    row = first[user]
    while row >= 0 and arms[row] != arm:
        row = following[row]
    return int(row)


@compiled
def chain(first: Any, following: Any, user: int, out: Any) -> int:
    """Writes the rows of a user as far as there is room, and returns how many there are."""
    row, count = first[user], 0
    while row >= 0:
        if count < out.shape[0]:
            out[count] = row
        count += 1
        row = following[row]
    return count


@compiled
def _dot(features: Any, arm: int, vector: Any) -> float:
    total = 0.0
    for k in range(vector.shape[0]):
        total += features[arm, k] * vector[k]
    return float(total)


@compiled
def _factorise(matrix: Any, size: int) -> None:
    """Puts the Cholesky factor of a matrix in its lower triangle."""
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = np.sqrt(total) if i == j else total / matrix[j, j]


@compiled
def _solve(factor: Any, size: int, vector: Any) -> None:
    """Solves with a Cholesky factor, in place."""
    for i in range(size):
        total = vector[i]
        for k in range(i):
            total -= factor[i, k] * vector[k]
        vector[i] = total / factor[i, i]
    for i in range(size - 1, -1, -1):
        total = vector[i]
        for k in range(i + 1, size):
            total -= factor[k, i] * vector[k]
        vector[i] = total / factor[i, i]


@compiled
def user_gram(user: int, first: Any, following: Any, arms: Any, counts: Any, features: Any, out: Any) -> None:
    """Writes X' C X of a user, the lower triangle and its mirror image."""
    width = features.shape[1]
    out[:] = 0.0
    row = first[user]
    while row >= 0:
        arm, count = arms[row], counts[row]
        for i in range(width):
            for j in range(i + 1):
                out[i, j] += count * features[arm, i] * features[arm, j]
        row = following[row]
    for i in range(width):
        for j in range(i):
            out[j, i] = out[i, j]


@compiled
def _factor_of(
    user: int,
    first: Any,
    following: Any,
    arms: Any,
    counts: Any,
    features: Any,
    noise: float,
    scale: float,
    rows: Any,
    out: Any,
) -> int:
    """Writes the factor of noise C^-1 + scale X X', or of I + (scale / noise) X' C X where rows are more than features.

    Returns how many rows there are.
    """
    width = features.shape[1]
    count = chain(first, following, user, rows)
    if count <= width:
        for i in range(count):
            for j in range(i + 1):
                out[i, j] = scale * _dot(features, arms[rows[i]], features[arms[rows[j]]])
            out[i, i] += noise / counts[rows[i]]
        _factorise(out, count)
        return count
    user_gram(user, first, following, arms, counts, features, out)
    for i in range(width):
        for j in range(i + 1):
            out[i, j] *= scale / noise
        out[i, i] += 1.0
    _factorise(out, width)
    return count


@compiled
def inverse_block(
    user: int,
    first: Any,
    following: Any,
    arms: Any,
    counts: Any,
    features: Any,
    noise: float,
    diagonal: float,
    out: Any,
) -> None:
    """Writes the inverse of diagonal I + X' C X / noise of a user.

    With Y the half solve, factor Y = X, it is I / d - Y' Y / d^2; where rows are more than features, Y' Y / d of I.
    """
    width, one = features.shape[1], 1.0 / diagonal
    rows, factor, half = np.empty(width, np.int64), np.empty((width, width)), np.zeros((width, width))
    count = _factor_of(user, first, following, arms, counts, features, noise, one, rows, factor)
    few = count <= width
    size = count if few else width
    for i in range(size):
        for k in range(width):
            half[i, k] = features[arms[rows[i]], k] if few else (1.0 if i == k else 0.0)
        for j in range(i):
            for k in range(width):
                half[i, k] -= factor[i, j] * half[j, k]
        for k in range(width):
            half[i, k] /= factor[i, i]
    out[:] = 0.0
    scale = -one * one if few else one
    for i in range(size):
        for j in range(width):
            for k in range(width):
                out[j, k] += scale * half[i, j] * half[i, k]
    if few:
        for k in range(width):
            out[k, k] += one


@compiled
def _add_data(
    user: int,
    first: Any,
    following: Any,
    arms: Any,
    counts: Any,
    features: Any,
    noise: float,
    amount: float,
    vector: Any,
    out: Any,
) -> None:
    """Adds amount X' C X vector / noise to `out`."""
    row = first[user]
    while row >= 0:
        arm = arms[row]
        size = amount * counts[row] / noise * _dot(features, arm, vector)
        for k in range(features.shape[1]):
            out[k] += size * features[arm, k]
        row = following[row]


@compiled
def _add_woodbury(
    user: int,
    first: Any,
    following: Any,
    arms: Any,
    counts: Any,
    features: Any,
    noise: float,
    scale: float,
    amount: float,
    vector: Any,
    out: Any,
    rows: Any,
    factor: Any,
    inner: Any,
) -> None:
    """Adds amount X' (noise C^-1 + scale X X')^-1 X vector to `out`."""
    width = features.shape[1]
    count = _factor_of(user, first, following, arms, counts, features, noise, scale, rows, factor)
    if count > width:
        inner[:] = vector
        _solve(factor, width, inner)
        _add_data(user, first, following, arms, counts, features, noise, amount, inner, out)
        return
    for i in range(count):
        inner[i] = _dot(features, arms[rows[i]], vector)
    _solve(factor, count, inner)
    for i in range(count):
        arm = arms[rows[i]]
        for k in range(width):
            out[k] += amount * inner[i] * features[arm, k]


@compiled
def times_all(
    starts: Any,
    ends: Any,
    indices: Any,
    weights: Any,
    diagonal: Any,
    first: Any,
    following: Any,
    arms: Any,
    counts: Any,
    features: Any,
    noise: float,
    vectors: Any,
    out: Any,
) -> None:
    """Writes (L_rho (x) I + blocks) times the vectors of all users."""
    width = features.shape[1]
    for user in range(diagonal.shape[0]):
        for k in range(width):
            out[user, k] = diagonal[user] * vectors[user, k]
        for edge in range(starts[user], ends[user]):
            other, weight = indices[edge], weights[edge]
            for k in range(width):
                out[user, k] -= weight * vectors[other, k]
        if first[user] >= 0:
            _add_data(user, first, following, arms, counts, features, noise, 1.0, vectors[user], out[user])


@compiled
def precondition_all(
    diagonal: Any,
    first: Any,
    following: Any,
    arms: Any,
    counts: Any,
    features: Any,
    noise: float,
    slot: Any,
    inverse: Any,
    vectors: Any,
    out: Any,
) -> None:
    """Writes the inverse of every user's diagonal block times their vector: by what is kept of it, or Woodbury's.

    (d I + X' N^-1 X)^-1 = I / d - X' (N + X X' / d)^-1 X / d^2.
    """
    width = features.shape[1]
    rows, factor, inner = np.empty(width, np.int64), np.empty((width, width)), np.empty(width)
    for user in range(diagonal.shape[0]):
        place, one = slot[user], 1.0 / diagonal[user]
        if place >= 0:
            for k in range(width):
                total = 0.0
                for j in range(width):
                    total += inverse[place, k, j] * vectors[user, j]
                out[user, k] = total
            continue
        for k in range(width):
            out[user, k] = one * vectors[user, k]
        if first[user] >= 0:
            _add_woodbury(
                user,
                first,
                following,
                arms,
                counts,
                features,
                noise,
                one,
                -one * one,
                vectors[user],
                out[user],
                rows,
                factor,
                inner,
            )


@compiled
def log_dets(scales: Any, first: Any, following: Any, arms: Any, counts: Any, features: Any, noise: float) -> float:
    """Returns the sum over users of log det(I + scale X' C X / noise)."""
    width, total = features.shape[1], 0.0
    rows, factor = np.empty(width, np.int64), np.empty((width, width))
    for user in range(first.shape[0]):
        if first[user] < 0:
            continue
        count = _factor_of(user, first, following, arms, counts, features, noise, scales[user], rows, factor)
        for i in range(min(count, width)):
            total += 2 * np.log(factor[i, i])
            if count <= width:
                total -= np.log(noise / counts[rows[i]])
    return float(total)


@compiled
def add_targets(users: Any, arms: Any, amounts: Any, features: Any, out: Any) -> None:
    """Adds amount * features of the arm to the user's vector, row by row."""
    for row in range(users.shape[0]):
        for k in range(features.shape[1]):
            out[users[row], k] += amounts[row] * features[arms[row], k]


@compiled
def predictions(users: Any, arms: Any, weights: Any, features: Any) -> Any:
    """Returns features . weights of every row."""
    out = np.empty(users.shape[0])
    for row in range(users.shape[0]):
        out[row] = _dot(features, arms[row], weights[users[row]])
    return out
