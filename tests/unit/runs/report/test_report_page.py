"""The page of a study: whole, escaped, fetched from nowhere, and true to the results."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.runs.report.figures import draw_regrets
from coterie.runs.report.page import write_report
from coterie.runs.report.sheet import Section, write_page
from coterie.runs.report.tables import TextTable
from coterie.runs.results import Results
from played import random_results, results_of, settings_of

VOID = {"meta", "br"}
NASTY = "<script>alert('x')</script> & \"quotes\""


class Page(HTMLParser):
    """Reads a page: its words, its tables, its tags; fails where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[str, str]] = []
        self.tables: list[list[list[str]]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in {"td", "th"}:
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append((self.open[-1] if self.open else "", data))
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data

    def under(self, tag: str) -> list[str]:
        return [text for where, text in self.words if where == tag]


def page_of(results: Results, folder: Path, **options: Any) -> Page:
    return Page(write_report(results, folder, **options).read_text(encoding="utf-8"))


def full_study() -> Results:
    grid = [{"width": 0.5, "regret": 9.25}, {"width": 2.0, "regret": 3.5}]
    learner = {"policy": "lk-gp-ucb", "worlds": ["easy"], "width": 4, "lengthscale": 0.5}
    return results_of(
        {
            "easy": {"lk-gp-ucb": [110, 120, 130, 115, 125], "gp-ucb": [200, 230, 220, 210, 240]},
            "hard": {"gp-ucb": [310, 300, 290, 305, 295]},
        },
        settings=settings_of(
            [{"name": "easy", "noise_std": 0.125, "horizon": 10}, {"name": "hard", "n_users": 30, "graph": "sbm"}],
            [learner, {"policy": "gp-ucb"}],
            trials=5,
            tuning={"trials": 3, "horizon": 200},
        ),
        seconds={"easy": {"gp-ucb": np.array([3e-6, 5e-6])}},
        tuned={"easy": {"gp-ucb": {"width": 2.0}}},
        pilot={"easy": {"gp-ucb": grid}},
    )


def test_numbers_on_the_page_are_those_of_the_results(tmp_path: Path) -> None:
    finals, gaps, ranks, times, _, chosen, tried, settings = page_of(full_study(), tmp_path).tables
    assert finals[0] == ["policy", "easy", "hard"]
    assert ["lk-gp-ucb", "120.0 ± 3.5", "-"] in finals
    assert ["gp-ucb", "220.0 ± 7.1", "300.0 ± 3.5"] in finals
    assert gaps[1][1] == "0 (reference)"
    assert re.fullmatch(r"\+100\.0 \[\d+\.\d, \d+\.\d\]", gaps[2][1])
    assert ["lk-gp-ucb", "1.00", "5", "5"] in ranks
    assert ["gp-ucb", "4.0", "-"] in times
    assert chosen[1] == ["easy", "gp-ucb", "2"]
    assert tried[1:] == [["gp-ucb", "0.5", "9.25", ""], ["gp-ucb", "2", "3.5", "chosen"]]
    assert ["worlds[0].noise_std", "0.125"] in settings


def test_the_page_tells_its_parts_in_order(tmp_path: Path) -> None:
    page = page_of(full_study(), tmp_path, extra_sections=[Section(title="More", paragraphs=["Said <later>."])])
    assert page.under("h1") == ["A small study"]
    assert page.under("h2") == [
        "Pictures",
        "World by world",
        "Final regret",
        "Difference to the reference",
        "Ranks",
        "Time per round",
        "More",
        "What was run",
        "What the pilot chose",
        "All settings the pilot tried",
        "Every setting, defaults included",
        "How to run it again",
    ]
    assert "Said <later>." in page.under("p")
    assert page.under("p")[0].startswith("Of 2 worlds, ")
    assert "It ran on coterie 1.2.3, python 3.12." in page.under("p")
    assert page.under("code") == ["coterie run manifest.json --out again"]


def test_what_was_run_is_a_line_a_world_and_a_row_a_policy(tmp_path: Path) -> None:
    page = page_of(full_study(), tmp_path)
    assert page.under("li")[2:] == [
        "easy: gp-draw; 20 users on a graph of the family erdos-renyi; 20 arms of 10 features, 5 shown in a round; "
        "10 rounds, noise 0.125, 5 trials.",
        "hard: gp-draw; 30 users on a graph of the family sbm; 20 arms of 10 features, 5 shown in a round; "
        "3000 rounds, noise 0.1, 5 trials.",
    ]
    head, (label, policy, options), other = next(table for table in page.tables if table[0][0] == "label")
    assert head == ["label", "policy", "options"]
    assert (label, policy) == ("lk-gp-ucb", "lk-gp-ucb")
    assert {"graph shown", "worlds easy", "width 4", "lengthscale 0.5"} < set(options.split("; "))
    assert "tune" not in options
    assert "fixed" not in options
    assert other[0] == "gp-ucb"
    assert "worlds" not in other[2]
    assert any("the pilot (3 trials of at most 200 rounds) chose" in text for text in page.under("caption"))


def test_an_unfinished_study_tells_only_of_the_worlds_that_were_run(tmp_path: Path) -> None:
    settings = settings_of([{"name": "w"}, {"name": "absent"}], [{"policy": "random"}], trials=2)
    page = page_of(results_of({"w": {"random": [100]}}, settings=settings), tmp_path)
    (line,) = page.under("li")
    assert line.startswith("w: ")
    assert line.endswith(", 1 trial.")
    assert [["label", "policy", "options"], ["random", "random", "graph shown"]] in page.tables
    assert any("No pilot was run" in text for text in page.under("caption"))
    assert page.under("p")[0].startswith("Unfinished: 1 of 4 trials are stored, none of absent. w: random had ")


@pytest.mark.parametrize("absent", ["worlds", "policies"])
def test_settings_without_worlds_or_policies_tell_nothing_of_them(tmp_path: Path, absent: str) -> None:
    settings = settings_of([{"name": "w"}], trials=1)
    del settings[absent]
    assert "What was run" not in page_of(results_of({"w": {"random": [1]}}, settings=settings), tmp_path).under("h2")


def test_a_quick_study_says_so_first(tmp_path: Path) -> None:
    settings = settings_of([{"name": "w"}], quick=True, trials=1)
    page = page_of(results_of({"w": {"random": [1]}}, settings=settings), tmp_path)
    assert page.under("p")[0].startswith("A quick run, made small: ")


def test_one_trial_without_tuning_or_timings_has_a_page(tmp_path: Path) -> None:
    page = page_of(results_of({"w": {"a": [100], "b": [150]}}), tmp_path, command="coterie run mine.toml")
    assert "What the pilot chose" not in page.under("h2")
    assert ["a", "100.0 ± -"] in page.tables[0]
    assert page.under("code") == ["coterie run mine.toml"]


def test_nothing_is_fetched_and_every_id_is_there_once(tmp_path: Path) -> None:
    path = write_report(full_study(), tmp_path)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|//\w|@import|src=", text)
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    links = [str(attributes["href"]) for _, attributes in page.tags if "href" in attributes]
    links += [f"#{name}" for name in re.findall(r"url\(#([^)]*)\)", text)]
    assert links
    assert all(link.removeprefix("#") in ids for link in links)
    assert sum(tag == "svg" for tag, _ in page.tags) == 2


def test_everything_from_outside_is_escaped(tmp_path: Path) -> None:
    (world,) = settings_of([{}])["worlds"]
    nasty_world = {**world, "name": f"w {NASTY}", "kind": NASTY, "graph": NASTY}
    results = results_of(
        {f"w {NASTY}": {f"a {NASTY}": [1, 2], "b": [3, 4]}},
        title=NASTY,
        name=NASTY.replace("/", "|"),
        settings={NASTY: NASTY, "worlds": [nasty_world], "policies": [{"label": NASTY, "policy": NASTY, NASTY: NASTY}]},
        versions={NASTY: NASTY},
        tuned={NASTY: {NASTY: {NASTY: NASTY}}},
        pilot={NASTY: {NASTY: [{NASTY: NASTY}]}},
    )
    page = page_of(results, tmp_path, extra_sections=[Section(title=NASTY, points=[NASTY], commands=[NASTY])])
    assert page.under("h1") == [NASTY]
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert "alert" not in "".join(page.under("script"))
    assert any([NASTY, NASTY, f"{NASTY} {NASTY}"] in table for table in page.tables)
    assert f"a {NASTY}" in page.tables[0][1]


def test_the_same_study_gives_the_same_page(tmp_path: Path) -> None:
    first, second = (write_report(full_study(), tmp_path / name).read_bytes() for name in "ab")
    assert first == second


def test_tables_can_be_sorted_from_the_keyboard(tmp_path: Path) -> None:
    page = page_of(random_results(["a", "b"]), tmp_path)
    heads = [attributes for tag, attributes in page.tags if tag == "th"]
    assert heads
    assert all(attributes["aria-sort"] == "none" and attributes["scope"] == "col" for attributes in heads)
    assert sum(tag == "button" for tag, _ in page.tags) == len(heads)
    assert (heads[0].get("class"), heads[1].get("class")) == ("words", None)


@pytest.mark.parametrize("folded", [False, True])
def test_a_page_of_any_sections(tmp_path: Path, folded: bool) -> None:
    picture = draw_regrets(random_results(["a", "b"]), tmp_path / "figures")[0]
    table = TextTable(title="Two", columns=("x", "y"), rows=(("1", "2"),))
    sections = [
        Section(title="Twice", pictures=[picture, picture], folded=folded),
        Section(title="Two", tables=[table]),
    ]
    path = write_page(tmp_path / "new" / "x.html", title="T", answer="A.", sections=sections)
    page = Page(path.read_text(encoding="utf-8"))
    assert sum(tag == "figure" for tag, _ in page.tags) == 2
    assert sum(tag == "details" for tag, _ in page.tags) == int(folded)
    assert page.tables == [[["x", "y"], ["1", "2"]]]
