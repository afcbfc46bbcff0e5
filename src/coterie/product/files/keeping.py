"""A bandit in a file that several programs use: one at a time changes it, and nothing is lost."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from coterie.errors import SavedFileError
from coterie.product.bandit import Bandit

WAIT = 10.0
PAUSE = 0.02


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
            if _is_at(handle, path):
                yield
                return
        finally:
            os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    return path.exists() and os.path.samestat(os.fstat(handle), path.stat())


def _lock(handle: int, path: Path, until: float) -> None:
    import fcntl  # not on every system, and nothing else needs it

    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if monotonic() > until:
                rule = "one program at a time changes a saved bandit"
                raise SavedFileError(f"{str(path)!r} is in use", rule, "Try again when it is done") from None
        sleep(PAUSE)
