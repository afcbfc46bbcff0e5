"""Compiling is announced once, done ahead, and never inside a decision."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import coterie as ct
from coterie.models.engines.sparse.compiling import say_if_compiling

pytest.importorskip("numba")


def signatures() -> dict[str, int]:
    """How many signatures each compiled function of Coterie has."""
    modules = [module for name, module in sys.modules.items() if name.startswith("coterie")]
    found = [each for module in modules for each in vars(module).values() if hasattr(each, "py_func")]
    return {each.py_func.__qualname__: len(cast(Any, each).signatures) for each in found}


def play(bandit: ct.Bandit) -> None:
    for number in range(60):
        decision = bandit.decide(number % 30)
        bandit.reward(decision.id, float(number % 3))
    bandit.predict(5)


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "lk-gp-ts"])
@pytest.mark.parametrize("normalised", [False, True])
def test_nothing_is_compiled_after_the_bandit_is_made(policy: str, normalised: bool) -> None:
    arms, users = np.random.default_rng(0).normal(size=(12, 3)), ct.Green(laplacian_ridge=0.5, normalised=normalised)
    graph = ct.make_graph("sbm", 30, seed=1)
    bandit = ct.Bandit(graph=graph, arms=arms, policy=policy, user_kernel=users, engine="sparse")
    before = signatures()
    play(bandit)
    assert before["repair"] > 0
    assert signatures() == before


def test_nothing_is_compiled_after_a_bandit_is_loaded(tmp_path: Path) -> None:
    arms = np.random.default_rng(0).normal(size=(12, 3))
    bandit = ct.Bandit(graph=ct.make_graph("sbm", 30, seed=1), arms=arms, policy="graph-ucb", engine="sparse")
    play(bandit)
    bandit.save(tmp_path / "one.coterie")
    loaded = ct.Bandit.load(tmp_path / "one.coterie")
    before = signatures()
    play(loaded)
    assert signatures() == before


@pytest.mark.parametrize("on_disk", [True, False])
def test_it_is_said_once_and_only_if_there_is_something_to_compile(
    on_disk: bool, caplog: pytest.LogCaptureFixture
) -> None:
    push = type("Push", (), {"is_on_disk": staticmethod(lambda: on_disk)})()
    say_if_compiling(push)
    say_if_compiling(push)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == (not on_disk)
    assert all("coterie warmup" in each for each in told)


@pytest.mark.slow
def test_the_command_compiles_and_the_next_one_finds_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "coterie", "warmup"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)
    )
    assert "compiling engine 'sparse'" in first.stderr
    assert "is compiled" in first.stdout
    assert second.stderr == ""
