"""A disk that remembers what was written and when it was synced: what a power cut would have left, and errors at will.

SQLite writes through it to real files. What is recorded gives images of the disk at any moment: what was synced by
then is there; each write since is kept, lost or torn at a sector, and a name that was made or removed since may be so.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

import apsw

SECTOR = 512
_numbers = count()

What = Literal["create", "write", "truncate", "sync", "delete", "folder"]
LOGS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL


class Operation(NamedTuple):
    """What was done to a file, or to the names of all ("folder"); `size` is the length that it was cut to."""

    what: What
    name: str
    offset: int = 0
    data: bytes = b""
    size: int = 0


class Disk(apsw.VFS):
    """The disk, as a way for SQLite to get at its files.

    Args:
        there: The files that are on it already, safe.
        is_honest: Whether what is synced is there after a power cut; otherwise the disk lies, as some do.

    Attributes:
        vfs: Its name, for a connection.
        done: All that was done so far.
        before: Called before each operation with what and to which file; may raise what it then fails with.
    """

    def __init__(self, *, there: dict[str, bytes], is_honest: bool = True) -> None:
        self.vfs, self.is_honest = f"disk-{next(_numbers)}", is_honest
        self._there = there
        self.done: list[Operation] = []
        self.before: Callable[[What, str], None] = lambda _what, _name: None
        super().__init__(self.vfs, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        """Opens a file that is watched."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        is_new = not os.path.exists(path)
        made = WatchedFile(self, path, name, flags)
        if is_new:
            self.note(Operation("create", path))
        return made

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        """Removes a file."""
        self.before("delete", filename)
        super().xDelete(filename, syncdir)
        self.note(Operation("delete", filename))
        if syncdir:
            self.note(Operation("folder", ""))

    def go_on_from(self, other: "Disk", n_done: int, folder: Path) -> None:
        """Takes over what was done to the files of another disk, which lie in this folder now, and was not synced."""
        self.done = [each._replace(name=str(folder / Path(each.name).name)) for each in other.done[:n_done]]

    def note(self, operation: Operation) -> None:
        """Records what was done."""
        if self.is_honest or operation.what not in ("sync", "folder"):
            self.done.append(operation)

    def image(self, n_done: int, random: Random, kept: float | None = None) -> dict[str, bytes]:
        """Returns what the files hold if the power went after so many operations.

        `kept` is the share of operations that reached the disk though nobody had synced; by default any. If it is 1,
        nothing is lost, as when a process is killed and the power stays.
        """
        synced: dict[str, bytearray | None] = {name: bytearray(content) for name, content in self._there.items()}
        since: defaultdict[str, list[Operation]] = defaultdict(list)
        for operation in self.done[:n_done]:
            if operation.what == "folder":
                sync_names(synced, since)
            elif operation.what == "sync":
                for each in since.pop(operation.name, ()):
                    synced[each.name] = after(each, synced.get(each.name))
            else:
                since[operation.name].append(operation)
        kept = random.choice([0.0, 0.1, 0.5, 0.9, 1.0]) if kept is None else kept
        for name, operations in since.items():
            synced[name] = left_of(operations, synced.get(name), random, kept)
        return {name: bytes(content) for name, content in synced.items() if content is not None}


class WatchedFile(apsw.VFSFile):
    """A file of that disk."""

    def __init__(self, disk: Disk, path: str, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk, self._path = disk, path
        self._has_new_name = bool(flags[0] & LOGS)  # SQLite syncs the folder when it first syncs a log
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        """Writes."""
        self._disk.before("write", self._path)
        super().xWrite(data, offset)
        self._disk.note(Operation("write", self._path, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        """Cuts the file."""
        self._disk.before("truncate", self._path)
        super().xTruncate(newsize)
        self._disk.note(Operation("truncate", self._path, size=newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Notes that all is on the disk; the disk below need not know."""
        del flags
        self._disk.before("sync", self._path)
        self._disk.note(Operation("sync", self._path))
        if self._has_new_name:
            self._disk.note(Operation("folder", ""))
            self._has_new_name = False


@contextmanager
def watched(folder: Path | None = None, *, is_honest: bool = True) -> Iterator[Disk]:
    """Gives a disk, with the files of a folder if one is given, and lets SQLite forget it at the end."""
    files = [] if folder is None else [path for path in folder.iterdir() if path.is_file()]
    disk = Disk(there={str(path): path.read_bytes() for path in files}, is_honest=is_honest)
    try:
        yield disk
    finally:
        disk.unregister()


def after(operation: Operation, content: bytearray | None) -> bytearray | None:
    """Returns what a file holds after an operation; none if it is not there."""
    match operation.what:
        case "create":
            return bytearray()
        case "delete":
            return None
    found = bytearray() if content is None else content
    end = operation.size if operation.what == "truncate" else operation.offset + len(operation.data)
    found.extend(bytes(max(0, end - len(found))))
    if operation.what == "truncate":
        del found[end:]
    else:
        found[operation.offset : end] = operation.data
    return found


def sync_names(synced: dict[str, bytearray | None], since: dict[str, list[Operation]]) -> None:
    """Lets every name last that was made or removed; what was written to files may still be lost."""
    for name, operations in since.items():
        named = [number for number, each in enumerate(operations) if each.what in ("create", "delete")]
        if named:
            synced[name] = after(operations[named[-1]], None)
            del operations[: named[-1] + 1]


def left_of(operations: list[Operation], content: bytearray | None, random: Random, kept: float) -> bytearray | None:
    """Returns what a file holds if nobody knows which operations reached the disk."""
    for operation in operations:
        if random.random() < kept:
            content = after(operation, content)
        elif operation.what in ("create", "delete"):
            return content  # what came after was done to a file that has no name
        elif operation.what == "write" and random.random() < 0.5:
            for sector in torn(operation, random):
                content = after(sector, content)
    return content


def torn(operation: Operation, random: Random) -> Iterator[Operation]:
    """Yields some of the sectors of a write."""
    first = operation.offset - operation.offset % SECTOR
    end = operation.offset + len(operation.data)
    for start in range(first, end, SECTOR):
        if random.random() < 0.5:
            low, high = max(start, operation.offset), min(start + SECTOR, end)
            data = operation.data[low - operation.offset : high - operation.offset]
            yield operation._replace(offset=low, data=data)


def write_image(image: dict[str, bytes], folder: Path) -> None:
    """Writes an image to a new folder."""
    folder.mkdir()
    for name, content in image.items():
        if not name.endswith("-shm"):  # it is made again after a start
            (folder / Path(name).name).write_bytes(content)
