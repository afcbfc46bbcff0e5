"""A call that is refused or fails changes nothing, is told in a typed error, and leaves the journal whole."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import (
    CandidatesError,
    CoterieError,
    DecisionError,
    JournalError,
    ParameterError,
    UnknownUserError,
)

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


def test_what_a_line_cannot_hold_is_refused_and_what_means_a_number_is_written_as_one(tmp_path: Path) -> None:
    bandit = make(journal=tmp_path / "journal")
    bandit.save(tmp_path / "snapshot")
    bandit.learn(0, "a", Decimal("1.5"))  # type: ignore[arg-type, unused-ignore]
    assert bandit.decide(0, {"a": object(), "b": object()}).arm in ("a", "b")
    with pytest.raises(JournalError, match="cannot be written to a journal"):
        bandit.connect(0, 3, Decimal("0.5"))  # type: ignore[arg-type, unused-ignore]
    assert bandit.graph.n_edges == 6
    bandit.reward(np.int64(0), np.float32(0.5))  # type: ignore[arg-type, unused-ignore]
    believed = bandit.predict(0)
    del bandit
    assert ct.Bandit.load(tmp_path / "snapshot", journal=tmp_path / "journal").predict(0) == believed


def test_a_change_in_part_ends_the_journal_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = make(journal=tmp_path / "journal", policy="lk-gp-ts", pending="hallucinate")
    made: list[Any] = []

    def decide(self: ct.Bandit, user: int, candidates: Any) -> Any:
        if made:
            raise MemoryError
        made.append(decided(self, user, candidates))
        return made[0]

    decided = ct.Bandit.decide
    with monkeypatch.context() as patch:
        patch.setattr(ct.Bandit, "decide", decide)
        with pytest.raises(MemoryError):
            bandit.decide_many([0, 1])
    with pytest.raises(JournalError, match="learn was refused: decide_many was done in part"):
        bandit.learn(0, "a", 1.0)


@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("wrong", [[0], {}, True, "0", 0.0, None])
def test_what_is_no_decision_is_told(tmp_path: Path, wrong: Any, journal: bool) -> None:
    bandit = make(journal=tmp_path / "journal" if journal else None)
    decision = bandit.decide(0)
    with pytest.raises(DecisionError, match="Pass the id of a Decision"):
        bandit.reward(wrong, 1.0)
    with pytest.raises(DecisionError, match=r"Pass decision\.id"):
        bandit.reward(decision, 1.0)  # type: ignore[arg-type, unused-ignore]
    bandit.remove_user(0)
    with pytest.raises(DecisionError, match="its user or arm was removed, or it has waited too long"):
        bandit.reward(decision.id, 1.0)


NO_LISTS: list[Call] = [
    lambda bandit: bandit.decide(0, 5),  # type: ignore[arg-type, unused-ignore]
    lambda bandit: bandit.decide(0, "ab"),
    lambda bandit: bandit.predict(0, 5),  # type: ignore[arg-type, unused-ignore]
    lambda bandit: bandit.decide_many(5),  # type: ignore[arg-type, unused-ignore]
    lambda bandit: bandit.decide_many(None),  # type: ignore[arg-type, unused-ignore]
    lambda bandit: bandit.decide_many("bo"),
    lambda bandit: bandit.retire_arms(5),  # type: ignore[arg-type, unused-ignore]
    lambda bandit: bandit.retire_arms("ab"),
    lambda bandit: bandit.retire_arms(None),  # type: ignore[arg-type, unused-ignore]
]


@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("number", range(len(NO_LISTS)))
def test_what_is_no_list_is_told(tmp_path: Path, number: int, journal: bool) -> None:
    bandit = make(journal=tmp_path / "journal" if journal else None)
    with pytest.raises(CandidatesError, match="they are a list"):
        NO_LISTS[number](bandit)
