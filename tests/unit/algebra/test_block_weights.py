"""Weights in independent blocks against the textbook formula."""

import copy
import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coterie.algebra import BlockWeights

Array = NDArray[np.float64]


def posterior(scale: float, rows: Array, values: Array, noise: Array) -> tuple[Array, Array]:
    precision = np.eye(rows.shape[1]) / scale + rows.T @ (rows / noise[:, None])
    cov: Array = np.linalg.inv(precision).astype(np.float64)
    return cov @ (rows.T @ (values / noise)), cov


@given(width=st.integers(1, 6), steps=st.integers(0, 30), seed=st.integers(0, 1000))
def test_each_block_is_its_own_regression(width: int, steps: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.5, 2.0, size=3)
    weights = BlockWeights(scale, width)
    blocks, rows = rng.integers(3, size=steps), rng.normal(size=(steps, width))
    values, noise = rng.normal(size=steps), rng.uniform(0.1, 1.0, size=steps)
    for i in range(steps):
        block = int(blocks[i])
        (mean,), (variance,) = weights.read(block, rows[i : i + 1])
        told = weights.condition(block, rows[i], float(values[i]), float(noise[i]))
        np.testing.assert_allclose(told, (variance + noise[i], values[i] - mean), atol=1e-10)
    asked = rng.normal(size=(4, width))
    for block in range(3):
        own = blocks == block
        expected_mean, expected_cov = posterior(scale[block], rows[own], values[own], noise[own])
        mean, variance = weights.read(block, asked)
        covariance = weights.covariance(block)
        np.testing.assert_allclose(mean, asked @ expected_mean, atol=1e-9)
        np.testing.assert_allclose(covariance, expected_cov, atol=1e-9)
        np.testing.assert_allclose(variance, np.einsum("ij,jk,ik->i", asked, expected_cov, asked), atol=1e-9)
        np.testing.assert_array_equal(covariance, covariance.T)


def test_copies_go_their_own_way() -> None:
    weights = BlockWeights(np.ones(2), 3)
    weights.condition(0, np.ones(3), 1.0, 0.5)
    for again in (copy.deepcopy(weights), pickle.loads(pickle.dumps(weights))):
        before = weights.read(0, np.eye(3))
        again.condition(0, np.ones(3), 5.0, 0.5)
        np.testing.assert_array_equal(weights.read(0, np.eye(3)), before)
        assert again.read(0, np.eye(3))[0][0] > before[0][0]
