"""A bandit whose decisions say whether they are certain."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct

pytest.importorskip("numba")

CERTIFIED: dict[str, Any] = {"policy": "lk-gp-ucb", "engine": "sparse", "engine_options": {"certified": True}}


def make_bandit(**options: Any) -> ct.Bandit:
    graph = ct.make_graph("sbm", 30, seed=1)
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(8, 3)))
    bandit = ct.Bandit(graph=graph, arms=arms, noise_var=0.1, seed=1, **CERTIFIED, **options)
    for number in range(20):
        bandit.reward(bandit.decide(number).id, float(number % 3))
    return bandit


def test_a_decision_tells_it_and_its_propensity_agrees() -> None:
    decision = make_bandit().decide(3)
    assert decision.certain
    assert decision.propensity == 1.0


def test_a_loaded_bandit_goes_on_being_certified(tmp_path: Path) -> None:
    saved = make_bandit()
    saved.save(tmp_path / "bandit")
    loaded = ct.Bandit.load(tmp_path / "bandit")
    for user in range(30):
        one, other = saved.decide(user), loaded.decide(user)
        assert (one.arm, one.mean, one.std, one.certain) == (other.arm, other.mean, other.std, other.certain)
        assert one.certain


def test_many_decisions_are_those_of_a_loop() -> None:
    one, other = make_bandit(), make_bandit()
    together, apart = one.decide_many(range(10)), [other.decide(user) for user in range(10)]
    assert [(d.arm, d.mean, d.certain) for d in together] == [(d.arm, d.mean, d.certain) for d in apart]


def test_while_rewards_are_hallucinated_nothing_is_certain() -> None:
    bandit = make_bandit(pending="hallucinate")
    bandit.decide(3)
    assert bandit.decide(3).certain is False


def test_an_arm_that_was_explored_is_not_called_certain() -> None:
    bandit = make_bandit(min_propensity=0.1)
    decisions = [bandit.decide(user) for user in range(30)]
    assert any(decision.explored for decision in decisions)
    assert all((decision.certain is None) == decision.explored for decision in decisions)
