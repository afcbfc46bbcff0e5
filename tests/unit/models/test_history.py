"""The collapsed history: counts, means and scatters as numpy computes them from the rewards one by one."""

import copy
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.models.history import History

Rows = list[tuple[int, int, float]]

rows = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.floats(-1e3, 1e3, allow_subnormal=False)), max_size=30
)


def recorded(observations: Rows) -> History:
    history = History()
    for user, arm, reward in observations:
        history.add((user, arm), user, arm, reward)
    return history


def assert_holds(history: History, observations: Rows) -> None:
    """The history is that of these observations, its rows in order of first appearance."""
    rewards: dict[tuple[int, int], list[float]] = defaultdict(list)
    for user, arm, reward in observations:
        rewards[user, arm].append(reward)
    assert list(history.rows.items()) == [(pair, i) for i, pair in enumerate(rewards)]
    assert len(history) == len(rewards)
    assert history.n_observations == len(observations)
    assert history.counts == [len(values) for values in rewards.values()]
    np.testing.assert_array_equal(history.user_array(), [user for user, _ in rewards])
    np.testing.assert_array_equal(history.arm_array(), [arm for _, arm in rewards])
    np.testing.assert_array_equal(history.count_array(), history.counts)
    means = np.array([np.mean(values) for values in rewards.values()])
    scatters = np.array([np.sum((np.array(values) - np.mean(values)) ** 2) for values in rewards.values()])
    np.testing.assert_allclose(history.mean_array(), means, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(history.scatters, scatters, rtol=1e-9, atol=1e-6)


@given(observations=rows)
def test_adding_keeps_numpys_mean_and_scatter(observations: Rows) -> None:
    assert_holds(recorded(observations), observations)


@given(first=rows, second=rows)
def test_merging_equals_adding_one_by_one(first: Rows, second: Rows) -> None:
    history, other = recorded(first), recorded(second)
    before = copy.deepcopy(other)
    history.merge(other)
    assert_holds(history, first + second)
    for name in History.__slots__:
        assert getattr(other, name) == getattr(before, name)


def test_a_small_scatter_on_a_large_mean_survives() -> None:
    """The sum of squares minus the squared sum would lose every digit here."""
    rewards = 1e8 + np.array([0.0, 1.0, 2.0, 3.0])
    one_by_one = recorded([(0, 0, float(reward)) for reward in rewards])
    merged = recorded([(0, 0, float(reward)) for reward in rewards[:2]])
    merged.merge(recorded([(0, 0, float(reward)) for reward in rewards[2:]]))
    for history in (one_by_one, merged):
        assert history.means == [1e8 + 1.5]
        assert history.scatters == pytest.approx([5.0], rel=1e-12)


def test_vectors_come_back_one_a_row_and_an_empty_history_has_no_rows() -> None:
    history = History()
    assert history.arm_array().shape == history.user_array().shape == (0,)
    for i, vector in enumerate([[1.0, 2.0], [3.0, 4.0]]):
        history.add(i, 0, np.array(vector), 0.5)
    np.testing.assert_array_equal(history.arm_array(), [[1.0, 2.0], [3.0, 4.0]])
