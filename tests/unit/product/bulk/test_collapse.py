"""Events combined by pairs: the same however they are parted and merged."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.policies.reward_batches import Combined, Gathered
from coterie.product.bulk.collapse import combine_parts, merge_columns, table_of
from coterie.product.bulk.sources import IdRows, event_parts, split_parts

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

EVENTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(-8, 8)), max_size=40)


@given(EVENTS, st.lists(st.integers(0, 40), max_size=4))
def test_merging_partial_results_is_combining_all(events: list[tuple[int, int, int]], cuts: list[int]) -> None:
    columns = [np.array(column) for column in (zip(*events, strict=True) if events else ([], [], []))]
    users, arms, rewards = columns[0].astype(np.int32), columns[1].astype(np.int32), columns[2] / 4
    whole = Combined(3)
    whole.add(users, arms, rewards)
    parts = []
    for piece in np.split(np.arange(len(events)), sorted(cuts)):
        part = Combined(3, waiting=3)
        part.add(users[piece], arms[piece], rewards[piece])
        parts.append(part.columns())
    expected, merged = whole.columns(), merge_columns(parts, 3)
    nested = merge_columns([merge_columns(parts[:1], 3), merge_columns(parts[1:], 3)], 3)
    for found in (merged, nested):
        assert found["n_observations"] == expected["n_observations"]
        for name in ("users", "arms", "counts"):
            assert found[name].tolist() == expected[name].tolist()
            assert found[name].dtype == expected[name].dtype
        for name in ("means", "scatters"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)


def test_files_are_combined_as_a_fit_does(tmp_path: Path) -> None:
    rng, names, items = np.random.default_rng(0), ["ana", "bo", "cy"], ["tea", "milk"]
    log = {"user": rng.choice(names, 60), "arm": rng.choice(items, 60), "reward": rng.normal(size=60)}
    for part in range(3):
        piece = {name: column[20 * part : 20 * part + 20] for name, column in log.items()}
        pq.write_table(pa.table(piece), tmp_path / f"{part}.parquet", row_group_size=7)
    gathered = Gathered({name: row for row, name in enumerate(names)}, {name: row for row, name in enumerate(items)})
    gathered.add(*log.values())
    expected = gathered.table().state()
    told: list[tuple[int, int]] = []
    ids, parts = (IdRows(names), IdRows(items)), event_parts(tmp_path)
    found = combine_parts(parts, *ids, rows=8, progress=lambda *each: told.append(each))
    table = table_of(found, 3, 2)
    assert told[-1][0] == table.n_observations == 60
    for name, column in expected.items():
        np.testing.assert_array_equal(table.state()[name], column)
    apart = merge_columns([combine_parts([part], *ids) for part in split_parts(parts, 10)], 2)
    np.testing.assert_allclose(apart["means"], found["means"], rtol=1e-14)
