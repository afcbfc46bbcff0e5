"""Several rewards as one change, what a bandit shows of itself, and copies of it."""

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie import Bandit
from coterie.errors import CandidatesError, DecisionError, DimensionError, DuplicateIdError, InputError, RewardError
from coterie.policies.factory.registry import OPTION_NAMES
from coterie.product.files.replaying import JournalLines

ARMS = {name: row.tolist() for name, row in zip("abcd", np.random.default_rng(0).normal(size=(4, 2)), strict=True)}


def make(**options: Any) -> Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)])
    return Bandit(**{"graph": graph, "arms": ARMS, "seed": 3, "wait_for_fits": True, **options})


@pytest.mark.parametrize("policy", ["auto-ucb", "lk-gp-ts", "club", "per-user-linucb"])
def test_many_rewards_are_learned_as_one_after_another(policy: str) -> None:
    one, many = make(policy=policy), make(policy=policy)
    users, arms, rewards = ["ana", "bo", "cy"] * 4, list("abcdabcdabcd"), [float(np.sin(i)) for i in range(12)]
    for each in zip(users, arms, rewards, strict=True):
        one.learn(*each)
    many.learn_many(users, arms, rewards)
    assert many.predict("bo") == one.predict("bo")
    decided = [[bandit.decide(user).id for user in ("ana", "cy")] for bandit in (one, many)]
    for number, reward in zip(decided[0], (1.0, 0.0), strict=True):
        one.reward(number, reward)
    many.reward_many(decided[1], [1.0, 0.0])
    assert many.predict("bo") == one.predict("bo")
    for bandit, numbers in zip((one, many), decided, strict=True):
        bandit.reward_many(numbers, [0.5, 0.25], replace=True)
    np.testing.assert_allclose(list(many.predict("bo").values()), list(one.predict("bo").values()), rtol=1e-9)
    assert many.pending == one.pending == {}


@pytest.mark.parametrize(
    ("call", "given", "error"),
    [
        ("learn_many", (["ana", "zoe"], ["a", "b"], [1.0, 1.0]), InputError),
        ("learn_many", (["ana", "bo"], ["a", "z"], [1.0, 1.0]), InputError),
        ("learn_many", (["ana", "bo"], ["a", "b"], [1.0, float("nan")]), RewardError),
        ("learn_many", (["ana", "bo"], ["a", "b"], [1.0]), DimensionError),
        ("reward_many", ([0, 7], [1.0, 1.0]), DecisionError),
        ("reward_many", ([0, 0], [1.0, 1.0]), DuplicateIdError),
        ("reward_many", ([0], [1.0, 1.0]), DimensionError),
    ],
)
def test_on_a_mistake_none_of_many_is_learned(call: str, given: Any, error: type[Exception]) -> None:
    bandit = make()
    bandit.decide("ana")
    before = bandit.predict("ana")
    with pytest.raises(error, match=r"rewards\[1\]" if error is RewardError else "."):
        getattr(bandit, call)(*given)
    assert (bandit.n_rewards, bandit.n_pending, bandit.predict("ana")) == (0, 1, before)


def test_many_rewards_are_one_line_of_the_journal_and_replayed(tmp_path: Path) -> None:
    bandit = make(journal=tmp_path / "journal")
    bandit.save(tmp_path / "start")
    decisions = bandit.decide_many(["ana", "bo", "cy"])
    bandit.reward_many((each.id for each in decisions), np.array([1.0, 0.0, 0.5]))
    bandit.learn_many(iter(["ana", "bo"]), iter("ab"), (0.25, 0.75))
    bandit.add_user("dee", iter(["ana"]))
    assert JournalLines(tmp_path / "journal").told().rewards == {0: 1.0, 1: 0.0, 2: 0.5}
    before = bandit.predict("dee")
    bandit._journal.close()  # type: ignore[union-attr]
    again = Bandit.load(tmp_path / "start", journal=tmp_path / "journal")
    assert (again.n_rewards, again.predict("dee")) == (5, before)


def test_a_bandit_shows_who_is_there_and_what_waits() -> None:
    bandit = make()
    bandit.retire_arms(["c"])
    bandit.decide("cy", ["a"])
    assert bandit.users == ("ana", "bo", "cy")
    assert bandit.retired == ("c",)
    assert bandit.pending == {0: ("cy", "a")}


def test_friends_are_a_mapping_or_a_list() -> None:
    listed, mapped = make(), make()
    listed.add_user("dee", ["ana", "bo"])
    listed.add_users({"eve": ["dee"], "fay": None})
    mapped.add_user("dee", {"ana": 1.0, "bo": 1.0})
    mapped.add_users({"eve": {"dee": 1.0}, "fay": {}})
    assert listed.graph.weights.toarray().tolist() == mapped.graph.weights.toarray().tolist()
    with pytest.raises(InputError, match="friends = 'ana' is neither"):
        listed.add_user("gus", "ana")


def test_a_copy_goes_on_by_itself_from_the_same_belief(tmp_path: Path) -> None:
    bandit = make(journal=tmp_path / "journal", expire_after=10.0, clock=lambda: 5.0)
    bandit.learn("ana", "a", 1.0)
    bandit.decide("bo")
    again = copy.deepcopy(bandit)
    assert (again.predict("bo"), again.pending) == (bandit.predict("bo"), bandit.pending)
    again.learn("bo", "b", 1.0)
    assert (bandit.n_rewards, again.n_rewards, copy.copy(again).n_rewards) == (1, 2, 2)
    with pytest.raises(TypeError, match=r"use bandit.save\(path\)"):
        pickle.dumps(bandit)


def test_features_of_a_request_are_no_candidates_yet() -> None:
    with pytest.raises(CandidatesError, match="candidates are a mapping"):
        make().decide("ana", {"a": [0.0, 1.0]})


def test_every_option_of_a_policy_is_one_of_the_bandit_by_name() -> None:
    assert set(OPTION_NAMES) <= set(inspect.signature(Bandit).parameters)


def test_progress_of_a_report_counts_its_fits() -> None:
    bandit, told = make(), list[tuple[str, int]]()
    bandit.learn_many(["ana", "bo", "cy"], list("abc"), [1.0, 0.0, 0.5])
    bandit.graph_report(progress=lambda what, done: told.append((what, done)))
    assert told == [("fits", 0), ("fits", 1), ("fits", 2), ("fits", 3)]


@pytest.mark.parametrize(
    "engine", ["exact", "grid", "hybrid", "linear", "features", "local", "dense", "sparse", "auto"]
)
def test_a_table_is_learned_on_every_engine(engine: str) -> None:
    policy = {"policy": "lk-gp-ucb"} if engine != "auto" else {}
    one, table = (make(engine=engine, **policy) for _ in range(2))
    users, arms, rewards = ["ana", "bo", "cy"] * 3, list("abcdabcda"), [float(np.cos(i)) for i in range(9)]
    one.learn_many(users, arms, rewards)
    assert table.fit([(users[:4], arms[:4], rewards[:4]), (users[4:], arms[4:], rewards[4:])]) == 9
    mine, theirs = table.predict("bo"), one.predict("bo")
    if engine != "auto":  # whose hyperparameters are fitted to the whole table
        np.testing.assert_allclose(
            list(mine.values()), list(theirs.values()), atol=1e-2 if engine == "sparse" else 1e-8
        )
    assert table.n_rewards == 9


@pytest.mark.parametrize("who", ["policy", "model", "bandit"])
def test_an_old_name_works_and_says_the_new_one(who: str) -> None:
    bandit = make()
    policy = bandit._learned.policy
    old = {"policy": policy.explain, "model": policy.model.explain, "bandit": bandit.explain_model}[who]
    with pytest.warns(DeprecationWarning, match="describe"):
        told = old()
    assert told in bandit.describe()
