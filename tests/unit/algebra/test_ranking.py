"""Orders of numbers that other processors find the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.algebra.ranking import falling_order, places_of_largest

DISTINCT = st.lists(st.integers(-1000, 1000), min_size=1, max_size=40, unique=True)
SCALES = st.sampled_from([1e-200, 1e-30, 1.0, 1e30, 1e200])


@given(DISTINCT, SCALES, st.data())
def test_distinct_numbers_of_any_scale_are_ordered_as_ever(whole: list[int], scale: float, data: st.DataObject) -> None:
    values, n = np.array(whole) * scale, data.draw(st.integers(1, len(whole)))
    assert falling_order(values).tolist() == np.argsort(-values).tolist()
    assert places_of_largest(values, n).tolist() == sorted(np.argsort(-values)[:n].tolist())


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), SCALES, st.integers(0, 2**32 - 1), st.data())
def test_rounding_decides_nothing(whole: list[int], scale: float, seed: int, data: st.DataObject) -> None:
    exact, n = np.array(whole) * scale, data.draw(st.integers(1, len(whole)))
    noisy = exact * (1 + 1e-14 * np.random.default_rng(seed).normal(size=len(exact)))
    assert falling_order(noisy).tolist() == sorted(range(len(whole)), key=lambda place: (-whole[place], place))
    assert places_of_largest(noisy, n).tolist() == sorted(falling_order(exact)[:n].tolist())


@pytest.mark.parametrize("values", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
def test_of_equal_ones_the_first_are_taken(values: list[float]) -> None:
    assert places_of_largest(np.array(values), 2).tolist() == [0, 1]
    assert falling_order(np.array(values)).tolist() == [0, 1, 2]
