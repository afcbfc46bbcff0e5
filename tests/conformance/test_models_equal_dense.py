"""What every model must satisfy: it equals the dense formula, whatever happened to it."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.contracts import Array
from coterie.kernels import FreeKernel, PoolKernel
from coterie.models import ENGINES, DenseModel, History, HybridModel, Model
from strategies import Case, cases, scaled_gap

EXACT_ENGINES = sorted(set(ENGINES) - {"dense"})
Maker = Callable[[PoolKernel, float], Model]


def make(engine: str, kernel: PoolKernel, noise_var: float) -> Model:
    if engine == "hybrid":
        return HybridModel(kernel, noise_var=noise_var, switch_after=6)
    return ENGINES[engine](kernel, noise_var=noise_var)


def assert_same_belief(model: Model, dense: DenseModel, tolerance: float = 1e-7) -> None:
    """Every public quantity, compared in units of the prior.

    The variance is compared as a variance: near zero, std = sqrt(variance) magnifies rounding without bound.
    """
    kernel = dense.kernel
    scale = float(max(dense.prior_std(user).max() for user in range(kernel.n_users)))
    for user in range(kernel.n_users):
        mean, std = model.predict(user)
        dense_mean, dense_std = dense.predict(user)
        assert scaled_gap(mean, dense_mean, scale) < tolerance
        assert scaled_gap(std**2, dense_std**2, scale**2) < tolerance
        assert scaled_gap(model.covariance(user), dense.covariance(user), scale**2) < tolerance
        np.testing.assert_array_equal(model.prior_std(user), dense.prior_std(user))
    assert model.n_observations == dense.n_observations
    assert model.info_gain == pytest.approx(dense.info_gain, rel=1e-6, abs=1e-6)
    assert model.effective_dim == pytest.approx(dense.effective_dim, rel=1e-6, abs=1e-6)
    assert model.log_marginal_likelihood == pytest.approx(dense.log_marginal_likelihood, rel=1e-6, abs=1e-6)


def test_engines_are_found() -> None:
    assert {"exact", "grid", "hybrid", "features"} <= set(EXACT_ENGINES)


@pytest.mark.parametrize("engine", EXACT_ENGINES)
@given(case=cases())
def test_equals_dense_after_every_update(engine: str, case: Case) -> None:
    model, dense = make(engine, case.kernel, case.noise_var), DenseModel(case.kernel, noise_var=case.noise_var)
    assert_same_belief(model, dense)
    for i, (user, arm, reward) in enumerate(case.history):
        model.update(user, arm, reward)
        dense.update(user, arm, reward)
        if i % 8 == 0:
            assert_same_belief(model, dense)
    assert_same_belief(model, dense)


@pytest.mark.parametrize("engine", EXACT_ENGINES)
@given(case=cases(), cut=st.integers(0, 25), later=st.sampled_from([1e-3, 0.3]))
def test_batches_and_changes_of_noise_and_users_equal_dense(engine: str, case: Case, cut: int, later: float) -> None:
    model, dense = make(engine, case.kernel, case.noise_var), DenseModel(case.kernel, noise_var=case.noise_var)
    for part in (case.history[:cut], case.history[cut:]):
        users, arms, rewards = ([row[i] for row in part] for i in range(3))
        for each in (model, dense):
            each.update_many(users, arms, rewards)
        assert_same_belief(model, dense)
        for each in (model, dense):
            each.set_noise_var(later)
        assert_same_belief(model, dense)
        for each in (model, dense):
            each.set_user_cov(np.eye(case.kernel.n_users) + 0.5)
        assert_same_belief(model, dense)
        for user, arm, reward in part[:3]:
            model.update(user, arm, reward)
            dense.update(user, arm, reward)
        assert_same_belief(model, dense)


@pytest.mark.parametrize("engine", EXACT_ENGINES)
@given(case=cases(), seed=st.integers(0, 1000))
def test_order_of_observations_is_irrelevant(engine: str, case: Case, seed: int) -> None:
    model, other = (make(engine, case.kernel, case.noise_var) for _ in range(2))
    shuffled = [case.history[i] for i in np.random.default_rng(seed).permutation(len(case.history))]
    for row in case.history:
        model.update(*row)
    for row in shuffled:
        other.update(*row)
    scale = float(np.sqrt(model.max_variance))
    for user in range(case.kernel.n_users):
        assert scaled_gap(model.predict(user)[0], other.predict(user)[0], scale) < 1e-7
        assert scaled_gap(model.covariance(user), other.covariance(user), scale**2) < 1e-7
    assert model.info_gain == pytest.approx(other.info_gain, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("engine", sorted(ENGINES))
@given(case=cases(max_history=12))
def test_variance_never_grows_and_reading_changes_nothing(engine: str, case: Case) -> None:
    model = make(engine, case.kernel, case.noise_var)
    users = range(case.kernel.n_users)
    before = np.array([model.predict(user)[1] for user in users])
    for row in case.history:
        model.update(*row)
        after = np.array([model.predict(user)[1] for user in users])
        again = np.array([model.predict(user)[1] for user in users])
        np.testing.assert_array_equal(after, again)
        assert np.all(after**2 <= before**2 + 1e-9 * np.max(before**2, initial=0.0))
        before = after


@settings(max_examples=30)
@given(case=cases())
def test_exact_without_a_pool_equals_dense_without_a_pool(case: Case) -> None:
    resolved = case.arm_kernel.resolve(case.pool.features)
    kernel = FreeKernel(case.kernel.user_cov, resolved)
    model, dense = (ENGINES[name](kernel, noise_var=case.noise_var) for name in ("exact", "dense"))
    features = case.pool.features
    for user, arm, reward in case.history:
        for each in (model, dense):
            each.predict(user, features)
            each.update(user, features[arm], reward)
    for user in range(kernel.n_users):
        scale = float(dense.prior_std(user, features).max())
        assert scaled_gap(model.predict(user, features)[0], dense.predict(user, features)[0], scale) < 1e-7
        assert scaled_gap(model.covariance(user, features), dense.covariance(user, features), scale**2) < 1e-7
    assert model.effective_dim == pytest.approx(dense.effective_dim, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("engine", EXACT_ENGINES)
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_another_kernel_and_shifted_rewards_equal_dense(engine: str, seed: int) -> None:
    """`retune` changes arm kernel, user kernel, noise and the rewards' level at once."""
    rng = np.random.default_rng(seed)
    users, arms, rewards = rng.integers(3, size=12), rng.integers(4, size=12), rng.normal(size=12)
    first, second = (PoolKernel(random_cov(rng, 3), random_cov(rng, 4)) for _ in range(2))
    tuned, dense = make(engine, first, 0.3), DenseModel(second, noise_var=0.1)
    tuned.update_many(users, arms, rewards)
    tuned.retune(second, 0.1, shift=-2.0)
    dense.update_many(users, arms, rewards - 2.0)
    for model in (tuned, dense):
        model.update(0, 1, 0.5)
    assert_same_belief(tuned, dense)


def random_cov(rng: np.random.Generator, size: int) -> Array:
    root = rng.normal(size=(size, size + 1))
    return np.asarray(root @ root.T)


@pytest.mark.parametrize("engine", EXACT_ENGINES)
@given(case=cases(), weights=st.lists(st.floats(0.05, 5.0), min_size=4, max_size=4))
def test_weighted_observations_equal_dense(engine: str, case: Case, weights: list[float]) -> None:
    model, dense = make(engine, case.kernel, case.noise_var), DenseModel(case.kernel, noise_var=case.noise_var)
    for i, (user, arm, reward) in enumerate(case.history):
        for each in (model, dense):
            each.learn_weighted(user, arm, reward, weight=weights[i % 4])
    scale = float(max(dense.prior_std(user).max() for user in range(case.kernel.n_users)))
    for user in range(case.kernel.n_users):
        (mean, std), (dense_mean, dense_std) = model.predict(user), dense.predict(user)
        assert scaled_gap(mean, dense_mean, scale) < 1e-7
        assert scaled_gap(std**2, dense_std**2, scale**2) < 1e-7
    assert model.n_observations == dense.n_observations
    assert model.history.counts == dense.history.counts


@pytest.mark.parametrize("engine", sorted(ENGINES))
@given(case=cases(), weight=st.sampled_from([1.0, 0.3, 2.5]))
def test_a_history_that_is_learned_again_has_the_same_belief_and_evidence(
    engine: str, case: Case, weight: float
) -> None:
    dense, model = DenseModel(case.kernel, noise_var=case.noise_var), make(engine, case.kernel, case.noise_var)
    collapsed = History()
    for user, arm, reward in case.history:
        dense.learn_weighted(user, arm, reward, weight=weight)
        collapsed.add((user, arm), user, arm, reward, weight=weight)
    model.relearn(collapsed)
    assert_same_belief(model, dense)
    if case.history:
        for each in (model, dense):
            each.update(*case.history[0])
        assert_same_belief(model, dense)
