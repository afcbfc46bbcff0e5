"""The page on off-policy evaluation: its tables are those of the figures that are kept."""

import json
from typing import Any

from benchmarks.evaluation_page import ASKED, DOCS, LEAST, coverage, open_bandit, whole

ROW: dict[str, Any] = {"rewards": "clicks", "logger": "uniform", "target": "lk-gp-ucb", "truth": 0.5, "ess": 125.0}
ROW |= {"coverage": 0.95, "gain_coverage": 0.94, "bias": 0.01, "bias_error": 0.002, "rmse": 0.1, "warned": 0.0}
NAMES = (*ASKED, "switch", "switch-ips", "dm")
SETTINGS = ("uniform", "leaning", "sharp")


def test_the_page_is_written_from_what_is_kept() -> None:
    assert whole() == (DOCS / "evaluation.md").read_text(encoding="utf-8")


def test_the_kept_intervals_hold_the_truth_often_enough() -> None:
    kept = json.loads((DOCS / "evaluation.json").read_text(encoding="utf-8"))
    rows = [row for row in kept if row["estimator"] in ASKED and "learning" not in row["target"]]
    assert len(rows) == 2 * 3 * 2 * len(ASKED)
    assert all(row["logs"] >= 300 for row in rows)
    # Where it is too seldom, nearly every log has a warning.
    assert [row for row in rows if row["coverage"] < LEAST and row["warned"] < 0.95] == []
    assert [row for row in rows if row["coverage"] < 0.89] == []


def test_a_coverage_outside_of_what_was_asked_is_named() -> None:
    rows = [ROW | {"estimator": name, "logger": logger} for logger in SETTINGS for name in NAMES]
    rows[1]["coverage"] = 0.9
    rows.append(ROW | {"estimator": "replay", "target": "lk-gp-ucb, learning"})
    lines = list(coverage(rows))
    assert "| clicks | uniform | lk-gp-ucb | 0.500 | 95.0%, +0.010, 0.100 | 90.0%, +0.010, 0.100 |" in "\n".join(lines)
    assert "- Outside of that: ips (clicks, uniform logger, lk-gp-ucb), 90.0%; 0% warned of." in lines
    assert any("hold the truth in 90.0 to 95.0 % of the logs" in line for line in lines)
    assert any("some 125 decisions accepted" in line for line in lines)


def test_real_logs_stand_beside_what_was_earned() -> None:
    kept = json.loads((DOCS / "open_bandit.json").read_text(encoding="utf-8"))
    lines = list(open_bandit(kept))
    assert len([line for line in lines if line.startswith("| Thompson | uniform |")]) == 3 + 6
    assert any(line.startswith("| uniform | Thompson, average | 10,000 |") for line in lines)
    assert "MiB" in lines[-1]


def test_what_the_page_says_of_the_real_logs_is_so() -> None:
    kept = json.loads((DOCS / "open_bandit.json").read_text(encoding="utf-8"))
    whole_log, later, average = (each["estimates"] for each in kept["crossed"])
    uniform, thompson = (kept["earned"][name] for name in ("uniform", "Thompson"))
    for name in ("ips", "snips"):
        assert whole_log[name]["low"] < uniform["value"] < whole_log[name]["high"]
        assert average[name]["low"] < thompson["value"] < average[name]["high"]
    assert later["dr"]["high"] < uniform["value"]
    assert any("rests on some" in each for each in kept["crossed"][1]["warnings"])
    below = [each for each in kept["policies"]["uniform"]["policies"] if each["estimates"]["dr"]["value"] < 0]
    assert below
    assert all(any(text.startswith("dr says -") for text in each["warnings"]) for each in below)
    every = [each["estimates"]["dr"] for found in kept["policies"].values() for each in found["policies"]]
    assert all(one["gain_low"] <= 0 for one in every)
