"""The store on the disk: who may open it, its versions, what is refused, and what closing leaves."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread
from time import sleep

import apsw
import pytest

from coterie.errors import CoterieError, StoreError
from coterie.service.journal import Event, JournalBrokenError, JournalFullError, SqliteJournal, schema
from coterie.service.journal.schema import APPLICATION_ID, MIGRATIONS
from journal_cases import event


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Returns a store of one event."""
    with closing(SqliteJournal(tmp_path / "store")) as journal:
        journal.append([event(1, key="a")])
    return tmp_path / "store"


def database(store: Path) -> apsw.Connection:
    return apsw.Connection(str(store / "journal.sqlite"))


def test_commits_are_full_and_the_log_is_written_ahead(store: Path) -> None:
    with closing(SqliteJournal(store)) as journal:
        assert journal._connection.pragma("synchronous") == 2
        assert journal._connection.pragma("journal_mode") == "wal"


def test_only_the_owner_may_look_into_it(store: Path) -> None:
    assert stat.S_IMODE(store.stat().st_mode) == 0o700


def test_a_key_is_found_by_its_index(store: Path) -> None:
    with closing(database(store)) as connection:
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT * FROM events WHERE key = ? AND key <> ''", ("a",)).get
    assert "events_by_key" in str(plan)


def test_closing_empties_the_log_and_leaves_no_other_file(store: Path) -> None:
    assert sorted(path.name for path in store.iterdir()) == ["journal.sqlite", "lock", "snapshots"]


def test_the_log_stays_small_while_a_slow_reader_reads(tmp_path: Path) -> None:
    with closing(SqliteJournal(tmp_path / "store", synchronous="NORMAL", checkpoint_after=50)) as journal:
        journal.append([event(seq, size=3_000) for seq in range(1, 3_000)])
        slow = journal.read(1)
        next(slow)
        for seq in range(3_000, 4_000):
            journal.append([event(seq, size=3_000)])
        assert journal._n_pages < 200
        assert sum(1 for _ in slow) == 3_998


def test_a_batch_before_which_the_log_is_copied_is_told_beforehand(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store", synchronous="NORMAL", checkpoint_after=20)
    with closing(journal):
        told = []
        for seq in range(1, 100):
            told.append((journal.has_upkeep, journal._n_pages))
            journal.append([event(seq, size=3_000)])
    due = [place for place, (has_upkeep, _) in enumerate(told) if has_upkeep]
    assert len(due) > 3
    assert all(told[place][1] >= 20 > told[place + 1][1] for place in due[:-1])
    assert not journal.has_upkeep


def test_the_log_is_checkpointed_by_nobody_else(tmp_path: Path) -> None:
    with closing(SqliteJournal(tmp_path / "store", synchronous="NORMAL", checkpoint_after=10**9)) as journal:
        before = (tmp_path / "store" / "journal.sqlite").stat().st_size
        for first in range(1, 2_000, 50):  # twice as many pages as SQLite would let pass
            journal.append([event(seq, size=3_000) for seq in range(first, first + 50)])
        assert journal._n_pages > 2_000
        assert (tmp_path / "store" / "journal.sqlite").stat().st_size == before


@pytest.mark.parametrize("size", [1, 63, 64, 65, 128, 150])
def test_a_batch_of_any_size_is_one_commit(tmp_path: Path, size: int) -> None:
    with closing(SqliteJournal(tmp_path / "store")) as journal:
        commits: list[int] = []

        def count() -> bool:
            commits.append(1)
            return False

        journal._connection.set_commit_hook(count)
        batch = [event(seq) for seq in range(1, size + 1)]
        journal.append(batch)
        assert len(commits) == 1
        assert list(journal.read(1)) == batch


def test_after_closing_nothing_is_read_or_appended(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store")
    journal.close()
    with pytest.raises(JournalBrokenError, match="it is closed"):
        journal.append([event(1)])
    with pytest.raises(JournalBrokenError, match="it is closed"):
        journal.find("a")


def test_a_batch_that_cannot_be_written_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    with closing(SqliteJournal(tmp_path / "store")) as journal:
        with pytest.raises(UnicodeEncodeError):
            journal.append([event(1), event(2, key="\ud800")])
        assert list(journal.read(1)) == []
        journal.append([event(1)])
        assert journal.last_seq == 1


def test_a_missing_event_is_found(store: Path) -> None:
    with closing(SqliteJournal(store)) as journal:
        journal.append([event(seq) for seq in range(2, 3_000)])
    with closing(database(store)) as connection:
        connection.execute("DELETE FROM events WHERE seq = 1500")
    with closing(SqliteJournal(store)) as journal:
        with pytest.raises(JournalBrokenError, match="an event after number 1000 is missing"):
            list(journal.read(1))
        assert next(journal.read(1501)).seq == 1501


def test_a_damaged_page_is_found_when_it_is_read(store: Path) -> None:
    with closing(SqliteJournal(store)) as journal:
        journal.append([event(seq, size=1_000) for seq in range(2, 400)])
    content = bytearray((store / "journal.sqlite").read_bytes())
    content[40 * 4_096 : 41 * 4_096] = b"\xff" * 4_096
    (store / "journal.sqlite").write_bytes(content)
    with closing(SqliteJournal(store)) as journal:
        with pytest.raises(JournalBrokenError, match="cannot be read: database disk image is malformed"):
            list(journal.read(1))
        assert journal.find("a") == [event(1, key="a")]


# Who may open it

HOLDER = """
import fcntl, sys
handle = open(sys.argv[1])
fcntl.flock(handle, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def test_while_another_process_has_it_nobody_else_gets_it(store: Path) -> None:
    message = r"is in use by another process; one process at a time has a store\. End that, or use another\."
    command = [sys.executable, "-c", HOLDER, str(store / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(StoreError, match=message):
            SqliteJournal(store)
        other.kill()
    SqliteJournal(store).close()


def test_so_is_a_second_journal_of_this_process_until_the_first_is_closed(store: Path) -> None:
    with closing(SqliteJournal(store)), pytest.raises(StoreError, match="is in use by another process"):
        SqliteJournal(store)
    SqliteJournal(store).close()


def test_a_process_can_wait_for_the_one_before(store: Path) -> None:
    first = SqliteJournal(store)

    def end() -> None:
        sleep(0.1)
        first.append([event(2)])
        first.close()

    thread = Thread(target=end)
    thread.start()
    with closing(SqliteJournal(store, wait=30.0)) as second:
        assert second.last_seq == 2
    thread.join()


def test_another_program_that_has_it_locked_is_waited_for_and_then_told(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coterie.service.journal.sqlite.BUSY_MS", 10)
    with closing(SqliteJournal(store)) as journal:
        with closing(database(store)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(JournalFullError, match="the journal took no batch: database is locked"):
                journal.append([event(2)])
        journal.append([event(2)])
        assert journal.last_seq == 2


# What is refused


def a_file(path: Path) -> Path:
    path.write_text("hello")
    return path


def in_a_file(path: Path) -> Path:
    return a_file(path) / "store"


def in_no_folder(path: Path) -> Path:
    return path / "store"


def no_database(path: Path) -> Path:
    path.mkdir()
    (path / "journal.sqlite").write_bytes(b"hello" * 1_000)
    return path


def cut_off(path: Path) -> Path:
    with closing(SqliteJournal(path)) as journal:
        journal.append([event(seq, size=9_000) for seq in range(1, 20)])
    os.truncate(path / "journal.sqlite", 8_192)
    return path


def a_folder_in_its_place(path: Path) -> Path:
    (path / "journal.sqlite").mkdir(parents=True)
    return path


def of_another_program(path: Path) -> Path:
    path.mkdir()
    with closing(database(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    return path


def of_a_later_release(path: Path) -> Path:
    SqliteJournal(path).close()
    with closing(database(path)) as connection:
        connection.pragma("user_version", len(MIGRATIONS) + 1)
    return path


REFUSED: dict[Callable[[Path], Path], str] = {
    a_file: r"cannot be used as a store: it is a file; a store is a folder .* Mend that, or give another folder\.",
    in_a_file: "cannot be used as a store: Not a directory",
    in_no_folder: "cannot be used as a store: No such file or directory",
    no_database: "cannot be used as a store: file is not a database",
    cut_off: "cannot be used as a store: database disk image is malformed",
    a_folder_in_its_place: "cannot be used as a store: unable to open database file",
    of_another_program: r"is a database of another program; a store is a folder that the service made\.",
    of_a_later_release: r"has version 2; this release reads versions up to 1\. Use the release that made it",
}


@pytest.mark.parametrize("made", REFUSED, ids=lambda made: made.__name__)
def test_what_is_no_store_is_refused_and_left_as_it_is(made: Callable[[Path], Path], tmp_path: Path) -> None:
    path = made(tmp_path / "it")
    before = contents(tmp_path)
    with pytest.raises(StoreError, match=REFUSED[made]):
        SqliteJournal(path)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "\ud800"])
def test_a_name_that_no_file_can_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CoterieError, match="is no path"):
        SqliteJournal(tmp_path / name)


# Versions


def test_the_header_says_whose_it_is_and_which_version(store: Path) -> None:
    with closing(database(store)) as connection:
        found = connection.pragma("application_id"), connection.pragma("user_version")
    assert found == (APPLICATION_ID, len(MIGRATIONS))


def test_a_store_of_a_former_version_is_migrated_step_by_step(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = ("ALTER TABLE events ADD COLUMN more TEXT", "UPDATE events SET more = 'was here'")
    monkeypatch.setattr(schema, "MIGRATIONS", MIGRATIONS + later)
    for _ in range(2):
        SqliteJournal(store).close()
    with closing(database(store)) as connection:
        assert connection.execute("SELECT seq, more FROM events").fetchall() == [(1, "was here")]
        assert connection.pragma("user_version") == len(MIGRATIONS) + 2


def test_a_migration_that_fails_changes_nothing(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, "DELETE FROM events; SELECT * FROM nowhere"))
    with pytest.raises(StoreError, match="no such table: nowhere"):
        SqliteJournal(store)
    monkeypatch.undo()
    with closing(SqliteJournal(store)) as journal:
        assert [each.seq for each in journal.read(1)] == [1]


def test_a_new_release_migrates_a_new_store_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE other (x)"))
    with closing(SqliteJournal(tmp_path / "store")) as journal:
        journal.append([Event(1, 0.0, "", "decided", "", b"")])
