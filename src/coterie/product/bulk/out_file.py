"""The file that a command writes: looked at before the work begins."""

import os
from pathlib import Path

from coterie.errors import SavedFileError
from coterie.product.files.atomic import checked_path, not_written

STOPPED = 130  # the exit code after an interrupt


def check_out(path: Path, *, overwrite: bool) -> None:
    """Raises if the file cannot be written, or is there and not to be replaced: better now than after the work."""
    folder = checked_path(path).parent
    if path.is_dir():
        raise not_written(path, "it is a folder")
    if not folder.is_dir():
        raise not_written(path, f"there is no folder {str(folder)!r}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise not_written(path, "no permission")
    if path.exists() and not overwrite:
        rule = "nothing is overwritten unless that is asked for"
        raise SavedFileError(f"{str(path)!r} is there already", rule, "Give another --out, or --overwrite")
