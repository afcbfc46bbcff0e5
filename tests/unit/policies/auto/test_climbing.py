"""Climbs in a process of their own: the same numbers, the same errors, and nothing left behind."""

import logging
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import NumericalError
from coterie.models import History
from coterie.policies.auto import AutoPolicy
from coterie.policies.auto.climbing import Climb, ClimbProcess, climbing_in, run_aside
from coterie.policies.auto.evidence import Evidence
from coterie.policies.auto.fit_context import FitContext

GRAPH = ct.make_graph("sbm", 30, seed=2)
ARMS = ct.ArmPool(np.random.default_rng(1).normal(size=(8, 3)))


def climb(n_rewards: int = 60) -> Climb:
    rng, history, context = np.random.default_rng(n_rewards), History(), FitContext(GRAPH, ARMS)
    for _ in range(n_rewards):
        user, arm = int(rng.integers(30)), int(rng.integers(8))
        history.add(context.key(user, arm), user, arm, float(rng.normal()))
    prior = context.prior(1.0)
    return Climb(context.evidences(history, n_rewards, level_var=1.0), prior, prior.centre, context.climb)


class Failing(Evidence):
    """Evidence that cannot be computed."""

    def __init__(self) -> None:
        pass

    def value_and_gradient(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        raise NumericalError(f"{len(point)} numbers were given", "none is wanted", "Give none")


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # which asks, and does nothing
    except ProcessLookupError:
        return False
    return True


def wait_for_end(pid: int) -> None:
    until = monotonic() + 20
    while is_there(pid):
        assert monotonic() < until
        sleep(0.02)


def test_a_process_climbs_to_the_same_place() -> None:
    process, asked = ClimbProcess(), [climb(), climb(300), climb()]
    with climbing_in(process):
        found = [run_aside(each) for each in asked]
        assert process._process is not None
    assert found == [each.run() for each in asked]
    assert process._process is None


def test_what_is_sent_is_small() -> None:
    asked = climb(2000)
    before, n_pairs = len(pickle.dumps(asked)), len(asked.samples[0]._users)
    asked.run()  # which makes room for three matrices on pairs
    assert n_pairs > 200
    assert before < len(pickle.dumps(asked)) - 3 * 8 * n_pairs**2
    assert before < 8 * n_pairs**2


def test_an_error_of_the_process_is_raised_here_and_the_next_climb_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # where Failing is
    process, asked = ClimbProcess(), climb()
    with climbing_in(process):
        with pytest.raises(NumericalError, match="8 numbers were given"):
            run_aside(asked._replace(samples=[Failing()]))
        first = process._process
        assert run_aside(asked) == asked.run()
        assert process._process is first


def test_a_process_that_was_killed_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    process, asked = ClimbProcess(), climb()
    with climbing_in(process):
        run_aside(asked)
        first = process._process
        assert first is not None
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        with caplog.at_level(logging.WARNING):
            assert run_aside(asked) == asked.run()  # run here
        assert "has ended" in caplog.text
        assert run_aside(asked) == asked.run()
        assert process._process is not None
        assert process._process is not first


def test_one_that_cannot_start_leaves_the_climb_to_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    asked = climb()
    with climbing_in(ClimbProcess()):
        assert run_aside(asked) == asked.run()


def test_a_closed_one_starts_no_process() -> None:
    process, asked = ClimbProcess(), climb()
    process.close()
    assert process.run(asked) == asked.run()
    assert process._process is None


def test_one_that_is_closed_while_it_climbs_leaves_the_climb_to_the_thread() -> None:
    process, asked = ClimbProcess(), climb(2000)
    process.run(asked)
    with ThreadPoolExecutor(1) as thread:
        for pause in (0.0, 0.01):
            found = thread.submit(process.run, asked)
            sleep(pause)
            process.close()
            assert found.result() == asked.run()
            process = ClimbProcess()
            process.run(asked)
    process.close()


def test_it_ends_with_whoever_asked_however_that_ends() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_climbing import climb, ClimbProcess\n"
        "process = ClimbProcess(); process.run(climb())\n"
        "print(process._process.pid, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        pid = int(asking.stdout.readline())
        asking.kill()
    wait_for_end(pid)


@pytest.mark.parametrize("options", [{}, {"context_schema": {"hour": "number"}}])
def test_the_fits_of_a_bandit_are_the_same(options: dict[str, Any]) -> None:
    def learned() -> tuple[Any, bool]:
        bandit = ct.Bandit(graph=GRAPH, arms=ARMS, wait_for_fits=True, **options)
        process, rng = ClimbProcess(), np.random.default_rng(0)
        with climbing_in(process):
            for user, value in zip(rng.integers(30, size=40).tolist(), rng.normal(size=40), strict=True):
                given = {"hour": float(user % 7)} if options else None
                bandit.reward(bandit.decide(user, context=given).id, float(value))
            was_used = process._process is not None
        policy = bandit._learned.policy
        assert isinstance(policy, AutoPolicy)
        return policy.fits, was_used

    aside, was_used = learned()
    with pytest.MonkeyPatch.context() as here:
        here.setattr(ClimbProcess, "run", lambda _, climb: climb.run())
        assert learned() == (aside, False)
    assert was_used
    assert len(aside) > 3
