"""Connections that only read: any thread takes one, and gives it back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import apsw

BUSY_MS = 5_000  # how long a call waits for another program that has the file locked
MOST_IDLE = 4  # connections that are kept open while nobody reads


class Readers:
    """Gives one connection to one thread at a time; none of them writes or checkpoints, not even when it is closed.

    Args:
        file: The database.
        vfs: How SQLite gets at it; by default as the system does.
    """

    def __init__(self, file: Path, vfs: str | None) -> None:
        self._file, self._vfs = file, vfs
        self._idle: list[apsw.Connection] = []
        self._lock, self._is_closed = Lock(), False

    @contextmanager
    def one(self) -> Iterator[apsw.Connection]:
        """Gives a connection that nobody else uses meanwhile."""
        with self._lock:
            if self._is_closed:
                raise apsw.ConnectionClosedError("it is closed")
            connection = self._idle.pop() if self._idle else self._opened()
        try:
            yield connection
        finally:
            with self._lock:
                if self._is_closed or len(self._idle) >= MOST_IDLE:
                    connection.close()
                else:
                    self._idle.append(connection)

    def _opened(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._file), flags=apsw.SQLITE_OPEN_READONLY, vfs=self._vfs)
        connection.set_busy_timeout(BUSY_MS)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return connection

    def close(self) -> None:
        """Closes those that nobody uses; the others are closed when they are given back."""
        with self._lock:
            self._is_closed = True
            for connection in self._idle:
                connection.close()
            self._idle.clear()
