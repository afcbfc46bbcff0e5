"""Engine "features" on arms in contexts: what is left out is stated and keeps it uncertain; cost is bounded."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.contracts import Array
from coterie.errors import ParameterError, UnknownNameError
from coterie.kernels.additive import AdditiveInputs, UserParts
from coterie.kernels.inputs import ContextPart, InputKernel, InputLayout, InputScaling, InputsKernel
from coterie.models import FeaturesModel, make_model
from coterie.models.engines.input_features import InputFeaturesModel

GRAPH = ct.make_graph("sbm", 6, seed=2)
INPUTS = InputKernel(
    InputLayout(0, 2, 2, 1),
    InputScaling((0.0,) * 4, (1.0,) * 4),
    variance=1.3,
    lengthscale=1.5,
    linear_share=0.3,
    level=0.1,
    context_share=0.2,
    interaction=0.8,
    context=ContextPart(1.5, 1.0, 0.2),
)
KERNEL = InputsKernel(np.asarray(ct.Green(laplacian_ridge=0.5).matrix(GRAPH)) + 0.5, INPUTS)
PARTS = UserParts(1.0, 0.5, 0.1, 1.0, normalised=False)


def inputs_of(size: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=(size, 4)), rng.integers(3, size=(size, 1))])


def taught(models: list[Any], size: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for row in inputs_of(size, seed):
        user, reward = int(rng.integers(6)), float(np.sin(2 * row[1]) + 0.3 * rng.normal())
        for model in models:
            model.update(user, row, reward)


def features(**options: int) -> InputFeaturesModel:
    return InputFeaturesModel(KERNEL, noise_var=0.2, **options)


def test_it_is_near_the_exact_one_and_hardly_more_certain() -> None:
    """By up to 10 %, since blocks are taken to be independent given the features."""
    model, exact = features(exact_rows=48, trend_features=200), make_model(KERNEL, noise_var=0.2, engine="exact")
    taught([model, exact], 300)
    model.rebuild()
    asked = inputs_of(20, seed=9)
    both = [(model.predict(user, asked), exact.predict(user, asked)) for user in range(6)]
    ratios = np.array([one[1] / other[1] for one, other in both])
    errors = np.array([(one[0] - other[0]) / other[1] for one, other in both])
    assert np.min(ratios) > 0.9
    assert np.median(ratios) < 1.1
    assert np.sqrt(np.mean(errors**2)) < 0.4


def test_what_is_left_out_is_stated_and_stays_in_the_variance() -> None:
    model = features(exact_rows=10, trend_features=30)
    taught([model], 120)
    users, arms = model.history.user_array(), model.history.arm_array()
    at, prior = model._features(users, KERNEL.prepared(arms)), KERNEL.diag(users, arms)
    left = prior - np.sum(at**2, axis=1)
    stated = model.left_out()
    assert stated == pytest.approx((np.max(left / prior), np.mean(left / prior)))
    assert 0.05 < stated.mean < stated.largest < 1
    assert f"leave out {stated.mean:.2g} of the prior variance of the pairs seen" in model.describe()
    assert f"at most {stated.largest:.2g} of one" in model.describe()
    for user, arm, least in zip(users.tolist(), arms, left, strict=True):
        assert model.predict(user, [arm])[1][0] ** 2 >= least
        assert model.covariance(user, [arm])[0, 0] == pytest.approx(model.predict(user, [arm])[1][0] ** 2)


def test_more_features_leave_out_less_and_few_pairs_nothing() -> None:
    stated = []
    for most in (5, 40, 300):
        model = features(exact_rows=10, trend_features=most)
        assert model.left_out() == (0.0, 0.0)
        taught([model], 10)
        assert model.left_out() == (0.0, 0.0)
        assert "Exact" in model.describe()
        taught([model], 80, seed=1)
        model.rebuild()
        stated.append(model.left_out())
    assert stated == sorted(stated, reverse=True)
    assert stated[-1].mean < 0.05


def test_features_are_chosen_again_when_it_is_rebuilt() -> None:
    model = features(exact_rows=10, trend_features=300)
    taught([model], 100)
    before = model.left_out()
    model.rebuild()
    assert model.left_out().mean < 0.5 * before.mean
    again = model.replica()(KERNEL, noise_var=0.2)
    again.relearn(model.history)
    np.testing.assert_array_equal(again.predict(2, inputs_of(5, 7)), model.predict(2, inputs_of(5, 7)))
    assert type(again) is InputFeaturesModel


def test_a_decision_and_a_reward_touch_no_more_however_many_rewards_there_are() -> None:
    class Counting(InputsKernel):
        entries = 0

        def prepared_cross(self, arms: Any, others: Any) -> Any:
            Counting.entries += len(arms) * len(others)
            return super().prepared_cross(arms, others)

    model = InputFeaturesModel(Counting(KERNEL.user_cov, INPUTS), noise_var=0.2, exact_rows=32, trend_features=40)
    asked, read, learned = inputs_of(20, seed=9), [], []
    for size in (200, 800):
        taught([model], size - model.n_observations, seed=size)
        model.rebuild()
        Counting.entries = 0
        model.read(3, asked)
        read.append(Counting.entries)
        model.learn(3, asked[0], 0.1)
        learned.append(Counting.entries - read[-1])
        assert model._cov.shape == (40, 40)
    assert max(read) <= 20 * 512
    assert max(learned) <= 3 * 512 + 65 * 65


def test_what_it_cannot_do_is_refused() -> None:
    large = AdditiveInputs(GRAPH, PARTS, INPUTS)
    with pytest.raises(ParameterError, match=r"on a kernel AdditiveInputs; .* over all of them. Use engine 'local'"):
        make_model(large, engine="features")
    with pytest.raises(ParameterError, match="on a kernel AdditiveInputs"):
        features().retune(large, 0.1)
    with pytest.raises(ParameterError, match="without a pool"):
        FeaturesModel(KERNEL)
    with pytest.raises(UnknownNameError, match="engine 'features' with contexts are 'exact_rows', 'trend_features'"):
        make_model(KERNEL, engine="features", engine_options={"user_rank": 2})
    with pytest.raises(UnknownNameError, match=r"'exact_rows' is unknown; .* State context_schema"):
        make_model(ct.kernels.PoolKernel(np.eye(2), np.eye(2)), engine="features", engine_options={"exact_rows": 2})
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(ParameterError, match="trend_features is"):
            make_model(KERNEL, engine="features", engine_options={"trend_features": wrong})
