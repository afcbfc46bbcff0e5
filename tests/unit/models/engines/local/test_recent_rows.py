"""What is kept of the latest rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coterie.models.engines.local.recent_rows import RecentRows


@given(st.integers(1, 150), st.lists(st.integers(0, 120), max_size=8))
def test_the_latest_rows_are_kept_in_bounded_room(most: int, batches: list[int]) -> None:
    kept, whole = RecentRows(3, most), np.empty((0, 3))
    for size in batches:
        more = np.random.default_rng(size).normal(size=(size, 3))
        kept.extend(more)
        whole = np.concatenate([whole, more])
        assert kept.n_rows == len(whole)
        assert kept.first == max(len(whole) - most, 0)
        rows = np.arange(kept.first, len(whole))[::-1]
        np.testing.assert_array_equal(kept.take(rows), whole[rows])
        assert kept.nbytes <= 8 * 3 * most
