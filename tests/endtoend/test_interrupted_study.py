"""A study that is killed or stopped loses the unit under way, a policy in a trial, and nothing else."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STUDY = """\
trials = 8

[[worlds]]
name = "small"
n_users = 8
n_arms = 8
n_candidates = 4
dimension = 3
horizon = 1500

[[policies]]
policy = "lk-gp-ucb"

[[policies]]
policy = "lk-gp-ts"
"""


def start(folder: Path, out: str, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "coterie", "run", "study.toml", "--out", out, *more]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def trials(folder: Path) -> dict[str, bytes]:
    found = sorted((folder / "trials" / "small").glob("*/*.parquet"))
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in found}


def wait_for_trials(folder: Path, number: int) -> None:
    deadline = time.monotonic() + 60
    while len(list(folder.glob("trials/small/*/*.parquet"))) < number and time.monotonic() < deadline:
        time.sleep(0.01)


@pytest.mark.parametrize(("how", "jobs"), [(signal.SIGKILL, "2"), (signal.SIGINT, "2"), (signal.SIGINT, "1")])
def test_a_study_that_was_stopped_goes_on(tmp_path: Path, how: signal.Signals, jobs: str) -> None:
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    running = start(tmp_path, "out", "--jobs", jobs)
    wait_for_trials(tmp_path / "out", 2)
    if how is signal.SIGKILL:
        os.killpg(running.pid, how)
    else:
        running.send_signal(how)
    _, error = running.communicate(timeout=60)
    kept = trials(tmp_path / "out")
    assert len(kept) >= 2
    if how is signal.SIGINT and running.returncode != 0:
        assert running.returncode == 130
        assert "--resume" in error
        assert "Traceback" not in error
    resumed = start(tmp_path, "out", "--jobs", "1", "--resume")
    output, error = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, error
    assert output.count(" done") == 16 - len(kept)
    whole = trials(tmp_path / "out")
    assert len(whole) == 16
    assert {name: whole[name] for name in kept} == kept
    assert not list((tmp_path / "out").rglob("*.partial"))
