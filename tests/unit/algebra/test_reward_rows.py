"""What rewards say of weights, from rows: the same as by matrices, whether rows or features are fewer."""

from typing import Any

import numpy as np
import pytest

from coterie.algebra import reward_rows

WIDTH, N_ARMS, NOISE = 4, 30, 0.3
compiled: Any = reward_rows


def case(n_rows: int) -> tuple[tuple[Any, ...], Any, Any]:
    """Three users, of whom the second has so many rows: chains, features, and X' C X of theirs."""
    rng = np.random.default_rng(n_rows)
    features = rng.normal(size=(N_ARMS, WIDTH))
    users = np.array([0, *[1] * n_rows], np.int32)
    arms = np.concatenate([[3], rng.permutation(N_ARMS)[:n_rows]]).astype(np.int32)
    counts = rng.uniform(0.5, 3.0, size=n_rows + 1)
    first, lengths = np.full(3, -1, np.int32), np.zeros(3, np.int32)
    following = np.zeros(len(users), np.int32)
    compiled.link_rows(users, 0, first, following, lengths)
    assert lengths.tolist() == [1, n_rows, 0]
    x = features[arms[1:]]
    return (first, following, arms, counts), features, (x.T * counts[1:]) @ x


@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 5, 20])
def test_gram_and_inverse(n_rows: int) -> None:
    chains, features, gram = case(n_rows)
    out = np.empty((WIDTH, WIDTH))
    compiled.user_gram(1, *chains, features, out)
    np.testing.assert_allclose(out, gram, atol=1e-12)
    compiled.inverse_block(1, *chains, features, NOISE, 2.5, out)
    np.testing.assert_allclose(out, np.linalg.inv(2.5 * np.eye(WIDTH) + gram / NOISE), atol=1e-12)


@pytest.mark.parametrize("n_rows", [0, 1, 4, 5, 20])
def test_the_map_and_its_preconditioner(n_rows: int) -> None:
    chains, features, gram = case(n_rows)
    block, other = gram / NOISE, np.outer(features[3], features[3]) * chains[3][0] / NOISE
    laplacian = np.array([[2.0, -1.0, 0.0], [-1.0, 3.0, -0.5], [0.0, -0.5, 1.5]])
    ends, near, weights = np.array([1, 3, 4]), np.array([1, 0, 2, 1]), np.array([1.0, 1.0, 0.5, 0.5])
    graph = np.array([0, 1, 3]), ends, near, weights, laplacian.diagonal().copy()
    vectors, out = np.random.default_rng(0).normal(size=(3, WIDTH)), np.empty((3, WIDTH))
    compiled.times_all(*graph, *chains, features, NOISE, vectors, out)
    expected = laplacian @ vectors
    expected[0] += other @ vectors[0]
    expected[1] += block @ vectors[1]
    np.testing.assert_allclose(out, expected, atol=1e-10)
    slot, inverse = np.array([0, -2, -1], np.int32), np.linalg.inv(2.0 * np.eye(WIDTH) + other)[None]
    compiled.precondition_all(graph[4], *chains, features, NOISE, slot, inverse, vectors, out)
    np.testing.assert_allclose(out[0], inverse[0] @ vectors[0], atol=1e-10)
    np.testing.assert_allclose(out[1], np.linalg.solve(3.0 * np.eye(WIDTH) + block, vectors[1]), atol=1e-10)
    np.testing.assert_allclose(out[2], vectors[2] / 1.5)


@pytest.mark.parametrize("n_rows", [0, 4, 20])
def test_the_log_determinants(n_rows: int) -> None:
    chains, features, gram = case(n_rows)
    scales = np.array([0.5, 0.8, 1.0])
    alone = np.outer(features[3], features[3]) * chains[3][0]
    expected = sum(
        np.linalg.slogdet(np.eye(WIDTH) + scale * each / NOISE)[1] for scale, each in ((0.5, alone), (0.8, gram))
    )
    assert compiled.log_dets(scales, *chains, features, NOISE) == pytest.approx(expected)
