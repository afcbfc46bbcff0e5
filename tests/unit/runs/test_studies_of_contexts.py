"""Commands that read a log with contexts and slates: a replay shows contexts, and the others take no harm."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.__main__ import main
from coterie.graphs import make_graph
from coterie.logs import Contexts, Events, Log, Ragged, write_log
from coterie.runs.results import results_of
from coterie.runs.runner import run_study
from coterie.runs.studies import find_study
from coterie.runs.study import study_from
from coterie.runs.worlds import LogSettings

N = 900


def a_log(**parts: Any) -> Log:
    """Returns a uniform logger's choices among four arms, of which the time of day says which one is right."""
    rng = np.random.default_rng(0)
    when = rng.integers(4, size=N)
    user, arm = rng.integers(6, size=N), rng.integers(4, size=N)
    contexts = Contexts.of([{"when": f"part {part}", "rain": float(part % 2)} for part in when])
    columns: dict[str, Any] = {"reward": (arm == when).astype(float), "candidates": Ragged.of([[0, 1, 2, 3]] * N)}
    columns |= {"context": contexts, "propensity": np.full(N, 0.25)} | parts
    events = Events(user=user, arm=arm, **columns)
    return Log(graph=make_graph("ring", 6), arms=("a", "b", "c", "d"), events=events)


def hits(folder: Path, out: Path, **world: Any) -> dict[str, float]:
    """Returns the reward of `auto-ucb` and `random` in the rows that count, in a replay."""
    given: dict[str, Any] = {"name": "log", "protocol": "replay", "data": "plain", "folder": str(folder)} | world
    policies = [{"policy": "auto-ucb"}, {"policy": "random"}]
    study = study_from({"trials": 1, "worlds": [given], "policies": policies}, name="contexts")
    rewards = results_of(run_study(study, out)).logs["log"].rewards
    return {name: float(np.nanmean(each[0])) for name, each in rewards.items()}


def test_a_replay_shows_contexts_to_those_who_take_them(tmp_path: Path) -> None:
    write_log(a_log(), tmp_path / "log")
    found = hits(tmp_path / "log", tmp_path / "out", online_features=[])
    assert found["auto-ucb"] > 0.6
    assert found["random"] < 0.35


def test_features_of_the_past_come_without_contexts(tmp_path: Path) -> None:
    write_log(a_log(), tmp_path / "log")
    assert hits(tmp_path / "log", tmp_path / "out")["auto-ucb"] < 0.4


def test_a_folder_with_contexts_is_replayed_with_them(tmp_path: Path) -> None:
    write_log(a_log(), tmp_path / "log")
    study = find_study(str(tmp_path / "log"))
    replay = next(each for each in study.worlds if each.name == "replay")
    assert isinstance(replay.settings, LogSettings)
    assert replay.settings.online_features == ()


def test_a_diagnosis_takes_no_notice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for name, parts in {"with": {}, "without": {"context": None}}.items():
        write_log(a_log(**parts), tmp_path / name / "log")
        assert main(["diagnose", str(tmp_path / name / "log"), "--out", str(tmp_path / name / "out")]) == 0
        said.append(capsys.readouterr().out.replace(str(tmp_path / name), "FOLDER"))
    assert said[0] == said[1]


def test_commands_read_slates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places: dict[str, Any] = {"slate": np.arange(N) // 2, "place": np.arange(N) % 2 + 1, "candidates": None}
    log = a_log(**places)
    log.events.user[1::2] = log.events.user[::2]
    log.events.arm[1::2] = (log.events.arm[::2] + 1) % 4
    write_log(log, tmp_path / "log")
    folder = str(tmp_path / "log")
    assert main(["data", "check", folder]) == 0
    assert main(["diagnose", folder, "--out", str(tmp_path / "page")]) == 0
    assert main(["evaluate", folder, "--policy", "auto-ts", "--estimator", "snips"]) == 0
    assert "900 decisions are the places of 450 slates" in capsys.readouterr().out
