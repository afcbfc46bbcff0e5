"""A bandit that waits for no fit: fits are taken when they are ready, told of in the journal, and never repeated."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.policies.auto import climbing

ARMS = np.random.default_rng(1).normal(size=(8, 3))
GRAPH = ct.make_graph("sbm", 20, seed=2)


def live(bandit: ct.Bandit, rounds: int, *, pause: float = 0.0, seed: int = 0) -> list[Any]:
    rng, chosen = np.random.default_rng(seed), []
    for _ in range(rounds):
        user = int(rng.integers(20))
        decision = bandit.decide(user)
        bandit.reward(decision.id, float(ARMS[int(str(decision.arm))][user % 3] + 0.3 * rng.normal()))
        chosen.append(decision.arm)
        time.sleep(pause)
    return chosen


def fits_of(bandit: ct.Bandit) -> list[Any]:
    return bandit._learned.policy.fits


def until_no_fit_goes_on(bandit: ct.Bandit) -> None:
    for _ in range(12_000):
        bandit.predict(0)  # any call takes a fit that is ready
        if bandit._learned.policy.pending_fit is None:
            return
        time.sleep(0.005)
    raise AssertionError("a fit went on for a minute")


def make(**options: Any) -> ct.Bandit:
    return ct.Bandit(graph=GRAPH, arms=ARMS, wait_for_fits=False, **options)


@pytest.mark.parametrize("save_at", [0, 30])
def test_a_replay_takes_the_fits_that_were_taken_and_computes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save_at: int
) -> None:
    bandit = make(journal=tmp_path / "journal")
    live(bandit, save_at)
    bandit.save(tmp_path / "snapshot")
    live(bandit, 20, seed=1)
    until_no_fit_goes_on(bandit)
    live(bandit, 30, pause=0.002, seed=2)
    until_no_fit_goes_on(bandit)  # or it may be taken half-way
    believed, fits = [bandit.predict(user) for user in range(20)], fits_of(bandit)
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text(encoding="utf-8").splitlines()]
    taken = [line["with"] for line in lines if line.get("call") == "_take_fit"]
    assert [(each["started"], each["found"][:-1]) for each in taken] == [(t, list(hyper)) for t, hyper in fits]
    assert len(taken) > 1
    del bandit

    computed = list[int]()
    monkeypatch.setattr(climbing, "fit", lambda *_, **__: computed.append(1))
    again = ct.Bandit.load(tmp_path / "snapshot", journal=tmp_path / "journal")
    assert [again.predict(user) for user in range(20)] == believed
    assert fits_of(again) == fits
    assert computed == []


def test_a_mistake_in_the_code_of_a_fit_is_raised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = make()
    monkeypatch.setattr(climbing, "fit", lambda *_, **__: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        live(bandit, 2000, pause=0.002)
    n_rewards = bandit.n_rewards
    assert n_rewards >= 8
    live(bandit, 2)
    assert bandit.n_rewards == n_rewards + 2


def test_rewards_do_not_wait_however_long_a_fit_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = climbing.__dict__["fit"]

    def slow(*args: Any, **rest: Any) -> Any:
        time.sleep(1.0)
        return fit(*args, **rest)

    monkeypatch.setattr(climbing, "fit", slow)
    bandit = make()
    live(bandit, 24)
    assert fits_of(bandit) == []  # the first began with the eighth reward, and is not ready
    until_no_fit_goes_on(bandit)
    assert fits_of(bandit)[0][0] == 8


def test_a_saved_one_goes_on_as_it_was_told_to(tmp_path: Path) -> None:
    for waits in (False, True):
        bandit = ct.Bandit(graph=GRAPH, arms=ARMS, wait_for_fits=waits)
        live(bandit, 9)
        bandit.save(tmp_path / "bandit")
        assert ct.Bandit.load(tmp_path / "bandit")._learned.waits_for_fits == waits


def test_waiting_the_same_calls_give_the_same_decisions() -> None:
    one, two = (ct.Bandit(graph=GRAPH, arms=ARMS, wait_for_fits=True) for _ in range(2))
    assert live(one, 60) == live(two, 60, pause=0.001)
    assert fits_of(one) == fits_of(two)
