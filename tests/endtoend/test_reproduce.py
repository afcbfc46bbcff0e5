"""`coterie reproduce`: the parts run, are resumed and end in a page."""

from pathlib import Path

import pytest

from coterie.runs.paper.reproduce import COMPUTED, PARTS
from terminal import coterie


def test_a_part_ends_in_a_page_and_is_resumed(tmp_path: Path) -> None:
    done = coterie("reproduce", "coop-kernels", "--quick", "--jobs", 1, "--out", "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "A quick run" in done.stdout
    out = tmp_path / "out"
    page = (out / "reproduction.md").read_text(encoding="utf-8")
    assert "learned_mmd" in page
    assert "![" in page
    assert "<svg" in (out / "reproduction.html").read_text(encoding="utf-8")
    assert (out / "coop-kernels" / "report.html").is_file()
    resumed = coterie("reproduce", "coop-kernels", "--quick", "--jobs", 1, "--out", "out", "--resume", folder=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert " done, " not in resumed.stdout


@pytest.mark.slow
def test_everything_runs_made_small(tmp_path: Path) -> None:
    done = coterie("reproduce", "--quick", "--out", "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    results = {path.stem for path in (tmp_path / "out" / "results").glob("*.json")}
    assert results == {name for names in PARTS.values() for name in names}
    assert set(COMPUTED) <= results
