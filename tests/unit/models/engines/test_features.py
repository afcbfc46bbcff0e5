"""`features` truncated: it stays within the error it reports and restores the variance it lost."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.graphs import make_graph
from coterie.kernels import PoolKernel
from coterie.models import DenseModel, FeaturesModel
from strategies import Case, cases, scaled_gap

RANKS = st.integers(1, 7)


def truncated(case: Case, user_rank: int, arm_rank: int, correction: bool = True) -> FeaturesModel:
    return FeaturesModel(
        case.kernel,
        noise_var=case.noise_var,
        user_rank=min(user_rank, case.kernel.n_users),
        arm_rank=min(arm_rank, case.kernel.n_arms),
        correction=correction,
    )


def prior_covariance(model: FeaturesModel) -> Any:
    """The whole prior covariance of a model without data, user blocks from the model, the rest from its features."""
    rows = np.kron(model._user_features, model._arm_features)
    return rows @ rows.T


@given(case=cases(), user_rank=RANKS, arm_rank=RANKS)
def test_the_prior_covariance_is_within_the_reported_error(case: Case, user_rank: int, arm_rank: int) -> None:
    model = truncated(case, user_rank, arm_rank, correction=False)
    exact = np.kron(case.kernel.user_cov, case.kernel.arm_cov)
    error = exact - prior_covariance(model)
    slack = 1e-9 * float(np.abs(exact).max())
    assert np.abs(error).max() <= model.prior_error + slack
    assert np.abs(error).max() >= model.prior_error - slack
    assert np.linalg.norm(error, 2) <= model.prior_error_norm + slack
    for user in range(case.kernel.n_users):
        block = slice(user * case.kernel.n_arms, (user + 1) * case.kernel.n_arms)
        np.testing.assert_allclose(model.covariance(user), prior_covariance(model)[block, block], atol=slack)


@given(case=cases(), user_rank=RANKS, arm_rank=RANKS)
def test_the_correction_restores_the_prior_variance(case: Case, user_rank: int, arm_rank: int) -> None:
    model = truncated(case, user_rank, arm_rank)
    scale = np.sqrt(model.max_variance)
    for user in range(case.kernel.n_users):
        assert scaled_gap(model.predict(user)[1] ** 2, model.prior_std(user) ** 2, scale**2) < 1e-9


@given(case=cases(smallest_noise=1e-2), user_rank=RANKS, arm_rank=RANKS)
def test_the_correction_never_claims_more_certainty_than_the_exact_model(
    case: Case, user_rank: int, arm_rank: int
) -> None:
    model = truncated(case, user_rank, arm_rank)
    dense = DenseModel(case.kernel, noise_var=case.noise_var)
    for row in case.history:
        model.update(*row)
        dense.update(*row)
    slack = 1e-8 * model.max_variance
    for user in range(case.kernel.n_users):
        assert np.all(model.predict(user)[1] ** 2 >= dense.predict(user)[1] ** 2 - slack)


@given(case=cases(smallest_noise=1e-2), user_rank=RANKS, arm_rank=RANKS, correction=st.booleans())
def test_a_truncated_model_is_exact_for_the_prior_it_states(
    case: Case, user_rank: int, arm_rank: int, correction: bool
) -> None:
    """Truncation changes the prior and nothing else: mean, log-determinant and evidence follow from it.

    So does the covariance without the correction; with it, the covariance is that of the errors under the full prior.
    """
    model = truncated(case, user_rank, arm_rank, correction)
    half = len(case.history) // 2
    for row in case.history[:half]:
        model.update(*row)
    model.update_many(*([row[i] for row in case.history[half:]] for i in range(3)))
    full = np.kron(case.kernel.user_cov, case.kernel.arm_cov)
    prior = prior_covariance(model) + np.diag(model._own)
    pairs = [case.kernel.key(user, arm) for user, arm, _ in case.history]
    rewards = np.array([reward for _, _, reward in case.history])
    noise = case.noise_var * np.eye(len(pairs))
    noisy = prior[np.ix_(pairs, pairs)] + noise
    weights = np.linalg.solve(noisy, prior[pairs]) if pairs else np.zeros((0, len(prior)))
    covariance = prior - prior[:, pairs] @ weights
    if correction:
        cross = full[:, pairs] @ weights
        covariance = full - cross - cross.T + weights.T @ (full[np.ix_(pairs, pairs)] + noise) @ weights
    if pairs:
        log_det = np.linalg.slogdet(noisy)[1]
        evidence = -0.5 * (rewards @ np.linalg.solve(noisy, rewards) + log_det + len(pairs) * np.log(2 * np.pi))
        assert model.log_marginal_likelihood == pytest.approx(evidence, rel=1e-6, abs=1e-6)
        assert model.info_gain == pytest.approx(log_det - len(pairs) * np.log(case.noise_var), rel=1e-6, abs=1e-6)
    scale = float(np.sqrt(full.diagonal().max()))
    n_arms = case.kernel.n_arms
    for user in range(case.kernel.n_users):
        block = slice(user * n_arms, (user + 1) * n_arms)
        assert scaled_gap(model.predict(user)[0], (weights.T @ rewards)[block], scale) < 1e-7
        assert scaled_gap(model.covariance(user), covariance[block, block], scale**2) < 1e-7


def test_memory_does_not_grow_with_time() -> None:
    graph = make_graph("erdos-renyi", 30, seed=0)
    kernel = PoolKernel(ct.Green().matrix(graph), np.eye(4))
    model = FeaturesModel(kernel, user_rank=5)
    before = model.nbytes
    for t in range(500):
        model.update(t % 30, t % 4, 0.1)
    assert model.nbytes == before
    assert model.n_features == 20
    assert "5 user x 4 arm features" in model.describe()
    assert model.prior_error > 0


def test_the_smallest_laplacian_eigenvalues_are_kept() -> None:
    """Truncating the paper's user kernel keeps the smooth directions: PAPER-NOTES, spectral truncation."""
    graph = make_graph("ring", 8)
    model = FeaturesModel(PoolKernel(ct.Green(laplacian_ridge=0.1).matrix(graph), np.eye(1)), user_rank=3)
    values = graph.spectrum().values
    kept = np.linalg.norm(model._user_features, axis=0) ** 2
    np.testing.assert_allclose(np.sort(kept), np.sort(1 / (values[:3] + 0.1)))
