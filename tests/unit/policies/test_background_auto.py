"""`auto` on engine "sparse": the same as on an exact engine where the graph is small, and fits that hold up nobody."""

import gc
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import FitWarning, NumericalError, ParameterError
from coterie.kernels.graph import GraphKernel
from coterie.models import SparseModel
from coterie.policies.auto import LargeAutoPolicy, large, sampling

pytest.importorskip("numba")

ARMS = ct.ArmPool(np.random.default_rng(1).normal(size=(12, 3)))


def world(n_users: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.repeat(rng.normal(size=(-(-n_users // 5), 3)), 5, axis=0)[:n_users] @ ARMS.features.T


def play(policy: ct.Policy, rounds: int, *, start: int = 0, seed: int = 0) -> list[int]:
    rng, truth = np.random.default_rng([seed, start]), world(policy.graph.n_users)
    chosen = []
    for _ in range(rounds):
        user = int(rng.integers(min(policy.graph.n_users, 40)))
        arm = policy.select(user).arm
        policy.update(user, arm, float(5.0 + truth[user, arm] + 0.3 * rng.normal()))
        chosen.append(int(arm))
    return chosen


@pytest.mark.parametrize("name", ["auto-ucb", "auto-ts"])
def test_on_a_small_graph_it_learns_what_the_exact_one_does(name: str) -> None:
    graph = ct.make_graph("sbm", 40, seed=2)
    exact = ct.make_policy(name, graph=graph, arms=ARMS, engine="exact")
    found = ct.make_policy(
        name, graph=graph, arms=ARMS, engine="sparse", engine_options={"eps": 0.01, "feature_error": 0.0}
    )
    rng, truth = np.random.default_rng(0), world(40)
    for _ in range(120):
        user, arm = int(rng.integers(40)), int(rng.integers(12))
        reward = float(5.0 + truth[user, arm] + 0.3 * rng.normal())
        exact.update(user, arm, reward)
        found.update(user, arm, reward)
    assert isinstance(found, LargeAutoPolicy)
    assert [t for t, _ in found.fits] == [t for t, _ in exact.fits]
    np.testing.assert_allclose(np.array(found.hyper), np.array(exact.hyper), atol=0.02)  # type: ignore[attr-defined]
    for user in range(40):
        mean, std = exact.predict(user)
        near, above = found.predict(user)
        prior = found.model.prior_std(user)
        assert (np.abs(near - mean) <= 0.01 * prior + 0.03).all()  # eps, and hyperparameters that differ in rounding
        assert (above >= std * 0.98).all()


def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a graph of 60 users be a large one."""
    monkeypatch.setattr(sampling, "WHOLE", 50)
    monkeypatch.setattr("coterie.policies.auto.neighbourhoods.WHOLE", 50)
    monkeypatch.setattr(large, "AT_ONCE", 16)
    monkeypatch.setattr(large, "FEW", 50)


def make(**options: Any) -> LargeAutoPolicy:
    graph = ct.make_graph("sbm", 60, seed=2)
    policy = ct.make_policy("auto-ucb", graph=graph, arms=ARMS, engine="sparse", **options)
    assert isinstance(policy, LargeAutoPolicy)
    return policy


def test_a_fit_is_taken_after_a_quarter_more_rewards_and_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    small_steps(monkeypatch)
    one, two = make(), make()
    assert play(one, 100) == play(two, 100)
    assert one.hyper == two.hyper
    assert [t for t, _ in one.fits] == [8, 12, 16, 24, 32, 48, 64]
    assert one.centre > 2.0
    assert one.model.n_observations == 100


def test_it_tells_of_a_fit_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    small_steps(monkeypatch)
    policy = make()
    play(policy, 34)
    assert "A fit to 32 rewards is taken after 40." in policy.explain()
    assert [t for t, _ in policy.fits][-1] == 24


@pytest.mark.parametrize("at", [20, 34, 40, 41])
def test_it_goes_on_to_the_bit_after_saving_also_during_a_fit(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    small_steps(monkeypatch)
    policy, other = make(), make()
    play(policy, at)
    other.restore(deepcopy(policy.state()))
    assert play(policy, 40, start=at) == play(other, 40, start=at)
    assert policy.hyper == other.hyper
    np.testing.assert_array_equal(policy.predict(3)[0], other.predict(3)[0])


def test_a_bandit_on_it_is_saved_and_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    small_steps(monkeypatch)
    bandit = ct.Bandit(graph=ct.make_graph("sbm", 60, seed=2), arms=ARMS, engine="sparse")
    rng = np.random.default_rng(0)
    for _ in range(34):
        decision = bandit.decide(int(rng.integers(60)))
        bandit.reward(decision.id, float(rng.normal()))
    bandit.save(tmp_path / "large.coterie")
    loaded = ct.Bandit.load(tmp_path / "large.coterie")
    for user in (0, 7, 59):
        assert loaded.decide(user).arm == bandit.decide(user).arm
        assert loaded.predict(user) == bandit.predict(user)


def test_a_fit_that_fails_leaves_the_belief_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    small_steps(monkeypatch)
    policy = make()
    play(policy, 23)

    def refuse(*_: Any, **__: Any) -> Any:
        raise NumericalError("no", "never", "Do not")

    monkeypatch.setattr(large, "fit", refuse)
    with pytest.warns(FitWarning, match="after 24 rewards"):
        play(policy, 10, start=23)
    assert "The change due after 24 rewards was not made: no" in policy.explain()
    assert policy.model.n_observations == 33


def test_all_rewards_at_once_are_fitted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    small_steps(monkeypatch)
    policy, fresh = make(), make()
    play(policy, 60)
    fresh.relearn(policy.model.history)
    assert fresh.fits[-1][0] == 60
    assert "goes on" not in fresh.explain()


def test_binary_rewards_of_their_own_are_refused() -> None:
    graph = ct.make_graph("sbm", 60, seed=2)
    with pytest.raises(ParameterError, match="engine 'sparse'; that engine learns with Gaussian noise only"):
        ct.make_policy("auto-ucb", graph=graph, arms=ARMS, engine="sparse", likelihood="bernoulli")


def test_certified_choices_are_refused() -> None:
    graph = ct.make_graph("sbm", 60, seed=2)
    with pytest.raises(ParameterError, match="certified=True was asked for with 'auto-ucb'"):
        ct.make_policy("auto-ucb", graph=graph, arms=ARMS, engine="sparse", engine_options={"certified": True})


def test_a_table_is_learned_at_once_and_fitted_to() -> None:
    policy, other = make(), make()
    rng, truth = np.random.default_rng(0), world(60)
    users, arms = rng.integers(60, size=300), rng.integers(12, size=300)
    rewards = 5.0 + truth[users, arms] + 0.3 * rng.normal(size=300)
    assert policy.fit([(users, arms, rewards)]) == 300
    other.update_many(users.tolist(), arms.tolist(), rewards.tolist())
    assert policy.fits[-1][0] == 300
    mean, std = policy.predict(3)
    near, _ = other.predict(3)
    assert (np.abs(mean - near) <= std).all()
    assert policy.fit([([], [], [])]) == 0


def test_what_the_features_miss_is_noise_to_them() -> None:
    few = make(engine_options={"max_features": 2})
    all_ = make(engine_options={"feature_error": 0.0})
    assert few.model.noise_var > 1.5 * all_.model.noise_var
    assert all_.model.noise_var == pytest.approx(all_.hyper.noise_var)


def grown(policy: ct.Policy, number: int) -> None:
    """Lets a newcomer join, and a weight change; every third time an edge goes."""
    graph, n = policy.graph, policy.graph.n_users
    graph = graph.add_user(n, {number: 1.0, number + 1: 0.5})[0].set_edge(number, number + 7, 0.8)[0]
    if number % 3 == 0:
        graph = graph.remove_edge(n, number)[0]
    assert policy.relink(graph)


def play_growing(policy: ct.Policy, rounds: int, *, start: int = 0) -> list[int]:
    chosen = []
    for number in range(start, start + rounds):
        chosen += play(policy, 1, start=number)
        if number % 3 == 2:
            grown(policy, number)
    return chosen


def test_a_fit_that_goes_on_follows_a_growing_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    small_steps(monkeypatch)
    one, two = make(), make()
    for policy in (one, two):
        play(policy, 23)
    assert play_growing(one, 8, start=23) == play_growing(two, 8, start=23)
    assert [t for t, _ in one.fits] == [8, 12, 16, 24]
    assert one.model.n_users == one.graph.n_users == 63
    # The belief is that of the same rewards with the same kernel on the graph as it is now.
    kernel = GraphKernel(one.graph, **one.model.kernel.settings())  # type: ignore[attr-defined]
    fresh = SparseModel(kernel, noise_var=one.model.noise_var)
    fresh.relearn(one.model.history)
    assert isinstance(one.model, SparseModel)
    for user in (0, 33, 62):
        off = np.abs(fresh.predict(user)[0] - one.model.predict(user)[0])
        assert (off <= fresh.error_bound(user) + one.model.error_bound(user) + 1e-9).all()


def test_what_was_learned_means_the_same_on_the_changed_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    small_steps(monkeypatch)
    policy = make()
    play(policy, 17)
    before, features = policy.kept(), policy.model.kernel.features  # type: ignore[attr-defined]
    for number in range(12):
        grown(policy, number)
    after = policy.kept()
    assert after["scale"] == before["scale"]
    assert after["hyper"] != before["hyper"]
    np.testing.assert_allclose(policy.ground.kernel(policy.hyper).features, features, rtol=1e-9)


@pytest.mark.parametrize("at", [28, 31])
def test_a_growing_one_goes_on_to_the_bit_after_saving(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    small_steps(monkeypatch)
    policy = make()
    play(policy, 23)
    play_growing(policy, at - 23, start=23)
    assert ("A fit to 24 rewards is taken" in policy.explain()) == (at < 30)
    weights = policy.graph.weights
    graph = ct.UserGraph(users=policy.graph.users, weights=weights.copy())
    other = ct.make_policy("auto-ucb", graph=graph, arms=ARMS, engine="sparse")
    assert isinstance(other, LargeAutoPolicy)
    other.restore(deepcopy(policy.state()))
    assert play_growing(policy, 5, start=at) == play_growing(other, 5, start=at)
    assert policy.hyper == other.hyper
    np.testing.assert_array_equal(policy.predict(3)[0], other.predict(3)[0])


def test_a_bandit_that_grew_during_a_fit_is_saved_and_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    small_steps(monkeypatch)
    saved = ct.Bandit(graph=ct.make_graph("sbm", 60, seed=2), arms=ARMS, engine="sparse")
    rng = np.random.default_rng(0)
    for number in range(26):
        saved.reward(saved.decide(int(rng.integers(60))).id, float(rng.normal()))
        if number >= 24:
            saved.add_user(f"new{number}", {number: 0.7})
    saved.disconnect("new25", 25)
    saved.save(tmp_path / "grown.coterie")
    loaded = ct.Bandit.load(tmp_path / "grown.coterie")
    for bandit in (saved, loaded):
        for number in range(5):
            bandit.learn("new24", ARMS.ids[number], float(number))
            bandit.connect(number, "new25", 0.4)
        assert "Learned from 24 rewards" in bandit._learned.policy.explain()
    assert all(loaded.predict(user) == saved.predict(user) for user in (0, "new24", "new25"))


def test_a_policy_whose_fit_fails_meanwhile_can_be_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise NumericalError("it is 1", "it is 2", "Mend it")

    small_steps(monkeypatch)
    policy = make()
    play(policy, 23)
    monkeypatch.setattr(large, "fit", refuse)
    play(policy, 1, start=23)
    other = make()
    other.restore(deepcopy(policy.state()))
    assert policy._begun is not None
    with pytest.warns(FitWarning):
        assert play(policy, 6, start=24) == play(other, 6, start=24)
    assert "not made: it is 1" in policy.explain()


def test_a_mistake_in_the_code_of_a_fit_is_raised_where_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    small_steps(monkeypatch)
    policy = make()
    play(policy, 23)
    monkeypatch.setattr(large, "fit", lambda *_, **__: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        play(policy, 10, start=23)
    assert policy._begun is None
    play(policy, 1, start=31)


def test_a_policy_that_is_dropped_during_a_fit_takes_its_thread_along(monkeypatch: pytest.MonkeyPatch) -> None:
    small_steps(monkeypatch)
    policy = make()
    play(policy, 24)
    assert policy._begun is not None
    thread = policy._begun.ahead._thread
    assert thread.is_alive()
    del policy
    gc.collect()
    thread.join(timeout=60)
    assert not thread.is_alive()
