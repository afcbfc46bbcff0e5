"""Older rewards lose weight on a schedule: bounded work, and what the posterior is in between is stated."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.product.learned import SLACK, Learned

GRAPH = ct.UserGraph.from_edges([(i, (i + 1) % 6) for i in range(6)])
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(5, 2)))


class Counted:
    """How often a method was called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> None:
        self.n_calls, method = 0, getattr(kind, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.n_calls += 1
            return method(*args, **kwargs)

        monkeypatch.setattr(kind, name, call)


def play(bandit: ct.Bandit, rounds: int, seed: int = 1) -> list[tuple[Any, Any, float]]:
    rng = np.random.default_rng(seed)
    seen: list[tuple[Any, Any, float]] = []
    for _ in range(rounds):
        decision = bandit.decide(int(rng.integers(6)))
        reward = float(rng.normal())
        bandit.reward(decision.id, reward)
        seen.append((decision.user, decision.arm, reward))
    return seen


def beliefs(predict: Any) -> Any:
    return np.array([predict(user) for user in range(6)])


def told(bandit: ct.Bandit) -> Any:
    return beliefs(lambda user: list(bandit.predict(user).values()))


def fresh(rewards: list[tuple[Any, Any, float]], engine: str) -> Any:
    """What a policy believes that has learned these rewards and no others."""
    policy = ct.make_policy("lk-gp-ucb", graph=GRAPH, arms=ARMS, engine=engine)
    policy.update_many(*map(list, zip(*rewards, strict=True)))
    return beliefs(lambda user: np.transpose(policy.predict(user)))


@pytest.mark.parametrize("engine", ["exact", "grid", "features", "hybrid"])
def test_a_window_holds_its_rewards_and_at_most_a_sixteenth_more(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    window = 64
    bandit = ct.Bandit(graph=GRAPH, arms=ARMS, policy="lk-gp-ucb", engine=engine, window=window)
    counted = Counted(monkeypatch, Learned, "relearn")
    rewards = play(bandit, window)
    assert counted.n_calls == 0  # nothing to forget yet
    np.testing.assert_allclose(told(bandit), fresh(rewards, engine), atol=1e-9)
    for seed in range(40):
        rewards += play(bandit, 5, seed=seed)
        believed = told(bandit)
        sizes = range(window, window + window // SLACK + 1)
        assert any(np.allclose(believed, fresh(rewards[-size:], engine), atol=1e-9) for size in sizes)
    assert counted.n_calls <= 200 * SLACK / window + 1


@pytest.mark.parametrize("forgetting", [0.9, 0.99])
def test_weights_that_fade_are_at_most_a_sixteenth_too_large(
    forgetting: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit = ct.Bandit(graph=GRAPH, arms=ARMS, policy="lk-gp-ucb", forgetting=forgetting)
    counted = Counted(monkeypatch, Learned, "relearn")
    for seed in range(30):
        play(bandit, 10, seed=seed)
        scheduled = told(bandit)
        n_calls = counted.n_calls
        bandit._learned.relearn(None)  # all weights as they are by now
        counted.n_calls = n_calls
        exact = told(bandit)
        # With P the precision and e the share by which weights are too large, P <= scheduled P <= (1 + e) P.
        assert np.all(scheduled[..., 1] <= exact[..., 1] * (1 + 1e-9))
        assert np.all(scheduled[..., 1] >= exact[..., 1] / np.sqrt(forgetting ** -(1 / (1 - forgetting) / SLACK + 1)))
    assert counted.n_calls <= 300 * (1 - forgetting) * SLACK + 1


def test_a_full_ledger_of_decisions_costs_no_rebuild_each(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = ct.Bandit(
        graph=GRAPH, arms=ARMS, policy="lk-gp-ucb", pending="hallucinate", max_pending=64, engine="exact"
    )
    for t in range(64):
        bandit.decide(t % 6)
    made = Counted(monkeypatch, Learned, "history")  # what a doubt is made anew from
    for t in range(160):
        bandit.decide(t % 6)
        if t % 4 == 0:
            bandit.learn(t % 6, t % 5, 1.0)
    assert made.n_calls <= 160 * SLACK / 64 + 2
    doubt, model = bandit._learned.policy.pending_model, bandit._learned.policy.model
    assert doubt is not None
    assert 0 <= doubt.n_observations - model.n_observations - bandit.n_pending <= (64 + 40) / SLACK
