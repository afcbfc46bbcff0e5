"""What `auto` does where degrees are uneven, features few, or rewards one of two values."""

from math import exp, log
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.models import History
from coterie.policies.auto.evidence import Evidence, Together
from coterie.policies.auto.fit_context import FitContext, is_uneven
from coterie.policies.auto.hyper import Hyper
from coterie.policies.auto.parts import lanczos_density
from coterie.policies.auto.prior import Prior, fit
from coterie.policies.auto.sampling import neighbourhood_laplacian
from coterie.policies.auto.statistics import is_constant, is_two_valued

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
    assert FitContext(UNEVEN, ARMS).normalised
    assert not FitContext(EVEN, ARMS).normalised


def test_tastes_then_vary_about_alike() -> None:
    spreads = []
    for normalised in (True, False):
        graph, _ = FitContext(UNEVEN, ARMS, normalised=normalised).parts.graph_part(log(0.3))
        spreads.append(graph.diagonal().max() / graph.diagonal().min())
    assert spreads[0] < 1.7 < 3 < spreads[1]


def test_large_and_small_have_the_same_evidence_and_kernel() -> None:
    observed, parts, context = (
        history(np.random.default_rng(3).normal(size=200)),
        FitContext(UNEVEN, ARMS).parts,
        FitContext(UNEVEN, ARMS),
    )
    exact = Evidence(parts, observed).value_and_gradient(np.array(HYPER))
    found = Together(context.evidences(observed, 200)).value_and_gradient(np.array(HYPER))
    assert found[0] == pytest.approx(exact[0], rel=1e-9)
    np.testing.assert_allclose(found[1], exact[1], rtol=1e-6, atol=1e-8)
    kernel, pair = context.kernel(HYPER), parts.kernel(HYPER)
    np.testing.assert_allclose(kernel.user_cov * HYPER.variance, pair.user_cov, rtol=1e-7)
    every = np.arange(len(ARMS))
    np.testing.assert_allclose(kernel.arm_cross(every, every), pair.arm_cov * HYPER.variance, rtol=1e-7)


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


@pytest.mark.parametrize("engine", ["auto", "exact"])
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
        assert policy.hyperparameters()["normalised"]
        assert policy.context.normalised
    assert loaded.predict(7) == bandit.predict(7)


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
    context = FitContext(UNEVEN, ARMS)
    noise = [
        fit(Evidence(context.parts, observed), prior, prior.centre)[0].noise_var
        for prior in (Prior.of(context, 0.09, noise_share=0.83), Prior.of(context, 0.09))
    ]
    assert noise[0] > noise[1]


def test_nothing_is_learned_from_rewards_that_are_all_the_same() -> None:
    assert is_constant(history(np.zeros(30)))
    assert not is_constant(history(np.arange(30.0)))
    policy: Any = ct.make_policy("auto-ucb", graph=EVEN, arms=ARMS)
    for user in range(20):
        policy.update(user, user % len(ARMS), 0.0)
    assert policy.hyper == Prior.of(policy.context, 1.0).centre
    policy.update(20, 0, 1.0)
    for user in range(21, 33):
        policy.update(user, user % len(ARMS), 0.0)
    assert exp(policy.hyper.noise) < 0.2
