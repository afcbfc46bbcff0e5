"""A table of rewards with contexts, in any form: what is believed is what learning its rows one by one gives."""

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
from coterie.errors import ContextError, DimensionError, ParameterError, RewardError, UnknownArmError

USERS, ARMS = ["ana", "bo", "cy"], ["tea", "cola", "milk"]
SCHEMA = {"hour": "number", "device": "category", "new": "flag"}


def bandit(**settings: Any) -> ct.Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])
    return ct.Bandit(graph=graph, arms=ARMS, wait_for_fits=True, **settings)


def table(n_rows: int = 60) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    return {
        "user": [USERS[i] for i in rng.integers(3, size=n_rows)],
        "arm": [ARMS[i] for i in rng.integers(3, size=n_rows)],
        "reward": rng.normal(size=n_rows).tolist(),
        "context.hour": rng.integers(24, size=n_rows).tolist(),
        "context.device": [["phone", "desktop"][i] for i in rng.integers(2, size=n_rows)],
        "context.new": [bool(i) for i in rng.integers(2, size=n_rows)],
    }


def contexts(given: dict[str, list[Any]]) -> list[dict[str, Any]]:
    names = [name for name in given if name.startswith("context.")]
    rows = zip(*(given[name] for name in names), strict=True)
    return [dict(zip([name.removeprefix("context.") for name in names], row, strict=True)) for row in rows]


def rows_of(given: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(given["user"], given["arm"], given["reward"], contexts(given), strict=True))


FORMS: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "mapping": lambda given: given,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "rows": rows_of,
    "dicts": lambda given: pl.DataFrame(given).rows(named=True),
    "batch": lambda given: [(given["user"], given["arm"], given["reward"], contexts(given))],
    "frames": lambda given: iter([pl.DataFrame(given)[:20], pl.DataFrame(given)[20:]]),
}


def beliefs(asked: ct.Bandit) -> np.ndarray:
    context = {"hour": 13, "device": "desktop", "new": False}
    return np.array([list(asked.predict(user, context=context).values()) for user in USERS])


def same_hyperparameters(one: ct.Bandit, other: ct.Bandit) -> None:
    """Lets the first believe what its rewards say at the hyperparameters of the second."""
    one._learned.relearn(other._learned.policy.hyperparameters())


@pytest.fixture(scope="module")
def one_by_one() -> ct.Bandit:
    single, given = bandit(), table()
    single.learn_many(given["user"], given["arm"], given["reward"], contexts(given))
    return single


@pytest.mark.parametrize("form", FORMS)
def test_any_form_is_learned_as_one_by_one(form: str, one_by_one: ct.Bandit) -> None:
    fitted = bandit()
    assert fitted.fit(FORMS[form](table())) == 60
    assert fitted.n_rewards == 60
    assert fitted.context_schema is not None
    assert one_by_one.context_schema is not None
    assert fitted.context_schema.fields == one_by_one.context_schema.fields
    same_hyperparameters(fitted, one_by_one)
    same_hyperparameters(one_by_one, one_by_one)
    np.testing.assert_allclose(beliefs(fitted), beliefs(one_by_one), atol=1e-8)


def test_the_contexts_matter() -> None:
    fitted, other, given = bandit(), bandit(), table()
    fitted.fit(given)
    other.fit(given | {"context.hour": given["context.hour"][::-1]})
    same_hyperparameters(other, fitted)
    assert np.abs(beliefs(fitted) - beliefs(other)).max() > 1e-3


def test_a_file_is_learned_batch_by_batch(tmp_path: Path, one_by_one: ct.Bandit) -> None:
    pq.write_table(pa.table(table()), tmp_path / "rewards.parquet")
    batches = list(ct.read_rewards(tmp_path / "rewards.parquet", rows=25))
    assert [len(batch[3]["hour"]) for batch in batches] == [25, 25, 10]
    fitted = bandit()
    fitted.fit(batches)
    same_hyperparameters(fitted, one_by_one)
    same_hyperparameters(one_by_one, one_by_one)
    np.testing.assert_allclose(beliefs(fitted), beliefs(one_by_one), atol=1e-8)


def test_what_was_fitted_is_saved_and_goes_on(tmp_path: Path) -> None:
    fitted = bandit()
    fitted.fit(table())
    fitted.save(tmp_path / "saved")
    loaded = ct.Bandit.load(tmp_path / "saved")
    np.testing.assert_array_equal(beliefs(loaded), beliefs(fitted))
    context = {"hour": 3, "device": "phone", "new": True}
    assert loaded.decide("ana", context=context) == fitted.decide("ana", context=context)


def test_categories_keep_their_codes_when_rewards_are_learned_again() -> None:
    fitted = bandit()
    fitted.fit(table())
    before, schema = beliefs(fitted), fitted.context_schema
    same_hyperparameters(fitted, fitted)
    assert fitted.context_schema == schema
    np.testing.assert_allclose(beliefs(fitted), before, atol=1e-8)


def test_further_tables_are_learned_beside_the_first() -> None:
    whole, parts, given = bandit(), bandit(), table()
    whole.fit(given)
    for some in (slice(30), slice(30, None)):
        parts.fit({name: column[some] for name, column in given.items()})
    same_hyperparameters(parts, whole)
    np.testing.assert_allclose(beliefs(parts), beliefs(whole), atol=1e-6)


def test_a_stated_schema_fills_what_is_missing() -> None:
    schema = {"hour": {"kind": "number", "default": 12}, "device": "category", "new": "flag"}
    filled, gaps, given = bandit(context_schema=schema), bandit(context_schema=schema), table()
    hours = given["context.hour"]
    filled.fit(given | {"context.hour": [12, *hours[1:]]})
    frame = pd.DataFrame(given | {"context.hour": [np.nan, *hours[1:]]})
    gaps.fit(frame)
    np.testing.assert_array_equal(beliefs(gaps), beliefs(filled))
    without = bandit(context_schema=schema)
    without.fit({name: column for name, column in given.items() if name != "context.hour"})
    noon = bandit(context_schema=schema)
    noon.fit(given | {"context.hour": [12] * 60})
    np.testing.assert_array_equal(beliefs(without), beliefs(noon))


def test_rows_of_numbers_come_from_numbered_columns() -> None:
    given = {name: column for name, column in table().items() if not name.startswith("context.")}
    numbers = np.random.default_rng(1).normal(size=(60, 2))
    by_rows, by_columns = bandit(context_schema=2), bandit(context_schema=2)
    by_rows.fit([(given["user"], given["arm"], given["reward"], numbers.tolist())])
    by_columns.fit(given | {"context.1": numbers[:, 1], "context.0": numbers[:, 0]})
    one, other = (each.predict("ana", context=[0.5, -1.0]) for each in (by_rows, by_columns))
    assert one == other
    with pytest.raises(ContextError, match="row 0: the context is a dict; it is a row of 2 numbers"):
        by_rows.fit(given | {"context.hour": [1] * 60})


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({"context.hour": [*[1] * 59, "late"]}, ContextError, "row 59: 'hour' of the context is 'late'"),
        ({"context.hour": [*[1] * 59, float("nan")]}, ContextError, "row 59: 'hour' of the context is nan"),
        ({"context.hour": [*[1] * 59, None]}, ContextError, "row 59: the context has no 'hour'"),
        ({"context.new": [*[True] * 59, 1]}, ContextError, "row 59: 'new' of the context is 1; it is a flag"),
        ({"context.hour": [1] * 59}, DimensionError, "60 rewards and 59 of context.hour"),
        ({"context.hour": [None, *[1] * 59]}, ContextError, "row 0: 'hour' of the context is None"),
        ({"arm": [*["tea"] * 59, "gin"]}, UnknownArmError, "row 59: arm 'gin' is not in the pool"),
        ({"reward": [*[1.0] * 59, None]}, RewardError, "row 59: the reward is None"),
    ],
)
def test_a_bad_row_is_named_and_nothing_has_changed(
    change: dict[str, Any], error: type[Exception], problem: str
) -> None:
    fresh = bandit()
    with pytest.raises(error, match=problem):
        fresh.fit(table() | change)
    assert fresh.n_rewards == 0
    assert fresh.context_schema is None
    fresh.learn("ana", "tea", 1.0)  # as if no context had come
    fitted = bandit(context_schema=SCHEMA)
    fitted.fit(table())
    before, schema = beliefs(fitted), fitted.context_schema
    names = {"context.device": ["tablet", *["phone"] * 59]}
    with pytest.raises(error):
        fitted.fit(table() | names | change)
    assert fitted.n_rewards == 60
    assert fitted.context_schema == schema
    np.testing.assert_array_equal(beliefs(fitted), before)


def test_rows_with_and_without_contexts_are_refused() -> None:
    with pytest.raises(ContextError, match="row 1: the context has no 'hour'"):
        bandit().fit([("ana", "tea", 1.0, {"hour": 9}), ("bo", "tea", 0.0)])
    with pytest.raises(ContextError, match="row 1: the context has no 'hour'"):
        bandit().fit([(["ana"], ["tea"], [1.0], [{"hour": 9}]), (["ana"], ["tea"], [1.0])])
    late = bandit()
    late.learn("ana", "tea", 1.0)
    with pytest.raises(ContextError, match="row 0: a context was given, and 1 reward "):
        late.fit(table())


def test_policies_without_contexts_refuse_them() -> None:
    with pytest.raises(ParameterError, match="contexts, places or features of users were given to 'lk-gp-ucb'"):
        bandit(policy="lk-gp-ucb").fit(table())
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])
    for name in ("lk-gp-ucb", "auto-ucb"):
        policy = ct.make_policy(name, graph=graph, arms=ct.ArmPool(np.eye(3), ids=ARMS))
        with pytest.raises(ContextError, match="the batch after row 0 has contexts"):
            policy.fit(ct.read_rewards(table()))
        assert not policy.takes_contexts


def test_features_of_a_request_are_in_no_table() -> None:
    priced = bandit(context_schema=SCHEMA, request_features=["price"])
    with pytest.raises(ContextError, match="each arm has 'price' of its request"):
        priced.fit(table())


def test_another_prefix_is_taken() -> None:
    given = {name.replace("context.", "at_"): column for name, column in table().items()}
    assert list(next(ct.read_rewards(given, context="at_"))[3]) == ["hour", "device", "new"]
    assert len(next(ct.read_rewards(given))) == 3
