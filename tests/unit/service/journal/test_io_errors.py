"""An I/O error at any moment: the journal stops at once, acknowledges nothing more, and is sound when opened again."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import apsw
import pytest

from coterie.errors import StoreError
from coterie.service.journal import Event, JournalBrokenError, JournalFullError, SqliteJournal
from journal_cases import event
from power_loss import Disk, What, watched, write_image

FSYNC, WRITE = apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_WRITE


@pytest.fixture
def disk() -> Iterator[Disk]:
    with watched() as made:
        yield made


def fail(disk: Disk, what: What, ending: str, code: int, *, after: int = 0, times: int = 10**9) -> list[str]:
    """Lets operations on a file fail from the one after so many on, and returns the list of those that did."""
    met: list[str] = []
    seen = iter(range(10**9))

    def before(done: What, name: str) -> None:
        if done == what and name.endswith(ending) and next(seen) >= after and len(met) < times:
            met.append(name)
            raise apsw.exception_for(code)

    disk.before = before
    return met


def opened(disk: Disk, store: Path) -> SqliteJournal:
    return SqliteJournal(store, checkpoint_after=8, vfs=disk.vfs)


def check_sound(store: Path, acknowledged: list[Event]) -> None:
    """Opens a store as production does: all that was acknowledged is there, perhaps with one batch more."""
    with closing(SqliteJournal(store)) as journal:
        found = list(journal.read(1))
        assert found[: len(acknowledged)] == acknowledged
        assert len(found) <= len(acknowledged) + 1
        journal.append([event(len(found) + 1)])
        assert journal._connection.pragma("integrity_check") == "ok"


def append_many(journal: SqliteJournal, acknowledged: list[Event]) -> None:
    for seq in range(1, 100):
        journal.append([event(seq, size=2_000)])
        acknowledged.append(event(seq, size=2_000))


@pytest.mark.parametrize(
    ("what", "ending", "code"),
    [("sync", "-wal", FSYNC), ("write", "-wal", WRITE), ("sync", ".sqlite", FSYNC), ("write", ".sqlite", WRITE)],
)
@pytest.mark.parametrize("after", [0, 1, 2, 5, 13])
def test_one_error_ends_it(disk: Disk, tmp_path: Path, what: What, ending: str, code: int, after: int) -> None:
    acknowledged: list[Event] = []
    with closing(opened(disk, tmp_path / "store")) as journal:
        met = fail(disk, what, ending, code, after=after, times=1)  # only once: a second try would seem to succeed
        with pytest.raises(JournalBrokenError, match=r"the journal is broken: .* Mend the disk"):
            append_many(journal, acknowledged)
        assert len(met) == 1
        n_done = len(disk.done)
        with pytest.raises(JournalBrokenError, match="it was broken before"):
            journal.append([event(journal.last_seq + 1)])
        assert list(journal.read(1))[: len(acknowledged)] == acknowledged
    assert disk.done[n_done:] == []  # nothing is written or synced again, not even by closing
    check_sound(tmp_path / "store", acknowledged)


def test_an_error_of_the_last_checkpoint_is_told_and_loses_nothing(disk: Disk, tmp_path: Path) -> None:
    journal = opened(disk, tmp_path / "store")
    journal.append([event(1)])
    fail(disk, "sync", ".sqlite", FSYNC)
    with pytest.raises(JournalBrokenError):
        journal.close()
    journal.close()
    check_sound(tmp_path / "store", [event(1)])


@pytest.mark.parametrize("what", ["write", "sync"])
def test_an_error_of_opening_is_told(disk: Disk, tmp_path: Path, what: What) -> None:
    fail(disk, what, "", WRITE)
    with pytest.raises(StoreError, match="cannot be used as a store"):
        opened(disk, tmp_path / "store")
    check_sound(tmp_path / "store", [])


def test_an_error_while_what_a_killed_process_left_is_synced_ends_it(disk: Disk, tmp_path: Path) -> None:
    with closing(opened(disk, tmp_path / "store")) as journal:
        journal.append([event(1)])
        write_image(disk.image(len(disk.done), Random(0), kept=1.0), tmp_path / "killed")
    met = fail(disk, "sync", "-wal", FSYNC, times=1)
    with pytest.raises(JournalBrokenError, match="the journal is broken"):
        opened(disk, tmp_path / "killed")
    assert len(met) == 1
    check_sound(tmp_path / "killed", [event(1)])


@pytest.mark.parametrize("after", [0, 1, 2, 5])
@pytest.mark.parametrize("ending", ["-wal", ".sqlite"])
def test_without_room_nothing_is_acknowledged_and_it_goes_on_when_there_is(
    disk: Disk, tmp_path: Path, ending: str, after: int
) -> None:
    n_refused, seq = 0, 1
    with closing(opened(disk, tmp_path / "store")) as journal:
        met = fail(disk, "write", ending, apsw.SQLITE_FULL, after=after, times=4)
        while seq <= 40:
            try:
                journal.append([event(seq, key=str(seq), size=2_000), event(seq + 1)])
                seq += 2
            except JournalFullError:
                n_refused += 1
                assert journal.last_seq == seq - 1
                assert [each.seq for each in journal.read(1)] == list(range(1, seq))
                assert journal.find(str(seq)) == []
        assert len(met) == 4
        assert n_refused == (4 if ending == "-wal" else 0)  # a checkpoint that finds no room is left for later
        assert journal.find("39") == [event(39, key="39", size=2_000)]
    with closing(SqliteJournal(tmp_path / "store")) as journal:
        assert [each.seq for each in journal.read(1)] == list(range(1, 41))


WRITER = """
import json, sys
from coterie.service.journal import Event, JournalBrokenError, SqliteJournal
journal, n_acknowledged, errors = SqliteJournal(sys.argv[1], checkpoint_after=8), 0, []
for seq in range(1, 200):
    try:
        journal.append([Event(seq, 0.0, "", "decided", str(seq), b"x" * 2_000)])
    except JournalBrokenError as error:
        errors.append(str(error))
        if len(errors) == 3:
            break
    else:
        n_acknowledged += 1
journal.close()
print(json.dumps({"acknowledged": n_acknowledged, "errors": errors}))
"""


def can_inject() -> bool:
    """Returns whether strace is there, and may trace."""
    strace = shutil.which("strace")
    return bool(strace) and subprocess.run([str(strace), "-qq", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_inject(), reason="strace is not installed, or may not trace here")
@pytest.mark.parametrize("number", [27, *(pytest.param(number, marks=pytest.mark.slow) for number in (12, 13, 40))])
def test_a_kernel_that_fails_to_sync_once_ends_it(tmp_path: Path, number: int) -> None:
    inject = f"inject=fsync,fdatasync:error=EIO:when={number}"  # only once: a second try would seem to succeed
    strace = ["strace", "-f", "-qq", "-o", str(tmp_path / "trace"), "-e", "trace=fsync,fdatasync", "-e", inject]
    command = [*strace, sys.executable, "-c", WRITER, str(tmp_path / "store")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(os.environ))
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert "INJECTED" in (tmp_path / "trace").read_text()
    assert len(told["errors"]) == 3
    with closing(SqliteJournal(tmp_path / "store")) as journal:
        assert told["acknowledged"] <= journal.last_seq <= told["acknowledged"] + 1
        assert journal._connection.pragma("integrity_check") == "ok"
