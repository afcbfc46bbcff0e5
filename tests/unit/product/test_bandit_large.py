"""A bandit on a graph that is too large for a matrix: made, played, saved and loaded with nothing said of engines."""

from pathlib import Path

import numpy as np
import pytest

import coterie as ct

pytest.importorskip("numba")


def test_a_large_bandit_is_saved_and_loaded(tmp_path: Path) -> None:
    arms = np.random.default_rng(0).normal(size=(20, 4))
    bandit = ct.Bandit(graph=ct.make_graph("ring", 60_000), arms=arms, policy="graph-ucb")
    for user in (7, 8, 9, 7):
        bandit.reward(bandit.decide(user).id, 1.0)
    bandit.save(tmp_path / "large.coterie")
    again = ct.Bandit.load(tmp_path / "large.coterie")
    assert again.describe() == bandit.describe()
    assert "engine 'sparse': chosen because" in again.describe()
    assert again.predict(10) == bandit.predict(10)


def test_pending_decisions_shrink_the_std_with_options_of_the_features() -> None:
    options = {"max_features": 3}
    bandit = ct.Bandit(
        graph=ct.make_graph("ring", 10),
        arms=np.random.default_rng(0).normal(size=(20, 4)),
        policy="lk-gp-ucb",
        pending="hallucinate",
        engine="sparse",
        engine_options=options,
    )
    first = bandit.decide(3)
    assert bandit.decide(3, [first.arm]).std < 0.9 * first.std
