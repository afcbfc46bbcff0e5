"""The policy for rewards of 0 and 1: near its fixed point at all times, on every engine, in any order."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import FitWarning, NumericalError, ParameterError, RewardError, UnknownNameError
from coterie.models import History
from coterie.policies.auto import AutoPolicy, bernoulli_likelihood
from coterie.policies.auto.bernoulli import settled
from coterie.policies.auto.bernoulli_likelihood import BernoulliLikelihood, SiteLimits

GRAPH = ct.make_graph("sbm", 8, seed=3, connected="retry")
ARMS = ct.ArmPool(np.random.default_rng(1).normal(size=(6, 3)), ids=list("abcdef"))


def make(name: str = "auto-ucb", graph: ct.UserGraph = GRAPH, arms: ct.ArmPool = ARMS, **options: Any) -> AutoPolicy:
    policy = ct.make_policy(name, graph=graph, arms=arms, likelihood="bernoulli", **options)
    assert isinstance(policy, AutoPolicy)
    return policy


def rewards_of(policy: AutoPolicy) -> BernoulliLikelihood:
    assert isinstance(policy.likelihood, BernoulliLikelihood)
    return policy.likelihood


def taste(seed: int, spread: float = 1.5) -> np.ndarray:
    return 1 / (1 + np.exp(-spread * np.random.default_rng(seed).normal(size=(4, 6)).repeat(2, axis=0)))


def play(policy: ct.Policy, rounds: int, seed: int = 0, *, spread: float = 1.5) -> None:
    rng, truth = np.random.default_rng([seed, policy.n_rewards]), taste(seed, spread)
    for _ in range(rounds):
        user = int(rng.integers(8))
        arm = policy.select(user, ARMS.ids).arm
        policy.update(user, arm, float(rng.random() < truth[user, ARMS.index[arm]]))


def beliefs(policy: ct.Policy) -> np.ndarray:
    return np.array([policy.predict(user) for user in range(8)])


def fixed_point(policy: AutoPolicy) -> np.ndarray:
    """Returns the beliefs with the same hyperparameters and sites that are settled from the prior, on `dense`."""
    other = make(engine="dense")
    other.model.retune(policy.model.kernel, 1.0)
    other.centre = policy.centre
    other.likelihood.relearn(other.model, rewards_of(policy).trials, policy.centre)
    return beliefs(other)


@pytest.mark.parametrize("spread", [0.7, 2.0, 4.0])
def test_between_settlings_the_belief_is_near_the_fixed_point(spread: float) -> None:
    policy, errors = make(seed=1), []
    for _ in range(40):
        play(policy, 5, seed=2, spread=spread)
        errors.append(np.abs(beliefs(policy) - fixed_point(policy)).max())
    assert max(errors) < 0.05
    assert np.median(errors) < 0.005


def test_just_settled_the_belief_is_the_fixed_point() -> None:
    policy = make(seed=1)
    play(policy, 128, seed=4)
    np.testing.assert_allclose(beliefs(policy), fixed_point(policy), atol=1e-4)


@pytest.mark.parametrize("engine", ["dense", "exact", "features", "hybrid", "linear"])
def test_every_engine_makes_the_same_run(engine: str) -> None:
    one, other = make(engine="grid"), make(engine=engine)
    play(one, 70)
    play(other, 70)
    np.testing.assert_allclose(beliefs(one), beliefs(other), atol=1e-6)


def test_the_order_of_rewards_is_irrelevant_where_they_are_learned_at_once() -> None:
    rng, histories = np.random.default_rng(0), (History(), History())
    rewards = [(int(rng.integers(8)), int(rng.integers(6)), float(rng.random() < 0.4)) for _ in range(90)]
    for history, order in zip(histories, (rewards, rewards[::-1]), strict=True):
        for user, arm, reward in order:
            history.add((user, arm), user, arm, reward)
    found = []
    for history in histories:
        policy = make()
        policy.relearn(history)
        assert policy.n_rewards == 90
        found.append(beliefs(policy))
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def test_rewards_after_a_relearned_history_belong_to_the_same_pairs() -> None:
    policy, history = make(), History()
    history.add((2, 3), 2, 3, 1.0)
    policy.relearn(history)
    policy.update(2, "d", 0.0)
    trials = rewards_of(policy).trials
    assert (len(trials), trials.counts, policy.n_rewards) == (1, [2], 2)


def test_what_is_told_are_probabilities_and_choices_are_made_on_logits() -> None:
    policy = make()
    play(policy, 100)
    mean, std = policy.predict(0, ["a", "b", "c"])
    assert ((mean > 0) & (mean < 1) & (std < 0.5)).all()
    choice, considered = policy.consider(0, ["a", "b", "c"])
    assert (choice.mean, choice.std) == (mean[choice.index], std[choice.index])
    score = considered.mean + considered.width * considered.std
    assert choice.score == pytest.approx(score[choice.index])
    assert choice.index == np.argmax(score)


def test_probabilities_are_learned() -> None:
    policy, rng, truth = make(), np.random.default_rng(5), taste(3)
    for _ in range(900):
        user, arm = int(rng.integers(8)), int(rng.integers(6))
        policy.update(user, ARMS.ids[arm], float(rng.random() < truth[user, arm]))
    found = beliefs(policy)
    assert np.abs(found[:, 0] - truth).mean() < 0.08
    inside = np.abs(found[:, 0] - truth) < 2 * found[:, 1]
    assert inside.mean() > 0.85


def test_only_successes_are_no_trouble() -> None:
    policy = make()
    for i in range(40):
        policy.update(i % 8, "abcdef"[i % 6], 1.0)
    mean, std = policy.predict(0)
    assert (mean > 0.8).all()
    assert np.isfinite(std).all()


def test_a_reward_that_is_neither_0_nor_1_changes_nothing() -> None:
    policy = make()
    play(policy, 20)
    before = beliefs(policy)
    for wrong in (0.5, 2, -1, "1", None, float("nan")):
        with pytest.raises(RewardError):
            policy.update(0, "a", wrong)  # type: ignore[arg-type]
    with pytest.raises(RewardError, match="0 or 1"):
        policy.update_many([0, 1], ["a", "b"], [1.0, 0.5])
    assert policy.n_rewards == 20
    np.testing.assert_array_equal(beliefs(policy), before)


def test_a_refused_settling_keeps_the_belief_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = make()
    play(policy, 31)
    before = policy.hyper, policy.centre, policy.model.kernel

    def refuse(*_: Any) -> None:
        raise NumericalError("no", "no", "no")

    with monkeypatch.context() as patch:
        patch.setattr(policy.model, "relearn", refuse)
        with pytest.warns(FitWarning, match="after 32 rewards"):
            play(policy, 1)
    assert (policy.hyper, policy.centre, policy.model.kernel) == before
    assert "after 32 rewards was not made" in policy.describe()
    np.testing.assert_allclose(beliefs(policy), fixed_point(policy), atol=0.05)


def test_fits_come_on_epochs_that_double_and_are_told() -> None:
    policy = make("auto-ts")
    play(policy, 40)
    assert [t for t, _ in policy.fits] == [8, 16, 32]
    assert "Learned from 32 rewards" in policy.describe()
    assert "'bernoulli'" in policy.describe()
    assert policy.hyper.noise_var == 1.0


def test_beyond_many_pairs_a_fit_looks_at_a_sample() -> None:
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(10, 2)))
    likelihood = rewards_of(make(graph=ct.make_graph("ring", 70), arms=arms))
    for user in range(70):
        for arm in range(10):
            likelihood.trials.add((user, arm), user, arm, 0.0)
    rows = likelihood._sample(1000, n_users=70)
    assert rows is not None
    assert len(rows) == SiteLimits().pairs_of_fit


def test_beyond_many_pairs_sites_stay_as_they_were_made_and_no_call_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    arms, rng, sizes = ct.ArmPool(np.random.default_rng(0).normal(size=(30, 2))), np.random.default_rng(1), []

    def noted(gram: np.ndarray, *rest: Any, **options: Any) -> Any:
        sizes.append(len(gram))
        return settled(gram, *rest, **options)

    monkeypatch.setattr(bernoulli_likelihood, "settled", noted)
    graph = ct.make_graph("ring", 30)
    policy = make(graph=graph, arms=arms)
    truth = 1 / (1 + np.exp(-2 * arms.features[:, 0]))
    for user, arm in rng.permutation([(u, a) for u in range(30) for a in range(0, 30, 2)]).tolist():
        policy.update(user, arm, float(rng.random() < truth[arm]))
    assert len(rewards_of(policy).trials) == 450
    assert policy.n_rewards == rewards_of(policy).trials.n_observations
    assert max(sizes) == SiteLimits().settled
    one = policy.predict(3)[0]
    assert np.abs(one - truth).mean() < 0.1
    other = ct.make_policy("auto-ucb", graph=graph, arms=arms, likelihood="bernoulli")
    other.relearn_with(policy.hyperparameters(), rewards_of(policy).trials)
    assert other.n_rewards == policy.n_rewards
    np.testing.assert_allclose(other.predict(3)[0], one, atol=0.15)
    assert max(sizes) == SiteLimits().settled


def test_a_likelihood_is_known_and_only_for_auto() -> None:
    with pytest.raises(UnknownNameError, match="gaussian"):
        ct.make_policy("auto-ucb", graph=GRAPH, arms=ARMS, likelihood="poisson")
    with pytest.raises(ParameterError, match="auto-ucb"):
        ct.make_policy("lk-gp-ucb", graph=GRAPH, arms=ARMS, likelihood="bernoulli")
