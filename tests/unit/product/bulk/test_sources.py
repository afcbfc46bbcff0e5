"""Files of events: found, checked before anything is read, and read in batches."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.errors import InputError, RewardError, UnknownArmError, UnknownUserError
from coterie.product.bulk.sources import IdRows, as_rows, event_parts, n_rows_of, read_part, split_parts

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

USERS, ARMS = ["ana", "bo", "7"], ["tea", "milk"]


def write(path: Path, users: Any, arms: Any, rewards: Any, **options: Any) -> Path:
    pq.write_table(
        pa.table({"when": range(len(users)), "user": users, "arm": arms, "reward": rewards}), path, **options
    )
    return path


def rows_of(events: Any, *, rows: int = 2) -> list[Any]:
    users, arms = IdRows(USERS), IdRows(ARMS)
    return [as_rows(batch, users, arms) for part in event_parts(events) for batch in read_part(part, rows)]


def test_a_file_a_folder_and_a_pattern(tmp_path: Path) -> None:
    first = write(tmp_path / "b.parquet", ["ana", "bo", "7"], ["tea", "milk", "tea"], [1.0, 0.0, 2.0])
    write(tmp_path / "a.parquet", ["bo"], ["tea"], [3.0])
    (tmp_path / "notes.txt").write_text("not a table")
    assert [part.path.name for part in event_parts(tmp_path)] == ["a.parquet", "b.parquet"]
    assert [part.n_rows for part in event_parts(tmp_path / "?.parquet")] == [1, 3]
    assert n_rows_of(event_parts(first)) == 3
    found = rows_of(tmp_path)
    assert [len(batch[0]) for batch in found] == [1, 2, 1]
    assert np.concatenate([users for users, _, _ in found]).tolist() == [1, 0, 1, 2]
    assert np.concatenate([arms for _, arms, _ in found]).tolist() == [0, 0, 1, 0]
    assert np.concatenate([rewards for _, _, rewards in found]).tolist() == [3.0, 1.0, 0.0, 2.0]


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
def test_texts_of_any_type(tmp_path: Path, kind: str) -> None:
    users = pa.array(["7", "ana"])
    users = users.dictionary_encode() if kind == "dictionary" else users.cast(kind)
    write(tmp_path / "events.parquet", users, ["tea", "tea"], pa.array([True, False]))
    (found,) = rows_of(tmp_path / "events.parquet")
    assert found[0].tolist() == [2, 0]
    assert found[2].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("kind", ["int32", "uint64"])
def test_whole_numbers_are_ids(kind: str) -> None:
    rows = IdRows(["10", "7", "007", "-3", "x"]).rows_of(pa.array([7, 10, 11], kind))
    assert rows.tolist() == [1, 0, -1]
    assert IdRows(["x"]).rows_of(pa.array([7], kind)).tolist() == [-1]
    assert IdRows([10, 7]).rows_of(pa.array([7, None, 10], kind)).tolist() == [1, -1, 0]


def test_csv_is_read_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("reward,user,arm\n1,ana,tea\n0.5,7,milk\n2,ana,milk\n")
    (first, second) = rows_of(path)
    assert (first[0].tolist(), first[1].tolist(), first[2].tolist()) == ([0, 2], [0, 1], [1.0, 0.5])
    assert second[0].tolist() == [0]
    path.write_text("reward,user,arm\n1,ana,tea\nx,7,milk\n")
    with pytest.raises(RewardError, match=r"events.csv, line 3, column 'reward'"):
        rows_of(path)


def test_parts_are_row_groups_and_can_be_sent(tmp_path: Path) -> None:
    users = ["ana", "bo", "7", "ana", "bo"]
    write(tmp_path / "events.parquet", users, ["tea"] * 5, np.arange(5.0), row_group_size=2)
    parts = split_parts(event_parts(tmp_path / "events.parquet"), 3)
    assert [(part.first, part.n_rows, part.groups) for part in parts] == [(1, 2, (0,)), (3, 3, (1, 2))]
    again = pickle.loads(pickle.dumps(parts))
    batches = [batch for part in again for batch in read_part(part, 10)]
    assert [batch.numbers.tolist() for batch in batches] == [[1, 2], [3, 4, 5]]
    ids = pickle.loads(pickle.dumps(IdRows(USERS)))
    assert [ids.rows_of(batch.users).tolist() for batch in batches] == [[0, 1], [2, 0, 1]]


def test_a_wrong_row_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    good = ["ana", "bo", "7"], ["tea", "milk", "tea"], [1.0, 0.0, 2.0]
    write(path, ["ana", "bo", "zoe"], *good[1:])
    with pytest.raises(UnknownUserError, match=r"events.parquet, row 3, column 'user': it is 'zoe'.*--users"):
        rows_of(path)
    write(path, good[0], ["tea", "gin", "tea"], good[2])
    with pytest.raises(UnknownArmError, match=r"events.parquet, row 2, column 'arm': it is 'gin'"):
        rows_of(path)
    for odd in (float("nan"), float("inf"), None, 1e60):
        write(path, good[0], good[1], [1.0, odd, 2.0])
        with pytest.raises(RewardError, match=r"events.parquet, row 2, column 'reward'"):
            rows_of(path)
    write(path, ["ana", None, "7"], *good[1:])
    with pytest.raises(UnknownUserError, match=r"row 2, column 'user': it is None"):
        rows_of(path)


def test_files_that_are_no_events(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file"):
        event_parts(tmp_path / "no.parquet")
    with pytest.raises(InputError, match=r"matches no file"):
        event_parts(tmp_path / "*.parquet")
    with pytest.raises(InputError, match=r"has no file \*.parquet"):
        event_parts(tmp_path)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"user": ["ana"], "item": ["tea"], "reward": [1.0]}), path)
    with pytest.raises(RewardError, match=r"a.parquet has no column 'arm' among 'user', 'item', 'reward'"):
        event_parts(path)
    write(path, ["ana"], ["tea"], ["much"])
    with pytest.raises(RewardError, match=r"a.parquet, column 'reward': its type is string; rewards are numbers"):
        event_parts(path)
    write(path, [0.5], ["tea"], [1.0])
    with pytest.raises(RewardError, match=r"a.parquet, column 'user': its type is double"):
        event_parts(path)
    pq.write_table(pa.table({"user": ["ana"], "arm": ["tea"], "reward": [1.0], "context.hour": [3]}), path)
    with pytest.raises(RewardError, match=r"a.parquet has contexts: 'context.hour'"):
        event_parts(path)
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(RewardError, match=r"a.parquet cannot be read"):
        event_parts(path)


def test_files_of_different_types(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ["ana"], ["tea"], [1.0])
    write(tmp_path / "b.parquet", [7], ["tea"], [1.0])
    with pytest.raises(InputError, match=r"b.parquet, column 'user': it holds whole numbers, .* a.parquet texts"):
        event_parts(tmp_path)
