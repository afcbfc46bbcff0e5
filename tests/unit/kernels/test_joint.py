"""The joint kernel: one number for every two (user, arm) pairs, as numpy's Kronecker product has it."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

import coterie as ct
from coterie.errors import ArmError, DimensionError, KernelError, ParameterError
from coterie.kernels import FreeKernel, JointKernel, PoolKernel, pool_kernel
from coterie.kernels.joint import checked_psd
from strategies import Case, cases, scaled_gap

Index = NDArray[np.intp]

POOL = PoolKernel(np.eye(2) + 0.5, np.array([[1.0, 0.2, 0.0], [0.2, 2.0, 0.1], [0.0, 0.1, 3.0]]))
FREE = FreeKernel(np.eye(2) + 0.5, ct.Linear())


def pairs_of(case: Case) -> tuple[Index, Index]:
    """Returns the users and arms of the case's history."""
    return (np.array([row[i] for row in case.history], dtype=np.intp) for i in range(2))  # type: ignore[return-value]


@given(case=cases())
def test_pool_kernel_is_the_kronecker_product(case: Case) -> None:
    kernel = case.kernel
    joint = np.kron(kernel.user_cov, kernel.arm_cov)
    users, arms = pairs_of(case)
    rows = [kernel.key(int(user), int(arm)) for user, arm in zip(users, arms, strict=True)]
    every_user, every_arm = (i.ravel() for i in np.indices((kernel.n_users, kernel.n_arms)))
    assert kernel.n_pairs == len(joint)
    np.testing.assert_array_equal(kernel.cross(users, arms, every_user, every_arm), joint[rows])
    np.testing.assert_array_equal(kernel.cross(every_user, every_arm, users, arms), joint[:, rows])
    np.testing.assert_array_equal(kernel.diag(users, arms), joint.diagonal()[rows])
    np.testing.assert_array_equal(kernel.pair_variances(), joint.diagonal())
    assert kernel.max_variance([]) == pytest.approx(joint.diagonal().max(), rel=1e-15)
    for user in range(kernel.n_users):
        own = np.arange(kernel.n_arms)
        got = kernel.cross_of_user(user, own, users, arms)
        np.testing.assert_array_equal(got, joint[user * kernel.n_arms + own][:, rows])


@given(case=cases(max_history=0))
def test_fill_writes_every_pair_in_place(case: Case) -> None:
    out = np.full((case.kernel.n_pairs, case.kernel.n_pairs), np.nan, order="F")
    case.kernel.fill(out)
    np.testing.assert_array_equal(out, np.kron(case.kernel.user_cov, case.kernel.arm_cov))


@given(case=cases())
def test_without_a_pool_the_kernel_is_that_of_the_pools_vectors(case: Case) -> None:
    pool, features = case.kernel, case.pool.features
    free = FreeKernel(pool.user_cov, case.arm_kernel.resolve(features))
    users, arms = pairs_of(case)
    every_user, every_arm = (i.ravel() for i in np.indices((pool.n_users, pool.n_arms)))
    scale = pool.max_variance([])
    met = list(features)
    assert free.max_variance(met) == pytest.approx(scale, rel=1e-12)
    want = pool.cross(every_user, every_arm, users, arms)
    got = free.cross(every_user, features[every_arm], users, features[arms])
    assert got.shape == want.shape
    assert scaled_gap(got, want, scale) < 1e-12
    assert scaled_gap(free.diag(every_user, features[every_arm]), pool.pair_variances(), scale) < 1e-13
    for user in range(pool.n_users):
        want = pool.cross_of_user(user, np.arange(pool.n_arms), users, arms)
        assert scaled_gap(free.cross_of_user(user, features, users, features[arms]), want, scale) < 1e-12


def test_reading_a_kernel_does_not_change_it() -> None:
    """Answers are computed in place of a copy, never in place of the kernel's own tables."""
    before = POOL.user_cov.copy(), POOL.arm_cov.copy()
    everyone, everything = np.arange(2), np.arange(3)
    POOL.cross(everyone, everyone, everyone, everyone)[...] = 9.0
    POOL.cross_of_user(0, everything, everyone, everyone)[...] = 9.0
    POOL.arm_diag(everything)[...] = 9.0
    POOL.pair_variances()[...] = 9.0
    np.testing.assert_array_equal(POOL.user_cov, before[0])
    np.testing.assert_array_equal(POOL.arm_cov, before[1])
    np.testing.assert_array_equal(POOL.arm_diag(everything), [1.0, 2.0, 3.0])


def test_keys_of_a_pool_tell_all_pairs_apart() -> None:
    assert [POOL.key(user, arm) for user in range(2) for arm in range(3)] == list(range(6))


def test_keys_of_vectors_are_the_same_for_both_zeros_only() -> None:
    plain = FREE.key(0, np.array([0.0, 1.0]))
    assert FREE.key(0, np.array([-0.0, 1.0])) == plain
    assert hash(FREE.key(0, np.array([-0.0, 1.0]))) == hash(plain)
    assert FREE.key(1, np.array([0.0, 1.0])) != plain
    assert FREE.key(0, np.array([0.0, np.nextafter(1.0, 2.0)])) != plain
    assert FREE.key(0, np.array([1.0, 0.0])) != plain


def test_making_a_key_leaves_the_vector_alone() -> None:
    vector = np.array([-0.0, 1.0])
    FREE.key(0, vector)
    assert np.signbit(vector[0])


@pytest.mark.parametrize("kernel", [POOL, FREE], ids=["pool", "free"])
def test_other_users_can_be_put_in(kernel: JointKernel) -> None:
    changed = kernel.with_user_cov(np.array([[4.0, 1.0], [1.0, 4.0]]))
    np.testing.assert_array_equal(changed.user_cov, [[4.0, 1.0], [1.0, 4.0]])
    np.testing.assert_array_equal(kernel.user_cov, np.eye(2) + 0.5)
    assert type(changed) is type(kernel)
    with pytest.raises(DimensionError, match=re.escape("(3, 3); it must be (2, 2)")):
        kernel.with_user_cov(np.eye(3))
    with pytest.raises(KernelError, match="negative eigenvalue -1"):
        kernel.with_user_cov(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_arms_of_a_pool_are_rows() -> None:
    assert POOL.checked_arm(np.int64(2)) == 2
    np.testing.assert_array_equal(POOL.checked_arms(None), [0, 1, 2])
    np.testing.assert_array_equal(POOL.checked_arms([2, 0]), [2, 0])
    assert POOL.checked_arms([]).shape == (0,)


def test_arms_without_a_pool_are_vectors() -> None:
    np.testing.assert_array_equal(FREE.checked_arm([1, 2]), [1.0, 2.0])
    np.testing.assert_array_equal(FREE.checked_arms([[1, 2]]), [[1.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: POOL.checked_arm(3), DimensionError, "arm index 3 is out of range; rows are 0 to 2"),
        (lambda: POOL.checked_arm(-1), DimensionError, "arm index -1"),
        (lambda: POOL.checked_arm("tea"), DimensionError, "arm index 'tea'"),
        (lambda: POOL.checked_arm(1.0), DimensionError, "arm index 1.0"),
        (lambda: POOL.checked_arms([0, 3]), DimensionError, "[0, 3]"),
        (lambda: POOL.checked_arms([-1]), DimensionError, "[-1]"),
        (lambda: POOL.checked_arms([[0, 1]]), DimensionError, "[[0, 1]]"),
        (lambda: FREE.checked_arm([[1.0, 2.0]]), DimensionError, "(1, 2)"),
        (lambda: FREE.checked_arm(1.0), DimensionError, "()"),
        (lambda: FREE.checked_arm([1.0, np.nan]), ArmError, "nan"),
        (lambda: FREE.checked_arms([1.0, 2.0]), DimensionError, "(2,)"),
        (lambda: FREE.checked_arms([["tea"]]), ArmError, "type <U3"),
        (lambda: FREE.checked_arms(None), ArmError, "no arms were given"),
    ],
)
def test_arms_that_do_not_exist_are_named(call: Callable[[], Any], error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=re.escape(named)):
        call()


def test_pool_kernel_sets_the_median_lengthscale_from_the_pool() -> None:
    pool = ct.ArmPool([[0.0], [1.0], [3.0]])  # distances 1, 2 and 3
    kernel = pool_kernel(np.eye(1), ct.SquaredExponential("median"), pool)
    np.testing.assert_allclose(kernel.arm_cov, ct.SquaredExponential(2.0).gram(pool.features), rtol=1e-14)


def test_a_checked_matrix_is_a_symmetric_copy() -> None:
    matrix = np.array([[1.0, 0.5], [0.5 + 1e-12, 1.0]])
    checked = checked_psd(matrix, 2, what="table")
    np.testing.assert_array_equal(checked, checked.T)
    checked[...] = 9.0
    assert matrix[0, 0] == 1.0


def penalty(**changes: Any) -> float:
    settings: dict[str, Any] = {
        "coefficients": [[2.0], [1.0]],
        "graph": ct.UserGraph.from_edges([("ana", "bo")]),
        "arms": ct.ArmPool([[1.0]]),
        "arm_kernel": ct.Linear(),
        "laplacian_ridge": 0.5,
    }
    return ct.joint_penalty(**(settings | changes))


def test_penalty_of_two_friends() -> None:
    """(2 - 1)^2 between the friends, and half of 2^2 + 1^2 for their size."""
    assert penalty() == pytest.approx(3.5)


@pytest.mark.parametrize(
    ("changes", "error", "named"),
    [
        ({"coefficients": [[2.0, 1.0]]}, DimensionError, "coefficients of shape (1, 2)"),
        ({"coefficients": [2.0, 1.0]}, DimensionError, "coefficients of shape (2,)"),
        ({"coefficients": [[2.0], [1.0], [0.0]]}, DimensionError, "2 users"),
        ({"laplacian_ridge": 0.0}, ParameterError, "laplacian_ridge = 0.0"),
        ({"laplacian_ridge": -1.0}, ParameterError, "laplacian_ridge = -1.0"),
        ({"arm_kernel": ct.SquaredExponential((1.0, 2.0))}, DimensionError, "2 entries"),
    ],
)
def test_penalty_names_what_does_not_fit(changes: dict[str, Any], error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=re.escape(named)):
        penalty(**changes)


def test_arm_indices_are_whole_numbers() -> None:
    kernel = PoolKernel(np.eye(1), np.eye(3))
    for arms in ([0.9], np.array([True, False, True]), ["a"], [[0, 1]], [3], [-1]):
        with pytest.raises(DimensionError):
            kernel.checked_arms(arms)
    for arm in (1.0, True, "a", 3, None):
        with pytest.raises(DimensionError):
            kernel.checked_arm(arm)
    assert kernel.checked_arms(np.array([2, 0], dtype=np.uint8)).tolist() == [2, 0]


def test_a_lengthscale_for_each_feature_must_fit_the_vectors() -> None:
    kernel = FreeKernel(np.eye(1), ct.SquaredExponential((1.0, 2.0, 3.0)))
    for arms in ([[1.0], [2.0]], [[1.0, 2.0]]):
        with pytest.raises(DimensionError):
            kernel.checked_arms(arms)
    assert kernel.checked_arms([[1.0, 2.0, 3.0]]).shape == (1, 3)


@pytest.mark.parametrize("bad", [[["a"]], [[1.0, 2.0], [3.0]], [[np.nan]], np.zeros((0, 0))])
def test_a_user_matrix_is_a_table_of_numbers(bad: object) -> None:
    with pytest.raises((KernelError, DimensionError)):
        ct.GivenMatrix(bad)
