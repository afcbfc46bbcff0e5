"""Rewards that are noisier than others: what the posterior, and what the evidence of the noise, makes of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.models import restore_model
from coterie.models.history import History
from engine_cases import ENGINE_NAMES, dense_kernel, model_of
from strategies import Case, cases

WEIGHTS = (1.0, 0.36, 0.09)


def posterior(case: Case, engine: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns means and variances of every pair where reward i has the noise variance over its weight."""
    kernel = dense_kernel(engine, case)
    users, arms, rewards = (np.array([each[i] for each in case.history]) for i in range(3))
    noise = case.noise_var / np.resize(WEIGHTS, len(rewards))
    everybody = np.repeat(np.arange(kernel.n_users), kernel.n_arms)
    everything = np.tile(np.arange(kernel.n_arms), kernel.n_users)
    cross = kernel.cross(everybody, everything, users, arms)
    solved = np.linalg.solve(kernel.cross(users, arms, users, arms) + np.diag(noise), np.c_[rewards, cross.T])
    prior = kernel.diag(everybody, everything)
    return cross @ solved[:, 0], prior - np.sum(cross * solved[:, 1:].T, axis=1)


@pytest.mark.parametrize("engine", [name for name in ENGINE_NAMES if name != "sparse"])
@given(case=cases())
def test_the_posterior_is_that_of_observations_of_their_own_noise(engine: str, case: Case) -> None:
    model = model_of(engine, case)
    for (user, arm, reward), weight in zip(case.history, np.resize(WEIGHTS, len(case.history)), strict=True):
        model.learn_noisier(user, arm, reward, weight=float(weight))
    if not case.history:
        return
    mean, variance = posterior(case, engine)
    scale = max(float(model.prior_std(user).max()) for user in range(model.n_users))
    found = [model.predict(user) for user in range(model.n_users)]
    np.testing.assert_allclose(np.concatenate([each for each, _ in found]), mean, atol=1e-6 * max(scale, 1.0))
    np.testing.assert_allclose(np.concatenate([each**2 for _, each in found]), variance, atol=1e-6 * scale**2)
    assert model.history.n_observations == len(case.history)
    assert model.history.count_array().sum() + model.history.spare == pytest.approx(len(case.history))


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@given(case=cases())
def test_one_of_weight_one_is_learned_as_any_to_the_bit(engine: str, case: Case) -> None:
    one, other = model_of(engine, case), model_of(engine, case)
    for user, arm, reward in case.history:
        one.learn(user, arm, reward)
        other.learn_noisier(user, arm, reward, weight=1.0)
    for user in range(one.n_users):
        np.testing.assert_array_equal(one.predict(user), other.predict(user))
    assert other.history.spare == 0.0


@given(weights=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6))
def test_what_rewards_lack_of_their_weight_is_kept(weights: list[float]) -> None:
    history, other = History(), History()
    for number, weight in enumerate(weights):
        history.add(number, 0, number, 1.0, weight=weight)
    history.spare = other.spare = len(weights) - sum(weights)
    history.merge(other)
    assert history.spare == 2 * other.spare
    assert History.restored(history.state(), lambda *pair: pair).spare == history.spare
    assert "spare" not in History().state()  # files of all others are as they were


@given(case=cases())
def test_a_model_that_is_restored_knows_it(case: Case) -> None:
    model = model_of("local", case)
    model.learn_noisier(0, 0, 1.0, weight=0.25)
    assert restore_model(model.state(), model.kernel).history.spare == 0.75
