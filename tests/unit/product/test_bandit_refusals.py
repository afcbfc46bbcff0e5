"""A call that is refused or fails changes nothing, is told in a typed error, and leaves the journal whole."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import (
    CandidatesError,
    CoterieError,
    DecisionError,
    FitWarning,
    JournalError,
    ParameterError,
    SavedFileError,
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
    "features": (lambda bandit: bandit.decide(0, {"a": ARMS["a"], "b": ARMS["b"]}), CandidatesError),
    "for each": (lambda bandit: bandit.decide_many({0: ["a"], 1: ["b"]}), CandidatesError),
    "to predict": (lambda bandit: bandit.predict(0, {"a": ARMS["a"]}), CandidatesError),
    "to retire": (lambda bandit: bandit.retire_arms({"a": ARMS["a"]}), CandidatesError),
    "to revive": (lambda bandit: bandit.revive_arms({"a": ARMS["a"]}), CandidatesError),
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
    assert bandit.decide(0, {"a": object(), "b": object()}.keys()).arm in ("a", "b")
    with pytest.raises(JournalError, match="cannot be written to a journal"):
        bandit.connect(0, 3, Decimal("0.5"))  # type: ignore[arg-type, unused-ignore]
    assert bandit.graph.n_edges == 6
    bandit.reward(np.int64(0), np.float32(0.5))  # type: ignore[arg-type, unused-ignore]
    believed = bandit.predict(0)
    del bandit
    assert ct.Bandit.load(tmp_path / "snapshot", journal=tmp_path / "journal").predict(0) == believed


def test_a_change_in_part_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert (bandit.n_decisions, bandit.n_pending) == (0, 0)
    bandit.learn(0, "a", 1.0)
    assert bandit.n_rewards == 1


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


@pytest.mark.parametrize("sampling", ["independent", "joint"])
def test_what_was_chosen_is_drawn_with_less_doubt(sampling: str) -> None:
    bandit = make(policy="lk-gp-ts", pending="hallucinate", sampling=sampling)
    first, *_, last = bandit.decide_many([0] * 9, ["a"])
    policy = bandit._learned.policy
    bandit._learned.refresh_pending_model(bandit._ledger)
    drawn = [policy.select(0, ["a"]).score for _ in range(400)]
    assert np.std(drawn) == pytest.approx(last.std, rel=0.15)
    assert last.std < 0.7 * first.std


def test_propensities_of_joint_draws_know_of_the_doubt() -> None:
    options: dict[str, Any] = {"policy": "lk-gp-ts", "pending": "hallucinate", "sampling": "joint"}
    bandit = make(**options)
    bandit.learn(0, "a", 2.0)
    for _ in range(30):
        bandit.decide(0, ["a"])
        bandit.decide(0, ["b"])
    bandit.decide(0, ["a", "b"])
    share = bandit.decide(0, ["a", "b"]).candidates["a"].propensity
    made = [bandit._learned.policy.select(0, ["a", "b"]).arm == "a" for _ in range(400)]
    assert share == pytest.approx(np.mean(made), abs=0.08)


@pytest.mark.parametrize("failure", [np.linalg.LinAlgError, MemoryError])
def test_a_fit_that_fails_warns_once_and_is_counted_and_the_reward_stays(
    monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise failure("no such luck")

    bernoulli = {"reward": "binary", "likelihood": "bernoulli"}
    for bandit, where in (
        (make(policy="auto-ucb"), "climbing"),
        (make(policy="auto-ucb", **bernoulli), "bernoulli_likelihood"),
    ):
        monkeypatch.setattr(f"coterie.policies.auto.{where}.fit", fail)
        for t in range(7):
            bandit.learn(t % 6, "abcde"[t % 5], float(t % 2))
        if where == "climbing":  # there the ninth takes what the eighth began
            bandit.learn(0, "a", 0.0)
        with pytest.warns(FitWarning, match="after 8 rewards was not made: no such luck"):
            bandit.learn(0, "a", 0.0)
        assert bandit.n_rewards == bandit._learned.policy.n_rewards
        assert "after 8 rewards was not made: no such luck" in bandit.describe()
        for t in range(8):
            bandit.learn(t % 6, "abcde"[t % 5], float(t % 2))  # warnings are errors here, and there is none
        assert "after 16 rewards was not made: no such luck That was failure" in bandit.describe()


def test_a_mistake_in_the_code_of_a_fit_is_no_failed_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError("operands could not be broadcast together")

    bandit = make(policy="auto-ucb")
    monkeypatch.setattr("coterie.policies.auto.climbing.fit", fail)
    for t in range(7):
        bandit.learn(t % 6, "abcde"[t % 5], float(t % 2))
    bandit.learn(0, "a", 0.0)
    with pytest.raises(ValueError, match="broadcast"):
        bandit.learn(0, "a", 0.0)  # which takes what the eighth began
    bandit.predict(0)
    assert bandit.n_rewards == bandit._learned.policy.n_rewards == 8


def test_a_retuning_that_fails_leaves_the_belief(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = make(policy="auto-ucb", engine="exact")
    for t in range(7):
        bandit.learn(t % 6, "abcde"[t % 5], 100.0 + t)
    model: Any = bandit._learned.policy.model
    rebuild, calls, before = type(model).rebuild, [0], bandit.predict(0)
    settings = model.noise_var, list(model.history.means)

    def fail_once(self: Any) -> None:
        calls[0] += 1
        if calls[0] == 1:
            raise np.linalg.LinAlgError("no such luck")
        rebuild(self)

    monkeypatch.setattr(type(model), "rebuild", fail_once)
    with pytest.raises(np.linalg.LinAlgError):
        model.retune(model.kernel, 2 * model.noise_var, shift=50.0)
    assert (model.noise_var, model.history.means) == (settings[0], pytest.approx(settings[1], rel=1e-12))
    np.testing.assert_allclose(list(bandit.predict(0).values()), list(before.values()), rtol=1e-9)


def test_a_doubt_that_fails_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise np.linalg.LinAlgError

    bandit, other = (make(policy="lk-gp-ucb", pending="hallucinate") for _ in range(2))
    bandit.decide(0)
    doubt = bandit._learned.policy.pending_model
    with monkeypatch.context() as patch:
        patch.setattr(type(doubt), "learn", fail)
        bandit.decide(0)
    assert bandit.n_pending == bandit.n_decisions == 2
    assert bandit._learned.policy.pending_model is None
    last = other.decide_many([0, 0, 0])[2]
    assert bandit.decide(0).std == pytest.approx(last.std, rel=1e-9)


def test_a_decision_that_cannot_be_made_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    bandit = make(policy="lk-gp-ts", sampling="joint")
    monkeypatch.setattr("coterie.policies.rules.scores.symmetric_root", fail)
    with pytest.raises(MemoryError):
        bandit.decide(0)
    assert (bandit.n_decisions, bandit.n_pending) == (0, 0)


@pytest.mark.parametrize("n_rewards", [7, 40])
@pytest.mark.parametrize("policy", ["auto-ucb", "lk-gp-ucb"])
def test_a_slip_that_is_replaced_leaves_no_trace(policy: str, n_rewards: int) -> None:
    slipped, other = make(policy=policy), make(policy=policy)
    rewards = np.random.default_rng(1).normal(5.0, 1.0, n_rewards).tolist()
    for t, reward in enumerate(rewards):
        for bandit, value in ((slipped, 1.7e18 if t == 3 else reward), (other, reward)):
            bandit.reward(bandit.decide(t % 6, ["abcde"[t % 5]]).id, value)
    slipped.reward(3, rewards[3], replace=True)
    other._learned.relearn(None)
    for user in range(6):
        found, expected = (np.array(list(each.predict(user).values())) for each in (slipped, other))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_settings_stay_where_what_is_replaced_was_no_slip() -> None:
    bandit = make(policy="auto-ucb")
    for t in range(20):
        bandit.reward(bandit.decide(t % 6).id, 0.0 if t else 1.0)
    fits = list(bandit._learned.policy.fits)  # type: ignore[attr-defined, unused-ignore]
    bandit.reward(0, 0.0, replace=True)
    assert bandit._learned.policy.fits == fits  # type: ignore[attr-defined, unused-ignore]


@pytest.mark.parametrize("journal", [False, True])
def test_a_retired_arm_is_refused_until_it_comes_back(tmp_path: Path, journal: bool) -> None:
    bandit = make(journal=tmp_path / "journal" if journal else None)
    bandit.learn(0, "a", 9.0)
    bandit.retire_arms(["a", "b"])
    for call in (lambda: bandit.decide(0, ["a", "c"]), lambda: bandit.decide_many([0], ["c", "a"])):
        with pytest.raises(CandidatesError, match=r"candidates 'a' are retired.*revive them"):
            call()
    assert bandit.n_decisions == 0
    assert set(bandit.predict(0, ["a"])) == {"a"}
    with pytest.raises(CoterieError, match="'x' is unknown"):
        bandit.revive_arms(["a", "x"])
    bandit.revive_arms(["a", "c"])
    assert bandit.decide(0).arm == "a"
    assert set(bandit.predict(0)) == set("acde")


def test_numpy_numbers_and_ids_become_plain_ones(tmp_path: Path) -> None:
    settings = {"seed": np.int64(3), "max_pending": np.int32(7), "window": np.int16(5), "expire_after": np.int64(9)}
    bandit = make(arms=ct.ArmPool(np.eye(2), ids=np.array(["a", "b"])), **settings)
    assert [type(each) for each in bandit.arms.ids] == [str, str]
    assert type(bandit.decide(0, np.array(["b"])).arm) is str
    bandit.save(tmp_path / "bandit")
    with ct.Bandit.load(tmp_path / "bandit").frozen() as parts:
        assert {name: parts["settings"][name] for name in settings} == settings
    pool = ct.ArmPool(np.eye(2), ids=np.array([4, 5]))
    assert [type(each) for each in pool.ids] == [int, int]
    assert type(make(arms=pool).decide(0, np.array([5])).arm) is int


@pytest.mark.parametrize("seconds", [float("inf"), 1e300, 10**400, 0, True])
def test_a_wait_without_end_is_refused(seconds: Any) -> None:
    with pytest.raises(ParameterError, match=r"seconds above 0 and up to 1e\+12"):
        make(expire_after=seconds)


def test_where_nothing_can_be_written_or_read_is_told(tmp_path: Path) -> None:
    bandit, folder = make(), tmp_path / "shop"
    folder.mkdir()
    for path in (tmp_path / "nowhere" / "bandit", folder, Path(".")):
        with pytest.raises(SavedFileError) as told:
            bandit.save(path)
        assert str(told.value).startswith(f"{str(path)!r} cannot be written")
    with pytest.raises(SavedFileError, match=r"nowhere/plain' cannot be written: No such file"):
        bandit.export(tmp_path / "nowhere" / "plain")
    with pytest.raises(SavedFileError, match=r"No such file or directory.*Check the path"):
        ct.Bandit.load(tmp_path / "nowhere")
    with pytest.raises(SavedFileError, match="Check the path"):
        ct.Bandit.load(folder)
    bandit.save(folder / "bandit.coterie")
    with pytest.raises(SavedFileError, match=r"Pass '.*shop/bandit\.coterie'"):
        ct.Bandit.load(folder)
    with pytest.raises(JournalError, match="cannot be written: Is a directory"):
        make(journal=folder)
    assert [each.name for each in tmp_path.rglob("*")] == ["shop", "bandit.coterie"]


def test_threads_that_export_to_one_folder_succeed_once_and_are_told_otherwise(tmp_path: Path) -> None:
    bandit, start = make(), Barrier(4)

    def export(_: int) -> str:
        start.wait()
        try:
            bandit.export(tmp_path / "plain")
        except SavedFileError as error:
            return str(error)
        return "done"

    with ThreadPoolExecutor(4) as threads:
        told = sorted(threads.map(export, range(4)))
    assert told[-1] == "done"
    assert all("exists already" in each for each in told[:-1])
    assert [each.name for each in tmp_path.iterdir()] == ["plain"]


def test_a_journal_that_cannot_begin_or_hold_a_number_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = make(journal=tmp_path / "journal")
    with pytest.raises(JournalError, match="add_user was not done: change 0 cannot be written"):
        bandit.add_user(10**5000)
    bandit.learn(0, "a", 1.0)
    assert 10**5000 not in bandit.graph.index
    monkeypatch.setattr("os.write", lambda *_: 3)
    with pytest.raises(JournalError, match="cannot be started: No space left"):
        make(journal=tmp_path / "other")


@pytest.mark.parametrize("policy", ["auto-ucb", "auto-ts", "lk-gp-ucb"])
def test_a_reward_replaced_before_the_first_fit_leaves_no_trace(policy: str) -> None:
    bandit, other = make(policy=policy), make(policy=policy)
    decisions = [bandit.decide(0, ["a"]), bandit.decide(1, ["b"])]
    for decision, reward in zip(decisions, (1.0, 50.0), strict=True):
        bandit.reward(decision.id, reward)
    bandit.reward(decisions[1].id, 2.0, replace=True)
    other.learn(0, "a", 1.0)
    other.learn(1, "b", 2.0)
    for user in (0, 1, 4):
        np.testing.assert_allclose(list(bandit.predict(user).values()), list(other.predict(user).values()), atol=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda bandit: bandit.add_arms({"ska": [1.0, 2.0, 3.0]}),
            "arm 'ska' has 3 features; the arms that are there have 2",
        ),
        (lambda bandit: bandit.fit([("ana", "a", "1")]), "row 0: the reward is '1'"),
        (lambda bandit: bandit.decide_many(["ana"], {"ana": ["a"]}), "call decide for each user"),
        (lambda bandit: bandit.add_user(True), "id True is of type bool"),
        (lambda bandit: bandit.add_user(("bo", 7)), "is of type tuple"),
    ],
)
def test_what_newcomers_try_is_named(call: Any, words: str) -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo")])
    bandit = ct.Bandit(graph=graph, arms={"a": [0.0, 1.0], "b": [1.0, 0.0]})
    with pytest.raises(CoterieError, match=re.escape(words)):
        call(bandit)
