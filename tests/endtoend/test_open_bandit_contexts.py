"""Contexts on the Open Bandit sample: the section is that of the figures that are kept, and what it says is so."""

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import open_bandit_contexts as bench

from originals import real, tiny_open_bandit

KEPT: list[dict[str, Any]] = json.loads(bench.OUT.read_text(encoding="utf-8"))


def test_the_section_is_written_from_what_is_kept(tmp_path: Path) -> None:
    if not bench.PAGE.exists():
        pytest.skip("the section has become part of another page")
    (tmp_path / "page").write_text(bench.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    bench.write(KEPT, tmp_path / "page")
    assert (tmp_path / "page").read_text(encoding="utf-8") == bench.PAGE.read_text(encoding="utf-8")


def test_every_unit_is_kept() -> None:
    assert [{key: unit[key] for key in ("log", "learned", "users")} for unit in KEPT] == bench.units()
    assert sum(unit["seconds"] for unit in KEPT) < 20 * 60


def test_no_policy_is_found_to_earn_more() -> None:
    policies = [each for unit in KEPT for each in unit["policies"]]
    assert all(each["estimates"]["dr"]["gain_low"] <= 0 for each in policies if each["policy"] in bench.POLICIES)
    assert all(each["low"] <= 0 for unit in KEPT for each in unit["gains"])


def test_intervals_with_and_without_contexts_overlap() -> None:
    for unit in KEPT:
        for each in unit["policies"]:
            without = next(
                one for one in unit["policies"] if (one["policy"], one["contexts"]) == (each["policy"], "none")
            )
            for by in bench.PAIRED:
                one, other = each["estimates"][by], without["estimates"][by]
                assert one["low"] <= other["high"]
                assert other["low"] <= one["high"]


def test_what_lies_below_the_logger_is_warned_of() -> None:
    found = [each for unit in KEPT for each in unit["policies"] if each["policy"] in bench.POLICIES]
    below = [each for each in found if each["estimates"]["dr"]["gain_high"] < 0]
    assert len(below) == 2
    assert all(each["warnings"] and each["estimates"]["snips"]["value"] == 0 for each in below)
    worse = [(unit, each) for unit in KEPT for each in unit["gains"] if each["high"] < 0]
    assert [(unit["log"], each["policy"], each["by"]) for unit, each in worse] == [("Thompson", "auto-ts", "dr")]
    same = {"policy": "auto-ts", "contexts": worse[0][1]["contexts"]}
    row = next(each for each in worse[0][0]["policies"] if same.items() <= each.items())
    assert round(row["estimates"]["dr"]["ess"]) == 20
    assert row["warnings"]


def test_auto_ucb_mostly_chooses_the_same_with_contexts() -> None:
    by_dr = [each for unit in KEPT for each in unit["gains"] if (each["by"], each["policy"]) == ("dr", "auto-ucb")]
    same = [each for each in by_dr if each["value"] == each["low"] == each["high"] == 0]
    assert len(same) > len(by_dr) / 2


def test_two_logs_are_joined_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bench.LOGGERS, "Thompson", "random")
    unit = {"log": "uniform", "learned": "Thompson", "users": "one"}
    alone = bench.material(tiny_open_bandit(tmp_path), unit | {"learned": bench.EARLIER}).logged.in_order()
    both = bench.material(tmp_path, unit).logged
    assert len(both) == 2 * len(alone)
    assert both.contexts is not None
    assert alone.contexts is not None
    assert both.shown_at is not None
    for row in range(len(both)):
        assert both.contexts[row] == alone.contexts[row % len(alone)]
        assert both.shown(row).tolist() == alone.shown(row % len(alone)).tolist()
    assert both.rewards.tolist() == alone.rewards.tolist() * 2


@pytest.mark.slow
def test_the_figures_come_out_again() -> None:
    unit = bench.units()[0]
    again = bench.judged(real("open-bandit-small"), unit)
    for one, other in zip(again["policies"], KEPT[0]["policies"], strict=True):
        assert one["estimates"]["dr"]["value"] == pytest.approx(other["estimates"]["dr"]["value"], abs=1e-4)
