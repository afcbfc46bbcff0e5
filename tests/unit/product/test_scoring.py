"""`score_all`: the best arms of everybody, as asking for one user after the other gives them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import coterie as ct
from coterie.errors import CandidatesError, ParameterError, SavedFileError, UnknownArmError, UnknownUserError

pytest.importorskip("numba")

USERS, ARMS = [f"user {i}" for i in range(30)], ["tea", "cola", "milk", "water", "wine"]


def made(engine: str, **options: Any) -> ct.Policy:
    graph = ct.UserGraph.from_matrix(ct.make_graph("sbm", 30, seed=1).weights, users=USERS)
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(5, 3)), ids=ARMS)
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, arm_kernel=ct.Linear(), engine=engine, **options)
    rng = np.random.default_rng(1)
    for _ in range(60):
        policy.update(USERS[rng.integers(30)], ARMS[rng.integers(5)], float(rng.normal()))
    return policy


@pytest.fixture(params=["sparse", "exact"])
def policy(request: pytest.FixtureRequest) -> ct.Policy:
    return made(request.param)


@pytest.mark.parametrize("block", [1, 64, 10**6])
def test_the_best_arms_are_those_of_each_user_alone(policy: ct.Policy, block: int) -> None:
    found = ct.score_all(policy, top=3, block=block)
    assert list(found) == ["user", "rank", "arm", "mean"]
    assert found["rank"].tolist() == [1, 2, 3] * 30
    for row, user in enumerate(USERS):
        mean = policy.predict(user)[0]
        part = slice(3 * row, 3 * row + 3)
        assert found["user"][part] == [user] * 3
        assert found["arm"][part] == [ARMS[i] for i in np.argsort(-mean)[:3]]
        np.testing.assert_allclose(found["mean"][part], np.sort(mean)[::-1][:3])


def test_stds_are_upper_bounds_and_exact_where_the_engine_is() -> None:
    exact, sparse = (ct.score_all(made(engine), top=5, std=True) for engine in ("exact", "sparse"))
    pairs = zip(exact["user"], exact["arm"], strict=True)
    by_pair = dict(zip(pairs, exact["std"].tolist(), strict=True))
    reference = np.array([by_pair[pair] for pair in zip(sparse["user"], sparse["arm"], strict=True)])
    assert np.all(sparse["std"] >= reference - 1e-9)
    assert np.mean(sparse["std"] / reference) < 1.5
    std = made("exact").predict("user 4", [exact["arm"][20]])[1]
    assert exact["std"][20] == pytest.approx(std[0])


def test_the_best_by_ucb_are_those_with_the_highest_bound() -> None:
    policy = made("exact", width=2.0)
    found = ct.score_all(policy, users=["user 7"], top=2, by="ucb")
    mean, std = policy.predict("user 7")
    assert found["arm"] == [ARMS[i] for i in np.argsort(-(mean + 2 * std))[:2]]
    sparse = ct.score_all(made("sparse", width=2.0), users=["user 7"], top=5, by="ucb")
    bounds = sparse["mean"] + 2 * sparse["std"]
    assert np.all(np.diff(bounds) <= 0)


def test_some_users_and_arms_can_be_asked_for(policy: ct.Policy) -> None:
    found = ct.score_all(policy, users=["user 9", "user 2"], arms=["wine", "tea"], top=9)
    assert found["user"] == ["user 9"] * 2 + ["user 2"] * 2
    assert set(found["arm"]) == {"wine", "tea"}
    with pytest.raises(UnknownUserError):
        ct.score_all(policy, users=["nobody"])
    with pytest.raises(CandidatesError, match="users are a mapping"):
        ct.score_all(policy, users={"user 9": ["tea"]})
    with pytest.raises(UnknownArmError):
        ct.score_all(policy, arms=["beer"])


def test_a_file_holds_the_same_in_row_groups(policy: ct.Policy, tmp_path: Path) -> None:
    kept, told = ct.score_all(policy, top=2, std=True), []
    path = tmp_path / "scores.parquet"
    left = ct.score_all(policy, top=2, std=True, to=path, progress=lambda *each: told.append(each), block=40)
    assert all(len(column) == 0 for column in left.values())
    table = pq.read_table(path).to_pydict()
    assert {name: list(column) for name, column in kept.items()} == table
    assert pq.ParquetFile(path).num_row_groups == 4
    assert told == [(8, 30), (16, 30), (24, 30), (30, 30)]
    assert [each.name for each in tmp_path.iterdir()] == ["scores.parquet"]


def test_nobody_gives_an_empty_file(policy: ct.Policy, tmp_path: Path) -> None:
    ct.score_all(policy, users=[], to=tmp_path / "scores.parquet")
    assert pq.read_table(tmp_path / "scores.parquet").num_rows == 0
    assert ct.score_all(policy, users=[])["rank"].tolist() == []


def test_what_cannot_be_is_refused(policy: ct.Policy, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="by is 'best'"):
        ct.score_all(policy, by="best")
    with pytest.raises(ParameterError, match="top"):
        ct.score_all(policy, top=0)
    with pytest.raises(SavedFileError, match="cannot be written"):
        ct.score_all(policy, to=tmp_path / "no folder" / "scores.parquet")
    changing = made("sparse", width=ct.TheoryWidth(norm_bound=1.0, noise_std=0.1))
    with pytest.raises(ParameterError, match="width of the policy changes"):
        ct.score_all(changing, by="ucb")


def test_ids_that_make_no_column_are_refused(tmp_path: Path) -> None:
    graph, arms = ct.UserGraph.from_edges([("ana", 1)]), ct.ArmPool(np.eye(2))
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, arm_kernel=ct.Linear(), engine="sparse")
    with pytest.raises(SavedFileError, match="cannot be written"):
        ct.score_all(policy, to=tmp_path / "scores.parquet")
    assert list(tmp_path.iterdir()) == []
    assert ct.score_all(policy, top=1)["user"] == ["ana", 1]


def test_scores_of_learned_hyperparameters_are_in_the_rewards_units() -> None:
    graph, rng = ct.make_graph("sbm", 40, seed=1), np.random.default_rng(0)
    policy = ct.make_policy("auto-ucb", graph=graph, arms=ct.ArmPool(rng.normal(size=(6, 2))))
    for _ in range(40):
        policy.update(int(rng.integers(40)), int(rng.integers(6)), float(100 + rng.normal()))
    best = ct.score_all(policy, users=[3], top=6)
    mean, _ = policy.predict(3)
    np.testing.assert_allclose(best["mean"], np.sort(mean)[::-1])
