"""The paper's dual and bias identities, in a feature space of finite dimension, to rounding."""

import numpy as np
from hypothesis import assume, given
from numpy.typing import NDArray

from coterie.kernels import PoolKernel
from coterie.models import DenseModel
from strategies import Case, cases, scaled_gap

Array = NDArray[np.float64]


def features_of_all_pairs(kernel: PoolKernel) -> Array:
    """phi(x, u) for every pair, one a row: any square root of the joint kernel matrix will do."""
    joint = np.kron(kernel.user_cov, kernel.arm_cov)
    values, vectors = np.linalg.eigh(joint)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


@given(case=cases(smallest_noise=1e-2))
def test_dual_and_bias_identities(case: Case) -> None:
    assume(case.history)
    kernel, noise_var = case.kernel, case.noise_var
    pairs = [kernel.key(user, arm) for user, arm, _ in case.history]
    everything = features_of_all_pairs(kernel)
    phi = everything[pairs]
    sigma = phi @ phi.T + noise_var * np.eye(len(pairs))
    gamma = phi.T @ phi + noise_var * np.eye(phi.shape[1])
    scale = float(np.abs(everything).max())
    assume(scale > 0)

    assert scaled_gap(np.linalg.solve(sigma, phi), np.linalg.solve(gamma, phi.T).T, scale / noise_var) < 1e-9

    model = DenseModel(kernel, noise_var=noise_var)
    for row in case.history:
        model.update(*row)
    for user in range(kernel.n_users):
        variance = model.predict(user)[1] ** 2
        for arm in range(kernel.n_arms):
            one = everything[kernel.key(user, arm)]
            dual = noise_var * float(one @ np.linalg.solve(gamma, one))
            assert abs(dual - variance[arm]) < 1e-9 * scale**2 * len(one)
            weights = np.linalg.solve(sigma, phi @ one)
            bias = phi.T @ weights - one
            assert abs(float(bias @ bias) - (variance[arm] - noise_var * float(weights @ weights))) < 1e-8 * scale**2
            assert float(bias @ bias) <= variance[arm] + 1e-8 * scale**2
