"""What every model must satisfy: it equals the dense formula, whatever happened to it."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.contracts import Array
from coterie.kernels import FreeKernel, PoolKernel
from coterie.kernels.graph_kernel import GraphKernel
from coterie.kernels.group_kernel import GroupKernel
from coterie.kernels.inputs import InputsKernel
from coterie.kernels.joint import JointKernel
from coterie.models import ENGINES, DenseModel, History, Model, SparseModel, make_model
from coterie.models.choose import INPUT_ENGINES
from coterie.models.engines.input_features import InputFeaturesModel
from engine_cases import (
    ENGINE_NAMES,
    KERNELS,
    assert_between,
    assert_same_belief,
    assert_same_moments,
    model_and_reference,
    model_of,
)
from strategies import Case, InputCase, cases, input_cases, scaled_gap

PATH = ct.UserGraph.from_edges([(0, 1), (1, 2, 2.0)])
FAST = [name for name in ENGINE_NAMES if name != "dense"]


def test_every_engine_is_a_subject() -> None:
    assert {"exact", "grid", "hybrid", "features", "groups", "sparse"} <= set(FAST)
    assert set(FAST) - set(ENGINES) == set(KERNELS)


@pytest.mark.parametrize("engine", FAST)
@given(case=cases())
def test_equals_dense_after_every_update(engine: str, case: Case) -> None:
    model, dense = model_and_reference(engine, case)
    assert_same_belief(model, dense)
    for i, (user, arm, reward) in enumerate(case.history):
        model.update(user, arm, reward)
        dense.update(user, arm, reward)
        if i % 8 == 0:
            assert_same_belief(model, dense)
    assert_same_belief(model, dense)


@pytest.mark.parametrize("engine", FAST)
@given(case=cases(), cut=st.integers(0, 25), later=st.sampled_from([1e-3, 0.3]))
def test_batches_and_changes_of_noise_and_users_equal_dense(engine: str, case: Case, cut: int, later: float) -> None:
    model, dense = model_and_reference(engine, case)
    for part in (case.history[:cut], case.history[cut:]):
        users, arms, rewards = ([row[i] for row in part] for i in range(3))
        for each in (model, dense):
            each.update_many(users, arms, rewards)
        assert_same_belief(model, dense)
        for each in (model, dense):
            each.set_noise_var(later)
        assert_same_belief(model, dense)
        if engine not in KERNELS:  # whose kernels have no matrix of users to replace
            for each in (model, dense):
                each.set_user_cov(np.eye(case.kernel.n_users) + 0.5)
            assert_same_belief(model, dense)
        for user, arm, reward in part[:3]:
            model.update(user, arm, reward)
            dense.update(user, arm, reward)
        assert_same_belief(model, dense)


@pytest.mark.parametrize("engine", FAST)
@given(case=cases(), seed=st.integers(0, 1000))
def test_order_of_observations_is_irrelevant(engine: str, case: Case, seed: int) -> None:
    model, other = (model_of(engine, case) for _ in range(2))
    shuffled = [case.history[i] for i in np.random.default_rng(seed).permutation(len(case.history))]
    for row in case.history:
        model.update(*row)
    for row in shuffled:
        other.update(*row)
    scale = float(np.sqrt(model.max_variance))
    for user in range(case.kernel.n_users):
        off = np.full(len(case.pool), 1e-7 * scale)
        for each in (model, other):
            off += each.error_bound(user) if isinstance(each, SparseModel) else 0.0
        share = model.accuracy if isinstance(model, SparseModel) else 1e-7
        assert np.all(np.abs(model.predict(user)[0] - other.predict(user)[0]) <= off)
        assert scaled_gap(model.covariance(user), other.covariance(user), scale**2) < share
    if not isinstance(model, SparseModel):  # whose gain is a lower bound
        assert model.info_gain == pytest.approx(other.info_gain, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@given(case=cases(max_history=12))
def test_variance_never_grows_and_reading_changes_nothing(engine: str, case: Case) -> None:
    model = model_of(engine, case)
    users = range(case.kernel.n_users)
    before = np.array([model.predict(user)[1] for user in users])
    for row in case.history:
        model.update(*row)
        after = np.array([model.predict(user)[1] for user in users])
        again = np.array([model.predict(user)[1] for user in users])
        np.testing.assert_array_equal(after, again)
        if not isinstance(model, SparseModel):  # an upper bound may grow when it is recomputed
            assert np.all(after**2 <= before**2 + 1e-9 * np.max(before**2, initial=0.0))
        before = after


@given(case=cases())
def test_a_fresh_variance_of_sparse_is_above_the_exact_one_by_its_accuracy_at_most(case: Case) -> None:
    model, dense = model_and_reference("sparse", case)
    assert isinstance(model, SparseModel)
    for row in case.history:
        model.update(*row)
        dense.update(*row)
    most = 3 * model.accuracy / 100  # among 200 users or fewer
    for user in range(case.kernel.n_users):
        exact, prior = dense.predict(user)[1] ** 2, dense.prior_std(user) ** 2
        assert_between(exact, model.predict(user)[1] ** 2, exact + most * prior.max(), 1e-7 * prior.max())


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


def assert_same_on_inputs(model: Model, dense: Model, inputs: Array, tolerance: float = 1e-7) -> None:
    """Compares every public quantity of arms in contexts."""
    assert model.n_observations == dense.n_observations
    scale = max(float(dense.prior_std(user, inputs).max()) for user in range(dense.n_users))
    for user in range(dense.n_users):
        (mean, std), (exact, exact_std) = model.predict(user, inputs), dense.predict(user, inputs)
        assert scaled_gap(mean, exact, scale) < tolerance
        assert scaled_gap(std**2, exact_std**2, scale**2) < tolerance
        assert scaled_gap(model.covariance(user, inputs), dense.covariance(user, inputs), scale**2) < tolerance
        np.testing.assert_array_equal(model.prior_std(user, inputs), dense.prior_std(user, inputs))
    assert model.info_gain == pytest.approx(dense.info_gain, rel=10 * tolerance, abs=10 * tolerance)
    assert model.effective_dim == pytest.approx(dense.effective_dim, rel=10 * tolerance, abs=10 * tolerance)
    assert model.log_marginal_likelihood == pytest.approx(
        dense.log_marginal_likelihood, rel=10 * tolerance, abs=10 * tolerance
    )


WITH_INPUTS = sorted(set(INPUT_ENGINES) - {"dense"})  # the engines that know arms in contexts


@pytest.mark.parametrize("engine", WITH_INPUTS)
@given(case=input_cases())
def test_inputs_equal_dense_after_every_update(engine: str, case: InputCase) -> None:
    model, dense = (make_model(case.kernel, noise_var=case.noise_var, engine=name) for name in (engine, "dense"))
    assert_same_on_inputs(model, dense, case.inputs)
    for i, (user, row, reward) in enumerate(case.history):
        for each in (model, dense):
            each.update(user, case.inputs[row], reward)
        if i % 8 == 0:
            assert_same_on_inputs(model, dense, case.inputs)
    assert_same_on_inputs(model, dense, case.inputs)


@pytest.mark.parametrize("engine", WITH_INPUTS)
@given(case=input_cases(), cut=st.integers(0, 25), weight=st.sampled_from([1.0, 0.3, 2.5]))
def test_inputs_in_batches_with_weights_and_with_other_settings_equal_dense(
    engine: str, case: InputCase, cut: int, weight: float
) -> None:
    model, dense = (make_model(case.kernel, noise_var=case.noise_var, engine=name) for name in (engine, "dense"))
    for part in (case.history[:cut], case.history[cut:]):
        users, rewards = [user for user, _, _ in part], [reward for _, _, reward in part]
        for each in (model, dense):
            if part:
                each.update_many(users, case.inputs[[row for _, row, _ in part]], rewards)
        assert_same_on_inputs(model, dense, case.inputs)
    for each in (model, dense):
        each.set_noise_var(0.3)
        each.set_user_cov(np.eye(case.kernel.n_users) + 0.5)
        each.retune(InputsKernel(each.kernel.user_cov, case.kernel.arm_kernel.times(1.5)), 0.2, shift=-1.0)
        each.learn_weighted(0, case.inputs[0], 0.5, weight=weight)
    assert_same_on_inputs(model, dense, case.inputs)
    collapsed = History()
    for user, row, reward in case.history:
        collapsed.add(model.kernel.key(user, case.inputs[row]), user, case.inputs[row], reward)
    for each in (model, dense):
        each.relearn(deepcopy(collapsed))
    assert_same_on_inputs(model, dense, case.inputs)


@given(case=input_cases(), cut=st.integers(0, 25))
def test_features_of_all_inputs_seen_are_exact(case: InputCase, cut: int) -> None:
    """Also at inputs, and of users, that were not seen; a share of 1e-6 may be left out."""
    model, dense = InputFeaturesModel(case.kernel, noise_var=case.noise_var, exact_rows=1), dense_on_inputs(case)
    for user, row, reward in case.history[:cut]:
        for each in (model, dense):
            each.update(user, case.inputs[row], reward)
    model.rebuild()
    assert_same_on_inputs(model, dense, case.inputs, 1e-5)
    assert model.left_out().largest < 1e-5
    seen = sorted({(user, row) for user, row, _ in case.history[:cut]})
    for user, row, reward in [each for each in case.history[cut:] if each[:2] in seen]:  # the features suit these too
        for each in (model, dense):
            each.update(user, case.inputs[row], reward)
    assert_same_on_inputs(model, dense, case.inputs, 1e-5)


@given(case=input_cases(), most=st.sampled_from([1, 3, 8, 20]))
def test_features_of_inputs_are_as_far_from_exact_as_the_stated_error_allows(case: InputCase, most: int) -> None:
    """Left-out variances sum up to what the covariance of the rewards is off by at most, and so its inverse."""
    options = {"exact_rows": 1, "trend_features": most}
    model, dense = InputFeaturesModel(case.kernel, noise_var=case.noise_var, **options), dense_on_inputs(case)
    for user, row, reward in case.history:
        for each in (model, dense):
            each.update(user, case.inputs[row], reward)
    model.rebuild()
    history, largest = model.history, model.max_variance
    left = len(history) * (model.left_out().largest * largest + 1e-9 * largest)
    inverse = max(history.counts, default=0.0) / case.noise_var
    of_rows, reach = float(np.linalg.norm(history.mean_array())), np.sqrt(len(history)) * largest
    off = left * inverse + reach * left * inverse**2
    for user, row, _ in case.history:
        (mean, std), (exact, exact_std) = (each.predict(user, case.inputs[[row]]) for each in (model, dense))
        assert abs(mean[0] - exact[0]) <= off * of_rows + 1e-5 * np.sqrt(largest)
        assert std[0] ** 2 >= exact_std[0] ** 2 - 2 * reach * off - 1e-5 * largest
        assert std[0] ** 2 <= dense.prior_std(user, case.inputs[[row]])[0] ** 2 * (1 + 1e-9)


def dense_on_inputs(case: InputCase) -> DenseModel:
    return DenseModel(case.kernel, noise_var=case.noise_var)


@pytest.mark.parametrize("engine", FAST)
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_another_kernel_and_shifted_rewards_equal_dense(engine: str, seed: int) -> None:
    """`retune` changes arm kernel, user kernel, noise and the rewards' level at once."""
    rng = np.random.default_rng(seed)
    users, arms, rewards = rng.integers(3, size=12), rng.integers(4, size=12), rng.normal(size=12)
    (first, _), (second, same) = random_kernels(engine, rng)
    tuned, dense = make_model(first, noise_var=0.3, engine=engine), DenseModel(same, noise_var=0.1)
    tuned.update_many(users, arms, rewards)
    tuned.retune(second, 0.1, shift=-2.0)
    dense.update_many(users, arms, rewards - 2.0)
    for model in (tuned, dense):
        model.update(0, 1, 0.5)
    assert_same_belief(tuned, dense)


def random_kernels(engine: str, rng: np.random.Generator) -> list[tuple[JointKernel, PoolKernel]]:
    """Two kernels of an engine for 3 users and 4 arms, each with the same one as matrices."""
    made: list[tuple[JointKernel, PoolKernel]] = []
    for ridge, labels in ((0.3, [0, 1, 1]), (0.7, [0, 0, 1])):
        features = rng.normal(size=(4, 3))
        gram = np.asarray(features @ features.T)
        if engine == "sparse":
            pytest.importorskip("numba")
            same = PoolKernel(ct.Green(laplacian_ridge=ridge).matrix(PATH), gram)
            made.append((GraphKernel(PATH, features, laplacian_ridge=ridge), same))
        elif engine == "groups":
            made.append((GroupKernel(labels, features), PoolKernel(np.equal.outer(labels, labels) + 0.0, gram)))
        else:
            made.append((PoolKernel(random_cov(rng, 3), random_cov(rng, 4)),) * 2)
    return made


def random_cov(rng: np.random.Generator, size: int) -> Array:
    root = rng.normal(size=(size, size + 1))
    return np.asarray(root @ root.T)


@pytest.mark.parametrize("engine", FAST)
@given(case=cases(), weights=st.lists(st.floats(0.05, 5.0), min_size=4, max_size=4))
def test_weighted_observations_equal_dense(engine: str, case: Case, weights: list[float]) -> None:
    model, dense = model_and_reference(engine, case)
    for i, (user, arm, reward) in enumerate(case.history):
        for each in (model, dense):
            each.learn_weighted(user, arm, reward, weight=weights[i % 4])
    assert_same_moments(model, dense)
    np.testing.assert_array_equal(model.history.counts, dense.history.counts)


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@given(case=cases(), weight=st.sampled_from([1.0, 0.3, 2.5]))
def test_a_history_that_is_learned_again_has_the_same_belief_and_evidence(
    engine: str, case: Case, weight: float
) -> None:
    model, dense = model_and_reference(engine, case)
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
