"""A snapshot that is damaged, torn, empty or not of this journal is found and counted, and an older one is used."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coterie.service.journal import Snapshot, SnapshotError, SqliteJournal
from journal_cases import event

MADE = [Snapshot(seq, bytes([seq]) * 5_000) for seq in (3, 6, 9)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Returns a store of nine events with three snapshots."""
    with closing(SqliteJournal(tmp_path / "store", synchronous="NORMAL")) as journal:
        journal.append([event(seq) for seq in range(1, 10)])
        for snapshot in MADE:
            journal.put_snapshot(snapshot)
    return tmp_path / "store"


def newest(store: Path) -> Path:
    return max((store / "snapshots").glob("*.snapshot"))


def flip(at: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "only part of the head": lambda content: content[:20],
    "only the head": lambda content: content[:56],
    "torn": lambda content: content[:2_048],
    "torn in a sector": lambda content: content[:512] + bytes(512) + content[1_024:],
    "one byte short": lambda content: content[:-1],
    "one byte long": lambda content: content + b"x",
    "a bit of the magic": flip(0),
    "a bit of the number": flip(15),
    "a bit of the length": flip(23),
    "a bit of the checksum": flip(30),
    "a bit of the content": flip(4_000),
    "the last bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "zeros": lambda content: bytes(len(content)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_one_is_counted_and_an_older_one_used(store: Path, damage: str) -> None:
    newest(store).write_bytes(DAMAGE[damage](newest(store).read_bytes()))
    with closing(SqliteJournal(store)) as journal:
        assert next(journal.snapshots()) == MADE[1]
        assert list(journal.snapshots()) == MADE[1::-1]
        assert journal.n_damaged == 1
    with closing(SqliteJournal(store)) as journal:
        assert list(journal.snapshots()) == MADE[1::-1]
        assert journal.n_damaged == 0  # it was set aside


def test_all_can_be_damaged(store: Path) -> None:
    for path in (store / "snapshots").iterdir():
        path.write_bytes(b"")
    with closing(SqliteJournal(store)) as journal:
        assert list(journal.snapshots()) == []
        assert journal.n_damaged == 3
        journal.put_snapshot(MADE[2])
        assert list(journal.snapshots()) == [MADE[2]]


def test_one_under_the_number_of_another_is_damaged(store: Path) -> None:
    oldest = min((store / "snapshots").iterdir())
    newest(store).write_bytes(oldest.read_bytes())
    with closing(SqliteJournal(store)) as journal:
        assert list(journal.snapshots()) == MADE[1::-1]
        assert journal.n_damaged == 1


def test_one_of_a_journal_that_lost_its_end_is_never_used_not_even_when_the_journal_gets_there(store: Path) -> None:
    newest(store).rename(store / "snapshots" / f"{11:020d}.snapshot")
    with closing(SqliteJournal(store)) as journal:
        assert list(journal.snapshots()) == MADE[1::-1]
        assert journal.n_damaged == 1
        journal.append([event(10), event(11), event(12)])
    with closing(SqliteJournal(store)) as journal:
        assert list(journal.snapshots()) == MADE[1::-1]


def test_what_is_older_than_the_last_three_goes_with_what_was_set_aside(store: Path) -> None:
    newest(store).write_bytes(b"")
    (store / "snapshots" / f"{4:020d}.snapshot.partial").write_bytes(b"half")
    with closing(SqliteJournal(store)) as journal:
        assert len(list(journal.snapshots())) == 2
        journal.append([event(seq) for seq in range(10, 13)])
        for seq in (10, 11, 12):
            journal.put_snapshot(Snapshot(seq, b""))
    assert [path.name for path in sorted((store / "snapshots").iterdir())] == [
        f"{seq:020d}.snapshot" for seq in (10, 11, 12)
    ]


def test_one_that_cannot_be_written_leaves_all_as_it_was(store: Path) -> None:
    with closing(SqliteJournal(store)) as journal:
        journal.append([event(10)])
        (store / "snapshots" / f"{10:020d}.snapshot").mkdir()
        with pytest.raises(
            SnapshotError, match=r"snapshot 10 was not written: .*; a snapshot takes its place .* on the"
        ):
            journal.put_snapshot(Snapshot(10, b"ten"))
        (store / "snapshots" / f"{10:020d}.snapshot").rmdir()
        assert list(journal.snapshots()) == MADE[::-1]
        journal.append([event(11)])
