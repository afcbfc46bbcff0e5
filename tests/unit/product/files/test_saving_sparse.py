"""A bandit on the engine `sparse` is saved and loaded as others are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import SavedFileError
from hostile import Raw

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


def test_a_bandit_that_has_grown_is_loaded_to_the_bit(tmp_path: Path) -> None:
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(8, 3)))
    saved = ct.Bandit(graph=ct.make_graph("sbm", 30, seed=1), arms=arms, policy="lk-gp-ucb", engine="sparse", seed=1)
    for number in range(20):
        saved.reward(saved.decide(number).id, float(number % 3))
        saved.add_user(f"new{number}", {number: 0.7, number + 1: 1.3})
    saved.connect("new0", "new9", 0.3)
    saved.disconnect("new3", 3)
    saved.save(tmp_path / "bandit")
    loaded = ct.Bandit.load(tmp_path / "bandit")
    for bandit in (saved, loaded):
        bandit.add_users({"last": {"new0": 1.1}, "very last": {"last": 0.9}})
        bandit.learn("last", arms.ids[0], 2.0)
    assert saved.graph == loaded.graph
    assert all(saved.predict(user) == loaded.predict(user) for user in saved.graph.users)


def test_what_waits_for_rewards_is_doubted_the_same_on_a_graph_that_has_grown(tmp_path: Path) -> None:
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(8, 3)))
    options: dict[str, Any] = {"policy": "lk-gp-ucb", "engine": "sparse", "pending": "hallucinate"}
    saved = ct.Bandit(graph=ct.make_graph("sbm", 30, seed=1), arms=arms, **options)
    for number in range(6):
        saved.reward(saved.decide(number).id, float(number % 3))
        saved.add_user(f"new{number}", {number: 0.7})
    for number in range(4):
        saved.decide(number)
    saved.save(tmp_path / "bandit")
    loaded = ct.Bandit.load(tmp_path / "bandit")
    for number in range(6):
        one, two = saved.decide(number), loaded.decide(number)
        assert (one.arm, one.score) == (two.arm, two.score)
    doubt = loaded._learned.policy.pending_model
    assert doubt is not None
    assert doubt.kernel is loaded._learned.policy.model.kernel


def test_a_file_with_an_option_that_is_gone_is_loaded_without_it(tmp_path: Path) -> None:
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(8, 3)))
    options: dict[str, Any] = {"policy": "lk-gp-ucb", "engine": "sparse", "engine_options": {"eps": 0.05}}
    saved = ct.Bandit(graph=ct.make_graph("sbm", 30, seed=1), arms=arms, **options)
    for number in range(20):
        saved.reward(saved.decide(number).id, float(number % 3))
    saved.save(tmp_path / "bandit")
    raw = Raw.of((tmp_path / "bandit").read_bytes())
    given = raw.state["settings"]["options"]["engine_options"]
    given["keeps_common"] = raw.state["belief"]["model"]["keeps_common"] = False
    (tmp_path / "before").write_bytes(raw.packed())
    loaded = ct.Bandit.load(tmp_path / "before")
    assert all(saved.predict(user) == loaded.predict(user) for user in range(30))
    loaded.save(tmp_path / "again")
    assert "keeps_common" not in str(Raw.of((tmp_path / "again").read_bytes()).state)
    given["keeps_common"] = "perhaps"
    (tmp_path / "odd").write_bytes(raw.packed())
    with pytest.raises(SavedFileError, match="keeps_common"):
        ct.Bandit.load(tmp_path / "odd")


@pytest.mark.parametrize("rewards", [[1.0, -1.0], [3.0, -1.0, -2.0], [1.0, -1.0, 1e-9]])
def test_rewards_that_cancel_leave_rounding_and_a_file_that_loads(tmp_path: Path, rewards: list[float]) -> None:
    arms = ct.ArmPool([[1.0], [1.0 + 1e-9]])
    bandit = ct.Bandit(graph=ct.make_graph("ring", 5), arms=arms, policy="gob-lin", engine="sparse", noise_var=1e-3)
    for place, reward in enumerate(rewards):
        bandit.learn(0, place % 2 if len(rewards) == 2 else 0, reward)
    bandit.save(tmp_path / "b")
    assert ct.Bandit.load(tmp_path / "b").predict(0) == bandit.predict(0)
