"""Where a command writes is looked at before the work."""

from pathlib import Path

import pytest

from coterie.errors import SavedFileError
from coterie.product.bulk.out_file import check_out


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    check_out(tmp_path / "new", overwrite=False)
    with pytest.raises(SavedFileError, match="it is a folder"):
        check_out(tmp_path, overwrite=True)
    with pytest.raises(SavedFileError, match="there is no folder"):
        check_out(tmp_path / "no" / "new", overwrite=True)
    (tmp_path / "old").write_text("here")
    check_out(tmp_path / "old", overwrite=True)
    with pytest.raises(SavedFileError, match=r"is there already.*--overwrite"):
        check_out(tmp_path / "old", overwrite=False)
