"""What every joint kernel must satisfy: it is a covariance of pairs, and all its methods say the same of it."""

from typing import Any

import numpy as np
import pytest

from coterie.contracts import Array
from coterie.errors import KernelError
from coterie.kernels.additive import EvaluatedPool
from coterie.kernels.joint import FreeKernel, JointKernel, OnVectors, PoolKernel
from coterie.models.choose import ALL_ENGINES
from kernel_cases import ARMS, JOINT_KERNELS, concrete

FOUND = [cls.__name__ for cls in concrete(JointKernel)]
WITHOUT_COVARIANCE = {"GraphKernel"}  # nothing over two users is computed: the engine solves with its precision
every_joint = pytest.mark.parametrize("kernel", [make() for make in JOINT_KERNELS.values()], ids=list(JOINT_KERNELS))
every_covariance = pytest.mark.parametrize("name", sorted(set(FOUND) - WITHOUT_COVARIANCE))


def pairs(kernel: JointKernel) -> tuple[Any, Any]:
    """Every user with every arm, in the form that the kernel takes."""
    users, arms = np.repeat(np.arange(kernel.n_users), len(ARMS)), np.tile(np.arange(len(ARMS)), kernel.n_users)
    return users, (ARMS[arms] if isinstance(kernel, OnVectors) else arms)


def gram(kernel: JointKernel) -> Array:
    return kernel.cross(*pairs(kernel), *pairs(kernel))


def test_every_joint_kernel_is_found_and_can_be_made() -> None:
    assert sorted(JOINT_KERNELS) == FOUND, "give each concrete JointKernel one line in JOINT_KERNELS"


@every_covariance
def test_the_gram_is_symmetric_and_positive_semi_definite(name: str) -> None:
    found = gram(JOINT_KERNELS[name]())
    np.testing.assert_allclose(found, found.T, rtol=1e-13, atol=1e-13)
    assert np.linalg.eigvalsh(found)[0] >= -1e-10 * np.trace(found)


@every_covariance
def test_cross_is_the_block_of_the_gram_and_diag_its_diagonal(name: str) -> None:
    kernel = JOINT_KERNELS[name]()
    (users, arms), whole = pairs(kernel), gram(kernel)
    some, others = np.arange(0, len(users), 3), np.arange(1, len(users), 4)
    block = kernel.cross(users[some], arms[some], users[others], arms[others])
    np.testing.assert_allclose(block, whole[np.ix_(some, others)], rtol=1e-12, atol=1e-12)
    for user in range(kernel.n_users):
        own = np.flatnonzero(users == user)
        of_user = kernel.cross_of_user(user, arms[own], users, arms)
        np.testing.assert_allclose(of_user, whole[own], rtol=1e-12, atol=1e-12)
    largest = kernel.max_variance(list(arms))
    assert whole.diagonal().max() <= largest * (1 + 1e-12)
    assert np.all(kernel.diag(users, arms) <= whole.diagonal() * (1 + 1e-12))
    if kernel.only_engine is None:  # one that eliminates users beyond a neighbourhood states a lower bound
        np.testing.assert_allclose(kernel.diag(users, arms), whole.diagonal(), rtol=1e-12)


@every_joint
def test_arms_alone_have_a_kernel_too(kernel: JointKernel) -> None:
    _, arms = pairs(kernel)
    arms = arms[: len(ARMS)]
    of_arms = kernel.arm_cross(arms, arms)
    np.testing.assert_allclose(of_arms, of_arms.T, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(of_arms.diagonal(), kernel.arm_diag(arms), rtol=1e-12)
    assert np.linalg.eigvalsh(of_arms)[0] >= -1e-10 * np.trace(of_arms)


@every_covariance
def test_the_variance_of_a_user_bounds_that_of_their_pairs_from_below(name: str) -> None:
    kernel = JOINT_KERNELS[name]()
    (users, arms), whole = pairs(kernel), gram(kernel)
    low = np.array([kernel.user_variance(user) for user in users.tolist()]) * kernel.arm_diag(arms)
    assert np.all(low <= whole.diagonal() * (1 + 1e-12))
    if kernel.only_engine is None:
        np.testing.assert_allclose(low, whole.diagonal(), rtol=1e-12)


@every_joint
def test_keys_tell_pairs_apart(kernel: JointKernel) -> None:
    users, arms = pairs(kernel)
    keys = {kernel.key(user, kernel.checked_arm(arm)) for user, arm in zip(users.tolist(), arms, strict=True)}
    assert len(keys) == len(users)


@every_joint
def test_the_one_engine_of_a_kernel_exists(kernel: JointKernel) -> None:
    assert kernel.only_engine in {None, *ALL_ENGINES}
    assert bool(kernel.why_only) == (kernel.only_engine is not None)


@every_joint
def test_another_user_covariance_is_taken_or_refused(kernel: JointKernel) -> None:
    alone = np.diag(np.arange(1.0, kernel.n_users + 1))
    if isinstance(kernel, FreeKernel | PoolKernel) or type(kernel) is EvaluatedPool:
        other = kernel.with_user_cov(alone)
        assert type(other) is type(kernel)
        assert [other.user_variance(user) for user in range(kernel.n_users)] == alone.diagonal().tolist()
        return
    with pytest.raises(KernelError, match="another user covariance"):
        kernel.with_user_cov(alone)
    with pytest.raises(KernelError, match="the covariance of all 5 users"):
        _ = kernel.user_cov
