"""Every journal keeps what a journal promises: batches as a whole, one order without gaps, the last snapshots."""

from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.service.journal import Event, JournalOrderError, MemoryJournal, ServiceJournal, Snapshot, SqliteJournal
from coterie.service.journal.interface import KEPT_SNAPSHOTS
from journal_cases import batches, event, is_kept, journal_classes, opener

CLASSES = journal_classes()
for_each_journal = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
for_each_kept_journal = pytest.mark.parametrize(
    "kind", [each for each in CLASSES if is_kept(each)], ids=lambda kind: kind.__name__
)
few = settings(max_examples=25)


@pytest.fixture
def journal(kind: type[Any], tmp_path: Path) -> Iterator[ServiceJournal]:
    with closing(opener(kind, tmp_path / "store")()) as opened:
        yield opened


def test_every_journal_is_found() -> None:
    assert {MemoryJournal, SqliteJournal} <= set(CLASSES)


@for_each_journal
@given(history=batches, data=st.data())
@few
def test_what_is_appended_is_read_and_found(kind: type[Any], history: list[list[Event]], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder, closing(opener(kind, Path(folder) / "store")()) as journal:
        for batch in history:
            journal.append(batch)
        check(journal, list(chain(*history)), data)


@for_each_kept_journal
@given(history=batches, data=st.data())
@few
def test_what_is_appended_is_there_after_each_opening(
    kind: type[Any], history: list[list[Event]], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        opened = opener(kind, Path(folder) / "store")
        for batch in history:
            with closing(opened()) as journal:
                journal.append(batch)
        with closing(opened()) as journal:
            check(journal, list(chain(*history)), data)


def check(journal: ServiceJournal, expected: list[Event], data: st.DataObject) -> None:
    """Holds all that can be asked of a journal against the list of its events."""
    assert journal.last_seq == len(expected)
    assert list(journal.read(1)) == list(journal.read(0)) == expected
    first = data.draw(st.integers(-2, len(expected) + 2), "from_seq")
    assert list(journal.read(first)) == [each for each in expected if each.seq >= first]
    for name in {each.experiment for each in expected} | {"nowhere"}:
        those = [each for each in expected if each.experiment == name and each.seq >= first]
        assert list(journal.read(first, experiment=name)) == those
    for key in {each.key for each in expected} - {""} | {"nothing"}:
        assert journal.find(key) == [each for each in expected if each.key == key]
    assert journal.find("") == []


@for_each_journal
@pytest.mark.parametrize("seqs", [[0], [3], [5], [4, 6], [4, 4], [4, 5, 5], [-1], [5, 4]])
def test_a_batch_out_of_order_is_refused_as_a_whole(journal: ServiceJournal, seqs: list[int]) -> None:
    journal.append([event(seq, key="a") for seq in (1, 2, 3)])
    with pytest.raises(JournalOrderError, match=r"where [456] is due; numbers have no gaps"):
        journal.append([event(seq, key="a") for seq in seqs])
    assert journal.last_seq == len(journal.find("a")) == 3
    journal.append([event(4)])
    assert [each.seq for each in journal.read(1)] == [1, 2, 3, 4]


@for_each_journal
def test_an_empty_batch_changes_nothing(journal: ServiceJournal) -> None:
    journal.append([])
    assert journal.last_seq == 0
    assert list(journal.read(1)) == []


@for_each_journal
def test_large_bodies_and_many_events_come_back_whole(journal: ServiceJournal) -> None:
    large = [event(seq, size=3 << 20) for seq in (1, 2, 3)]
    many = [event(seq, key=f"k{seq % 7}") for seq in range(4, 2_600)]
    journal.append(large)
    journal.append(many)
    assert list(journal.read(1)) == large + many
    assert journal.find("k3") == [each for each in many if each.key == "k3"]
    assert [each.seq for each in journal.read(2_590, experiment="news")] == list(range(2_590, 2_600))


@for_each_journal
def test_readers_that_stop_early_or_are_slow_keep_nobody_waiting(journal: ServiceJournal) -> None:
    journal.append([event(seq) for seq in range(1, 10)])
    slow = journal.read(1)
    assert next(slow).seq == 1
    for seq in range(10, 60):
        journal.append([event(seq)])
    assert [each.seq for each in slow][:8] == list(range(2, 10))


@for_each_journal
def test_threads_read_what_is_durable_while_another_appends(journal: ServiceJournal) -> None:
    wrong: list[object] = []

    def read() -> None:
        for _ in range(40):
            last = journal.last_seq
            seqs = [each.seq for each in journal.read(1)]
            if seqs != list(range(1, len(seqs) + 1)) or len(seqs) < last or (last and not journal.find(f"k{last}")):
                wrong.append((last, seqs))

    threads = [Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for seq in range(1, 200):
        journal.append([event(seq, key=f"k{seq}")])
    for thread in threads:
        thread.join()
    assert wrong == []


@for_each_journal
def test_the_last_snapshots_are_kept_newest_first(journal: ServiceJournal) -> None:
    assert list(journal.snapshots()) == []
    journal.append([event(seq) for seq in range(1, 10)])
    made = [Snapshot(seq, bytes([seq]) * 1_000) for seq in range(1, 10)]
    for snapshot in made:
        journal.put_snapshot(snapshot)
    assert list(journal.snapshots()) == made[: -KEPT_SNAPSHOTS - 1 : -1]
    assert journal.n_damaged == 0


@for_each_journal
def test_a_snapshot_takes_the_place_of_one_after_the_same_event(journal: ServiceJournal) -> None:
    journal.append([event(1), event(2)])
    for snapshot in (Snapshot(1, b"one"), Snapshot(2, b"two"), Snapshot(2, b"")):
        journal.put_snapshot(snapshot)
    assert list(journal.snapshots()) == [Snapshot(2, b""), Snapshot(1, b"one")]


@for_each_kept_journal
def test_snapshots_are_there_after_opening_again(kind: type[Any], tmp_path: Path) -> None:
    opened = opener(kind, tmp_path / "store")
    with closing(opened()) as journal:
        journal.append([event(1)])
        journal.put_snapshot(Snapshot(1, b"one"))
    with closing(opened()) as journal:
        assert list(journal.snapshots()) == [Snapshot(1, b"one")]


@for_each_journal
def test_closing_can_be_repeated(journal: ServiceJournal) -> None:
    journal.append([event(1)])
    journal.close()
    journal.close()
