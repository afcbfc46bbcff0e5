"""What docs/reliability.md promises, under attack: kills, full ledgers, propensities; the long form is slow."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import coterie as ct
from coterie.product import Bandit
from terminal import coterie

ARMS = {name: [float(i % 3), float(i // 3)] for i, name in enumerate("abcdef")}
GRAPH = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy"), ("cy", "dee")])
SHORT_AND_LONG = pytest.mark.parametrize("n_kills", [4, pytest.param(100, marks=pytest.mark.slow)])

WRITER = """
import sys
import coterie as ct
bandit = ct.Bandit.load("snapshot", journal="journal")
print("ready", flush=True)
for t in range(100_000):
    decision = bandit.decide("ana" if t % 2 else "cy")
    print("decided", decision.id, flush=True)
    bandit.reward(decision.id, float(t % 3))
    print("rewarded", decision.id, flush=True)
"""


@SHORT_AND_LONG
def test_a_kill_loses_no_acknowledged_change_of_a_journal(tmp_path: Path, n_kills: int) -> None:
    Bandit(graph=GRAPH, arms=ARMS, policy="lk-gp-ts", journal=tmp_path / "journal").save(tmp_path / "snapshot")
    rng = np.random.default_rng(0)
    for _ in range(n_kills):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(float(rng.uniform(0.0, 0.2)))
            writer.kill()
            told = [line.split() for line in writer.stdout if line.endswith("\n")]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)  # of a last line that is cut off
            bandit = Bandit.load(tmp_path / "snapshot", journal=tmp_path / "journal")
        decided = [int(number) for what, number in told if what == "decided"]
        rewarded = [int(number) for what, number in told if what == "rewarded"]
        assert bandit.n_decisions >= max(decided, default=-1) + 1
        settled = dict(bandit._ledger.settled())
        assert all(number in settled for number in rewarded)
        bandit.save(tmp_path / "snapshot")
        del bandit


IN_CONTEXTS = """
import coterie as ct
bandit = ct.Bandit.load("snapshot", journal="journal")
print("ready", flush=True)
for t in range(bandit.n_decisions, 100_000):
    context = {"hour": t % 24, "device": f"device-{t % 40}"}
    shown = {"a": None, "b": None, f"new-{t}": [t % 7 / 3, t % 5 / 2]}
    decision = bandit.decide("ana" if t % 2 else "cy", shown, context, keep=t % 10 == 0)
    print("decided", decision.id, decision.arm, flush=True)
    bandit.reward(decision.id, float(t % 3))
    print("rewarded", decision.id, decision.arm, flush=True)
"""


@SHORT_AND_LONG
def test_a_kill_loses_no_acknowledged_change_in_a_context(tmp_path: Path, n_kills: int) -> None:
    Bandit(graph=GRAPH, arms=ARMS, policy="auto-ts", journal=tmp_path / "journal").save(tmp_path / "snapshot")
    rng = np.random.default_rng(0)
    for _ in range(n_kills):
        command = [sys.executable, "-c", IN_CONTEXTS]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(float(rng.uniform(0.0, 0.3)))
            writer.kill()
            told = [line.split() for line in writer.stdout if line.endswith("\n")]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)  # of a last line that is cut off
            bandit = Bandit.load(tmp_path / "snapshot", journal=tmp_path / "journal")
        decided = {int(number): arm for what, number, arm in told if what == "decided"}
        rewarded = {int(number): arm for what, number, arm in told if what == "rewarded"}
        settled, arms = dict(bandit._ledger.settled()), bandit._learned.events.arm_ids(bandit.arms.ids)
        assert bandit.n_decisions >= max(decided, default=-1) + 1
        assert all(arms[settled[number]] == arm for number, arm in rewarded.items())
        assert bandit.context_schema is not None or not decided
        bandit.save(tmp_path / "snapshot")
        del bandit
    assert Bandit.load(tmp_path / "snapshot", journal=None).n_decisions > 0


@SHORT_AND_LONG
def test_a_kill_of_a_command_leaves_the_file_as_before_or_as_after(tmp_path: Path, n_kills: int) -> None:
    file, rng = tmp_path / "bandit.coterie", np.random.default_rng(1)
    Bandit(graph=GRAPH, arms=ARMS).save(file)
    assert coterie("inspect", file, folder=tmp_path).returncode == 0  # compiles what was not
    started = time.perf_counter()
    assert coterie("decide", file, "ana", folder=tmp_path).returncode == 0
    usual, made, cut = time.perf_counter() - started, 1, 0
    for number in range(n_kills):
        given = ("reward", file, number // 2, "1.0") if number % 2 else ("decide", file, "bo")
        command = [sys.executable, "-m", "coterie", *map(str, given)]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(float(rng.uniform(0.4, 1.1)) * usual)
            process.kill()
            done = process.wait() == 0
            cut, usual = cut + (not done), usual * (0.6 if done else 1.0)  # the machine may have become faster
        bandit = Bandit.load(file)
        if number % 2 == 0:
            assert bandit.n_decisions in ((made + 1,) if done else (made, made + 1))
            made = bandit.n_decisions
        assert len(bandit.predict("ana")) == len(ARMS)
    assert cut > n_kills / 4  # or nothing was attacked
    assert coterie("decide", file, "ana", folder=tmp_path).returncode == 0
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


@pytest.mark.parametrize(
    "options",
    [{"policy": "lk-gp-ts", "engine": "sparse"}, {"policy": "auto-ts"}, {"policy": "lk-gp-ucb", "engine": "sparse"}],
)
@pytest.mark.parametrize("n_decisions", [1500, pytest.param(20_000, marks=pytest.mark.slow)])
def test_propensities_are_those_of_the_draws(options: dict[str, Any], n_decisions: int) -> None:
    pytest.importorskip("numba")
    bandit = Bandit(graph=GRAPH, arms=ARMS, min_propensity=0.05, **options)
    rng = np.random.default_rng(2)
    for _ in range(20):
        bandit.learn(GRAPH.users[int(rng.integers(4))], "abcdef"[int(rng.integers(6))], float(rng.normal()))
    stated = np.array([each.propensity for each in bandit.decide("bo").candidates.values()])
    chosen = [bandit.decide("bo").arm for _ in range(n_decisions)]
    counts = np.array([chosen.count(name) for name in ARMS])
    assert chisquare(counts, n_decisions * stated / stated.sum()).pvalue > 1e-4
    wrong = np.roll(stated, 1)  # a mutant must fail
    assert chisquare(counts, n_decisions * wrong / wrong.sum()).pvalue < 1e-4


@pytest.mark.parametrize("n_pending", [2000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_full_ledger_of_hallucinated_decisions_stays_bounded(n_pending: int) -> None:
    bandit = Bandit(graph=GRAPH, arms=ARMS, policy="lk-gp-ucb", pending="hallucinate", max_pending=n_pending)
    for number in range(n_pending + n_pending // 10):
        bandit.decide(GRAPH.users[number % 4])
    assert bandit.n_pending == n_pending
    doubt = bandit._learned.policy.pending_model
    assert doubt is not None
    assert n_pending <= doubt.n_observations <= n_pending + n_pending // 16 + 1
    oldest = next(number for number, _ in bandit._ledger.pending())
    bandit.reward(oldest, 1.0)
    assert (bandit.n_rewards, bandit.n_pending) == (1, n_pending - 1)
