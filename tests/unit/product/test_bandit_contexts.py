"""What a Bandit can do, it can do with contexts: forget, replace, expire, grow, change features, copy itself."""

import copy
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ContextError, DuplicateIdError
from coterie.kernels.schema import ContextField

USERS = ["ana", "bo", "cy", "dee"]
GRAPH = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy"), ("cy", "dee")])
ARMS = {"a": [0.0], "b": [1.0], "c": [0.5]}
DEVICES = ["phone", "desktop", "watch"]


def make(**options: Any) -> ct.Bandit:
    return ct.Bandit(**{"graph": GRAPH, "arms": ARMS, "seed": 1, **options})


def context(t: int) -> dict[str, Any]:
    return {"hour": t % 24, "device": DEVICES[t % 3]}


def taught(n_rewards: int = 20, **options: Any) -> ct.Bandit:
    """Returns a bandit whose rewards depend on device and arm."""
    bandit, rng = make(**options), np.random.default_rng(0)
    for t in range(n_rewards):
        arm = "abc"[int(rng.integers(3))]
        bandit.learn(USERS[t % 4], arm, reward_of(arm, t) + 0.1 * float(rng.normal()), context(t))
    return bandit


def reward_of(arm: str, t: int) -> float:
    return float((arm == "a") == (t % 3 == 0))


def device(bandit: ct.Bandit) -> ContextField:
    assert bandit.context_schema is not None
    return bandit.context_schema.fields[1]


def believed(bandit: ct.Bandit, t: int = 3) -> Any:
    return np.array([list(bandit.predict(user, None, context(t)).values()) for user in USERS])


@pytest.mark.parametrize(
    "change",
    [
        lambda bandit: bandit.connect("ana", "dee", 0.5),
        lambda bandit: bandit.add_user("eve", ["ana"]),
        lambda bandit: bandit.remove_user("dee"),
        lambda bandit: bandit.add_arms({"d": [2.0]}),
        lambda bandit: bandit.update_features({"c": [0.6]}),
        lambda bandit: bandit.reward(bandit.decide("ana", None, context(0)).id, 1.0),
        lambda bandit: bandit._learned.relearn(None),
        lambda bandit: bandit._learned.recover(),
        lambda bandit: bandit.explain("ana", "a", context(0)),  # which brings a window up to date
    ],
)
@pytest.mark.parametrize("options", [{}, {"window": 10}, {"engine": "exact"}, {"engine": "features"}])
def test_a_category_keeps_its_code_whatever_changes(options: dict[str, Any], change: Any) -> None:
    bandit = taught(**options)
    before = device(bandit)
    assert before.categories == ("phone", "desktop", "watch")
    change(bandit)
    assert device(bandit) == before
    bandit.learn("ana", "a", 1.0, {"hour": 3, "device": "fridge"})
    assert device(bandit).categories == (*before.categories, "fridge")


def test_rewards_depend_on_the_context() -> None:
    bandit = taught(200)
    for t in range(3):
        mean = {arm: each[0] for arm, each in bandit.predict("bo", None, context(t)).items()}
        assert (max(mean, key=mean.__getitem__) == "a") == (t == 0)
        assert bandit.decide("bo", None, context(t)).arm in ("a",) if t == 0 else ("b", "c")


def test_what_was_learned_and_what_waits_belongs_to_the_new_features() -> None:
    bandit, other = make(), make(arms={**ARMS, "a": [2.0]})
    waiting = [each.decide("ana", ["a"], context(0)).id for each in (bandit, other)]
    for t in range(1, 7):
        for each in (bandit, other):
            each.learn(USERS[t % 4], "abc"[t % 3], float(t), context(t))
    bandit.update_features({"a": [2.0]})
    for each, number in zip((bandit, other), waiting, strict=True):
        each.reward(number, 3.0)
    assert np.array_equal(bandit._learned.events.inputs, other._learned.events.inputs)
    bandit._learned.relearn(None)  # hyperparameters stay with other features; here they are fitted anew
    other._learned.relearn(None)
    np.testing.assert_allclose(believed(bandit), believed(other), atol=1e-9)


def test_an_arm_that_changes_takes_its_rewards_along() -> None:
    bandit = make()
    for t in range(10):
        bandit.learn(USERS[t % 4], "a", 5.0 + 0.1 * (t % 2), context(t))
        bandit.learn(USERS[t % 4], "c", 0.1 * (t % 3), context(t))
    near_c = bandit.predict("ana", {"x": [0.55]}, context(1))["x"][0]
    bandit.update_features({"a": [0.55]})
    assert bandit.predict("ana", {"x": [0.55]}, context(1))["x"][0] > near_c + 1.0
    assert bandit.arms.features[0].tolist() == [0.55]


def test_retired_arms_are_not_chosen_and_still_count() -> None:
    bandit = taught()
    before = bandit.predict("ana", ["b"], context(0))
    bandit.retire_arms(["a"])
    assert set(bandit.predict("ana", None, context(0))) == {"b", "c"}
    assert bandit.predict("ana", ["b"], context(0)) == before
    assert {bandit.decide("ana", None, context(t)).arm for t in range(6)} <= {"b", "c"}
    assert set(bandit.score_all(context=context(0))["arm"]) == {"b", "c"}
    bandit.revive_arms(["a"])
    assert set(bandit.predict("ana", None, context(0))) == {"a", "b", "c"}


@pytest.mark.parametrize("engine", ["local", "exact", "features"])
def test_a_window_knows_its_last_rewards_alone(engine: str) -> None:
    bandit, other = taught(40, window=8, engine=engine), make(engine=engine)
    found, events = believed(bandit), bandit._learned.events
    last = list(zip(events.users, events.arms, events.rewards, events.inputs, strict=True))[-8:]
    for user, arm, reward, given in last:
        moment = {"hour": float(given[1]), "device": DEVICES[int(given[2]) - 1]}
        other.learn(USERS[user], "abc"[arm], reward, moment)
    hyperparameters = bandit._learned.policy.hyperparameters()
    assert hyperparameters is not None
    other._learned.policy.relearn_with(hyperparameters, other._learned.history())
    assert device(other).categories != device(bandit).categories  # other codes, and the same belief
    np.testing.assert_allclose(found, believed(other), atol=1e-8)


def test_forgetting_lets_what_changed_be_learned_anew() -> None:
    bandit, keeping = make(forgetting=0.8), make()
    for t in range(60):
        for each in (bandit, keeping):
            each.learn(USERS[t % 4], "a", (1.0 if t < 30 else -1.0) + 0.01 * (t % 3), context(0))
    assert bandit.predict("ana", ["a"], context(0))["a"][0] < -0.8 < keeping.predict("ana", ["a"], context(0))["a"][0]


@pytest.mark.parametrize("n_rewards", [3, 20])
@pytest.mark.parametrize("options", [{}, {"arms": list(ARMS)}, {"engine": "exact"}])
def test_a_reward_that_is_replaced_leaves_no_trace(options: dict[str, Any], n_rewards: int) -> None:
    bandit, other = make(**options), make(**options)
    for t in range(n_rewards):
        for each, slip in ((bandit, 9.0), (other, 0.5)):
            decision = each.decide(USERS[t % 4], ["abc"[t % 3]], context(t))
            each.reward(decision.id, slip if t == 1 else float(t % 2))
    bandit.reward(1, 0.5, replace=True)
    for each in (bandit, other):
        each._learned.relearn(None)
    np.testing.assert_allclose(believed(bandit), believed(other), atol=1e-8)


def test_several_rewards_are_one_change_and_wait_in_any_order() -> None:
    bandit, other = taught(), taught()
    for each in (bandit, other):
        each.decide_many(USERS, None, [context(t) for t in range(4)])
    bandit.reward_many([2, 0], [1.0, 0.0])
    other.reward(2, 1.0)
    other.reward(0, 0.0)
    assert np.array_equal(believed(bandit), believed(other))
    assert list(bandit.pending) == [1, 3]


def test_what_waits_is_less_uncertain_in_its_context_and_less_so_in_others() -> None:
    bandit = taught(40, pending="hallucinate")
    first = bandit.decide("ana", ["b"], context(0))
    others = bandit.decide("ana", ["b"], context(1)).std / taught(40).decide("ana", ["b"], context(1)).std
    for _ in range(4):
        last = bandit.decide("ana", ["b"], context(0))
    assert last.std < first.std
    assert last.std / first.std < others <= 1.0


def test_decisions_with_contexts_expire_and_are_limited() -> None:
    now = [0.0]
    bandit = make(expire_after=10.0, max_pending=3, clock=lambda: now[0], context_schema={"hour": "number"})
    for t in range(5):
        bandit.decide("ana", {"a": None, f"guest-{t}": [0.1 * t]}, {"hour": t})
    assert list(bandit.pending) == [2, 3, 4]
    now[0] = 11.0
    assert bandit.pending == {}


def test_binary_rewards_and_a_least_propensity_hold_in_contexts() -> None:
    bandit = make(reward="binary", min_propensity=0.2)
    for t in range(20):
        decision = bandit.decide(USERS[t % 4], None, context(t))
        assert min(each.propensity or 0.0 for each in decision.candidates.values()) >= 0.2 - 1e-12
        bandit.reward(decision.id, float(t % 2))
    with pytest.raises(ct.errors.RewardError, match="0 or 1"):
        bandit.learn("ana", "a", 0.5, context(0))


def test_all_scores_are_those_of_predictions() -> None:
    bandit = taught()
    table = bandit.score_all(context=context(1), top=3, std=True)
    for user, arm, mean, std in zip(table["user"], table["arm"], table["mean"], table["std"], strict=True):
        assert bandit.predict(user, [arm], context(1))[arm] == pytest.approx((mean, std))


def test_an_explanation_adds_up_and_names_arms_of_one_request() -> None:
    bandit = taught()
    bandit.learn("ana", {"guest": [0.2]}, 3.0, context(1))
    told = bandit.explain("ana", "a", context(1))
    assert told.level + sum(each[-1] for each in told.by_event) + told.rest == pytest.approx(told.mean)
    assert told.rest == pytest.approx(0.0, abs=1e-6)
    assert set(told.by_arm) == {"a", "b", "c", "guest"}
    assert bandit.explain("ana", {"new": [0.2]}, context(1)).arm == "new"


# Features of users


def table_of(n_users: int) -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(0)
    return {f"u{i}": {"age": 25.0 + 30 * (i % 2) + float(rng.normal()), "region": "ns"[i % 2]} for i in range(n_users)}


def two_kinds(**options: Any) -> ct.Bandit:
    """Returns a bandit on a graph without edges whose users like one arm or the other by their age and region."""
    table, rng = table_of(20), np.random.default_rng(0)
    graph = ct.UserGraph.from_matrix(ct.make_graph("empty", 20).weights, users=list(table))
    bandit = ct.Bandit(graph=graph, arms=["a", "b"], users={**table, "stranger": {"shoe": 43}}, **options)
    for _ in range(120):
        i, arm = int(rng.integers(20)), int(rng.integers(2))
        bandit.learn(f"u{i}", "ab"[arm], float(arm == i % 2) + 0.1 * float(rng.normal()))
    return bandit


@pytest.mark.parametrize("engine", ["local", "exact", "features"])
def test_a_newcomer_without_friends_starts_from_users_with_the_same_features(engine: str) -> None:
    bandit = two_kinds(engine=engine)
    bandit.add_user("young", features={"age": np.float64(26), "region": "n"})
    bandit.add_users(
        {"old": None, "older": ["old"]}, {"old": {"age": 54, "region": "s"}, "older": {"age": 56, "region": "s"}}
    )
    means = {user: bandit.predict(user)["a"][0] for user in ("u0", "u1", "young", "old", "older")}
    assert abs(means["young"] - means["u0"]) < 0.2 < abs(means["young"] - means["u1"])
    for user in ("old", "older"):
        assert abs(means[user] - means["u1"]) < 0.2 < abs(means[user] - means["u0"])
    assert bandit.decide("young").arm == "a"
    assert bandit.decide("old").arm == "b"


def test_without_its_features_a_newcomer_knows_nothing_of_the_sort() -> None:
    table = table_of(20)
    graph = ct.UserGraph.from_matrix(ct.make_graph("empty", 20).weights, users=list(table))
    bandit, rng = ct.Bandit(graph=graph, arms=["a", "b"]), np.random.default_rng(0)
    for _ in range(120):
        i, arm = int(rng.integers(20)), int(rng.integers(2))
        bandit.learn(f"u{i}", "ab"[arm], float(arm == i % 2) + 0.1 * float(rng.normal()))
    bandit.add_user("young")
    assert abs(bandit.predict("young")["a"][0] - bandit.predict("young")["b"][0]) < 0.2


def test_changes_of_users_with_features_are_as_learning_again() -> None:
    bandit = two_kinds()
    bandit.add_user("new", {"u0": 2.0}, {"age": 30.0, "region": "w"})
    bandit.remove_user("u3")
    bandit.connect("u5", "u6", 0.5)
    bandit.disconnect("u5", "u6")
    before = [bandit.predict(user) for user in bandit.users]
    bandit._learned.recover()
    for user, each in zip(bandit.users, before, strict=True):
        np.testing.assert_allclose(list(bandit.predict(user).values()), list(each.values()), atol=1e-8)


def test_a_fit_that_goes_on_survives_a_newcomer_with_features() -> None:
    bandit = two_kinds()
    for t in range(8):
        bandit.learn(f"u{t}", "a", float(t % 2))
    assert bandit._learned.policy.pending_fit is not None
    bandit.add_user("new", features={"age": 30.0, "region": "n"})
    assert bandit._learned.policy.pending_fit is not None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda bandit: bandit.add_user("z"), "users 'z' have no features"),
        (lambda bandit: bandit.add_user("z", None, {"age": 3}), "the features of user 'z' has no 'region'"),
        (lambda bandit: bandit.add_user("z", None, {"age": "x", "region": "n"}), "'age' of the features of user 'z'"),
        (lambda bandit: bandit.add_user("z", None, object()), "object"),
        (lambda bandit: bandit.add_user("z", None, [1.0, 2.0]), "the features of user 'z' is a list"),
        (lambda bandit: bandit.add_users({"z": None}), "users 'z' have no features"),
        (lambda bandit: bandit.add_users({"z": None}, {"y": {"age": 3, "region": "n"}}), "features of 'y' were given"),
        (lambda bandit: bandit.add_users({"z": None}, 3), "the table of users is a int"),
    ],
)
@pytest.mark.parametrize("journal", [False, True])
def test_features_that_are_not_as_the_others_change_nothing(
    tmp_path: Path, call: Any, words: str, journal: bool
) -> None:
    bandit = two_kinds()
    bandit.save(tmp_path / "bandit")
    if journal:
        bandit = ct.Bandit.load(tmp_path / "bandit", journal=tmp_path / "journal")
    bandit.save(tmp_path / "before")
    with pytest.raises(ContextError, match=words):
        call(bandit)
    bandit.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_features_where_users_have_none_are_refused() -> None:
    with pytest.raises(
        ContextError, match="features of users 'z' were given; this bandit knows its users by the graph"
    ):
        make().add_user("z", None, {"age": 3})
    table, graph = table_of(3), ct.UserGraph.from_edges([("u0", "u1"), ("u1", "u2")])
    with pytest.raises(ContextError, match="users 'u0' have no features"):
        ct.Bandit(graph=graph, arms=ARMS, users={name: table[name] for name in ("u1", "u2")})


def test_a_dataframe_of_users_is_as_a_mapping() -> None:
    pandas = pytest.importorskip("pandas")
    graph = ct.UserGraph.from_edges([("u0", "u1"), ("u1", "u2")])
    rows: dict[str, list[Any]] = {"user": ["u0", "u1", "u2"], "age": [20, 30, 40], "region": ["n", "s", "n"]}
    bandit = ct.Bandit(graph=graph, arms=ARMS, users=pandas.DataFrame(rows))
    assert bandit._learned.user_features == {
        user: {"age": age, "region": region} for user, age, region in zip(*rows.values(), strict=True)
    }
    bandit.add_users({"u3": None}, pandas.DataFrame({"id": ["u3"], "age": [25], "region": ["s"]}))
    assert bandit.predict("u3")["a"][1] > 0
    rows["user"][1] = "u0"
    with pytest.raises(DuplicateIdError, match="the table of users has 'u0' twice"):
        ct.Bandit(graph=graph, arms=ARMS, users=pandas.DataFrame(rows))


def test_a_table_of_rewards_is_learned_at_once_where_there_are_no_contexts(tmp_path: Path) -> None:
    table, rng = table_of(8), np.random.default_rng(0)
    graph = ct.UserGraph.from_matrix(ct.make_graph("ring", 8).weights, users=list(table))
    rows = [(f"u{int(rng.integers(8))}", "abc"[int(rng.integers(3))], float(rng.normal())) for _ in range(50)]
    bandit, other = (ct.Bandit(graph=graph, arms=ARMS, users=table) for _ in range(2))
    assert bandit.fit(rows) == 50
    for row in rows:
        other.learn(*row)
    other._learned.relearn(None)
    for user in graph.users:
        np.testing.assert_allclose(list(bandit.predict(user).values()), list(other.predict(user).values()), atol=1e-8)
    bandit.save(tmp_path / "bandit")
    assert ct.Bandit.load(tmp_path / "bandit").predict("u1") == bandit.predict("u1")


# Copies, threads


@pytest.mark.parametrize("options", [{}, {"arms": list(ARMS)}, {"pending": "hallucinate"}, {"window": 7}])
def test_a_copy_of_a_copy_goes_on_alike(options: dict[str, Any]) -> None:
    bandit = taught(**options)
    waiting = bandit.decide("ana", None, context(2))
    other = copy.deepcopy(copy.copy(bandit))
    for each in (bandit, other):
        each.reward(waiting.id, 2.0)
        each.learn("bo", "b", 1.0, {"hour": 1, "device": "fridge"})
    for t in range(6):
        assert bandit.decide(USERS[t % 4], None, context(t)) == other.decide(USERS[t % 4], None, context(t))
    assert bandit.context_schema == other.context_schema


def test_threads_learn_categories_of_their_own() -> None:
    bandit, failures = make(context_schema={"device": "category"}), list[BaseException]()

    def use(number: int) -> None:
        try:
            for t in range(15):
                decision = bandit.decide(USERS[number], None, {"device": f"device-{number}-{t % 4}"})
                bandit.predict("ana", None, {"device": "unheard of"})
                bandit.reward(decision.id, float(t % 2))
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert bandit.context_schema is not None
    assert len(bandit.context_schema.fields[0].categories) == 16
    assert (bandit.n_decisions, bandit.n_rewards, bandit.n_pending) == (60, 60, 0)
    assert len({tuple(each) for each in bandit._learned.events.inputs}) <= 48


def test_fits_beside_decisions_in_contexts_are_made_again(tmp_path: Path) -> None:
    bandit = make(journal=tmp_path / "journal", wait_for_fits=False)
    bandit.save(tmp_path / "snapshot")
    made = []
    for t in range(80):
        decision = bandit.decide(
            USERS[t % 4], {"a": None, "b": None, f"new-{t}": [0.01 * t]}, context(t), keep=t % 9 == 0
        )
        bandit.reward(decision.id, reward_of(str(decision.arm), t))
        made.append(decision)
        if t == 40:
            bandit.save(tmp_path / "later")
    assert bandit._learned.policy.fits
    for name in ("snapshot", "later"):
        assert ct.replay(tmp_path / name, tmp_path / "journal", decision=made[-1].id) == made[-1]
