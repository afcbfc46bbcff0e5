"""The one atomic write and the one lock: files are there whole or not at all, whoever else writes or is killed.

`replacing(path)` writes a file that takes the place of another at once. `lock(handle, until=...)` waits for the lock of
an open file, which ends with the process that holds it; `is_at(handle, path)` says whether that file has this name
still, for another may have been put in its place. `sync_folder` makes a new name last.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EAGAIN, ENAMETOOLONG
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISREG
from time import monotonic, sleep
from typing import BinaryIO

from coterie.errors import SavedFileError

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment] # and then nobody is waited for

UNFINISHED = ".partial"
LONGEST_WRITE = 60.0  # seconds, after which whoever has the lock is taken for one that hangs
PAUSE = 0.005


def not_written(path: Path, why: str) -> SavedFileError:
    """Returns the error of a file or folder that cannot be made."""
    rule = "what is written goes to a folder that exists, under a name that only a plain file has"
    return SavedFileError(f"{str(path)!r} cannot be written: {why}", rule, "Mend that, or give another path")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Gives a new file, which takes the place of the one at `path` at the end; after an error nothing has changed.

    The mode of a file that is replaced is kept, and a link still points to the same place. Who writes holds a lock on
    the unfinished file, so others who write to the same path wait, and one whose writer was killed is removed.
    """
    try:
        target = Path(os.path.realpath(path))
        mode = _mode_of(path, target)
        partial = target.with_name(target.name + UNFINISHED)
        with _new_and_locked(partial) as file:
            try:
                if mode is not None:
                    partial.chmod(mode)  # before there is anything in it to be read
                yield file
                file.flush()
                os.fsync(file.fileno())
                if fcntl is None:
                    file.close()  # Windows renames no file that is open
                partial.replace(target)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
        sync_folder(target.parent)
    except OSError as error:
        raise not_written(path, error.strerror or str(error)) from None


def checked_path(path: str | Path) -> Path:
    """Returns a path, or raises if no file can have this name.

    Examples:
        >>> checked_path("x" * 300)
        Traceback (most recent call last):
        coterie.errors.SavedFileError: 'xxx...' is no path: its name is too long; a path is a name that the system ...
    """
    try:
        os.lstat(path)
    except ValueError as error:  # a NUL, or a character that cannot be encoded
        raise _no_path(path, str(error)) from None
    except OSError as error:
        if error.errno == ENAMETOOLONG:
            raise _no_path(path, "its name is too long") from None
    return Path(path)


def _no_path(path: str | Path, why: str) -> SavedFileError:
    return SavedFileError(f"{str(path)!r} is no path: {why}", "a path is a name that the system can take", "Mend it")


def sync_folder(folder: Path) -> None:
    """Makes a new name in a folder last through a power cut, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mode_of(path: Path, target: Path) -> int | None:
    """Returns the mode of the file to be replaced, if there is one."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if not S_ISREG(mode):
        raise not_written(path, "it is a folder" if S_ISDIR(mode) else "it is not a plain file")
    return S_IMODE(mode)


def _new_and_locked(partial: Path) -> BinaryIO:
    while True:
        try:
            file = partial.open("xb")
        except FileExistsError:
            _remove_when_left(partial)
            continue
        lock(file.fileno(), until=monotonic() + LONGEST_WRITE)
        if is_at(file.fileno(), partial):
            return file
        file.close()  # somebody took it for one that was left


def _remove_when_left(partial: Path) -> None:
    """Waits until nobody writes to an unfinished file any longer; one that is still there then is removed."""
    try:
        handle = os.open(partial, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return
    try:
        lock(handle, until=monotonic() + LONGEST_WRITE)
        if is_at(handle, partial):
            partial.unlink()
    finally:
        os.close(handle)


def lock(handle: int, *, until: float) -> None:
    """Waits for the lock of a file, which ends with the process that holds it, or raises BlockingIOError."""
    if fcntl is None:
        return
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if monotonic() > until:
                raise BlockingIOError(EAGAIN, "somebody has been writing to it for too long") from None
            sleep(PAUSE)


def is_at(handle: int, path: Path) -> bool:
    """Returns whether an open file is still the one that has this name."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False
