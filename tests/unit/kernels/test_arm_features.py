"""Features of many arms by landmarks: what they miss is stated, and true on every arm of the pool."""

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ParameterError
from coterie.kernels.arm_features import arm_features, landmark_features
from coterie.kernels.graph_kernel import graph_kernel

ROWS = np.random.default_rng(0).normal(size=(300, 2))
KERNELS = [ct.SquaredExponential(1.0), ct.Matern32(2.0), 3.0 * ct.SquaredExponential(1.0) + ct.Linear(), ct.Distinct()]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("error", "most"), [(1e-3, 300), (1e-3, 20), (0.0, 40), (0.2, 8)])
def test_what_is_missed_is_stated_and_true_for_every_pair(kernel: ct.ArmKernel, error: float, most: int) -> None:
    features, missed = landmark_features(kernel, ROWS, error, most)
    gram = kernel.gram(ROWS)
    gaps = gram - features @ features.T
    assert features.shape[1] <= most
    assert np.abs(gaps).max() / gram.diagonal().max() == pytest.approx(missed, abs=1e-9)
    assert missed <= error or features.shape[1] == most


def test_landmarks_need_hardly_more_features_than_eigenvectors() -> None:
    by_eigen, _ = arm_features(ct.SquaredExponential(1.0), ct.ArmPool(ROWS), 1e-3)
    by_landmarks, _ = landmark_features(ct.SquaredExponential(1.0), ROWS, 1e-3, 64)
    assert by_landmarks.shape[1] <= by_eigen.shape[1] + 3


def test_a_large_pool_goes_by_landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.kernels.arm_features.checked_psd", None)  # nothing of the size arms x arms may be made
    features, missed = arm_features(ct.SquaredExponential(1.0), ct.ArmPool(ROWS), 1e-3, most_eigen=299)
    assert features.shape[0] == 300
    assert 0 < missed <= 1e-3


def test_fewer_features_than_needed_are_kept_where_more_are_not_allowed() -> None:
    pool = ct.ArmPool(np.eye(10))
    kernel = graph_kernel(ct.make_graph("ring", 5), ct.Distinct(), pool, max_features=4)
    assert kernel.features.shape == (10, 4)
    assert kernel.feature_error == pytest.approx(1.0)
    with pytest.raises(ParameterError, match="max_features"):
        graph_kernel(ct.make_graph("ring", 5), ct.Distinct(), pool, max_features=0)


@pytest.mark.parametrize("kernel", KERNELS[:3])
def test_landmarks_among_some_arms_miss_hardly_more_and_say_so(kernel: ct.ArmKernel) -> None:
    among_all, _ = landmark_features(kernel, ROWS, 0.0, 12)
    features, missed = landmark_features(kernel, ROWS, 0.0, 12, most_scanned=100)
    gram = kernel.gram(ROWS)
    gaps = gram - features @ features.T
    assert np.abs(gaps).max() / gram.diagonal().max() == pytest.approx(missed, abs=1e-9)
    assert np.trace(gaps) < 2 * np.trace(gram - among_all @ among_all.T)
    assert np.linalg.eigvalsh(gaps).min() > -1e-9
