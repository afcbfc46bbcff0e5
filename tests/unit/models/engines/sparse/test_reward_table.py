"""The table of observations holds what a `History` of the same rewards does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.models.engines.sparse.reward_table import RewardTable
from coterie.models.history import History

pytest.importorskip("numba")

N_ARMS = 3
Rows = list[tuple[int, int, float]]
rows = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.floats(-1e3, 1e3, allow_subnormal=False)), max_size=200
)


def both(observations: Rows) -> tuple[RewardTable, History]:
    table, history = RewardTable(5, N_ARMS), History()
    for user, arm, reward in observations:
        for each in (table, history):
            each.add(user * N_ARMS + arm, user, arm, reward)
    return table, history


def assert_same(table: RewardTable, history: History, *, in_order: bool = True) -> None:
    mine, theirs = table.state(), history.state()
    order = slice(None) if in_order else np.lexsort((theirs["arms"], theirs["users"]))
    assert mine["n_observations"] == theirs["n_observations"]
    for name in ("users", "arms", "counts"):
        np.testing.assert_array_equal(mine[name], theirs[name][order])
    np.testing.assert_allclose(mine["means"], theirs["means"][order], atol=1e-9)
    np.testing.assert_allclose(mine["scatters"], theirs["scatters"][order], rtol=1e-9, atol=1e-5)


@given(rows)
def test_it_holds_what_a_history_does(observations: Rows) -> None:
    table, history = both(observations)
    assert_same(table, history)
    assert dict(table.rows.items()) == history.rows
    assert all(table.rows.get(key) == row for key, row in history.rows.items())
    assert table.rows.get(14) == history.rows.get(14)
    assert len(table.rows) == len(table) == len(history)
    for user in range(5):
        assert sorted(table.of_user(user).tolist()) == [i for i, each in enumerate(history.users) if each == user]


@given(rows, rows)
def test_joined_and_merged_tables_hold_both(observations: Rows, more: Rows) -> None:
    table, _ = both(observations)
    batch, history = both(more)[1], both(observations + more)[1]
    assert_same(table.joined(batch), history, in_order=False)
    table.merge(batch)
    assert_same(table, history)


@given(rows)
def test_a_state_gives_the_same_table(observations: Rows) -> None:
    table, history = both(observations)
    other = RewardTable.from_columns(table.state(), 5, N_ARMS)
    assert_same(other, history)
    np.testing.assert_array_equal(other.first, table.first)
    np.testing.assert_array_equal(other.lengths, table.lengths)
    other.add(0, 1, 2, 3.0)
    history.add(5, 1, 2, 3.0)
    assert_same(other, history)


def test_what_was_added_can_be_taken_back() -> None:
    table, history = both([(0, 1, 1.0), (2, 0, 5.0)])
    mark = table.mark(both([(0, 1, 3.0), (0, 2, 3.0)])[1])
    for reward in (3.0, 4.0):
        table.add(0, 0, 1, reward)
        table.add(0, 0, 2, reward)
    table.undo(*mark)
    assert_same(table, history)
    assert table.of_user(0).tolist() == [0]


def test_rewards_can_be_shifted_and_keys_need_no_change() -> None:
    table, history = both([(0, 1, 1.0), (2, 0, 5.0)])
    for each in (table, history):
        each.shift(0.5)
        each.rekey(lambda user, arm: user * N_ARMS + arm)
    assert_same(table, history)
    assert table.nbytes > 40


def test_nothing_joined_with_nothing_is_nothing() -> None:
    assert len(RewardTable(5, N_ARMS).joined(History())) == 0
