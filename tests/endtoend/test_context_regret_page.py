"""The figures of contexts in regret: what is compared, runs that go on where they stopped, and the page around them."""

from pathlib import Path

import pytest
from benchmarks import contexts_regret
from benchmarks.contexts_regret import BEGIN, END, LEARNERS, Case, Run, cases, compared, read, section, write


def made_up() -> list[Run]:
    """Returns runs in which `bounded` loses a twentieth more than `exact`, and `local` half of what is lost without."""
    lost = {"local": 105.0, "bounded": 105.0, "exact": 100.0, "not shown": 210.0}
    return [Run(case, name, lost[name] + case.seed, 0.004) for case in cases(2) for name in LEARNERS]


def test_the_family_has_every_kind_of_worlds() -> None:
    family = {case[:4] for case in cases(2)}
    assert len(family) == 36
    assert {case[0] for case in family} == {"smooth", "linear", "categorical"}
    assert all(case.settings().horizon >= 600 for case in cases(1))


def test_ratios_are_of_summed_regrets() -> None:
    ratio, low, high = compared(made_up(), "bounded", "exact", lambda case: case.kind == "linear")
    assert ratio == pytest.approx(211 / 201)
    assert low <= ratio <= high


def test_the_page_keeps_what_stands_around_the_figures(tmp_path: Path) -> None:
    page = tmp_path / "context.md"
    write("figures of before\n", page)
    page.write_text(f"before\n{page.read_text(encoding='utf-8')}after\n", encoding="utf-8")
    write(section(made_up()), page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "figures of before" not in text
    assert text.index(BEGIN) < text.index("| linear | 1.050") < text.index(END)


def test_a_finished_run_is_read_and_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, path = Case("linear", "no", True, 1, 0), tmp_path / "runs" / "runs.jsonl"
    monkeypatch.setattr(contexts_regret, "cases", lambda _: [case])
    monkeypatch.setattr(contexts_regret, "ROUNDS", {1: 20})
    first = contexts_regret.run_all(path, 1)
    assert [each.learner for each in first] == list(LEARNERS)
    assert read(path) == first
    monkeypatch.setattr(contexts_regret, "played", None)
    assert contexts_regret.run_all(path, 1) == first
