"""Rewards that were combined by pairs: the belief of a fit, and a bandit that goes on with it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ParameterError, SavedFileError
from coterie.policies.reward_batches import Combined

pytest.importorskip("numba")

USERS, ARMS = 40, 6
rng = np.random.default_rng(3)
GRAPH = ct.make_graph("watts-strogatz", USERS, k=4, seed=0)
POOL = {f"arm-{arm}": row for arm, row in enumerate(rng.normal(size=(ARMS, 3)))}
LOG = rng.integers(USERS, size=300), rng.integers(ARMS, size=300), rng.normal(1.0, 0.5, size=300)
SETTINGS: dict[str, dict[str, Any]] = {
    "sparse": {"policy": "lk-gp-ucb", "engine": "sparse", "noise_var": 0.5},
    "exact": {"policy": "lk-gp-ucb", "engine": "exact", "noise_var": 0.5},
    "auto": {"policy": "auto-ucb", "wait_for_fits": True},
}


def columns_of(users: Any, arms: Any, rewards: Any) -> dict[str, Any]:
    found = Combined(ARMS)
    found.add(np.array(users, np.int32), np.array(arms, np.int32), np.array(rewards))
    return found.columns()


def combined(name: str, **options: Any) -> ct.Bandit:
    bandit = ct.Bandit(graph=GRAPH, arms=POOL, **SETTINGS[name], **options)
    bandit._fit_combined(columns_of(*LOG))
    return bandit


def fitted(name: str) -> ct.Bandit:
    bandit = ct.Bandit(graph=GRAPH, arms=POOL, **SETTINGS[name])
    ids = list(POOL)
    bandit.fit([([GRAPH.users[user] for user in LOG[0]], [ids[arm] for arm in LOG[1]], LOG[2])])
    return bandit


def test_the_belief_is_that_of_a_fit() -> None:
    for name in SETTINGS:
        one, other = combined(name), fitted(name)
        assert one.n_rewards == other.n_rewards == 300
        for user in GRAPH.users[:5]:
            assert one.predict(user) == other.predict(user), name
        assert one.score_all(top=2)["mean"].tolist() == other.score_all(top=2)["mean"].tolist()


@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_saved_loaded_and_goes_on(name: str, tmp_path: Path) -> None:
    bandit = combined(name)
    bandit.save(tmp_path / "bandit")
    loaded = ct.Bandit.load(tmp_path / "bandit")
    assert loaded.n_rewards == 300
    assert loaded.predict(3) == bandit.predict(3)
    for each in (bandit, loaded):
        decision = each.decide(3)
        each.reward(decision.id, 2.0)
        each.reward(decision.id, 1.5, replace=True)
        each.learn(4, "arm-1", 1.0)
    assert loaded.n_rewards == 302
    loaded.save(tmp_path / "again")
    assert ct.Bandit.load(tmp_path / "again").predict(4) == loaded.predict(4) == bandit.predict(4)
    loaded.export(tmp_path / "plain")
    with np.load(tmp_path / "plain" / "arrays.npz") as arrays:
        assert arrays["event_counts"].sum() == 302


def test_a_change_of_users_or_arms_keeps_the_counts() -> None:
    one, other = combined("sparse"), fitted("sparse")
    for bandit in (one, other):
        bandit.add_arms({"arm-x": [0.0, 1.0, 0.0]})
        bandit.remove_user(0)
    assert one.n_rewards == other.n_rewards == 300 - int(np.count_nonzero(LOG[0] == 0))
    of_one, of_other = (np.array(list(bandit.predict(3).values())) for bandit in (one, other))
    np.testing.assert_allclose(of_one, of_other, rtol=1e-9)


def test_explanations_add_up() -> None:
    found = combined("exact").explain(3, "arm-2")
    assert abs(found.rest) < 1e-8
    assert sum(found.by_user.values()) + found.level == pytest.approx(found.mean)


def test_a_warm_start_from_the_solution_takes_no_step() -> None:
    first = combined("sparse")
    weights = first._learned.policy.model._posterior.weights.copy()  # type: ignore[attr-defined]
    bandit = ct.Bandit(graph=GRAPH, arms=POOL, **SETTINGS["sparse"])
    assert bandit._fit_combined(columns_of(*LOG), start=weights) == 0
    assert bandit.predict(3) == first.predict(3)


def test_a_second_fit_and_rewards_before(tmp_path: Path) -> None:
    bandit = ct.Bandit(graph=GRAPH, arms=POOL, **SETTINGS["sparse"])
    bandit.learn(3, "arm-0", 1.0)
    bandit._fit_combined(columns_of(*LOG))
    bandit.fit([([3], ["arm-0"], [2.0])])
    assert bandit.n_rewards == 302
    bandit.save(tmp_path / "bandit")
    assert ct.Bandit.load(tmp_path / "bandit").n_rewards == 302


@pytest.mark.parametrize("options", [{"window": 9}, {"forgetting": 0.9}, {"places": [1.0, 0.5]}, {"reward": "binary"}])
def test_what_needs_an_order_is_refused(options: Any) -> None:
    with pytest.raises(ParameterError, match="combined rewards"):
        combined("sparse", **options)


def test_a_file_with_other_counts_is_refused(tmp_path: Path) -> None:
    from coterie.product.files.container import read_container, write_container

    combined("sparse").save(tmp_path / "bandit")
    content = read_container(tmp_path / "bandit")
    for name in ("event_counts", "event_scatters"):
        arrays = {key: np.array(value) for key, value in content.arrays.items()}
        arrays[name][0] += 1.0
        write_container(tmp_path / "bad", content.state, arrays)
        with pytest.raises(SavedFileError):
            ct.Bandit.load(tmp_path / "bad")
