"""On every exact engine the posterior mean is a weighted sum of rewards, by all of them and by a user's own alone."""

import numpy as np
import pytest
from hypothesis import given, settings

from coterie.models import Model
from coterie.models.engines.local import LocalModel
from engine_cases import ENGINE_NAMES, TINY, model_of
from kernel_cases import JOINT_KERNELS
from strategies import Case, cases


def assert_weights_give_the_mean(
    model: Model, alone: Model, history: list[tuple[int, int, float]], arm: int, tolerance: float = TINY
) -> None:
    user = history[0][0]
    for row in history:
        model.update(*row)
        if row[0] == user:
            alone.update(*row)
    users, arms = model.history.user_array(), model.history.arm_array()
    found, own = model.reward_weights(user, arm, users, arms, model.history.count_array())
    rows, scale = np.array([arm]), float(np.sqrt(model.max_variance))
    (mean, by_own), means = (each.predict(user, rows)[0][0] for each in (model, alone)), model.history.mean_array()
    assert found @ means == pytest.approx(mean, abs=TINY * scale)
    assert np.all(own[users != user] == 0)
    assert own @ means == pytest.approx(by_own, abs=tolerance * scale)


@pytest.mark.parametrize("engine", sorted(set(ENGINE_NAMES) - {"sparse"}))  # its weights are of a truncated solve
@settings(max_examples=20)
@given(case=cases())
def test_the_mean_is_a_weighted_sum_of_rewards(engine: str, case: Case) -> None:
    if case.history:
        assert_weights_give_the_mean(model_of(engine, case), model_of(engine, case), case.history, len(case.pool) - 1)


@pytest.mark.parametrize(("name", "tolerance"), [("AdditiveKernel", 1e-3), ("EvaluatedPool", TINY)])
def test_so_it_is_on_kernels_without_matrices(name: str, tolerance: float) -> None:
    """An `AdditiveKernel` eliminates the users around a neighbourhood, and its variances depend on who is in it."""
    model, alone = (LocalModel(JOINT_KERNELS[name](), noise_var=0.1) for _ in range(2))
    history = [(0, 1, 1.0), (0, 2, -1.0), (1, 1, 0.5), (3, 4, 2.0), (0, 1, 0.3)]
    assert_weights_give_the_mean(model, alone, history, 3, tolerance)
