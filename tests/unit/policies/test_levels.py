"""What `auto` does where degrees are uneven, features few, or rewards one of two values."""

from math import exp, log
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.models import History
from coterie.policies.auto.evidence import Evidence
from coterie.policies.auto.fitting import Prior, fit
from coterie.policies.auto.learner import is_constant, is_two_valued

from coterie.policies.auto.levels import is_uneven
from coterie.policies.auto.neighbourhoods import Neighbourhoods
from coterie.policies.auto.parts import Hyper, Parts
from coterie.policies.auto.sampling import neighbourhood_laplacian
from coterie.policies.auto.spectra import lanczos_density

UNEVEN, EVEN = ct.make_graph("barabasi-albert", 40, seed=2), ct.make_graph("sbm", 40, seed=2)
ARMS = ct.ArmPool(np.random.default_rng(1).normal(size=(12, 3)))
HYPER = Hyper(-1.0, -2.0, -1.5, -0.5, 0.3, 0.2, -2.0, -2.0)


def history(rewards: Any, n_users: int = 40) -> History:
    rng, out = np.random.default_rng(0), History()
    for reward in rewards:
        user, arm = int(rng.integers(n_users)), int(rng.integers(len(ARMS)))
        out.add((user, arm), user, arm, float(reward))
    return out


def test_the_laplacian_is_normalised_where_degrees_are_uneven() -> None:
    assert Neighbourhoods(UNEVEN, ARMS).parts.normalised
    assert Neighbourhoods(UNEVEN, ARMS).normalised
    assert not Neighbourhoods(EVEN, ARMS).parts.normalised
    assert not Neighbourhoods(EVEN, ARMS).normalised


def test_tastes_then_vary_about_alike() -> None:
    spreads = []
    for normalised in (True, False):
        graph, _ = Neighbourhoods(UNEVEN, ARMS, normalised=normalised).parts.graph_part(log(0.3))
        spreads.append(graph.diagonal().max() / graph.diagonal().min())
    assert spreads[0] < 1.7 < 3 < spreads[1]


def test_large_and_small_have_the_same_evidence_and_kernel() -> None:
    observed, parts, ground = (
        history(np.random.default_rng(3).normal(size=200)),
        Neighbourhoods(UNEVEN, ARMS).parts,
        Neighbourhoods(UNEVEN, ARMS),
    )
    exact = Evidence(parts, observed).value_and_gradient(np.array(HYPER))
    found = ground.evidence(observed, 200).value_and_gradient(np.array(HYPER))
    assert found[0] == pytest.approx(exact[0], rel=1e-9)
    np.testing.assert_allclose(found[1], exact[1], rtol=1e-6, atol=1e-8)
    kernel = ground.kernel(HYPER)
    precision = np.diag(kernel.diagonal) - kernel.weights.toarray()
    user_cov = np.linalg.inv(precision) + kernel.own * np.eye(40) + kernel.common
    pair = parts.kernel(HYPER)
    arms = kernel.features @ kernel.features.T
    np.testing.assert_allclose(
        user_cov * arms[1, 2], pair.user_cov * pair.arm_cov[1, 2], rtol=2e-3
    )  # features miss 1e-3


def test_the_density_of_a_normalised_laplacian() -> None:
    graph = ct.make_graph("barabasi-albert", 700, seed=1)
    laplacian = graph.laplacian(normalised=True)
    density = lanczos_density(laplacian, seed=0, null=np.sqrt(graph.degrees))
    for ridge in (0.01, 0.1, 1.0):
        exact = float((1 / (np.linalg.eigvalsh(laplacian.toarray()) + ridge)).mean())
        assert density.gain(ridge)[0] == pytest.approx(exact, rel=0.03)


def test_all_users_give_the_whole_normalised_laplacian() -> None:
    whole = UNEVEN.laplacian(normalised=True).toarray()
    np.testing.assert_allclose(neighbourhood_laplacian(UNEVEN, np.arange(40), normalised=True), whole, atol=1e-12)


@pytest.mark.parametrize("engine", ["auto", "sparse"])
def test_it_is_saved_and_kept_on_a_graph_that_has_become_even(engine: str, tmp_path: Any) -> None:
    bandit = ct.Bandit(policy="auto-ucb", graph=UNEVEN, arms=ARMS, engine=engine, seed=1)
    rng = np.random.default_rng(5)
    for _ in range(40):
        decision = bandit.decide(int(rng.integers(40)))
        bandit.reward(decision.id, float(rng.normal()))
    for user in range(1, 40):
        bandit.connect(user - 1, user, 20.0)
    bandit.save(tmp_path / "bandit.coterie")
    loaded = ct.Bandit.load(tmp_path / "bandit.coterie")
    assert not is_uneven(bandit.graph.degrees)
    for each in (bandit, loaded):
        policy: Any = each._learned.policy
        assert policy.kept()["normalised"]
        assert (policy.ground if engine == "sparse" else policy.parts).normalised
    assert loaded.predict(7) == bandit.predict(7)


def test_no_length_scale_is_too_short_where_features_hold_every_arm() -> None:
    assert Neighbourhoods(EVEN, ARMS).shortest == 0.0


def test_a_length_scale_is_no_shorter_than_features_can_hold() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 12))
    shortest = shortest_lengthscale(rows, 4.8, 64)
    assert missed_share(rows, shortest, 64) <= MOST_MISSED < missed_share(rows, 0.9 * shortest, 64)
    ground = Neighbourhoods(EVEN, ct.ArmPool(rows))
    prior = Prior.of(ground, 1.0)
    low, high = prior.bounds()[4]
    assert low == pytest.approx(log(ground.shortest))
    assert low <= prior.centre.lengthscale < high


@pytest.mark.parametrize(("n_users", "narrower"), [(40, False), (520, True)])
def test_many_users_are_explored_as_far_as_rewards_allow(n_users: int, narrower: bool) -> None:
    policy: Any = ct.make_policy(
        "auto-ucb", graph=ct.make_graph("ring", n_users), arms=ARMS, engine="sparse", width=2.0
    )
    assert policy.width == (0.0 if narrower else 2.0)
    for user in (0, 1, 0, 0):
        policy.update(user, user, 1.0 + user)
    assert policy.width == pytest.approx(2 * 4 / (2 * 3) if narrower else 2.0)
    for _ in range(8):
        policy.update(0, 2, 1.0)
    assert policy.width == 2.0


SHARED = (3.0, -2.0, 0.5, -1.0)  # what everybody thinks of the first arms


@pytest.mark.parametrize("n_users", [40, 520])
def test_what_all_have_in_common_is_explored_wider_and_least_where_it_is_known(n_users: int) -> None:
    policy: Any = ct.make_policy(
        "auto-ucb", graph=ct.make_graph("ring", n_users), arms=ARMS, engine="sparse", width=2.0
    )
    for user in range(30):
        policy.update(user, user % 4, SHARED[user % 4] + 0.01 * (user % 3))
    arms = np.arange(len(ARMS))
    std = policy.model.read(35, arms)[1]
    widths = policy.widths(arms, std)
    if n_users == 40:  # too few to tell apart
        assert widths == policy.width == 2.0
        return
    common = policy.model.common_variances(arms)
    assert np.all(common <= std**2 * (1 + 1e-9))
    np.testing.assert_allclose(widths**2 * std**2, policy.width**2 * std**2 + (4 - policy.width**2) * common)
    assert np.max(common[:4]) < np.min(common[4:])
    assert np.all((widths > policy.width) & (widths < 2.0))


def test_decisions_explore_by_the_widths_one_by_one_and_together() -> None:
    graph, users = ct.make_graph("ring", 520), [3, 400, 77]
    policy, twin = (ct.make_policy("auto-ts", graph=graph, arms=ARMS, engine="sparse", seed=3) for _ in range(2))
    for user in range(60):
        for each in (policy, twin):
            each.update(user, user % 4, SHARED[user % 4] + 0.01 * (user % 3))
    together = twin.consider_many(users)
    assert together is not None
    assert isinstance(together.width, np.ndarray)
    for i, user in enumerate(users):
        choice, found = policy.consider(user)
        assert choice.index == together.best[i]
        np.testing.assert_array_equal(found.width, together.width[i])
        np.testing.assert_array_equal(found.score, together.score[i])


def test_two_values_are_told_from_others() -> None:
    rng = np.random.default_rng(2)
    assert is_two_valued(history(rng.integers(2, size=600)))
    assert not is_two_valued(history(rng.integers(3, size=600)))
    assert not is_two_valued(history(rng.normal(size=60)))
    assert not is_two_valued(history(np.zeros(60)))


def test_rewards_of_two_values_are_mostly_noise_though_no_pair_repeats() -> None:
    rng, observed = np.random.default_rng(4), History()
    for user in range(40):
        arm = int(rng.integers(len(ARMS)))
        observed.add((user, arm), user, arm, float(rng.random() < 0.1) - 0.1)
    parts = Neighbourhoods(UNEVEN, ARMS).parts
    noise = [
        fit(Evidence(parts, observed), prior, prior.centre, corners=True)[0].noise_var
        for prior in (Prior.of(parts, 0.09, two_valued=True), Prior.of(parts, 0.09))
    ]
    assert noise[0] > 0.25 * 0.09 > noise[1]


def test_nothing_is_learned_from_rewards_that_are_all_the_same() -> None:
    assert is_constant(history(np.zeros(30)))
    assert not is_constant(history(np.arange(30.0)))
    policy: Any = ct.make_policy("auto-ucb", graph=EVEN, arms=ARMS)
    for user in range(20):
        policy.update(user, user % len(ARMS), 0.0)
    assert policy.hyper == Prior.of(policy.ground, 1.0).centre
    policy.update(20, 0, 1.0)
    for user in range(21, 33):
        policy.update(user, user % len(ARMS), 0.0)
    assert exp(policy.hyper.noise) < 0.2
