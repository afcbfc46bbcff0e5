"""Cooperative kernels: similarities by name, and one learned from the arms chosen."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ParameterError, UnknownNameError
from coterie.models import History
from coterie.policies.adaptation.similarity import SIMILARITIES, LearnedSimilarity

GRAPH = ct.make_graph("erdos-renyi", 6, edge_prob=0.5, seed=1)
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(8, 3)))


def fed(policy: ct.Policy, rounds: int) -> ct.Policy:
    rng = np.random.default_rng(4)
    for _ in range(rounds):
        policy.update(int(rng.integers(6)), int(rng.integers(8)), float(rng.normal()))
    return policy


def coop(similarity: str | None, **options: Any) -> ct.Policy:
    return ct.make_policy("coop-kernel-ucb", graph=GRAPH, arms=ARMS, similarity=similarity, **options)


def test_the_inverse_laplacian_is_lk_gp_ucb() -> None:
    ours, paper = fed(coop("laplacian_inv"), 80), fed(ct.make_policy("lk-gp-ucb", graph=GRAPH, arms=ARMS), 80)
    for user in range(6):
        np.testing.assert_array_equal(ours.predict(user), paper.predict(user))


@pytest.mark.parametrize(
    ("similarity", "kernel"),
    [("heat", ct.Heat(time=1.0)), ("spectral_rbf", ct.SpectralRBF(k=8)), ("all_ones", ct.AllOnes())],
)
def test_a_name_stands_for_a_user_kernel(similarity: str, kernel: ct.UserKernel) -> None:
    np.testing.assert_array_equal(coop(similarity).model.kernel.user_cov, kernel.matrix(GRAPH))


def test_learned_similarity_is_refreshed_every_200_rounds_and_the_model_rebuilt() -> None:
    policy = fed(coop(None), 199)
    np.testing.assert_array_equal(policy.model.kernel.user_cov, np.eye(6))
    policy.update(0, 0, 0.5)
    learned = policy.model.kernel.user_cov
    assert np.all(learned > 0)
    fresh = ct.make_policy("lk-gp-ucb", graph=GRAPH, arms=ARMS, user_kernel=ct.GivenMatrix(learned))
    fed(fresh, 199)
    fresh.update(0, 0, 0.5)
    for user in range(6):
        np.testing.assert_allclose(policy.predict(user), fresh.predict(user), atol=1e-9)


def test_users_for_whom_the_same_arms_were_chosen_are_alike() -> None:
    history = History()
    for user, arms in enumerate([[0, 1], [0, 1], [6, 7], [6, 7], [0]]):
        for arm in arms:
            for _ in range(3 if user < 4 else 4):
                history.add((user, arm), user, arm, 0.0)
    similarity = LearnedSimilarity(lengthscale=1.0, pool=ARMS.features)
    matrix = similarity.matrix(history, 6)
    assert matrix[0, 1] == pytest.approx(1.0)
    assert matrix[2, 3] == pytest.approx(1.0)
    assert matrix[0, 2] < 0.7
    np.testing.assert_array_equal(matrix[4], np.eye(6)[4])  # four observations are too few
    np.testing.assert_array_equal(matrix[5], np.eye(6)[5])
    assert np.linalg.eigvalsh(matrix).min() > -1e-9


def test_mean_embeddings_approximate_the_kernel() -> None:
    """|psi_u - psi_v|^2 of single arms is 2 - 2 K_x, as random Fourier features promise."""
    embedded = LearnedSimilarity(lengthscale=1.0, n_random=20_000)._embed(ARMS.features)
    np.testing.assert_allclose(embedded @ embedded.T, ct.SquaredExponential(1.0).gram(ARMS.features), atol=0.03)


def test_a_batch_refreshes_too() -> None:
    policy = coop("learned_mmd")
    rng = np.random.default_rng(4)
    rows = [(int(rng.integers(6)), int(rng.integers(8)), float(rng.normal())) for _ in range(250)]
    policy.update_many(*zip(*rows, strict=True))
    assert not np.array_equal(policy.model.kernel.user_cov, np.eye(6))


def test_bad_names_are_named() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'heat'"):
        coop("haet")
    with pytest.raises(ParameterError, match="or use 'coop-kernel-ucb'"):
        ct.make_policy("lk-gp-ucb", graph=GRAPH, arms=ARMS, similarity="heat")
    assert set(SIMILARITIES) == {"laplacian_inv", "heat", "spectral_rbf", "all_ones", "learned_mmd"}
