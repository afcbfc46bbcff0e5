"""docs/auto.md says what docs/auto.json holds."""

import json
from pathlib import Path

import pytest
from benchmarks.auto import NINE, page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_made_from_the_kept_results() -> None:
    record = json.loads((DOCS / "auto.json").read_text(encoding="utf-8"))
    assert page(record) == (DOCS / "auto.md").read_text(encoding="utf-8")


def test_another_result_makes_another_page() -> None:
    record = json.loads((DOCS / "auto.json").read_text(encoding="utf-8"))
    before = page(record)
    for world in NINE:
        record["auto"][world]["auto-ucb"] = [0.5 * value for value in record["auto"][world]["auto-ucb"]]
    after = page(record)
    assert after != before
    assert "| **no** |" in before
    assert after.splitlines()[11].endswith("| yes |")
    with pytest.raises(KeyError):
        page({"auto": record["auto"]})
