"""Binary rewards in the Bandit: refused values, propensities, explanations that add up, saving, forgetting."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import CoterieError, ParameterError, RewardError
from coterie.policies.auto import AutoPolicy
from coterie.policies.auto.bernoulli_likelihood import BernoulliLikelihood, SiteLimits
from coterie.product.bandit import Bandit

ARMS = dict(zip("abcdef", np.random.default_rng(0).normal(size=(6, 3)), strict=True))
USERS = ["ana", "bo", "cy", "dee"]
CHANCES = 1 / (1 + np.exp(-1.5 * np.random.default_rng(1).normal(size=(4, 6))))


def make(**options: Any) -> Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)], users=USERS)
    return Bandit(**{"graph": graph, "arms": ARMS, "reward": "binary", "likelihood": "bernoulli", "seed": 3, **options})


def play(bandit: Bandit, rounds: int, seed: int = 0) -> list[ct.Decision]:
    rng, decisions = np.random.default_rng(seed), []
    for _ in range(rounds):
        row = int(rng.integers(4))
        decision = bandit.decide(USERS[row])
        bandit.reward(decision.id, bool(rng.random() < CHANCES[row, "abcdef".index(str(decision.arm))]))
        decisions.append(decision)
    return decisions


def beliefs(bandit: Bandit) -> np.ndarray:
    return np.array([list(bandit.predict(user).values()) for user in bandit.graph.users])


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_other_rewards_are_refused_and_change_nothing(likelihood: str) -> None:
    bandit = make(likelihood=likelihood)
    play(bandit, 12)
    decision, before = bandit.decide("ana"), beliefs(bandit)
    for wrong in (0.5, -1, 2.0, "1", None, float("nan")):
        with pytest.raises(RewardError):
            bandit.reward(decision.id, wrong)  # type: ignore[arg-type]
        with pytest.raises(RewardError):
            bandit.learn("ana", "a", wrong)  # type: ignore[arg-type]
    assert (bandit.n_rewards, bandit.n_pending) == (12, 1)
    np.testing.assert_array_equal(beliefs(bandit), before)
    accepted: list[Any] = [True, np.bool_(False), 1, 0.0, np.float32(1)]
    for fine in accepted:
        bandit.learn("ana", "a", fine)
    assert bandit.n_rewards == 17


def test_the_gaussian_likelihood_is_the_same_whatever_the_rewards_are_called() -> None:
    one, other = make(likelihood="gaussian"), make(likelihood="gaussian", reward="real")
    assert [each.arm for each in play(one, 40)] == [each.arm for each in play(other, 40)]
    np.testing.assert_array_equal(beliefs(one), beliefs(other))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": "yes"}, "'real', 'binary'"),
        ({"reward": "real"}, 'reward="binary"'),
        ({"policy": "lk-gp-ucb"}, "auto-ucb"),
        ({"likelihood": "probit"}, "'gaussian', 'bernoulli'"),
        ({"pending": "hallucinate"}, 'pending="ignore"'),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CoterieError, match=message):
        make(**options)


def test_a_policy_without_auto_may_have_binary_rewards() -> None:
    bandit = make(policy="lk-gp-ucb", likelihood="gaussian")
    play(bandit, 5)
    with pytest.raises(ParameterError, match="bernoulli"):
        make(policy="lk-gp-ucb")


def test_decisions_tell_probabilities() -> None:
    bandit = make()
    play(bandit, 60)
    decision = bandit.decide("bo")
    told = bandit.predict("bo")
    assert {arm: (each.mean, each.std) for arm, each in decision.candidates.items()} == told
    assert (decision.mean, decision.std) == told[decision.arm]
    assert 0 < decision.mean < 1


def test_propensities_are_the_true_ones() -> None:
    """The same belief, asked again and again: arms come as often as they are said to."""
    bandit = make(policy="auto-ts")
    play(bandit, 40)
    decisions = [bandit.decide("cy") for _ in range(3000)]
    said = {arm: each.propensity for arm, each in decisions[0].candidates.items()}
    assert sum(value for value in said.values() if value) == pytest.approx(1.0)
    for arm, value in said.items():
        share = np.mean([each.arm == arm for each in decisions])
        assert value is not None
        assert abs(share - value) < 4 * np.sqrt(value * (1 - value) / 3000) + 1e-3


@pytest.mark.parametrize("options", [{}, {"forgetting": 0.97}, {"window": 9}])
def test_contributions_add_up_on_the_scale_of_logits(options: dict[str, Any]) -> None:
    bandit = make(**options)
    play(bandit, 14)
    for user, arm in (("ana", "a"), ("dee", "f")):
        why = bandit.explain(user, arm)
        assert why.logit is not None
        for parts in (why.by_user, why.by_arm):
            assert why.level + sum(parts.values()) == pytest.approx(why.logit, abs=1e-8)
        assert why.level + sum(each[-1] for each in why.by_event) == pytest.approx(why.logit, abs=1e-8)
        assert (why.mean, why.std) == bandit.predict(user, [arm])[arm]
        assert (why.logit > 0) == (why.mean > 0.5)
        assert all((share > 0) == (reward == 1) for *_, other, reward, share in why.by_event if other == arm)
        assert "logit" in str(why)


def test_the_logit_explained_is_the_believed_one() -> None:
    bandit = make()
    play(bandit, 50)
    why = bandit.explain("ana", "b")
    mean, _ = bandit._learned.policy.model.predict(0, [1])
    assert why.logit == pytest.approx(why.level + mean[0], abs=1e-7)


def test_alone_is_the_estimate_without_the_others() -> None:
    bandit = make()
    play(bandit, 40)
    assert bandit.explain("ana", "a").alone != pytest.approx(bandit.explain("ana", "a").mean, abs=1e-3)
    nobody = make()
    assert nobody.explain("ana", "a").alone == pytest.approx(0.5)


@pytest.mark.parametrize("policy", ["auto-ucb", "auto-ts"])
def test_a_saved_bandit_goes_on_as_it_would_have(policy: str, tmp_path: Path) -> None:
    bandit = make(policy=policy)
    decisions = play(bandit, 50)
    bandit.reward(decisions[3].id, 1, replace=True)
    play(bandit, 7, seed=1)
    bandit.explain("ana", "a")  # a question changes nothing
    bandit.save(tmp_path / "bandit.coterie")
    loaded = Bandit.load(tmp_path / "bandit.coterie")
    np.testing.assert_array_equal(beliefs(loaded), beliefs(bandit))
    assert [each.arm for each in play(loaded, 20)] == [each.arm for each in play(bandit, 20)]
    with pytest.raises(RewardError):
        loaded.learn("ana", "a", 0.5)


def test_forgetting_counts_old_rewards_less() -> None:
    kept, fading = make(), make(forgetting=0.9)
    for bandit in (kept, fading):
        for reward in [1] * 40 + [0] * 15:
            bandit.learn("ana", "a", reward)
    assert fading.predict("ana", ["a"])["a"][0] < 0.4 < 0.5 < kept.predict("ana", ["a"])["a"][0]


def test_users_and_arms_come_and_go() -> None:
    bandit = make()
    play(bandit, 60)
    bandit.add_user("eve", friends={"ana": 5.0})
    bandit.add_arms({"g": [0.0, 0.0, 1.0]})
    mean, std = bandit.predict("eve", ["g"])["g"]
    assert 0 < mean < 1
    assert 0 < std < 0.5
    bandit.remove_user("bo")
    play_on = bandit.decide("eve")
    bandit.reward(play_on.id, 1)
    assert bandit.explain("eve", play_on.arm).logit is not None


def test_the_graph_report_is_made_from_the_same_likelihood() -> None:
    bandit, plain = make(), make(likelihood="gaussian")
    for each in (bandit, plain):
        play(each, 30)
    told = bandit.graph_report()
    assert told.n_rewards == 30
    assert all(-60 < value < 0 for value in told.evidence.values())
    assert told.evidence != plain.graph_report().evidence


def test_a_change_of_the_graph_keeps_the_hyperparameters_and_settles_the_sites() -> None:
    bandit = make()
    play(bandit, 45)
    policy = bandit._learned.policy
    assert isinstance(policy, AutoPolicy)
    policy._keep_up(45)
    settled, hyper = beliefs(bandit), policy.hyper
    bandit.connect("bo", "cy", 0.5)  # the weight it has: all is learned anew on the same graph
    assert bandit._learned.policy is not policy
    np.testing.assert_allclose(beliefs(bandit), settled, atol=1e-4)
    bandit.add_user("eve", {"ana": 2.0})
    after = bandit._learned.policy
    assert isinstance(after, AutoPolicy)
    assert after.hyper._replace(graph=hyper.graph) == hyper
    assert abs(bandit.predict("eve", ["a"])["a"][0] - bandit.predict("ana", ["a"])["a"][0]) < 0.2


def test_a_replaced_reward_is_as_if_only_the_last_had_come() -> None:
    bandit = make()
    decisions = play(bandit, 20)
    bandit.reward(decisions[4].id, True, replace=True)
    assert bandit._learned.events.rewards[4] == 1.0
    before = beliefs(bandit)
    bandit.reward(decisions[4].id, False, replace=True)
    assert np.abs(beliefs(bandit) - before).max() > 1e-3
    bandit.reward(decisions[4].id, True, replace=True)
    np.testing.assert_allclose(beliefs(bandit), before, atol=1e-6)


def test_a_newcomer_without_edges_moves_no_logits_even_where_rewards_agree() -> None:
    graph = ct.UserGraph.from_edges([(i, (i + 1) % 8) for i in range(8)])
    bandit = make(graph=graph, arms=3 * np.random.default_rng(0).normal(size=(6, 3)))
    for _ in range(30):
        for user, arm, reward in ((0, 0, 1), (0, 1, 0), (4, 0, 0), (4, 1, 1), (0, 2, 1)):
            bandit.learn(user, arm, reward)
    mean, std = bandit._learned.policy.model.peek(0, np.arange(3))
    bandit.add_user("isolated")
    again, spread = bandit._learned.policy.model.peek(0, np.arange(3))
    np.testing.assert_allclose((again - mean) / std, 0.0, atol=0.05)
    np.testing.assert_allclose(spread, std, rtol=0.05)


def test_a_loaded_bandit_settles_at_the_same_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = SiteLimits(move=0.05)  # so that this reward of a new pair has the sites settled soon
    monkeypatch.setattr(BernoulliLikelihood, "limits", limits)
    bandit = make(journal=tmp_path / "journal")
    for number in range(128):  # they are settled just then
        bandit.learn("ana", "abc"[number % 3], number % 2)
    bandit.learn("dee", "f", 1)
    bandit.save(tmp_path / "snapshot")
    for number in range(10):
        bandit.learn("ana", "abc"[number % 3], number % 2)
    believed = beliefs(bandit)
    del bandit  # which writes to the journal as long as it is there
    again = ct.Bandit.load(tmp_path / "snapshot", journal=tmp_path / "journal")
    np.testing.assert_array_equal(beliefs(again), believed)
