"""Users in groups: the same belief as `dense` on the matrix that the groups stand for, while groups part."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from coterie.errors import DimensionError, KernelError, ParameterError
from coterie.kernels import ArmPool, Distinct, Linear, PoolKernel, SquaredExponential
from coterie.kernels.group_kernel import GroupKernel, group_kernel
from coterie.models import DenseModel, Model, make_model, restore_model
from coterie.models.engines.groups import GroupsModel

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(7, 3))
LABELS = [0, 0, 0, 0, 4, 4, 6, 7]


def dense_of(labels: Any, noise_var: float = 0.5) -> DenseModel:
    return DenseModel(
        PoolKernel(np.equal.outer(labels, labels).astype(float), FEATURES @ FEATURES.T), noise_var=noise_var
    )


def rows(count: int, seed: int = 1) -> list[tuple[int, int, float]]:
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(8)), int(rng.integers(7)), float(rng.normal())) for _ in range(count)]


def assert_same(model: Model, dense: DenseModel) -> None:
    for user in range(8):
        np.testing.assert_allclose(model.predict(user), dense.predict(user), atol=1e-9)
        np.testing.assert_allclose(model.covariance(user), dense.covariance(user), atol=1e-9)
        np.testing.assert_allclose(model.prior_std(user), dense.prior_std(user))
    assert model.info_gain == pytest.approx(dense.info_gain)
    assert model.log_marginal_likelihood == pytest.approx(dense.log_marginal_likelihood)
    assert model.max_variance == pytest.approx(dense.max_variance)


def test_the_belief_is_that_of_the_matrix_the_groups_stand_for() -> None:
    model, dense = make_model(GroupKernel(LABELS, FEATURES), noise_var=0.5), dense_of(LABELS)
    assert model.engine == "groups"
    assert_same(model, dense)
    for each in (model, dense):
        for row in rows(40):
            each.update(*row)
        each.update_many(*zip(*rows(30, seed=2), strict=True))
    assert_same(model, dense)
    for each in (model, dense):
        each.set_noise_var(0.1)
    assert_same(model, dense)
    assert not model.check().healed


def test_groups_part_and_go_on_learning() -> None:
    model, labels = GroupsModel(GroupKernel(LABELS, FEATURES), noise_var=0.5), np.array(LABELS)
    seen: list[tuple[int, int, float]] = []
    for number, part in enumerate(([5], [0, 1], [2], [1], [7])):
        for row in rows(12, seed=number):
            model.update(*row)
            seen.append(row)
        model.split(np.array(part), 10 + number)
        labels[part] = 10 + number
        dense = dense_of(labels)
        dense.update_many(*zip(*seen, strict=True))
        assert_same(model, dense)
        np.testing.assert_array_equal(model.kernel.labels, labels)
    assert not model.check().healed


def test_who_has_no_rewards_leaves_without_a_change_to_the_others() -> None:
    model = GroupsModel(GroupKernel([0, 0, 0], FEATURES))
    model.update(0, 1, 1.0)
    before = model.predict(0)
    model.split(np.array([2]), 1)
    np.testing.assert_array_equal(model.predict(0), before)
    np.testing.assert_array_equal(model.predict(2)[0], np.zeros(7))


def test_a_reward_is_revised_before_and_after_a_split() -> None:
    model = GroupsModel(GroupKernel([0, 0, 1], FEATURES), noise_var=0.5)
    model.update_many([0, 1, 1], [0, 1, 2], [1.0, 2.0, 3.0])
    assert model.revise(1, 1, 2.0, -2.0)
    model.split(np.array([1]), 5)
    assert model.revise(1, 2, 3.0, 0.5)
    model.split(np.array([0]), 6)
    expected = GroupsModel(GroupKernel([0, 1, 2], FEATURES), noise_var=0.5)
    expected.update_many([0, 1, 1], [0, 1, 2], [1.0, -2.0, 0.5])
    for user in range(3):
        np.testing.assert_allclose(model.predict(user), expected.predict(user), atol=1e-12)
    assert model.log_marginal_likelihood == pytest.approx(expected.log_marginal_likelihood)


def test_it_is_restored_to_the_bit() -> None:
    model = GroupsModel(GroupKernel(LABELS, FEATURES), noise_var=0.5)
    model.update_many(*zip(*rows(30), strict=True))
    model.split(np.array([0, 1]), 9)
    again = restore_model(model.state(), model.kernel)
    more = rows(10, seed=3)
    for each in (model, again):
        for row in more:
            each.learn(*row)
        assert isinstance(each, GroupsModel)
        each.split(np.array([2]), 11)
    for user in range(8):
        np.testing.assert_array_equal(model.predict(user), again.predict(user))
    assert model.info_gain == again.info_gain


def test_a_kernel_that_is_not_linear_goes_by_features() -> None:
    arms = ArmPool(np.linspace(0, 1, 30)[:, None])
    kernel = group_kernel(LABELS, SquaredExponential(0.5), arms, feature_error=1e-9)
    gram = SquaredExponential(0.5).gram(arms.features)
    np.testing.assert_allclose(kernel.arm_cross(np.arange(30), np.arange(30)), gram, atol=1e-8)
    assert "features miss" in make_model(kernel).describe()


def test_what_groups_cannot_do_is_said() -> None:
    kernel = group_kernel(LABELS, Linear(), ArmPool(FEATURES))
    with pytest.raises(KernelError, match="covariance of all 8 users"):
        _ = kernel.user_cov
    with pytest.raises(KernelError, match="groups stand for it"):
        make_model(kernel).set_user_cov(np.eye(8))
    with pytest.raises(ParameterError, match="asked for with a PoolKernel"):
        GroupsModel(PoolKernel(np.eye(2), np.eye(2)))
    with pytest.raises(DimensionError, match="one whole number for each user"):
        GroupKernel([0.5, 1.0], FEATURES)


def matrix_of(labels: list[int]) -> NDArray[np.float64]:
    return np.equal.outer(labels, labels).astype(float)


def test_the_kernel_is_the_one_of_the_matrix() -> None:
    kernel, whole = GroupKernel(LABELS, FEATURES), PoolKernel(matrix_of(LABELS), FEATURES @ FEATURES.T)
    users, arms, others, theirs = (RNG.integers(size, size=5) for size in (8, 7, 8, 7))
    np.testing.assert_allclose(kernel.cross(users, arms, others, theirs), whole.cross(users, arms, others, theirs))
    np.testing.assert_allclose(
        kernel.cross_of_user(4, arms, others, theirs), whole.cross_of_user(4, arms, others, theirs)
    )
    np.testing.assert_allclose(kernel.diag(users, arms), whole.diag(users, arms))


def test_distinct_arms_are_learned_apart_and_twins_together() -> None:
    arms = ArmPool([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [3.0, 1.0]])
    model: Model = make_model(group_kernel(LABELS, Distinct(), arms), noise_var=0.5)
    dense = DenseModel(PoolKernel(matrix_of(LABELS), Distinct().gram(arms.features)), noise_var=0.5)
    history = [(user, arm % 4, reward) for user, arm, reward in rows(60)]
    for each in (model, dense):
        for row in history:
            each.update(*row)
    assert_same(model, dense)
    again = restore_model(model.state(), model.kernel)
    np.testing.assert_array_equal(again.predict(3), model.predict(3))
    assert "of users and arms" in model.describe()
