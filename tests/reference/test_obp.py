"""The estimates of the Open Bandit Pipeline on the same log, where it can be imported."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coterie.product.evaluation import ESTIMATORS, Logged, Sample
from coterie.product.evaluation.intervals import value_of

reason = "obp is not installed: it asks for torch and for versions older than ours"
ope: Any = pytest.importorskip("obp.ope", reason=reason)

N, K, THRESHOLD = 500, 4, 1.5


def material() -> tuple[dict[str, Any], Sample]:
    rng = np.random.default_rng(0)
    chances, target = rng.dirichlet(np.ones(K), N), rng.dirichlet(np.ones(K), N)
    arms = (chances.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1)
    rewards, predicted = rng.integers(2, size=N).astype(float), rng.random((N, K))
    propensities = chances[np.arange(N), arms]
    log = Logged.of([0] * N, [list(range(K))] * N, arms.tolist(), rewards.tolist(), propensities.tolist())
    theirs = {"reward": rewards, "action": arms, "pscore": propensities, "position": np.zeros(N, dtype=int)}
    theirs |= {"action_dist": target[:, :, None], "estimated_rewards_by_reg_model": predicted[:, :, None]}
    return theirs, Sample(log, target.ravel(), predicted.ravel())


@pytest.mark.parametrize(
    ("name", "theirs", "options"),
    [
        ("ips", "InverseProbabilityWeighting", {}),
        ("snips", "SelfNormalizedInverseProbabilityWeighting", {}),
        ("dm", "DirectMethod", {}),
        ("dr", "DoublyRobust", {}),
        ("switch", "SwitchDoublyRobust", {"lambda_": THRESHOLD}),
    ],
)
def test_estimates_are_those_of_obp(name: str, theirs: str, options: dict[str, Any]) -> None:
    given, sample = material()
    expected = getattr(ope, theirs)(**options).estimate_policy_value(**given)
    assert value_of(ESTIMATORS[name](replace(sample, threshold=THRESHOLD))) == pytest.approx(expected, rel=1e-12)


def test_replay_of_a_uniform_log_is_that_of_obp() -> None:
    given, _ = material()
    chosen = np.eye(K)[np.random.default_rng(1).integers(K, size=N)]
    log = Logged.of([0] * N, [list(range(K))] * N, given["action"].tolist(), given["reward"].tolist(), [1 / K] * N)
    expected = ope.ReplayMethod().estimate_policy_value(
        reward=given["reward"], action=given["action"], position=given["position"], action_dist=chosen[:, :, None]
    )
    assert value_of(ESTIMATORS["replay"](Sample(log, chosen.ravel()))) == pytest.approx(expected)
