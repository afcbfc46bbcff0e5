"""Snapshots in files beside the journal, so that writing one of many megabytes keeps no event waiting.

A file is a head (what it is, number, length, SHA-256) and the content. It is there whole or not at all, and one that
was damaged later is found by its checksum, set aside under another name, and counted.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from coterie.errors import SavedFileError
from coterie.product.files.atomic import replacing
from coterie.service.journal.interface import KEPT_SNAPSHOTS, Snapshot, SnapshotError

HEAD = struct.Struct(">8sQQ32s")
MAGIC = b"CoSnap-1"
SUFFIX, DAMAGED = ".snapshot", ".damaged"


class SnapshotFiles:
    """The last few snapshots of a journal.

    Args:
        folder: Where they are; it is made if it is not there.
        last_seq: Where the journal ends: a snapshot after that is of a journal that lost its end, and is set aside.
    """

    def __init__(self, folder: Path, *, last_seq: int) -> None:
        self._folder = folder
        self._damaged: set[str] = set()
        folder.mkdir(mode=0o700, exist_ok=True)
        for path in self._newest_first():
            if _seq_of(path) > last_seq:
                self._set_aside(path)

    @property
    def n_damaged(self) -> int:
        """How many were found that cannot be used."""
        return len(self._damaged)

    def put(self, snapshot: Snapshot) -> None:
        """Writes one, whole or not at all, and removes those before the last few."""
        try:
            with replacing(self._folder / f"{snapshot.seq:020d}{SUFFIX}") as file:
                file.write(_head_of(snapshot))
                file.write(snapshot.content)
        except SavedFileError as error:
            problem = f"snapshot {snapshot.seq} was not written: {error.problem}"
            rule = "a snapshot takes its place when all of it is on the disk"
            raise SnapshotError(problem, rule, "Make room, or mend the disk; the next one is tried by itself") from None
        self._remove_old()

    def good(self) -> Iterator[Snapshot]:
        """Yields those whose checksum is right, newest first."""
        for path in self._newest_first():
            found = _read(path)
            if found is not None:
                yield found
            else:
                self._set_aside(path)

    def _newest_first(self) -> list[Path]:
        return sorted(self._folder.glob(f"{'[0-9]' * 20}{SUFFIX}"), reverse=True)

    def _set_aside(self, path: Path) -> None:
        self._damaged.add(path.name)
        with suppress(OSError):
            path.replace(path.with_suffix(DAMAGED))

    def _remove_old(self) -> None:
        kept = self._newest_first()[:KEPT_SNAPSHOTS]
        for path in self._folder.iterdir():
            if path.name < kept[-1].name:
                with suppress(OSError):
                    path.unlink()


def _seq_of(path: Path) -> int:
    return int(path.stem)


def _digest(seq: int, content: bytes) -> bytes:
    digest = sha256(str(seq).encode())
    digest.update(content)
    return digest.digest()


def _head_of(snapshot: Snapshot) -> bytes:
    return HEAD.pack(MAGIC, snapshot.seq, len(snapshot.content), _digest(snapshot.seq, snapshot.content))


def _read(path: Path) -> Snapshot | None:
    """Returns the snapshot in a file, none if it is not what was written."""
    try:
        with path.open("rb") as file:
            head, content = file.read(HEAD.size), file.read()
    except OSError:
        return None
    found = Snapshot(_seq_of(path), content)
    return found if head == _head_of(found) else None
