"""The Bandit: rewards late, out of order, once; users and arms that come and go; memory that fades."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.errors import (
    CandidatesError,
    CoterieError,
    DecisionError,
    ParameterError,
    RewardError,
    UnknownArmError,
    UnknownUserError,
)
from coterie.policies.auto import AutoPolicy, bernoulli_likelihood, climbing
from coterie.policies.auto.fits import FitSchedule
from coterie.policies.auto.prior import fit
from coterie.product.bandit import Bandit

ARMS = dict(zip("abcdef", np.random.default_rng(0).normal(size=(6, 3)), strict=True))


def friends() -> ct.UserGraph:
    return ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)], users=["ana", "bo", "cy", "dee"])


def make(**options: Any) -> Bandit:
    return Bandit(**{"graph": friends(), "arms": ARMS, "policy": "lk-gp-ucb", "seed": 3, **options})


def beliefs(bandit: Bandit) -> dict[Any, Any]:
    return {user: bandit.predict(user) for user in bandit.graph.users}


def assert_same(one: Bandit, other: Bandit) -> None:
    mine, theirs = beliefs(one), beliefs(other)
    assert mine.keys() == theirs.keys()
    for user, arms in mine.items():
        assert arms.keys() == theirs[user].keys()
        np.testing.assert_allclose(list(arms.values()), list(theirs[user].values()), atol=1e-9)


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "lk-gp-ts", "per-user-linucb", "auto-ucb", "club"])
def test_rewards_may_come_in_any_order(policy: str) -> None:
    bandit = make(policy=policy)
    decisions = [bandit.decide(user) for user in ("ana", "bo", "cy", "dee", "ana", "bo")]
    assert [each.id for each in decisions] == list(range(6))
    for each in reversed(decisions):
        bandit.reward(each.id, 0.5)
    assert (bandit.n_rewards, bandit.n_pending) == (6, 0)


def test_the_order_of_rewards_is_irrelevant_to_the_belief() -> None:
    one, other = make(), make()
    first = [one.decide(user) for user in ("ana", "bo", "cy")]
    second = [other.decide(user) for user in ("ana", "bo", "cy")]
    for bandit, order in ((one, first), (other, second[::-1])):
        for each in order:
            bandit.reward(each.id, float(each.id))
    assert_same(one, other)


def test_a_decision_is_rewarded_once_and_errors_change_nothing() -> None:
    bandit = make()
    decision = bandit.decide("ana", ["a", "b"])
    bandit.reward(decision.id, 1.0)
    before = beliefs(bandit)
    with pytest.raises(DecisionError, match="rewarded already"):
        bandit.reward(decision.id, 2.0)
    for wrong in (99, -1, "x", None):
        with pytest.raises(DecisionError, match="unknown"):
            bandit.reward(wrong, 2.0)  # type: ignore[arg-type]
    later = bandit.decide("bo")
    with pytest.raises(RewardError):
        bandit.reward(later.id, float("nan"))
    assert beliefs(bandit) == before
    assert bandit.n_pending == 1
    bandit.reward(later.id, 0.0)


def test_a_replaced_reward_is_as_if_only_the_last_had_come() -> None:
    one, other = make(), make()
    for bandit, first in ((one, 5.0), (other, 1.0)):
        decisions = [bandit.decide(user, ["a"]) for user in ("ana", "bo")]
        bandit.reward(decisions[0].id, first)
        bandit.reward(decisions[1].id, 2.0)
    one.reward(0, 1.0, replace=True)
    assert_same(one, other)
    assert one.n_rewards == 2
    one.reward(0, 3.0, replace=True)
    fresh = one.decide("cy")
    one.reward(fresh.id, 1.0, replace=True)  # nothing to replace yet: the first reward
    assert one.n_rewards == 3


@pytest.mark.parametrize("engine", ["grid", "linear", "features", "exact", "dense"])
@pytest.mark.parametrize("policy", ["lk-gp-ucb", "auto-ucb", "club"])
def test_a_replaced_reward_is_as_learned_anew_on_every_engine(engine: str, policy: str) -> None:
    bandit = make(policy=policy, engine=engine)
    decisions = [bandit.decide(user) for user in ("ana", "bo", "cy", "ana", "dee") * 3]
    for each in decisions:
        bandit.reward(each.id, float(each.id % 4))
    made, kept = bandit._learned.policy, bandit._learned.policy.hyperparameters()
    bandit.reward(3, 7.0, replace=True)
    bandit.reward(3, -2.0, replace=True)
    assert (bandit._learned.policy is made) is (engine in ("grid", "linear", "features") and policy != "club")
    after = bandit._learned.policy.hyperparameters()
    if kept is not None and after is not None:  # hyperparameters stay until the next fit
        assert after["fits"] == kept["fits"]
        assert after["hyper"] == pytest.approx(kept["hyper"])
    got = beliefs(bandit)
    assert bandit._learned.events.rewards[3] == -2.0
    bandit._learned.relearn(bandit._learned.policy.hyperparameters())
    for user, arms in beliefs(bandit).items():
        np.testing.assert_allclose(list(arms.values()), list(got[user].values()), atol=1e-9)


def test_a_slip_of_the_pen_leaves_no_trace() -> None:
    one, other = make(), make()
    for bandit, reward in ((one, 1e14), (other, 1.0)):
        bandit.reward(bandit.decide("ana", ["a"]).id, reward)
        bandit.learn("bo", "b", 2.0)
    one.reward(0, 1.0, replace=True)
    assert_same(one, other)


def test_pending_decisions_have_a_limit_and_an_expiry() -> None:
    now = [0.0]
    bandit = make(max_pending=2, expire_after=10.0, clock=lambda: now[0])
    ids = [bandit.decide("ana").id for _ in range(3)]
    with pytest.raises(DecisionError, match="no longer remembered"):
        bandit.reward(ids[0], 1.0)
    now[0] = 5.0
    bandit.reward(ids[1], 1.0)
    now[0] = 11.0
    with pytest.raises(DecisionError, match="no longer remembered"):
        bandit.reward(ids[2], 1.0)
    assert (bandit.n_rewards, bandit.n_pending) == (1, 0)


edits = st.lists(
    st.sampled_from(["add", "remove", "connect", "disconnect", "arms", "features", "retire", "learn"]), max_size=6
)


@settings(max_examples=30, deadline=None)
@given(edits, st.integers(0, 1000), st.sampled_from(["lk-gp-ucb", "graph-ucb", "club", "auto-ucb"]))
def test_after_changes_the_belief_is_that_of_a_new_bandit(changes: list[str], seed: int, policy: str) -> None:
    """Same graph, same arms, same rewards: nothing is left of how they came about."""
    rng = np.random.default_rng(seed)
    bandit = make(policy=policy)
    told: list[tuple[Any, Any, float]] = []

    def learn() -> None:
        user = bandit.graph.users[int(rng.integers(bandit.graph.n_users))]
        arm = bandit.arms.ids[int(rng.integers(len(bandit.arms)))]
        told.append((user, arm, float(rng.normal())))
        bandit.learn(*told[-1])

    for _ in range(12):
        learn()
    for number, change in enumerate(changes):
        users = bandit.graph.users
        if change == "add":
            bandit.add_user(f"new-{number}", {users[0]: 1.0})
        elif change == "remove" and len(users) > 2:
            bandit.remove_user(users[-1])
            told = [each for each in told if each[0] != users[-1]]
        elif change == "connect":
            bandit.connect(users[0], users[-1], 0.7)
        elif change == "disconnect" and bandit.graph.has_edge(users[0], users[1]):
            bandit.disconnect(users[0], users[1])
        elif change == "arms":
            bandit.add_arms({f"arm-{number}": rng.normal(size=3)})
        elif change == "features":
            bandit.update_features({"a": rng.normal(size=3)})
        elif change == "retire":
            bandit.retire_arms(["f"])
        learn()
    fresh = Bandit(graph=bandit.graph, arms=bandit.arms, policy=policy, seed=3)
    fresh.retire_arms(bandit._retired)
    if policy == "auto-ucb":  # hyperparameters depend on when they were fitted: compare at the same ones
        for user, arm, reward in told:
            fresh._learned.events.add(fresh.graph.index[user], fresh.arms.index[arm], reward)
        fresh._learned.relearn(bandit._learned.policy.hyperparameters())
    else:
        for user, arm, reward in told:
            fresh.learn(user, arm, reward)
    assert_same(bandit, fresh)


def test_a_new_user_has_the_friends_belief_at_once() -> None:
    bandit = make()
    for _ in range(5):
        bandit.learn("ana", "a", 2.0)
    bandit.add_user("eve", {"ana": 5.0})
    bandit.add_user("loner")
    assert bandit.predict("eve", ["a"])["a"][0] > 1.0
    assert bandit.predict("loner", ["a"])["a"][0] == pytest.approx(0.0)


def test_decisions_that_wait_survive_changes_of_graph_and_arms() -> None:
    bandit = make()
    waiting = bandit.decide("cy", ["d"])
    gone = bandit.decide("dee", ["a"])
    bandit.remove_user("dee")
    bandit.add_user("eve", {"cy": 1.0})
    bandit.add_arms({"z": [0.0, 0.0, 0.0]})
    bandit.reward(waiting.id, 3.0)
    assert bandit.predict("cy", ["d"])["d"][0] > 1.0
    with pytest.raises(DecisionError, match="no longer remembered"):
        bandit.reward(gone.id, 1.0)
    assert bandit.decide("eve").id == 2


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("options", [{"forgetting": 0.97}, {"window": 20}, {"window": 15}])
def test_forgetting_fits_settings_on_the_usual_epochs_and_the_belief_is_exact_for_them(
    options: dict[str, Any], likelihood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[int] = []
    bandit = make(policy="auto-ucb", likelihood=likelihood, reward="binary", wait_for_fits=True, **options)

    def noted(begins: Any) -> Any:
        def begun(*args: Any, **rest: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                fitted.append(bandit.n_rewards)
            return begins(*args, **rest)

        return begun

    # Of a fit in a thread, when it begins: when it is computed depends on the machine.
    monkeypatch.setattr(AutoPolicy, "_started_fit", noted(AutoPolicy._started_fit))
    for module in (climbing, bernoulli_likelihood):
        monkeypatch.setattr(module, "fit", noted(fit))
    for number in range(70):
        decision = bandit.decide(["ana", "bo", "cy", "dee"][number % 4])
        bandit.reward(decision.id, float(number % 3 == 0))
    late, epochs = {number for number in fitted if number > 35}, {64} if likelihood == "bernoulli" else {48, 64}
    due = {epoch: epoch + 2 * (epoch // FitSchedule().due_share) for epoch in epochs}  # it may begin once more
    near = [set(range(epoch - 1, due[epoch] + 1)) for epoch in epochs]
    assert all(late & each for each in near)
    assert late <= set().union(*near)
    bandit.explain("ana", "a")  # brings the weights up to date
    policy = bandit._learned.policy
    other = bandit._learned._make(graph=bandit.graph, arms=bandit.arms, **bandit._learned.options)
    other.relearn_with(policy.hyperparameters() or {}, bandit._learned.history())
    np.testing.assert_array_equal(policy.predict("bo"), other.predict("bo"))


@pytest.mark.parametrize("options", [{"forgetting": 0.9}, {"window": 5}, {"forgetting": 0.95, "window": 8}])
@pytest.mark.parametrize("engine", ["grid", "exact", "dense"])
def test_memory_that_fades_is_exact_on_the_weighted_rewards(options: dict[str, Any], engine: str) -> None:
    bandit = make(engine=engine, noise_var=0.2, **options)
    rng = np.random.default_rng(0)
    told = [(int(rng.integers(4)), int(rng.integers(6)), float(rng.normal())) for _ in range(20)]
    for user, arm, reward in told:
        bandit.learn(bandit.graph.users[user], bandit.arms.ids[arm], reward)
    mean, std = (np.array([bandit.predict("bo")[arm][i] for arm in bandit.arms.ids]) for i in (0, 1))
    ages = np.arange(19, -1, -1)
    weights = options.get("forgetting", 1.0) ** ages * (ages < options.get("window", 99))
    kept = weights > 0
    users, arms, rewards = (np.array(each)[kept] for each in zip(*told, strict=True))
    kernel = bandit._learned.policy.model.kernel
    gram = kernel.cross(users, arms, users, arms) + np.diag(0.2 / weights[kept])
    cross = kernel.cross_of_user(1, np.arange(6), users, arms)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(gram, rewards), atol=1e-9)
    variance = kernel.user_cov[1, 1] * kernel.arm_diag(np.arange(6))
    np.testing.assert_allclose(std**2, variance - np.sum(cross * np.linalg.solve(gram, cross.T).T, axis=1), atol=1e-9)


def test_retired_arms_are_not_shown_but_still_teach() -> None:
    bandit = make()
    bandit.learn("ana", "a", 2.0)
    bandit.retire_arms(["a", "b"])
    assert {bandit.decide("ana").arm for _ in range(20)} <= set("cdef")
    assert set(bandit.predict("ana")) == set("cdef")
    with pytest.raises(CandidatesError, match="every arm is retired"):
        bandit.retire_arms(list("cdef"))
    assert set(bandit.predict("ana")) == set("cdef")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda b: b.decide("zoe"), UnknownUserError),
        (lambda b: b.decide("ana", ["x"]), UnknownArmError),
        (lambda b: b.decide("ana", []), CandidatesError),
        (lambda b: b.learn("zoe", "a", 1.0), UnknownUserError),
        (lambda b: b.learn("ana", "x", 1.0), UnknownArmError),
        (lambda b: b.learn("ana", "a", float("inf")), RewardError),
        (lambda b: b.add_user("ana"), CoterieError),
        (lambda b: b.add_user("eve", {"zoe": 1.0}), UnknownUserError),
        (lambda b: b.connect("ana", "bo", -1.0), CoterieError),
        (lambda b: b.disconnect("ana", "dee"), CoterieError),
        (lambda b: b.remove_user("zoe"), UnknownUserError),
        (lambda b: b.add_arms({"a": [0, 0, 0]}), ParameterError),
        (lambda b: b.add_arms({"z": [0, 0]}), CoterieError),
        (lambda b: b.update_features({"z": [0, 0, 0]}), UnknownArmError),
        (lambda b: b.retire_arms(["z"]), UnknownArmError),
    ],
)
def test_a_mistake_is_told_and_changes_nothing(call: Any, error: type[Exception]) -> None:
    bandit = make()
    bandit.learn("ana", "a", 1.0)
    before = (beliefs(bandit), bandit.n_rewards, bandit.n_pending, bandit.graph.users, bandit.arms.ids)
    with pytest.raises(error):
        call(bandit)
    assert (beliefs(bandit), bandit.n_rewards, bandit.n_pending, bandit.graph.users, bandit.arms.ids) == before


@pytest.mark.parametrize(
    "option", [{"forgetting": 0}, {"forgetting": 1.5}, {"window": 0}, {"max_pending": 0}, {"expire_after": -1}]
)
def test_settings_out_of_range_are_told(option: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        make(**option)


@pytest.mark.parametrize("policy", ["club", "coop-kernel-ucb"])
def test_policies_that_remember_the_order_of_rewards_cannot_forget(policy: str) -> None:
    with pytest.raises(ParameterError, match="order of its rewards"):
        make(policy=policy, forgetting=0.9)
    with pytest.raises(ParameterError, match="depends on its own decisions"):
        make(policy="sup-kernel-ucb")


def test_features_may_be_named() -> None:
    bandit = make(arms={"tea": {"hot": 1.0, "sweet": 0.0}, "cola": {"sweet": 1.0, "hot": 0.0}})
    np.testing.assert_array_equal(bandit.arms.features, [[1, 0], [0, 1]])
    with pytest.raises(CoterieError, match="other features"):
        make(arms={"tea": {"hot": 1.0}, "cola": {"sweet": 1.0}})


def test_threads_may_decide_and_reward_at_once() -> None:
    """Every decision sees a whole belief, every reward is learned once, and the sum is what one thread would give."""
    bandit = make()
    failures: list[BaseException] = []

    def work(user: str) -> None:
        try:
            for _ in range(60):
                decision = bandit.decide(user)
                bandit.predict(user)
                bandit.reward(decision.id, 1.0)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(user,)) for user in ("ana", "bo", "cy", "dee")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert (bandit.n_rewards, bandit.n_pending) == (240, 0)
    fresh = make()
    events = bandit._learned.events
    for user, arm, reward in zip(events.users, events.arms, events.rewards, strict=True):
        fresh.learn(fresh.graph.users[user], fresh.arms.ids[arm], reward)
    assert_same(bandit, fresh)


@pytest.mark.parametrize(
    ("policy", "options"), [("lk-gp-ucb", {}), ("lk-gp-ts", {}), ("epsilon-greedy", {"width": 0.3})]
)
@pytest.mark.parametrize("least", [0.0, 0.1])
def test_a_decisions_propensity_is_how_often_it_is_made(policy: str, options: dict[str, Any], least: float) -> None:
    bandit = make(policy=policy, min_propensity=least, **options)
    for arm, reward in (("a", 1.0), ("b", 0.8), ("c", -1.0)):
        bandit.learn("ana", arm, reward)
    decisions = [bandit.decide("ana", ["a", "b", "c"]) for _ in range(3000)]
    first = decisions[0].candidates
    assert first is not None
    assert sum(each.propensity or 0 for each in first.values()) == pytest.approx(1.0)
    for shown, believed in first.items():
        share = np.mean([each.arm == shown for each in decisions])
        assert believed.propensity is not None
        assert believed.propensity >= least - 1e-12
        assert share == pytest.approx(believed.propensity, abs=0.03)
    for each in decisions[:50]:
        assert each.propensity == pytest.approx(first[each.arm].propensity)
        assert (each.mean, each.std) == pytest.approx(first[each.arm][:2])


def test_exploration_that_cannot_be_kept_is_told() -> None:
    bandit = make(min_propensity=0.3)
    bandit.decide("ana", ["a", "b"])
    with pytest.raises(ParameterError, match=r"0\.3"):
        bandit.decide("ana", list("abcd"))
    with pytest.raises(ParameterError, match="at most 1/2"):
        make(min_propensity=0.51)
    make(min_propensity=0.5).decide("ana", ["a", "b"])


def test_decisions_are_replayable_from_seed_and_number() -> None:
    """The same belief and the same number give the same decision, whatever was asked in between."""
    one, other = make(policy="lk-gp-ts", min_propensity=0.05), make(policy="lk-gp-ts", min_propensity=0.05)
    for bandit in (one, other):
        bandit.learn("ana", "a", 1.0)
    first = [one.decide("ana").arm for _ in range(30)]
    other._learned.policy.n_decisions = 20
    assert [other.decide("ana").arm for _ in range(10)] == first[20:]


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "auto-ucb", "per-user-linucb"])
def test_hallucinated_decisions_shrink_the_uncertainty_and_leave_the_mean(policy: str) -> None:
    plain, hopeful = make(policy=policy), make(policy=policy, pending="hallucinate")
    for bandit in (plain, hopeful):
        for i, arm in enumerate("abcdef" * 2):
            bandit.learn("ana", arm, float(np.sin(i)))
    before = plain.predict("ana")
    first = hopeful.decide("ana")
    second = hopeful.decide("ana")
    assert first.candidates is not None
    assert second.candidates is not None
    grounds = hopeful._learned.policy._decide(0, np.arange(6), 0)
    known = plain.predict("ana")
    for shown in known:
        assert known[shown][0] == pytest.approx(before[shown][0])
    hopeful._learned.refresh_pending_model(hopeful._ledger)
    place = hopeful.arms.index[second.arm]
    assert hopeful._learned.policy._decide(0, np.arange(6), 0).std[place] < grounds.std[place] + 1e-12
    assert grounds.std[hopeful.arms.index[first.arm]] < known[first.arm][1]


@pytest.mark.parametrize("options", [{}, {"engine": "features", "engine_options": {"user_rank": 2, "arm_rank": 2}}])
def test_after_all_rewards_a_hallucinating_bandit_believes_what_a_plain_one_does(options: dict[str, Any]) -> None:
    plain, hopeful = make(**options), make(pending="hallucinate", **options)
    decisions = hopeful.decide_many(["ana", "bo", "cy", "dee"] * 3)
    for each in decisions[::-1]:
        hopeful.reward(each.id, float(each.id))
        plain.learn(each.user, each.arm, float(each.id))
    assert_same(plain, hopeful)
    hopeful._learned.refresh_pending_model(hopeful._ledger)
    doubt = hopeful._learned.policy.pending_model
    assert doubt is not None
    np.testing.assert_allclose(doubt.predict(0)[1], hopeful._learned.policy.model.predict(0)[1], atol=1e-9)


def test_a_batch_of_hallucinated_decisions_is_diverse() -> None:
    """With one user and nothing learned, UCB repeats itself until a reward comes; hallucinating it does not."""
    apart = ct.ArmPool(10 * np.eye(6), ids=list("abcdef"))
    options = {"arms": apart, "arm_kernel": ct.SquaredExponential(1.0), "noise_var": 0.01}
    hopeful = make(pending="hallucinate", **options)
    assert len({each.arm for each in hopeful.decide_many(["dee"] * 6)}) == 6


def test_an_expired_decision_is_no_longer_hallucinated() -> None:
    now = [0.0]
    bandit = make(pending="hallucinate", expire_after=10.0, clock=lambda: now[0])
    bandit.decide("ana", ["a"])
    bandit._learned.refresh_pending_model(bandit._ledger)
    shrunk = bandit._learned.policy._decide(0, np.array([0]), 0).std[0]
    now[0] = 20.0
    bandit._learned.refresh_pending_model(bandit._ledger)
    assert bandit._learned.policy._decide(0, np.array([0]), 0).std[0] > shrunk


def test_a_reward_without_decision_does_not_hide_that_another_expired() -> None:
    now = [0.0]
    bandit = make(pending="hallucinate", expire_after=10.0, clock=lambda: now[0])
    bandit.decide("ana", ["a"])
    now[0] = 20.0
    bandit.learn("dee", "f", 0.0)
    plain = make()
    plain.learn("dee", "f", 0.0)
    assert bandit.decide("ana", ["a"]).std == pytest.approx(plain.predict("ana")["a"][1])


def test_a_batch_with_an_unknown_user_decides_nothing() -> None:
    bandit = make()
    with pytest.raises(UnknownUserError):
        bandit.decide_many(["ana", "zoe"])
    assert bandit.n_pending == 0
    one, other = make(policy="lk-gp-ts"), make(policy="lk-gp-ts")
    together = one.decide_many(["ana", "bo", "ana"])
    assert [each.arm for each in together] == [other.decide(user).arm for user in ("ana", "bo", "ana")]
    with pytest.raises(ParameterError, match="pending is 'wait'"):
        make(pending="wait")


@pytest.mark.parametrize("policy", ["auto-ucb", "lk-gp-ucb", "per-user-linucb"])
def test_new_arms_join_the_pool_with_a_decision_where_there_are_no_contexts(policy: str) -> None:
    bandit = make(policy=policy)
    bandit.learn("ana", "a", 1.0)
    features = [0.1, 0.2, 0.3]
    decision = bandit.decide("bo", {"a": None, "new": features}, keep=True)
    assert set(decision.candidates) == {"a", "new"}
    told = make(policy=policy, arms={**ARMS, "new": features})
    told.learn("ana", "a", 1.0)
    assert bandit.predict("bo", ["new"])["new"] == pytest.approx(told.predict("bo", ["new"])["new"])
    bandit.reward(decision.id, 0.5)
    bandit.decide("bo", {"new": features, "b": None}, keep=True)  # it is there by now
    assert bandit.arms.ids[-1] == "new"
    assert len(bandit.arms) == len(ARMS) + 1


@pytest.mark.parametrize(
    ("user", "candidates"),
    [
        ("ana", {"new": [1.0]}),
        ("ana", {"a": [9.0, 9.0, 9.0]}),
        ("zoe", {"new": [1.0, 1.0, 1.0]}),
        ("ana", {"new": None}),
    ],
)
def test_new_arms_that_are_refused_leave_the_pool_as_it_was(user: str, candidates: dict[str, Any]) -> None:
    bandit = make()
    with pytest.raises(CoterieError):
        bandit.decide(user, candidates, keep=True)
    assert (bandit.arms.ids, bandit.n_decisions) == (tuple(ARMS), 0)
    with pytest.raises(CandidatesError, match="keep=True"):
        bandit.decide("ana", {"new": [1.0, 1.0, 1.0]})
