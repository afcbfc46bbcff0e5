"""A bandit on the engine `sparse` is saved and loaded as others are."""

from pathlib import Path

import numpy as np
import pytest

import coterie as ct

pytest.importorskip("numba")


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "lk-gp-ts"])
def test_a_loaded_bandit_decides_as_the_saved_one(policy: str, tmp_path: Path) -> None:
    graph = ct.make_graph("sbm", 30, seed=1)
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(8, 3)))
    saved = ct.Bandit(graph=graph, arms=arms, policy=policy, engine="sparse", seed=1)
    for number in range(20):
        saved.reward(saved.decide(number).id, float(number % 3))
    saved.save(tmp_path / "bandit")
    loaded = ct.Bandit.load(tmp_path / "bandit")
    for number in range(20):
        choices = [bandit.decide(number) for bandit in (saved, loaded)]
        assert choices[0].arm == choices[1].arm
        for bandit, choice in zip((saved, loaded), choices, strict=True):
            bandit.reward(choice.id, 1.0)
