"""per-user-linucb against MABWiser's LinUCB with our users as its arms."""

import numpy as np
import pytest

import coterie as ct

mab = pytest.importorskip("mabwiser.mab", reason="MABWiser comes with the extra 'bench'")

N_USERS, N_ARMS, DIMENSION = 5, 12, 4
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(N_ARMS, DIMENSION)))


@pytest.mark.parametrize("width", [0.3, 1.0, 2.5])
def test_the_scores_are_mabwisers(width: float) -> None:
    """At l2_lambda = 1: at other values its arms without rewards take the regularisation for its inverse."""
    rng = np.random.default_rng(1)
    policy = ct.make_policy("per-user-linucb", graph=ct.make_graph("ring", N_USERS), arms=ARMS, width=width)
    peer = mab.MAB(arms=list(range(N_USERS)), learning_policy=mab.LearningPolicy.LinUCB(alpha=width, l2_lambda=1.0))
    peer.fit([0], [0.0], np.zeros((1, DIMENSION)))  # it must be fitted before it predicts; this changes nothing
    for _ in range(60):
        expected = peer.predict_expectations(ARMS.features)
        for user in range(N_USERS):
            scores = [policy.select(user, [arm]).score for arm in range(N_ARMS)]
            np.testing.assert_allclose(scores, [each[user] for each in expected], atol=1e-9, rtol=0)
        user, arm, reward = int(rng.integers(N_USERS - 1)), int(rng.integers(N_ARMS)), float(rng.normal())
        policy.update(user, arm, reward)  # the last user stays cold
        peer.partial_fit([user], [reward], ARMS.features[[arm]])
