"""The page of the reproduction, written from stored results alone."""

from pathlib import Path

from coterie.runs.paper.claims import EIGHT, LEVELS
from coterie.runs.paper.document import answer, as_markdown, read_summaries, write_html
from coterie.runs.paper.reproduce import COMPUTED, PARTS
from coterie.runs.studies import find_study
from summaries import ordered, record

DOCS = Path(__file__).parents[4] / "docs"


def test_the_page_is_written_from_stored_results_and_nothing_else() -> None:
    records = read_summaries(DOCS / "results")
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == as_markdown(records)


def test_what_is_stored_is_of_whole_runs_of_all_parts() -> None:
    records = read_summaries(DOCS / "results")
    assert set(records) == {name for names in PARTS.values() for name in names}
    for name, each in records.items():
        assert not each["quick"]
        assert name in COMPUTED or each["trials"] == find_study(name).trials


def test_the_page_comes_as_html_with_its_pictures(tmp_path: Path) -> None:
    for name in ("linear-regret.svg", "linear-final-regret.svg"):
        (tmp_path / name).write_text('<svg width="9"><path id="a"/></svg>', encoding="utf-8")
    worlds = dict.fromkeys(LEVELS, ordered(EIGHT))
    records = {"linear": {**record(worlds), "quick": True, "minutes": 1.0}}
    page = write_html(records, tmp_path / "page.html", pictures=tmp_path).read_text(encoding="utf-8")
    assert answer(records) in page
    assert answer(records).startswith("A quick run")
    assert "not judged" in page
    assert "does not hold" not in page
    assert "<svg" in page
    assert "per-user-linucb" in page
