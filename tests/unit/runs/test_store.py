"""Stores: one file a unit, the same columns for drawn worlds and logs; what version 0.1 stored is read and resumed."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from coterie.__main__ import main
from coterie.logs import write_log
from coterie.runs.results import results_of
from coterie.runs.runner import run_study
from coterie.runs.store import Store, Unit, versions
from coterie.runs.study import Study, study_from
from recorded import small_log

OLD = Path(__file__).parents[2] / "data" / "stores-0.1"
COLUMNS = ["world", "trial", "policy", "t", "user", "degree", "arm", "reward", "regret"]


def study_in(folder: Path) -> Study:
    return study_from(json.loads((folder / "manifest.json").read_text())["study"])


def copied(name: str, tmp_path: Path) -> Path:
    """Returns a copy of an old store, as if begun with the versions and on the log that are here."""
    out = tmp_path / name
    shutil.copytree(OLD / name, out)
    write_log(small_log(n_arms=16, liked=6), tmp_path / "log-files")
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["versions"] = versions()
    for world in manifest["study"]["worlds"]:
        if "folder" in world:
            world["folder"] = str(tmp_path / "log-files")
    (out / "manifest.json").write_text(json.dumps(manifest))
    return out


@pytest.mark.parametrize("name", ["drawn", "log"])
def test_a_store_of_version_01_is_reported(name: str, tmp_path: Path) -> None:
    out = copied(name, tmp_path)
    assert main(["report", str(out)]) == 0
    assert (out / "report.html").exists()


def test_a_drawn_store_of_version_01_is_resumed(tmp_path: Path) -> None:
    out = copied("drawn", tmp_path)
    before = results_of(Store(out))
    (out / "trials" / "small" / "trial-001.parquet").unlink()
    (out / "pilot" / "small" / "trial-001.parquet").unlink()
    assert results_of(Store(out)).n_trials("small") == 1
    done: list[Unit] = []
    run_study(study_in(out), out, resume=True, on_unit=lambda unit, *_: done.append(unit))
    assert [(unit.kind, unit.number, unit.policy) for unit in done] == [
        ("pilot", 1, "lk-gp-ucb"),
        ("pilot", 1, "lk-gp-ts"),
        ("trial", 1, "lk-gp-ucb"),
        ("trial", 1, "lk-gp-ts"),
        ("trial", 1, "random"),
    ]
    after = results_of(Store(out))
    assert after.tuned == before.tuned
    for policy in before.policies("small"):
        assert np.allclose(after.regrets["small"][policy], before.regrets["small"][policy])
        assert np.isfinite(after.seconds["small"][policy]).all()


def test_a_log_store_of_version_01_is_resumed(tmp_path: Path) -> None:
    out = copied("log", tmp_path)
    before = results_of(Store(out)).logs["uniform"]
    (out / "trials" / "uniform" / "trial-001" / "random.parquet").unlink()
    done: list[Unit] = []
    run_study(study_in(out), out, resume=True, on_unit=lambda unit, *_: done.append(unit))
    assert [(unit.number, unit.policy) for unit in done] == [(1, "random")]
    after = results_of(Store(out)).logs["uniform"]
    assert (after.rewards["random"][1] == before.rewards["random"][1]).all()
    assert (after.visits[1] == before.visits[1]).all()


def test_drawn_worlds_and_logs_are_stored_alike(tmp_path: Path) -> None:
    for name in ("drawn", "log"):
        out = run_study(study_in(copied(name, tmp_path / name)), tmp_path / f"{name}-today").folder
        files = list((out / "trials").rglob("*.parquet"))
        assert len(files) == 6
        assert all(pq.read_table(path).column_names == COLUMNS for path in files)
        timings = [json.loads(path.read_text()) for path in (out / "timings").rglob("*.json")]
        assert all({"seconds", "core_seconds", "rounds", "peak_memory", "machine"} <= each.keys() for each in timings)


def test_a_world_may_be_called_like_a_column_with_a_value(tmp_path: Path) -> None:
    world = {"name": "degree=3", "n_users": 5, "n_arms": 4, "n_candidates": 2, "dimension": 2, "horizon": 6}
    study = study_from({"trials": 1, "worlds": [world], "policies": [{"policy": "random", "label": "t=1"}]})
    store = run_study(study, tmp_path)
    assert store.rows(Unit("degree=3", 0, "t=1"), ["degree", "t"])["t"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert results_of(store).regrets["degree=3"]["t=1"].shape == (1, 6)


def test_lost_timings_cost_no_regrets(tmp_path: Path) -> None:
    out = copied("drawn", tmp_path)
    (out / "timings" / "small" / "trial-000.json").write_text("{")
    results = results_of(Store(out))
    assert np.isnan(results.seconds["small"]["random"]).tolist() == [True, False]
    assert results.n_trials("small") == 2
