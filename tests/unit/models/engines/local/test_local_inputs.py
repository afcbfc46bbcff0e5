"""Engine "local" on arms in contexts: exact while rows are near, never much too certain beyond, and bounded."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.contracts import Array
from coterie.kernels.inputs import ContextPart, InputKernel, InputLayout, InputScaling, InputsKernel
from coterie.models import make_model, restore_model
from coterie.models.engines.local.model import BLOCK, INPUTS_LOOKED_AT, NEAR_INPUTS, LocalModel
from coterie.models.engines.local.trend import MOST_INDUCING, inducing_places

LAYOUTS = {"features": InputLayout(0, 2, 2, 1), "none": InputLayout(4, 0, 2, 1)}
every_layout = pytest.mark.parametrize("arms", list(LAYOUTS))


def kernel_of(arms: str, n_users: int = 6) -> InputsKernel:
    layout = LAYOUTS[arms]
    size = layout.features + layout.numbers
    inputs = InputKernel(
        layout,
        InputScaling((0.0,) * size, (1.0,) * size),
        variance=1.3,
        lengthscale=1.5,
        linear_share=0.3,
        level=0.1,
        context_share=0.2,
        interaction=0.8,
        context=ContextPart(1.5, 1.0, 0.2),
    )
    graph = ct.make_graph("sbm", n_users, seed=2)
    return InputsKernel(np.asarray(ct.Green(laplacian_ridge=0.5).matrix(graph)) + 0.5, inputs)


def inputs_of(arms: str, size: int, seed: int) -> Array:
    rng, layout = np.random.default_rng(seed), LAYOUTS[arms]
    own = rng.integers(4, size=(size, 1)) if layout.codes else rng.normal(size=(size, layout.features))
    numbers, codes = rng.normal(size=(size, layout.numbers)), rng.integers(3, size=(size, layout.categories))
    return np.column_stack([own, numbers, codes])


def taught(models: list[Any], arms: str, size: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for row in inputs_of(arms, size, seed):
        user, reward = int(rng.integers(models[0].n_users)), float(np.sin(2 * row[1]) + 0.3 * rng.normal())
        for model in models:
            model.update(user, row, reward)


@every_layout
def test_it_is_exact_while_rows_are_near(arms: str) -> None:
    kernel = kernel_of(arms)
    model, exact = (
        LocalModel(kernel, noise_var=0.1, near_rows=40, exact_rows=40),
        make_model(kernel, noise_var=0.1, engine="exact"),
    )
    taught([model, exact], arms, 40)
    asked = inputs_of(arms, 10, seed=9)
    for user in range(6):
        np.testing.assert_allclose(model.predict(user, asked), exact.predict(user, asked), atol=1e-8)
        np.testing.assert_allclose(model.covariance(user, asked), exact.covariance(user, asked), atol=1e-8)
    assert model._trend is None
    assert LocalModel(kernel).near_rows == NEAR_INPUTS


@every_layout
@settings(max_examples=15)
@given(size=st.integers(1, 40), seed=st.integers(0, 100), repeats=st.integers(0, 90))
def test_while_one_factor_has_all_rows_it_is_the_dense_posterior(arms: str, size: int, seed: int, repeats: int) -> None:
    """Pairs come again, some rewards are noisier than others, and a rebuild changes nothing."""
    kernel, rng = kernel_of(arms), np.random.default_rng(seed)
    model, dense = LocalModel(kernel, noise_var=0.1), make_model(kernel, noise_var=0.1, engine="dense")
    inputs, users = inputs_of(arms, size, seed), rng.integers(6, size=size)
    for row in [*range(size), *rng.integers(size, size=repeats).tolist()]:
        reward, weight = float(rng.normal()), float(rng.choice([1.0, 0.3]))
        for each in (model, dense):
            each.learn_noisier(int(users[row]), inputs[row], reward, weight=weight)
    assert model._grown is not None
    asked = inputs_of(arms, 5, seed=9)
    for rebuilt in (False, True):
        if rebuilt:
            model.rebuild()
        for user in range(6):
            np.testing.assert_allclose(model.predict(user, asked), dense.predict(user, asked), atol=1e-8)
            np.testing.assert_allclose(model.covariance(user, asked), dense.covariance(user, asked), atol=1e-8)
        assert model.info_gain == pytest.approx(dense.info_gain, abs=1e-7)
        assert model.log_marginal_likelihood == pytest.approx(dense.log_marginal_likelihood, abs=1e-6)
        assert model.is_sound()


def test_beyond_half_of_its_rows_a_rebuild_gives_one_factor_up_and_a_call_only_beyond_all() -> None:
    model = LocalModel(kernel_of("none"), noise_var=0.2, near_rows=10, exact_rows=40, trend_features=30)
    taught([model], "none", 20)
    model.rebuild()
    assert model._grown is not None
    taught([model], "none", 20, seed=1)
    assert model._grown is not None
    fresh = model._fresh()
    assert fresh._grown is None
    assert fresh._trend is not None
    taught([model], "none", 1, seed=2)
    assert model._grown is None
    assert model._trend is not None
    assert model.is_sound()


@every_layout
def test_beyond_it_is_near_the_exact_one_and_not_much_more_certain(arms: str) -> None:
    """A std may be below the exact one by up to 15 %, since blocks are taken to be independent given the trend."""
    kernel = kernel_of(arms)
    model = LocalModel(kernel, noise_var=0.2, near_rows=48, exact_rows=48, trend_features=96)
    exact = make_model(kernel, noise_var=0.2, engine="exact")
    taught([model, exact], arms, 300)
    asked = inputs_of(arms, 20, seed=9)
    for rebuilt in (False, True):
        if rebuilt:
            model.rebuild()
        ratios, errors = [], []
        for user in range(6):
            (mean, std), (exact_mean, exact_std) = model.predict(user, asked), exact.predict(user, asked)
            ratios.append(std / exact_std)
            errors.append((mean - exact_mean) / exact.prior_std(user, asked))
        assert np.min(ratios) > 0.85
        assert np.median(ratios) < 1.1
        assert np.sqrt(np.mean(np.square(errors))) < 0.13


@every_layout
@settings(max_examples=10)
@given(most=st.sampled_from([1, 20, 300]), seed=st.integers(0, 100))
def test_what_the_trend_leaves_is_a_kernel(arms: str, most: int, seed: int) -> None:
    kernel = kernel_of(arms)
    model = LocalModel(kernel, noise_var=0.2, near_rows=10, exact_rows=10, trend_features=most)
    taught([model], arms, 60, seed)
    model.rebuild()
    assert model._trend is not None
    assert 0 < model._trend.size <= most
    users, inputs = np.random.default_rng(seed).integers(6, size=80), inputs_of(arms, 80, seed + 1)
    features = model._features(users, kernel.prepared(inputs))
    left = kernel.cross(users, inputs, users, inputs) - features @ features.T
    assert np.linalg.eigvalsh(left)[0] >= -1e-9 * np.trace(kernel.cross(users, inputs, users, inputs))


def test_with_every_feature_it_is_exact_however_few_rows_are_near() -> None:
    kernel = kernel_of("none")
    linear = replace(kernel.arm_kernel, context=ContextPart(1.0, 1.0, 1.0))  # so few features are all of it
    kernel = InputsKernel(kernel.user_cov, linear)
    model = LocalModel(kernel, noise_var=0.2, near_rows=5, exact_rows=5, trend_features=500)
    exact = make_model(kernel, noise_var=0.2, engine="exact")
    taught([model, exact], "none", 150)
    model.rebuild()
    taught([model, exact], "none", 20, seed=1)
    asked = inputs_of("none", 10, seed=9)
    for user in range(6):
        np.testing.assert_allclose(model.predict(user, asked), exact.predict(user, asked), atol=1e-4)


@every_layout
@pytest.mark.parametrize("size", [0, 20, 150])
def test_a_restored_one_is_the_same_to_the_bit(arms: str, size: int) -> None:
    model = LocalModel(kernel_of(arms), noise_var=0.2, near_rows=40, exact_rows=40, trend_features=30)
    taught([model], arms, size)
    again: Any = restore_model(deepcopy(model.state()), model.kernel)
    assert again.is_sound()
    taught([model, again], arms, 60, seed=5)
    assert model._trend is not None or size == 0
    asked = inputs_of(arms, 10, seed=9)
    for user in range(6):
        for one, two in zip(model.predict(user, asked), again.predict(user, asked), strict=True):
            np.testing.assert_array_equal(one, two)
    for each in (model, again):
        each.rebuild()
    np.testing.assert_array_equal(model.predict(1, asked), again.predict(1, asked))


class Forgetful(LocalModel):
    """Keeps the features of few rows: a short history has rows that they are computed again for."""

    most_recent = 25


@every_layout
def test_features_that_are_not_kept_are_computed_again(arms: str) -> None:
    models = [
        made(kernel_of(arms), noise_var=0.2, near_rows=40, exact_rows=40, trend_features=30)
        for made in (LocalModel, Forgetful)
    ]
    taught(models, arms, 150)
    asked = inputs_of(arms, 10, seed=9)
    for user in range(6):
        np.testing.assert_allclose(models[0].predict(user, asked), models[1].predict(user, asked), atol=1e-9)
    assert models[1].nbytes < models[0].nbytes
    again = Forgetful.restored(deepcopy(models[1].state()), models[1].kernel)
    taught([models[1], again], arms, 30, seed=5)
    for user in range(6):
        np.testing.assert_array_equal(models[1].predict(user, asked), again.predict(user, asked))


class Piecemeal(LocalModel):
    """Conditions on few rows at once when it is rebuilt."""

    most_at_once = 25


@every_layout
def test_rows_are_conditioned_on_in_groups_where_they_are_many(arms: str) -> None:
    sizes = {"near_rows": 40, "exact_rows": 40, "trend_features": 30}
    models = [made(kernel_of(arms), noise_var=0.2, **sizes) for made in (LocalModel, Piecemeal)]
    taught(models, arms, 150)
    asked = inputs_of(arms, 10, seed=9)
    for model in models:
        model.rebuild()
    np.testing.assert_allclose(models[0].predict(1, asked), models[1].predict(1, asked), atol=1e-10)
    for name in ("info_gain", "log_marginal_likelihood"):
        assert getattr(models[0], name) == pytest.approx(getattr(models[1], name), rel=1e-10)


@every_layout
def test_rewards_one_by_one_are_as_the_same_ones_at_once(arms: str) -> None:
    """Where the trend is the same one, up to the rounding that one-by-one updates of it pile up."""
    model = LocalModel(kernel_of(arms), noise_var=0.2, near_rows=40, exact_rows=40, trend_features=30)
    taught([model], arms, 150)
    model.rebuild()
    taught([model], arms, 60, seed=1)
    once = deepcopy(model)
    known = once._information()
    np.testing.assert_allclose(model._cov, np.linalg.inv(known.precision), atol=1e-7)
    np.testing.assert_allclose(model._mean, np.linalg.solve(known.precision, known.moment), atol=1e-7)
    assert model.mismatch() < 1e-7


@every_layout
def test_before_a_trend_rewards_one_by_one_are_as_a_batch(arms: str) -> None:
    models = [LocalModel(kernel_of(arms), noise_var=0.2) for _ in range(2)]
    taught(models[:1], arms, 60)
    history = deepcopy(models[0].history)
    models[1].relearn(history)
    asked = inputs_of(arms, 10, seed=9)
    for user in range(6):
        np.testing.assert_allclose(models[0].predict(user, asked), models[1].predict(user, asked), atol=1e-9)
    assert models[0].log_marginal_likelihood == pytest.approx(models[1].log_marginal_likelihood, abs=1e-7)


def test_the_rows_are_those_that_covary_most_with_the_candidates_whoever_has_them() -> None:
    kernel = kernel_of("none")
    model = LocalModel(kernel, noise_var=0.3, near_rows=16, exact_rows=16, trend_features=12)
    taught([model], "none", 100)
    arms, (users, known) = inputs_of("none", 3, seed=4), (model.history.user_array(), model.history.arm_array())
    rows = model._nearest(2, kernel.prepared(arms))[0]
    alike = np.abs(kernel.cross(users, known, np.full(3, 2), arms)).max(axis=1)
    assert set(rows.tolist()) == set(np.argsort(-alike, kind="stable")[:16].tolist())


def test_inducing_inputs_are_those_of_most_variance_given_the_ones_before() -> None:
    kernel, inputs = kernel_of("features"), inputs_of("features", 40, seed=3)
    found = inducing_places(kernel, kernel.prepared(inputs), 12).tolist()
    gram = kernel.arm_cross(inputs, inputs)
    for step in range(12):
        known = found[:step]
        left = gram - gram[:, known] @ np.linalg.solve(gram[np.ix_(known, known)], gram[known]) if known else gram
        assert left[found[step], found[step]] >= left.diagonal().max() * (1 - 1e-6)
    again = np.repeat(inputs[:3], 5, axis=0)
    assert len(inducing_places(kernel, kernel.prepared(again), 12)) == 3  # the others add nothing


def test_a_decision_and_a_reward_touch_no_more_however_many_rewards_there_are() -> None:
    class Counting(InputsKernel):
        entries = 0

        def prepared_cross(self, arms: Any, others: Any) -> Any:
            Counting.entries += len(arms) * len(others)
            return super().prepared_cross(arms, others)

    kernel = kernel_of("none")
    model = LocalModel(
        Counting(kernel.user_cov, kernel.arm_kernel), noise_var=0.3, near_rows=32, exact_rows=32, trend_features=64
    )
    asked, most = inputs_of("none", 20, seed=9), []
    for size in (INPUTS_LOOKED_AT, INPUTS_LOOKED_AT + 600):
        taught([model], "none", size - model.n_observations, seed=size)
        Counting.entries = 0
        model.read(3, asked)
        model.learn(3, asked[0], 0.1)
        most.append(Counting.entries)
    bound = INPUTS_LOOKED_AT * 20 + 32 * (32 + 20) + (32 + 20 + 1) * MOST_INDUCING
    assert max(most) <= bound + (BLOCK + 1) * (BLOCK + 1 + MOST_INDUCING)


def test_it_says_what_the_features_leave_out() -> None:
    model = LocalModel(kernel_of("none"), noise_var=0.2, near_rows=20, exact_rows=20, trend_features=15)
    assert model.left_out() == (0.0, 0.0)
    taught([model], "none", 60)
    stated = model.left_out()
    assert 0 < stated.mean < stated.largest < 1
    assert stated.in_words() in model.describe()


def test_where_nothing_can_be_learned_of_the_users_seen_there_are_no_features() -> None:
    kernel = kernel_of("none")
    model = LocalModel(InputsKernel(np.zeros((6, 6)), kernel.arm_kernel), noise_var=0.2, near_rows=3, exact_rows=3)
    taught([model], "none", 10)
    assert model._cov.size == 0
    np.testing.assert_array_equal(model.predict(1, inputs_of("none", 4, seed=1)), np.zeros((2, 4)))
    assert model.is_sound()
