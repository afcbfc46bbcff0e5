"""Pushing residuals: a vector and a block of right-hand sides are solved by one and the same walk."""

from typing import Any

import numpy as np
import pytest

from coterie.algebra import iterative

N, WIDTH = 7, 3
FUNCTIONS = [iterative.push_residuals, getattr(iterative.push_residuals, "py_func", iterative.push_residuals)]


def ring() -> tuple[Any, ...]:
    """Starts, ends, neighbours, weights, diagonal and shape of a ring with ridge 1."""
    near = np.array([[(i - 1) % N, (i + 1) % N] for i in range(N)])
    starts = 2 * np.arange(N)
    return starts, starts + 2, near.ravel(), np.ones(2 * N), np.full(N, 3.0), np.ones(N)


def blocks() -> tuple[Any, Any, Any]:
    """A data block at user 2, the slots, and the inverse with the diagonal."""
    rows = np.random.default_rng(0).normal(size=(4, WIDTH))
    slot = np.full(N, -1, np.int32)
    slot[2] = 0
    return rows.T @ rows, slot, np.linalg.inv(3.0 * np.eye(WIDTH) + rows.T @ rows)[None]


def solved(function: Any, right: Any, threshold: float = 1e-12, room: int = 16) -> tuple[bool, Any]:
    """Solves for this right-hand side at user 0, and returns whether it came to an end, and the solution."""
    _, slot, inverse = blocks()
    place, nodes, found = np.full(N, -1, np.int32), np.zeros(room, np.int64), np.zeros((room, *right.shape))
    residual, bound, ring_, waiting = found.copy(), np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.bool_)
    place[0], residual[0], bound[0], waiting[0] = 0, right, np.linalg.norm(right), True
    marks = np.array([1, 0, 1, 0])
    walk = place, nodes, found, residual, bound, ring_, waiting, marks
    done = function(*ring(), slot, inverse, threshold, 10**6, *walk)
    return bool(done), found[place] if done else found


def precision() -> Any:
    """The whole matrix, users' weights one after another."""
    starts, ends, near, weights, diagonal, _ = ring()
    laplacian = np.diag(diagonal)
    for user in range(N):
        laplacian[user, near[starts[user] : ends[user]]] -= weights[starts[user] : ends[user]]
    out = np.kron(laplacian, np.eye(WIDTH))
    out[2 * WIDTH : 3 * WIDTH, 2 * WIDTH : 3 * WIDTH] += blocks()[0]
    return out


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_block_of_right_hand_sides_is_the_inverse_and_a_vector_its_column(function: Any) -> None:
    exact = np.linalg.inv(precision())[:, :WIDTH].reshape(N, WIDTH, WIDTH)
    done, found = solved(function, np.eye(WIDTH))
    assert done
    np.testing.assert_allclose(found, exact, atol=1e-9)
    for k in range(WIDTH):
        np.testing.assert_allclose(solved(function, np.eye(WIDTH)[k])[1], exact[:, :, k], atol=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_says_that_there_is_no_room_for_the_neighbours(function: Any) -> None:
    assert not solved(function, np.eye(WIDTH), room=2)[0]
