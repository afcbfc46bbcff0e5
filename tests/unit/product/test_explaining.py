"""Explanations add up: contributions by user, by arm and by reward each sum to the mean."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.errors import UnknownArmError, UnknownUserError
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
