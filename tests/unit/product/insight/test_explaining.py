"""Explanations add up: contributions by user, by arm and by reward each sum to the mean."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.errors import DecisionError, UnknownArmError, UnknownUserError
from coterie.product.bandit import Bandit

ARMS = dict(zip("abcd", np.random.default_rng(0).normal(size=(4, 2)), strict=True))


def make(**options: Any) -> Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)], users=["ana", "bo", "cy", "dee"])
    return Bandit(**{"graph": graph, "arms": ARMS, "policy": "lk-gp-ucb", **options})


histories = st.lists(
    st.tuples(st.sampled_from(["ana", "bo", "cy", "dee"]), st.sampled_from("abcd"), st.floats(-3, 3)), max_size=20
)


@settings(max_examples=30, deadline=None)
@given(histories, st.sampled_from(["lk-gp-ucb", "auto-ucb", "per-user-linucb", "gp-ucb"]), st.sampled_from([1.0, 0.9]))
def test_contributions_add_up_to_the_mean(told: list[Any], policy: str, forgetting: float) -> None:
    bandit = make(policy=policy, forgetting=forgetting)
    for user, arm, reward in told:
        bandit.learn(user, arm, reward)
    why = bandit.explain("bo", "c")
    assert why.mean == pytest.approx(bandit.predict("bo", ["c"])["c"][0])
    for parts in (why.by_user.values(), why.by_arm.values(), [each[-1] for each in why.by_event]):
        assert why.level + sum(parts) == pytest.approx(why.mean, abs=1e-6)


@pytest.mark.parametrize("correction", [True, False])
@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_contributions_add_up_on_features_that_were_cut_off(likelihood: str, correction: bool) -> None:
    cut = {"user_rank": 2, "arm_rank": 2, "correction": correction}
    chosen: dict[str, Any] = {"policy": "auto-ucb", "reward": "binary", "likelihood": likelihood}
    bandit = make(engine="features", engine_options=cut, **(chosen if likelihood == "bernoulli" else {}))
    for number in range(30):
        bandit.learn(["ana", "bo", "cy", "dee"][number % 4], "abcd"[number % 3], float(number % 5 < 2))
    for user, arm in (("bo", "a"), ("bo", "d"), ("dee", "b")):
        why = bandit.explain(user, arm)
        policy = bandit._learned.policy
        column, row = policy.arms.index[arm], policy.graph.index[user]  # type: ignore[union-attr]
        told = why.level + float(policy.model.peek(row, np.array([column]))[0][0])
        assert why.level + sum(why.by_user.values()) == pytest.approx(told, abs=1e-6)


def test_alone_is_what_a_bandit_without_edges_would_say() -> None:
    bandit = make(engine="exact")
    for user, arm, reward in (("ana", "a", 3.0), ("bo", "a", 1.0), ("bo", "b", -1.0)):
        bandit.learn(user, arm, reward)
    why = bandit.explain("bo", "a")
    kernel = bandit._learned.policy.model.kernel
    lonely = ct.GivenMatrix(np.diag(kernel.user_cov.diagonal()))
    other = make(user_kernel=lonely)
    for user, arm, reward in (("ana", "a", 3.0), ("bo", "a", 1.0), ("bo", "b", -1.0)):
        other.learn(user, arm, reward)
    assert why.alone == pytest.approx(other.predict("bo", ["a"])["a"][0])
    assert why.by_user["ana"] > 0
    assert why.mean > why.alone


def test_who_has_no_link_to_the_user_adds_nothing() -> None:
    bandit = make()
    bandit.learn("dee", "a", 5.0)
    bandit.learn("bo", "a", 1.0)
    why = bandit.explain("bo", "a")
    assert why.by_user.get("dee", 0.0) == pytest.approx(0.0, abs=1e-12)
    assert "'bo'" in str(why)


def test_an_explanation_without_rewards_is_the_prior() -> None:
    why = make().explain("ana", "a")
    assert (why.mean, why.by_user, why.by_event, why.alone) == (0.0, {}, [], 0.0)
    assert "nobody" in str(why)
    with pytest.raises(UnknownUserError):
        make().explain("zoe", "a")
    with pytest.raises(UnknownArmError):
        make().explain("ana", "z")


def test_the_text_says_what_it_leaves_out() -> None:
    users = [f"u{i}" for i in range(8)]
    bandit = Bandit(graph=ct.UserGraph.from_edges([("u0", user) for user in users[1:]]), arms=ARMS, policy="lk-gp-ucb")
    for place, user in enumerate(users):
        bandit.learn(user, "a", 1.0 + place)
    why = bandit.explain("u0", "a")
    rest = sum(list(why.by_user.values())[5:])
    assert len(why.by_user) == 8
    assert f", 3 others together {rest:+.3g}. By arms: 'a' " in str(why)
    assert "probability" not in str(why)


def test_probabilities_and_logits_are_told_apart_in_the_text() -> None:
    bandit = make(policy="auto-ucb", reward="binary", likelihood="bernoulli")
    for user, arm, reward in (("ana", "a", 1.0), ("bo", "a", 1.0), ("bo", "b", 0.0)):
        bandit.learn(user, arm, reward)
    why = bandit.explain("bo", "a")
    assert f"a probability of {why.mean:.3g} ±" in str(why)
    assert f"As a logit: {why.logit:.3g}" in str(why)
    assert str(why).endswith(f"From own rewards alone: a probability of {why.alone:.3g}.")


def test_a_decision_of_a_removed_user_is_told() -> None:
    bandit = make()
    gone, kept = bandit.decide("ana"), bandit.decide("bo")
    bandit.remove_user("ana")
    with pytest.raises(DecisionError, match=r"decision 0 is no longer remembered: its user or arm was removed"):
        bandit.reward(gone.id, 1.0)
    bandit.reward(kept.id, 1.0)
    assert (bandit.n_pending, bandit.n_rewards) == (0, 1)
