"""A disk that is really full, in a namespace of its own: no false acknowledgement, reads go on, appends resume."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

SPACE = ["unshare", "--user", "--map-root-user", "--mount"]
FILLED = """
import json, os, sys
from pathlib import Path
from coterie.service.journal import Event, JournalFullError, Snapshot, SnapshotError, SqliteJournal

disk, size = Path(sys.argv[1]), int(sys.argv[2])
journal = SqliteJournal(disk / "store", checkpoint_after=int(sys.argv[3]))
seq, n_refused, n_wrong = 0, 0, 0

def append(n_events):
    global seq
    batch = [Event(seq + 1 + each, 0.0, "", "decided", str(seq + 1 + each), b"x" * size) for each in range(n_events)]
    journal.append(batch)
    seq += n_events

append(20)
journal.put_snapshot(Snapshot(20, b"small"))
(disk / "ballast").write_bytes(bytes(1_000_000))
while n_refused < 5:
    try:
        append(3)
    except JournalFullError as error:
        n_refused += 1
        seen = [each.seq for each in journal.read(1)]
        n_wrong += seen != list(range(1, seq + 1)) or journal.last_seq != seq or len(journal.find("20")) != 1
try:
    journal.put_snapshot(Snapshot(seq, b"x" * 2_000_000))
    n_wrong += 1
except SnapshotError:
    n_wrong += [each.seq for each in journal.snapshots()] != [20]
full = seq
(disk / "ballast").unlink()
append(3)
journal.close()
journal = SqliteJournal(disk / "store")
n_wrong += [each.seq for each in journal.read(1)] != list(range(1, full + 4))
n_wrong += journal._connection.pragma("integrity_check") != "ok"
journal.close()
print(json.dumps({"refused": n_refused, "wrong": n_wrong, "kept": full}))
"""
# The index of the write-ahead log is in shared memory, which grows with every 4062nd page: where there is room for
# pages but not for that, SQLite calls it an I/O error.
INDEX_FULL = """
import json, os, sys
from pathlib import Path
from coterie.service.journal import Event, JournalFullError, SqliteJournal

disk, seq, codes = Path(sys.argv[1]), 0, []
journal = SqliteJournal(disk / "store", synchronous="NORMAL", checkpoint_after=10**9)

def append():
    journal.append([Event(seq + 1, 0.0, "", "decided", "", b"x" * 3_000)])
    return seq + 1

log = disk / "store" / "journal.sqlite-wal"
while (log.stat().st_size - 32) // (24 + 4_096) < 4_055:  # pages, each with a head
    seq = append()
space = os.statvfs(disk)
(disk / "ballast").write_bytes(bytes(space.f_bavail * space.f_frsize - 12 * 4_096))
while len(codes) < 3:
    try:
        seq = append()
    except JournalFullError as error:
        codes.append(error.__cause__.extendedresult)
        assert "no room for shared memory" in str(error)
n_wrong = int(len(list(journal.read(1))) != seq)
(disk / "ballast").unlink()
seq = append()
n_wrong += len(list(journal.read(1))) != seq
journal.close()
print(json.dumps({"codes": codes, "wrong": n_wrong}))
"""


def can_mount() -> bool:
    """Returns whether a process may have mounts that nobody else sees."""
    command = [*SPACE, "mount", "-t", "tmpfs", "none", "/mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True).returncode == 0


needs_mount = pytest.mark.skipif(not can_mount(), reason="no file system can be mounted here")


def run_on_disk(megabytes: int, folder: Path, script: str, *values: object) -> Any:
    """Returns what a script says that runs on a disk that small."""
    mounted = f'mount -t tmpfs -o size={megabytes}m none "$0" && exec "$@"'
    python = [sys.executable, "-c", script, str(folder), *map(str, values)]
    command = [*SPACE, "sh", "-c", mounted, str(folder), *python]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@needs_mount
@pytest.mark.parametrize(
    ("size", "checkpoint_after"), [(300, 10), pytest.param(20_000, 10_000, marks=pytest.mark.slow)]
)
def test_a_full_disk_takes_nothing_and_then_goes_on(tmp_path: Path, size: int, checkpoint_after: int) -> None:
    told = run_on_disk(2, tmp_path, FILLED, size, checkpoint_after)
    assert (told["refused"], told["wrong"]) == (5, 0)
    assert told["kept"] > 20


@needs_mount
def test_no_room_for_the_index_of_the_log_is_no_room(tmp_path: Path) -> None:
    told = run_on_disk(40, tmp_path, INDEX_FULL)
    assert told == {"codes": [apsw.SQLITE_IOERR_SHMSIZE] * 3, "wrong": 0}
