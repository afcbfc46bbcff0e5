"""Hyperparameters by evidence: the right value, the right slope, and choices that rewards' units do not change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.errors import ParameterError
from coterie.models import History, make_model
from coterie.policies.auto import AutoPolicy
from coterie.policies.auto.evidence import Evidence, level_of
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.fits import FIRST_FIT
from coterie.policies.auto.hyper import Hyper
from coterie.policies.auto.prior import Prior, fit

GRAPH = ct.make_graph("sbm", 8, seed=3, connected="retry")
ARMS = ct.ArmPool(np.random.default_rng(1).normal(size=(6, 3)), ids=list("abcdef"))
GROUND = FitContext(GRAPH, ARMS)
PARTS = GROUND.parts


def history(size: int, seed: int = 0) -> History:
    rng, out = np.random.default_rng(seed), History()
    for _ in range(size):
        user, arm = int(rng.integers(8)), int(rng.integers(6))
        out.add((user, arm), user, arm, float(rng.normal()))
    return out


points = st.lists(st.floats(-2, 2), min_size=8, max_size=8).map(np.array)


@settings(max_examples=25, deadline=None)
@given(points, st.integers(1, 60), st.integers(0, 5))
def test_the_evidence_is_that_of_the_dense_model(point: np.ndarray, size: int, seed: int) -> None:
    observed, hyper = history(size, seed), Hyper(*point)
    value, _ = Evidence(PARTS, observed).value_and_gradient(point)
    model = make_model(PARTS.kernel(hyper), noise_var=hyper.noise_var, engine="exact")
    rng = np.random.default_rng(seed)
    for _ in range(size):
        model.update(int(rng.integers(8)), int(rng.integers(6)), float(rng.normal()))
    assert value == pytest.approx(model.log_marginal_likelihood, rel=1e-8, abs=1e-7)


@settings(max_examples=25, deadline=None)
@given(points, st.integers(1, 60), st.integers(0, 5))
def test_the_level_is_that_of_generalised_least_squares(point: np.ndarray, size: int, seed: int) -> None:
    observed, hyper = history(size, seed), Hyper(*point)
    observed.shift(1.5)
    users, arms, counts = observed.user_array(), observed.arm_array(), observed.count_array()
    cov = PARTS.kernel(hyper).cross(users, arms, users, arms) + np.diag(hyper.noise_var / counts)
    ones, means = np.ones(len(counts)), observed.mean_array()
    level = float(ones @ np.linalg.solve(cov, means) / (ones @ np.linalg.solve(cov, ones) + 1 / 0.7))
    evidence = Evidence(PARTS, observed, level_var=0.7)
    assert level_of([evidence], hyper) == pytest.approx(level, rel=1e-6, abs=1e-9)
    assert level_of([Evidence(PARTS, observed)], hyper) == 0
    observed.shift(-level)
    apart, _ = Evidence(PARTS, observed).value_and_gradient(point)
    assert evidence.value_and_gradient(point)[0] == pytest.approx(apart - level**2 / 1.4, rel=1e-7, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(points, st.integers(2, 60), st.integers(0, 5), st.sampled_from([0.0, 2.0]))
def test_the_gradient_is_the_slope_of_the_evidence(point: np.ndarray, size: int, seed: int, level_var: float) -> None:
    evidence = Evidence(PARTS, history(size, seed), level_var=level_var)
    _, gradient = evidence.value_and_gradient(point)
    step = 1e-5
    for i, unit in enumerate(np.eye(8)):
        up, down = (evidence.value_and_gradient(point + sign * step * unit)[0] for sign in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("noise_share", [None, 0.8])
def test_the_prior_has_the_slope_of_its_density(noise_share: float | None) -> None:
    prior = Prior.of(GROUND, 4.0, noise_share=noise_share)
    point = np.array(prior.centre) + 0.3
    _, gradient = prior.value_and_gradient(point)
    for i, unit in enumerate(np.eye(8)):
        up, down = (prior.value_and_gradient(point + sign * 1e-5 * unit)[0] for sign in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-5)


def test_a_fit_climbs_and_stays_in_its_bounds() -> None:
    evidence, prior = Evidence(PARTS, history(80)), Prior.of(GROUND, 1.0)
    found, value = fit(evidence, prior, prior.centre, corners=True)
    start = sum(part.value_and_gradient(np.array(prior.centre))[0] for part in (evidence, prior))
    assert value > start
    assert all(low <= each <= high for each, (low, high) in zip(found, prior.bounds(), strict=True))


def play(policy: ct.Policy, *, scale: float = 1.0, offset: float = 0.0, rounds: int = 80, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(8, 6))
    chosen = []
    for _ in range(rounds):
        user, noise = int(rng.integers(8)), 0.3 * rng.normal()
        arm = policy.select(user, ARMS.ids).arm
        policy.update(user, arm, offset + scale * (truth[user, ARMS.index[arm]] + noise))
        chosen.append(str(arm))
    return chosen


@pytest.mark.parametrize("name", ["auto-ucb", "auto-ts"])
@pytest.mark.parametrize(("scale", "offset"), [(100.0, 0.0), (0.01, 0.0), (1.0, 1000.0), (100.0, -5000.0)])
def test_rewards_in_other_units_give_the_same_choices(name: str, scale: float, offset: float) -> None:
    """By rounding a fit may end elsewhere on a flat ridge, so a few choices may differ late."""
    plain = play(ct.make_policy(name, graph=GRAPH, arms=ARMS))
    moved = play(ct.make_policy(name, graph=GRAPH, arms=ARMS), scale=scale, offset=offset)
    same = np.mean([one == other for one, other in zip(plain, moved, strict=True)])
    assert plain[:20] == moved[:20]
    assert same > 0.9


@pytest.mark.parametrize("scale", [1e-250, 1e-30, 1e30, 1e49])
def test_edges_in_another_unit_give_the_same_belief(scale: float) -> None:
    beliefs = []
    for weights in (GRAPH.weights, scale * GRAPH.weights):
        policy = ct.make_policy("auto-ucb", graph=ct.UserGraph.from_matrix(weights), arms=ARMS)
        play(policy, rounds=30)
        beliefs.append([policy.predict(user) for user in range(8)])
    np.testing.assert_allclose(beliefs[1], beliefs[0], atol=1e-5)


def test_means_are_in_the_rewards_own_units() -> None:
    policy = ct.make_policy("auto-ucb", graph=GRAPH, arms=ARMS)
    play(policy, offset=1000.0, rounds=100)
    mean, std = policy.predict(0, ["a", "b"])
    assert (abs(mean - 1000) < 5).all()
    assert (std < 5).all()
    choice = policy.select(0, ["a", "b"])
    assert abs(choice.mean - 1000) < 5
    assert choice.mean < choice.score < choice.mean + choice.std


def test_the_centre_is_below_the_mean_of_rewards_of_arms_that_were_chosen_for_paying_well() -> None:
    policy, rng, seen = ct.make_policy("auto-ucb", graph=GRAPH, arms=ARMS, seed=0), np.random.default_rng(2), []
    for _ in range(100):
        user = GRAPH.users[int(rng.integers(8))]
        choice = policy.select(user)
        seen.append(float(ARMS.features[choice.index, 0]))
        policy.update(user, choice.arm, seen[-1] + 0.1 * float(rng.normal()))
    assert isinstance(policy, AutoPolicy)
    average, chosen = ARMS.features[:, 0].mean(), np.mean(seen)
    assert chosen > average + 0.5
    assert policy.centre < (average + chosen) / 2


def test_fits_come_on_epochs_that_double_and_are_told() -> None:
    policy = ct.make_policy("auto-ucb", graph=GRAPH, arms=ARMS)
    assert isinstance(policy, AutoPolicy)
    assert "Nothing learned yet: it starts from users graph 30%" in policy.describe()
    play(policy, rounds=70)
    assert [t for t, _ in policy.fits] == [FIRST_FIT, 12, 16, 24, 32, 48, 64]
    assert sum(policy.hyper.shares().values()) == pytest.approx(1.0)
    assert "Learned from 64 rewards" in policy.describe()


def test_a_batch_is_learned_as_one_by_one() -> None:
    rng = np.random.default_rng(0)
    users, arms, rewards = rng.integers(8, size=40).tolist(), list(rng.choice(list("abcdef"), 40)), rng.normal(size=40)
    one, many = (ct.make_policy("auto-ucb", graph=GRAPH, arms=ARMS) for _ in range(2))
    for user, arm, reward in zip(users, arms, rewards, strict=True):
        one.update(user, arm, reward)
    many.update_many(users, arms, rewards)
    np.testing.assert_allclose(one.predict(2)[0], many.predict(2)[0], atol=1e-12)


def test_identical_rewards_and_a_graph_without_edges_are_no_trouble() -> None:
    policy = ct.make_policy("auto-ucb", graph=ct.make_graph("empty", 8), arms=ARMS)
    for i in range(20):
        policy.update(i % 8, "a", 3.0)
    mean, std = policy.predict(0, ["a"])
    assert mean[0] == pytest.approx(3.0, abs=0.5)
    assert np.isfinite(std).all()


def test_a_wrong_graph_loses_its_share() -> None:
    """Rewards that follow one community structure, a policy that is shown another."""
    rng = np.random.default_rng(0)
    graph = ct.make_graph("sbm", 24, seed=1, connected="retry")
    arms = ct.ArmPool(rng.normal(size=(10, 3)))
    taste = np.repeat(rng.normal(size=(4, 10)), 6, axis=0)
    shares = []
    for shown in (graph, graph.permuted(5)):
        policy = ct.make_policy("auto-ucb", graph=shown, arms=arms)
        learn = np.random.default_rng(2)
        for _ in range(512):
            user, arm = int(learn.integers(24)), int(learn.integers(10))
            policy.update(user, arm, taste[user, arm] + 0.1 * learn.normal())
        assert isinstance(policy, AutoPolicy)
        shares.append(policy.hyper.shares()["graph"])
    assert shares[0] > 2 * shares[1]


@pytest.mark.parametrize("option", [{"noise_var": 0.1}, {"laplacian_ridge": 0.1}, {"arm_kernel": ct.Linear()}])
def test_what_is_learned_cannot_be_given(option: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match="'auto-ucb' takes 'width', 'score'"):
        ct.make_policy("auto-ucb", graph=GRAPH, arms=ARMS, **option)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="without arms"):
        ct.make_policy("auto-ucb", graph=GRAPH)
