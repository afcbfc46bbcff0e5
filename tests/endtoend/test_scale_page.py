"""The page on large graphs: written from runs that are kept, which are not made again."""

from pathlib import Path

import pytest
from benchmarks.large import __main__ as command
from benchmarks.large.cases import CASES, Case, play_key
from benchmarks.large.page import defaults_table, write_page
from benchmarks.large.store import Kept

pytest.importorskip("numba")
pytest.importorskip("matplotlib")

PLAYED = {"reward_p50": 0.6, "reward_p99": 7.0, "decide_p50": 0.1, "decide_p99": 2.0, "built": 3.0, "waiting": 0.0}


def kept_in(folder: Path) -> Kept:
    kept = Kept(folder / "scale.json")
    for n_users, more in ((10_000, 1.0), (1_000_000, 3.0)):
        for shift in (-0.1, 0.0, 0.5):
            run = PLAYED | {"reward_p50": more * (0.6 + shift), "peak": 1.0}
            kept.add(play_key("communities", n_users, 0.1, 1.0), run, machine="one core")
    kept.add("against linear", {"ours": 1.0, "linear": 4.0, "rank_one": 60.0}, machine="one core")
    kept.add("error rho=0.1 eps=1", {"reward": 1.0, "median": 0.1, "largest": 0.2, "stated": 0.9}, machine="one core")
    kept.add("drift", {"gap": 1e-13, "scale": 0.1}, machine="one core")
    return kept


def test_medians_stand_beside_their_targets_and_misses_in_bold(tmp_path: Path) -> None:
    page = write_page(kept_in(tmp_path), tmp_path).read_text(encoding="utf-8")
    assert "| communities | 0.1 | 10,000 | 0.6 (0.7) | **7** (5) | 0.1 (0.15) |" in page
    assert "| communities | 0.1 | 1 | **3** (2) |" in page
    assert "| **4.0** (5) |" in page
    assert "| 60.0 (50) |" in page
    assert "1e-12 of its scale" in page
    assert "barabasi-albert |" not in page
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"scale-reward.png", "scale-error.png"}


def test_runs_outlive_the_process_and_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_in(tmp_path)
    again = Kept(tmp_path / "scale.json")
    key = play_key("communities", 10_000, 0.1, 1.0)
    assert len(again.runs(key)) == 3
    monkeypatch.setattr("subprocess.run", None)  # a further run would fail
    command._run(Case(key, dict, dict), again, runs=3, quick=False)  # type: ignore[arg-type] # never called


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case.key for case in CASES}) == len(CASES)


def test_defaults_stand_there_as_they_were_measured() -> None:
    call = {"p50": 0.5, "p99": 1.25, "longest": 12.0}
    few = {"users": 300, "policy": "auto-ucb", "clicks": False, "decide": call, "reward": call}
    few |= {"round_ms": 1.0, "more_mib": 9.0}
    page = defaults_table([few, few | {"users": 10_000}, few | {"users": 10_000, "clicks": True}])
    assert page.count("| 10,000 | auto-ucb | 0.5 | 1.25 | 12 | 0.5 | 1.25 | 12 | 1 | 9 |") == 1
    assert "300" not in page
