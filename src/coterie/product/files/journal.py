"""The file of a journal: every change of a bandit as one line of JSON, in the order in which they were made.

{"journal": name, "format": 1, "follows": mark}          the first line; the mark is that of the file it was loaded
                                                         from: its journal's name and changes, or its digest and 0
{"opened": {"coterie": "0.1.0", "numpy": ...}}           whenever a program begins to write
{"change": 17, ...}                                      a change, as `recording.py` writes it; `replaying.py` reads it
"""

import json
import os
import stat
import weakref
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from coterie.errors import JournalError
from coterie.product.decisions import Decision
from coterie.product.files.atomic import lock
from coterie.product.files.recording import End, Recorder, recorded, versions

if TYPE_CHECKING:
    from coterie.product.bandit import Bandit

FORMAT = 1
AS_JSON = json.JSONEncoder(separators=(",", ":")).encode


class Journal(Recorder):
    """The end of a journal, where lines are added; each is handed to the system at once.

    Nobody else writes to it while it is there.

    Args:
        path: The file, which is made if it is not there.

    Attributes:
        name: Identifies this journal.
        end: Where it ends.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.name = path, ""
        self._handle = _held(path)
        self.end = End(0, os.fstat(self._handle).st_size)
        self._let_go = weakref.finalize(self, os.close, self._handle)
        self._failed = ""

    @property
    def is_closed(self) -> bool:
        """Whether it takes no further lines."""
        return self.is_forked or bool(self._failed)

    def close(self) -> None:
        """Lets go of the file; can be repeated."""
        self._let_go()

    @classmethod
    def begin(cls, path: Path, bandit: "Bandit") -> "Journal":
        """Returns the new journal of a bandit, or raises if there is one in its place."""
        journal = cls(path)
        if journal.end.size:
            journal.close()
            rule, remedy = "a journal begins with its bandit", "Give another path, or go on with Bandit.load"
            raise JournalError(f"{str(path)!r} holds something already", rule, remedy)
        journal.name = uuid4().hex
        try:
            journal._write({"journal": journal.name, "format": FORMAT, "follows": bandit._mark})
            return journal.opened()
        except OSError as error:
            with suppress(OSError):  # or a piece of a journal would be in the way of the next try
                os.ftruncate(journal._handle, 0)
            journal.close()
            what, rule = f"{str(path)!r} cannot be started: {error.strerror}", "a journal holds every change"
            raise JournalError(what, rule, "Make room, or give another path") from None

    def opened(self) -> "Journal":
        """Returns this journal after noting which versions write to it now."""
        self._write({"opened": versions()})
        return self

    @property
    def mark(self) -> list[Any] | None:
        """Where the journal stands, for a saved bandit to be continued from there; none if it lacks a change."""
        return None if self._failed else [self.name, self.n_changes]

    def cut(self, end: End) -> None:
        """Drops what was written after this end, and goes on from there; can be repeated."""
        if self.is_forked:
            self.end = end  # the file is the parent's
            return
        try:
            if os.fstat(self._handle).st_size != end.size:
                os.ftruncate(self._handle, end.size)
            self.end = end
        except OSError as error:
            self._failed = f"what was written of change {end.n_changes} cannot be taken back: {error.strerror}"

    def _check_open(self, name: str) -> None:
        if self.is_forked:
            raise JournalError(
                f"{name} was refused: this process was forked from the one that writes to {str(self.path)!r}",
                "one process writes to a journal",
                "Change the bandit in the parent, or load it after the fork with a journal of its own",
            )
        if self._failed:
            raise JournalError(
                f"{name} was refused: {self._failed}",
                "every change is in the journal",
                "Save the bandit, and load it with a new journal",
            )

    def _add(self, line: dict[str, Any], made: list[Decision]) -> None:
        try:
            if made:
                line["gave"] = [recorded(each) for each in made]
            self._write(line, changes=1)
        except (OSError, ValueError) as error:  # no room, or a number of thousands of digits
            what = f"change {self.n_changes} cannot be written to {str(self.path)!r}: {error}"
            raise JournalError(
                f"{line['call']} was not done: {what}",
                "a journal holds every change",
                "Make room and call again, or save the bandit and load it with a new journal",
            ) from None

    def _write(self, line: Mapping[str, Any], *, changes: int = 0) -> None:
        content = AS_JSON(line).encode() + b"\n"
        if os.write(self._handle, content) < len(content):
            raise OSError(28, "No space left on device")
        self.end = End(self.n_changes + changes, self.end.size + len(content))


def _held(path: Path) -> int:
    """Returns a handle to the end of a file that no other journal has one to; it holds a lock until it is closed."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as error:
        what, rule = f"{str(path)!r} cannot be written: {error.strerror}", "a journal is a file in a folder that exists"
        raise JournalError(what, rule, "Make the folder, or give another path") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        what, rule = f"{str(path)!r} is not a plain file", "a journal is read again, to the last line"
        raise JournalError(what, rule, "Give the path of a file")
    try:
        lock(handle, until=-inf)
    except BlockingIOError:
        os.close(handle)
        what, rule = f"{str(path)!r} is in use", "one bandit writes to a journal"
        raise JournalError(what, rule, "End the program that does, or let go of the other bandit") from None
    return handle
