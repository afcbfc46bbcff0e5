"""A bandit in a file that several programs use: one at a time changes it, and nothing is lost."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from coterie.errors import SavedFileError
from coterie.product.bandit import Bandit
from coterie.product.files.atomic import is_at, lock

WAIT = 10.0


@contextmanager
def kept(path: str | Path, *, wait: float = WAIT) -> Iterator[Bandit]:
    """Gives the bandit of a file and saves it at the end; after an error the file is as it was.

    Meanwhile others who ask for it with `kept` wait. The lock ends with the process that holds it, however that ends.

    Args:
        path: A file that `Bandit.save` wrote.
        wait: Seconds to wait for the others.
    """
    file = Path(path).resolve()  # saving renames a file to this name, which must not take the place of a link
    with _locked(file, monotonic() + wait):
        bandit = Bandit.load(file)
        yield bandit
        bandit.save(file)


@contextmanager
def _locked(path: Path, until: float) -> Iterator[None]:
    """Holds the lock of the file that has this name now: whoever held it before may have saved another there."""
    while True:
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError as error:
            what, rule = f"{str(path)!r} cannot be opened: {error.strerror}", "a saved bandit is a file"
            raise SavedFileError(what, rule, "Make one with: coterie init") from None
        try:
            _lock(handle, path, until)
            if is_at(handle, path):
                yield
                return
        finally:
            os.close(handle)


def _lock(handle: int, path: Path, until: float) -> None:
    try:
        lock(handle, until=until)
    except BlockingIOError:
        rule = "one program at a time changes a saved bandit"
        raise SavedFileError(f"{str(path)!r} is in use", rule, "Try again when it is done") from None
