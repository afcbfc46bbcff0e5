"""A policy fitted from a table of rewards in any form believes what one that learned them one by one does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coterie as ct
from coterie.errors import (
    DimensionError,
    InputError,
    ParameterError,
    RewardError,
    SavedFileError,
    UnknownArmError,
    UnknownUserError,
)
from coterie.policies.reward_batches import Gathered

pytest.importorskip("numba")

USERS, ARMS = [f"user {i}" for i in range(30)], ["tea", "cola", "milk", "water"]


def make(engine: str = "sparse", name: str = "lk-gp-ucb") -> ct.Policy:
    weights = ct.make_graph("sbm", 30, seed=1).weights
    graph = ct.UserGraph.from_matrix(weights, users=USERS)
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(4, 3)), ids=ARMS)
    return ct.make_policy(name, graph=graph, arms=arms, arm_kernel=ct.Linear(), engine=engine, noise_var=0.1)


def rewards(n_rows: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    users, arms = rng.integers(30, size=n_rows), rng.integers(4, size=n_rows)
    return {"user": [USERS[i] for i in users], "arm": [ARMS[i] for i in arms], "reward": rng.normal(size=n_rows)}


def halves(table: dict[str, Any]) -> list[Any]:
    return [tuple(column[part] for column in table.values()) for part in (slice(100), slice(100, None))]


FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "mapping": lambda table: table,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "batches": halves,
    "rows": lambda table: list(zip(*table.values(), strict=True)),
    "dicts": lambda table: pl.DataFrame(table).rows(named=True),
    "a zip": lambda table: zip(*table.values(), strict=True),
    "rows and batches": lambda table: [
        *zip(*(column[:100] for column in table.values()), strict=True),
        halves(table)[1],
    ],
    "frames": lambda table: iter([pl.DataFrame(table)[:100], pl.DataFrame(table)[100:]]),
}


def assert_fitted(policy: ct.Policy, table: dict[str, Any]) -> None:
    exact = make("exact")
    exact.update_many(table["user"], table["arm"], table["reward"])
    assert policy.n_rewards == exact.n_rewards
    for row, user in enumerate(USERS):
        gap = np.abs(policy.predict(user)[0] - exact.predict(user)[0])
        assert np.all(gap <= policy.model.error_bound(row) + 1e-9)  # type: ignore[attr-defined] # only sparse has one
        assert np.all(policy.predict(user)[1] >= exact.predict(user)[1] - 1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_any_form_of_table_is_learned(form: str) -> None:
    policy, table = make(), rewards()
    assert policy.fit(ct.read_rewards(FORMS[form](table))) == 300
    assert_fitted(policy, table)


def test_rewards_that_are_collapsed_on_the_way_are_the_same_table() -> None:
    columns = list(rewards().values())
    index = [{name: row for row, name in enumerate(sorted(set(column)))} for column in columns[:2]]
    early, late = Gathered(*index, waiting=10), Gathered(*index)
    for start in range(0, 300, 30):
        for each in (early, late):
            each.add(*(column[start : start + 30] for column in columns))
    for name in ("users", "arms", "counts", "means", "scatters"):
        np.testing.assert_allclose(getattr(early.table(), name), getattr(late.table(), name), atol=1e-12)


def test_a_parquet_file_is_read_in_batches_and_progress_is_told(tmp_path: Path) -> None:
    table = rewards()
    renamed = dict(zip(("who", "what", "liked"), table.values(), strict=True)) | {"when": np.arange(300)}
    pq.write_table(pa.table(renamed), tmp_path / "rewards.parquet")
    policy, told = make(), []
    source = ct.read_rewards(tmp_path / "rewards.parquet", user="who", arm="what", reward="liked", rows=70)
    policy.fit(source, progress=lambda stage, number: told.append((stage, number)))
    assert_fitted(policy, table)
    assert told[:5] == [("rows", n) for n in (70, 140, 210, 280, 300)]
    assert told[5] == ("steps", 0)


def test_whole_numbers_are_ids_too() -> None:
    graph, arms = ct.make_graph("ring", 5), ct.ArmPool(np.eye(3))
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, arm_kernel=ct.Linear(), engine="sparse")
    frame = pd.DataFrame({"user": [0, 4], "arm": [2, 1], "reward": [1, 3]})
    assert policy.fit(ct.read_rewards(frame)) == 2
    assert policy.predict(4)[0][1] > policy.predict(0)[0][2] > 0


@pytest.mark.parametrize(
    ("column", "value", "error", "words"),
    [
        ("user", "nobody", UnknownUserError, "row 210: user 'nobody'"),
        ("user", None, UnknownUserError, "row 210: user None"),
        ("user", [1], UnknownUserError, r"row 210: user \[1\]"),
        ("arm", "beer", UnknownArmError, "row 210: arm 'beer'"),
        ("reward", float("nan"), RewardError, "row 210: the reward is nan"),
        ("reward", None, RewardError, "row 210: the reward is None"),
        ("reward", 1e300, RewardError, "row 210: the reward is 1e"),
        ("reward", {}, RewardError, "the rewards from row 100 on are object"),
    ],
)
def test_an_odd_row_is_named_and_nothing_is_learned(column: str, value: Any, error: Any, words: str) -> None:
    policy, table = make(), rewards()
    policy.update("user 3", "tea", 1.0)
    before = policy.predict("user 3")
    table = {name: list(each) for name, each in table.items()}
    table[column][210] = value
    with pytest.raises(error, match=words):
        policy.fit(ct.read_rewards(halves(table)))
    assert policy.n_rewards == 1
    np.testing.assert_array_equal(policy.predict("user 3"), before)


def test_gaps_in_a_file_are_odd_rows(tmp_path: Path) -> None:
    table = {name: list(each) for name, each in rewards().items()}
    table["reward"][7] = None
    pq.write_table(pa.table(table), tmp_path / "rewards.parquet")
    with pytest.raises(RewardError, match="row 7"):
        make().fit(ct.read_rewards(tmp_path / "rewards.parquet"))


def test_what_is_no_table_of_rewards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column 'arm' among 'user', 'reward'"):
        make().fit(ct.read_rewards({"user": [], "reward": []}))
    with pytest.raises(InputError, match="a batch of rewards is a int"):
        make().fit(ct.read_rewards([1]))
    with pytest.raises(InputError, match="rewards are a int"):
        ct.read_rewards(1)
    with pytest.raises(InputError, match="the rewards are a lazy LazyFrame"):
        make().fit(ct.read_rewards(pl.LazyFrame(rewards())))
    with pytest.raises(DimensionError, match="2 users, 1 arms and 2 rewards"):
        make().fit([(["user 1", "user 2"], ["tea"], [1.0, 2.0])])
    (tmp_path / "text").write_text("no table")
    with pytest.raises(SavedFileError, match="cannot be read"):
        make().fit(ct.read_rewards(tmp_path / "text"))


def test_rows_are_gathered_to_batches_and_an_odd_one_is_named() -> None:
    table = list(zip(*rewards().values(), strict=True))
    assert [len(batch[2]) for batch in ct.read_rewards(table, rows=70)] == [70, 70, 70, 70, 20]
    table[210] = ("user 3", "tea", None)
    with pytest.raises(RewardError, match="row 210"):
        make().fit(ct.read_rewards(table, rows=70))
    with pytest.raises(InputError, match="no column 'reward' among 'user', 'arm'"):
        make().fit(ct.read_rewards([{"user": "user 1", "arm": "tea"}]))


@pytest.mark.parametrize("kind", [list, tuple])
def test_three_columns_that_are_no_batch_are_not_taken_for_three_rows(kind: Callable[[Any], Any]) -> None:
    """Of users and arms that are numbers each column could be a row."""
    arms = ct.ArmPool(np.eye(4))
    bandit = ct.Bandit(graph=ct.make_graph("ring", 5), arms=arms, policy="lk-gp-ucb")
    columns = kind([1, 2, 3]), kind([1, 2, 3]), kind([1.0, 0.0, 2.0])
    with pytest.raises(InputError, match=r"Pass \[\(users, arms, rewards\)\]"):
        bandit.fit(columns)
    assert bandit.n_rewards == 0


def test_nothing_is_learned_from_nothing() -> None:
    assert make().fit([]) == 0


def test_a_table_is_refused_where_its_order_would_count() -> None:
    graph, arms = ct.make_graph("ring", 5), ct.ArmPool(np.eye(3))
    with pytest.raises(ParameterError, match="'auto-ucb'"):
        ct.make_policy("auto-ucb", graph=graph, arms=arms, likelihood="bernoulli").fit([])


@pytest.mark.parametrize(
    "batches", [None, [(1, 2, 3.0)], [([1], [2])], [7], [(["a"], [0], np.ones((1, 1)))], [("ab", [0, 1], [1.0, 1.0])]]
)
def test_batches_that_are_not_three_columns_are_typed_errors(batches: Any) -> None:
    arms = ct.ArmPool(np.eye(2))
    policy = ct.make_policy("lk-gp-ucb", graph=ct.make_graph("ring", 5), arms=arms, noise_var=1.0, engine="sparse")
    with pytest.raises(InputError, match="nothing was learned"):
        policy.fit(batches)
    assert policy.n_rewards == 0
