"""A journal in a folder: events in SQLite, snapshots in files beside it.

One connection writes and checkpoints, so no two ever race for the write-ahead log; readers have their own, and wait for
nobody. SQLite's exclusive locking mode would do without shared memory, but lets nobody else read; that one process
has a store is seen to by a lock of the folder instead, which ends with the process.

The write-ahead log is checkpointed here, not by SQLite on its own: that would overlook an I/O error of a checkpoint and
try again, and a disk that failed to sync once may report the next sync as done though nothing was.

A batch that was refused, or met an I/O error, may be found after a crash, as any that was not acknowledged: it is in
doubt until it is appended. What a process that was killed left may be in the kernel only; whoever asks for it is told
about it, so opening a store checkpoints, which syncs it.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Literal

import apsw

from coterie.errors import CoterieError, StoreError
from coterie.product.files.atomic import checked_path, lock, sync_folder
from coterie.service.journal.interface import Event, JournalBrokenError, JournalFullError, Snapshot, check_order
from coterie.service.journal.readers import BUSY_MS, Readers
from coterie.service.journal.schema import prepare
from coterie.service.journal.snapshot_files import SnapshotFiles

FILE, LOCK, SNAPSHOTS = "journal.sqlite", "lock", "snapshots"
LARGEST_PAGE = 4 << 20  # bytes of events that are read at a time
MOST_READ = 1_000  # events that are read at a time
MOST_WRITTEN = 64  # events that one statement writes
LARGEST_LOG = 64 << 20  # bytes that the write-ahead log keeps on the disk when it starts anew

_COLUMNS = "seq, at, experiment, kind, key, body"
_READ = f"SELECT {_COLUMNS} FROM events WHERE seq >= ? ORDER BY seq LIMIT {MOST_READ}"
_READ_ONE = f"SELECT {_COLUMNS} FROM events WHERE seq >= ? AND experiment = ? ORDER BY seq LIMIT {MOST_READ}"
_FIND = f"SELECT {_COLUMNS} FROM events WHERE key = ? AND key <> '' ORDER BY seq"


class SqliteJournal:
    """A journal that survives the process, the kernel and the mains.

    Args:
        path: The folder of the store; it is made if it is not there, in a folder that is.
        synchronous: What a commit waits for: with "FULL" until it is on the disk; with "NORMAL" only for the kernel, so
            a power cut loses the last ones. For tests, and for measuring what durability costs.
        checkpoint_after: Pages in the write-ahead log from which on they are copied to the database.
        wait: Seconds to wait for another process that has the store.
        vfs: How SQLite gets at its files; by default as the system does.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        checkpoint_after: int = 1_000,
        wait: float = 0.0,
        vfs: str | None = None,
    ) -> None:
        folder = _folder_at(checked_path(path))
        self._writing, self._is_closed, self._is_broken = Lock(), False, False
        self._checkpoint_after, self._n_copied = checkpoint_after, 0
        self._lock = _locked(folder, wait)
        try:
            self._connection = _opened(folder / FILE, synchronous, vfs)
            try:
                self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
                self._last_seq: int = self._connection.execute("SELECT coalesce(max(seq), 0) FROM events").get
                self._snapshots = SnapshotFiles(folder / SNAPSHOTS, last_seq=self._last_seq)
                sync_folder(folder)
            except BaseException:
                self._connection.close()
                raise
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, apsw.Error | OSError):
                raise _no_store(folder, _words(error)) from error
            raise
        self._readers = Readers(folder / FILE, vfs)

    @property
    def last_seq(self) -> int:
        """The number of the last event that is durable; 0 if there is none."""
        return self._last_seq

    @property
    def has_upkeep(self) -> bool:
        """Whether the next batch checkpoints first, which syncs the database."""
        return not self._is_closed and self._n_pages >= self._checkpoint_after

    # Writing

    def append(self, events: Sequence[Event]) -> None:
        """Keeps a batch in one commit."""
        with self._writing:
            if self._is_broken or self._is_closed:
                raise self._broken("it is closed" if self._is_closed else "it was broken before")
            check_order(events, after=self._last_seq)
            if events:
                if self.has_upkeep:
                    self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
                self._commit(events)
                self._last_seq = events[-1].seq

    def _commit(self, events: Sequence[Event]) -> None:
        """Commits a batch, in one statement if it is not too large.

        Each statement gives up the interpreter and has to wait for it again, as long as a decision takes.
        """
        try:
            if len(events) <= MOST_WRITTEN:
                self._insert(events)
                return
            self._connection.execute("BEGIN IMMEDIATE")
            for first in range(0, len(events), MOST_WRITTEN):
                self._insert(events[first : first + MOST_WRITTEN])
            self._connection.execute("COMMIT")
        except BaseException as error:
            self._roll_back()
            if isinstance(error, apsw.Error):
                raise self._named(error) from error
            raise

    def _insert(self, events: Sequence[Event]) -> None:
        self._connection.execute(_insert_of(len(events)), tuple(chain.from_iterable(events)))

    def _roll_back(self) -> None:
        """Ends a transaction that failed, unless SQLite has done so already."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise self._broken(str(error)) from error

    def _checkpoint(self, mode: int) -> None:
        """Copies the write-ahead log to the database as far as nobody reads it; without room it is left for later."""
        try:
            n_pages, n_copied = self._connection.wal_checkpoint(mode=mode)
        except apsw.Error as error:
            if not _may_pass(error):
                raise self._broken(str(error)) from error
        else:
            if n_copied == n_pages:
                self._n_copied += self._n_pages

    @property
    def _n_pages(self) -> int:
        """How many pages were written since all were copied."""
        # A hook of SQLite would tell, too; but it would have to wait for the interpreter in the middle of a commit.
        return self._connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)[0] - self._n_copied

    def _named(self, error: apsw.Error) -> CoterieError:
        """Returns the error of a batch that was not kept."""
        if not _may_pass(error):
            return self._broken(str(error))
        rule = "a batch is kept as a whole, and nothing of this one was"
        return JournalFullError(f"the journal took no batch: {_words(error)}", rule, "Make room, and append it again")

    def _broken(self, why: str) -> JournalBrokenError:
        """Returns the error after which nothing is written any more, not even by closing."""
        self._is_broken = True
        with suppress(apsw.Error):  # it may be closed
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        rule = "after an I/O error nobody knows what is on the disk, and nothing is tried twice"
        return JournalBrokenError(f"the journal is broken: {why}", rule, "Mend the disk, and start the process again")

    # Reading

    def read(self, from_seq: int, *, experiment: str | None = None) -> Iterator[Event]:
        """Yields the events from a number on, in order; those of one experiment if it is named.

        They are read some at a time: no reader, however slow, keeps the write-ahead log from being emptied.
        """
        following = max(from_seq, 1)
        while page := self._page(following, experiment):
            if experiment is None and page[-1].seq - following + 1 != len(page):
                raise _unreadable(f"an event after number {following - 1} is missing")
            yield from page
            following = page[-1].seq + 1

    def _page(self, from_seq: int, experiment: str | None) -> list[Event]:
        rows = self._rows(_READ, (from_seq,)) if experiment is None else self._rows(_READ_ONE, (from_seq, experiment))
        page, size = [], 0
        for event in rows:
            page.append(event)
            size += len(event.body)
            if size > LARGEST_PAGE:
                break
        rows.close()
        return page

    def find(self, key: str) -> list[Event]:
        """Returns the events with this key, in order."""
        return list(self._rows(_FIND, (key,)))

    def _rows(self, query: str, values: tuple[int | str, ...]) -> Generator[Event]:
        try:
            with self._readers.one() as connection:
                cursor = connection.execute(query, values)
                try:
                    yield from map(Event._make, cursor)
                finally:
                    cursor.close()
        except apsw.Error as error:
            raise _unreadable(str(error)) from error

    # Snapshots

    def put_snapshot(self, snapshot: Snapshot) -> None:
        """Keeps a snapshot, and the last few before it; events are appended meanwhile."""
        self._snapshots.put(snapshot)

    def snapshots(self) -> Iterator[Snapshot]:
        """Yields the snapshots whose checksum is right, newest first; `n_damaged` counts the others."""
        return self._snapshots.good()

    @property
    def n_damaged(self) -> int:
        """How many snapshots were found damaged since this journal was opened."""
        return self._snapshots.n_damaged

    def close(self) -> None:
        """Empties the write-ahead log, unless the journal is broken, and lets go of the store; can be repeated."""
        with self._writing:
            if self._is_closed:
                return
            self._is_closed = True
            self._readers.close()
            try:
                if not self._is_broken:
                    self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                self._connection.close()
                os.close(self._lock)


@cache
def _insert_of(n_events: int) -> str:
    return f"INSERT INTO events ({_COLUMNS}) VALUES {', '.join(['(?, ?, ?, ?, ?, ?)'] * n_events)}"


def _may_pass(error: apsw.Error) -> bool:
    """Returns whether an error says that nothing was done and that the same may be tried again.

    There is no room, which shared memory reports in its own way; or another program has the file locked.
    """
    return isinstance(error, apsw.FullError | apsw.BusyError | apsw.LockedError) or _lacks_shared_memory(error)


def _lacks_shared_memory(error: BaseException) -> bool:
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE


def _words(error: BaseException) -> str:
    return "no room for shared memory" if _lacks_shared_memory(error) else str(error)


def _unreadable(why: str) -> JournalBrokenError:
    rule = "every event that was acknowledged can be read"
    return JournalBrokenError(f"the journal cannot be read: {why}", rule, "Mend the disk, or go back to a copy of it")


def _folder_at(path: Path) -> Path:
    """Returns a folder that is there, or raises."""
    try:
        path.mkdir(mode=0o700)
        sync_folder(path.parent)
    except FileExistsError:
        if not path.is_dir():
            raise _no_store(path, "it is a file") from None
    except OSError as error:
        raise _no_store(path, error.strerror or str(error)) from None
    return path


def _locked(folder: Path, wait: float) -> int:
    """Returns the open file whose lock says that this process has the store, or raises."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _no_store(folder, error.strerror or str(error)) from None
    try:
        lock(handle, until=monotonic() + wait)
    except BlockingIOError:
        os.close(handle)
        rule = "one process at a time has a store"
        raise StoreError(f"{str(folder)!r} is in use by another process", rule, "End that, or use another") from None
    return handle


def _opened(file: Path, synchronous: str, vfs: str | None) -> apsw.Connection:
    """Returns the connection that writes, with the tables of this version."""
    connection = apsw.Connection(str(file), vfs=vfs)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.pragma("synchronous", synchronous)
        connection.wal_autocheckpoint(0)
        prepare(connection, file)
        connection.pragma("journal_size_limit", LARGEST_LOG)
    except BaseException:
        connection.close()
        raise
    return connection


def _no_store(folder: Path, why: str) -> StoreError:
    rule = "a store is a folder that this process can write, in one that is there"
    return StoreError(f"{str(folder)!r} cannot be used as a store: {why}", rule, "Mend that, or give another folder")
