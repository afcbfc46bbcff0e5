"""A call that is refused or fails changes nothing, is told in a typed error, and leaves the journal whole."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import CandidatesError, CoterieError, ParameterError, UnknownUserError

ARMS = dict(zip("abcde", np.random.default_rng(0).normal(size=(5, 2)), strict=True))
Call = Callable[[ct.Bandit], Any]


def ring(size: int) -> ct.UserGraph:
    return ct.UserGraph.from_edges([(i, (i + 1) % size) for i in range(size)])


def make(**options: Any) -> ct.Bandit:
    return ct.Bandit(**{"graph": ring(6), "arms": ARMS, "policy": "lk-gp-ucb", **options})


REFUSED: dict[str, tuple[Call, type[CoterieError]]] = {
    "user": (lambda bandit: bandit.decide("zoe"), UnknownUserError),
    "users": (lambda bandit: bandit.decide_many([0, "zoe"]), UnknownUserError),
    "candidates": (lambda bandit: bandit.decide(0, []), CandidatesError),
    "twice": (lambda bandit: bandit.decide_many([0, 1], ["a", "a"]), CandidatesError),
    "floor": (lambda bandit: bandit.decide(0), ParameterError),
    "floor of many": (lambda bandit: bandit.decide_many([0, 1]), ParameterError),
}


@pytest.mark.parametrize("memory", [{"forgetting": 0.999}, {"window": 5}])
@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_decision_changes_nothing(tmp_path: Path, name: str, memory: dict[str, Any]) -> None:
    bandit = make(journal=tmp_path / "journal", min_propensity=0.3, **memory)
    bandit.save(tmp_path / "snapshot")
    for t in range(20):
        bandit.learn(t % 6, "abcde"[t % 5], 0.1 * t)
    call, error = REFUSED[name]
    stale = bandit._learned.stale
    with pytest.raises(error):
        call(bandit)
    assert (bandit.n_decisions, bandit.n_pending, bandit._learned.stale) == (0, 0, stale)
    bandit.learn(0, "a", 1.0)
    last = bandit.decide(0, ["a", "b"])
    del bandit
    again = ct.Bandit.load(tmp_path / "snapshot", journal=tmp_path / "journal")
    assert again.n_decisions == last.id + 1 == 1


def test_a_reward_whose_weight_has_all_but_gone_is_no_obstacle() -> None:
    bandit = make(policy="auto-ucb", forgetting=0.5)
    bandit.learn(0, "a", 1.0)
    for t in range(1035):  # the weight of the first is now 2**-1035, which a float can hold just so
        bandit.learn(1, "b", float(t % 2))
    assert bandit.decide(0).id == 0
    assert len(bandit._learned.history()) == 1
