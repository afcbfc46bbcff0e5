"""Propensities: closed forms, an independent quadrature, simulation, and what policies really choose."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr

import coterie as ct
from coterie.contracts import Array
from coterie.errors import DimensionError, NumericalError, ParameterError
from coterie.policies.factory.recipes import RECIPES
from coterie.policies.rules.draws import Draws
from coterie.policies.rules.propensity import (
    Propensities,
    argmax_probabilities,
    check_least,
    epsilon_probabilities,
    exploration,
    joint_thompson_probabilities,
    thompson_probabilities,
)
from coterie.policies.rules.scores import FunctionScore, InNoiseUnits, ucb

WITHIN = 1e-6
STAGED = sorted(name for name, recipe in RECIPES.items() if recipe.staged)
OTHERS = sorted(set(RECIPES) - set(STAGED))


@st.composite
def beliefs(draw: st.DrawFn, min_size: int = 1, zeros: bool = True) -> tuple[Array, Array]:
    """Means and spreads over many orders of magnitude, near each other and far, with certain candidates among them."""
    size = draw(st.integers(min_size, 8))
    powers = draw(st.lists(st.floats(-9, 9), min_size=size, max_size=size))
    spread = 10.0 ** np.array(powers)
    near = np.array(draw(st.lists(st.floats(-4, 4), min_size=size, max_size=size)))
    unit = spread if draw(st.booleans()) else np.full(size, draw(st.sampled_from(spread.tolist())))
    certain = np.array(draw(st.lists(st.booleans() if zeros else st.just(False), min_size=size, max_size=size)))
    return near * unit, np.where(certain, 0.0, spread)


def by_quad(mean: Array, spread: Array, i: int) -> float:
    """Returns the probability of candidate i to be the largest, by one adaptive integral over its own draw."""
    others = np.arange(len(mean)) != i

    def integrand(z: float) -> float:
        below = ndtr((mean[i] + spread[i] * z - mean[others]) / spread[others])
        return float(np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * below.prod())

    steps = (mean[others] - mean[i] + np.array([[-5.0], [0.0], [5.0]]) * spread[others]) / spread[i]
    edges = np.unique([*np.clip(steps, -8.0, 8.0).ravel().tolist(), -8.0, 8.0])
    return float(sum(quad(integrand, a, b, epsabs=1e-10)[0] for a, b in pairwise(edges)))


@given(beliefs(min_size=2, zeros=False))
def test_two_candidates_have_the_closed_form(belief: tuple[Array, Array]) -> None:
    mean, spread = belief[0][:2], belief[1][:2]
    want = ndtr((mean[0] - mean[1]) / np.hypot(*spread))
    np.testing.assert_allclose(thompson_probabilities(mean, spread), [want, 1 - want], atol=WITHIN)


@pytest.mark.parametrize("size", [1, 2, 20, 32, 33, 1000])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1.3, 1.9e-7])
def test_equal_candidates_are_equally_likely(size: int, spread: float) -> None:
    got = thompson_probabilities(np.full(size, 5.0), np.full(size, spread))
    np.testing.assert_allclose(got, 1 / size, atol=1e-12)


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("orders", [0.3, 2, 5])
def test_quadrature_agrees_with_an_adaptive_integral(size: int, orders: float) -> None:
    rng = np.random.default_rng(size)
    spread = 10.0 ** rng.uniform(-orders, 0, size)
    mean = rng.normal(size=size) * spread
    want = [by_quad(mean, spread, i) for i in range(size)]
    np.testing.assert_allclose(thompson_probabilities(mean, spread), want, atol=WITHIN)


def test_quadrature_agrees_with_simulation_for_many_candidates_some_of_them_certain() -> None:
    rng = np.random.default_rng(0)
    mean, spread = rng.normal(size=40), rng.uniform(0.1, 1.5, 40)
    spread[:10] = 0.0
    chosen = (mean + spread * rng.standard_normal((100_000, 40))).argmax(axis=1)
    got = thompson_probabilities(mean, spread)
    error = np.sqrt(got * (1 - got) / 100_000) + 1e-5
    assert (np.abs(np.bincount(chosen, minlength=40) / 100_000 - got) < 5 * error).all()


@given(beliefs())
def test_thompson_probabilities_are_probabilities(belief: tuple[Array, Array]) -> None:
    got = thompson_probabilities(*belief)
    assert (got >= 0).all()
    assert got.sum() == pytest.approx(1, abs=1e-12)


@given(beliefs(), st.randoms(use_true_random=False))
def test_thompson_probabilities_follow_a_change_of_order(belief: tuple[Array, Array], random: Any) -> None:
    mean, spread = belief
    order = random.sample(range(len(mean)), len(mean))
    got = thompson_probabilities(mean[order], spread[order])
    np.testing.assert_allclose(got, thompson_probabilities(mean, spread)[order], atol=WITHIN)


@given(beliefs(), st.floats(0.01, 100))
def test_thompson_probabilities_have_no_units(belief: tuple[Array, Array], scale: float) -> None:
    mean, spread = belief
    scaled = thompson_probabilities(scale * mean, scale * spread)
    np.testing.assert_allclose(scaled, thompson_probabilities(mean, spread), atol=WITHIN)


@given(beliefs(), st.floats(-1000, 1000))
def test_thompson_probabilities_have_no_origin(belief: tuple[Array, Array], shift: float) -> None:
    mean, spread = np.clip(belief[0], -1000, 1000).round(6), belief[1]
    spread = np.where(spread > 0, np.maximum(spread, 1e-3), 0.0)  # or the shift would round off what matters
    shifted = thompson_probabilities(mean + shift, spread)
    np.testing.assert_allclose(shifted, thompson_probabilities(mean, spread), atol=WITHIN)


@given(beliefs(), st.floats(0.0, 3.0))
def test_a_higher_mean_is_never_chosen_less(belief: tuple[Array, Array], rise: float) -> None:
    mean, spread = belief
    before = thompson_probabilities(mean, spread)
    mean = mean + np.where(np.arange(len(mean)) == 0, rise * spread.max(), 0.0)
    after = thompson_probabilities(mean, spread)
    assert after[0] >= before[0] - WITHIN
    assert (after[1:] <= before[1:] + WITHIN).all()


def test_a_candidate_that_cannot_win_has_probability_nought() -> None:
    got = thompson_probabilities(np.array([0.0, 1e6, 0.0, 1e6]), np.array([1.0, 1e-6, 1e3, 0.0]))
    np.testing.assert_allclose(got, [0, 0.5, 0, 0.5], atol=1e-12)


def test_spreads_within_the_tolerance_count_as_none() -> None:
    mean, spread = np.array([0.0, 5e-11, 0.0]), np.array([0.0, 1e-12, 1.0])
    np.testing.assert_allclose(thompson_probabilities(mean, spread, 1e-10), [0.25, 0.25, 0.5], atol=WITHIN)
    assert thompson_probabilities(mean, spread)[0] == 0.0


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=9), st.floats(0, 2))
def test_ties_within_the_tolerance_share_and_others_get_nothing(score: list[float], tolerance: float) -> None:
    got = argmax_probabilities(np.array(score), tolerance)
    ties = [value >= max(score) - max(tolerance, 1e-13 * abs(max(score))) for value in score]
    np.testing.assert_allclose(got, np.array(ties) / sum(ties))


def test_epsilon_is_shared_by_all_and_the_rest_by_the_best() -> None:
    got = epsilon_probabilities(np.array([1.0, 1.0, 0.0, 0.5]), 0.2)
    np.testing.assert_allclose(got, [0.45, 0.45, 0.05, 0.05])
    with pytest.raises(ParameterError, match=r"epsilon is 1\.5"):
        epsilon_probabilities(np.zeros(2), 1.5)


def test_joint_probabilities_without_correlation_are_those_of_independent_draws() -> None:
    mean, spread = np.array([0.3, 0.0, -0.2]), np.array([0.5, 1.0, 2.0])
    got, errors = joint_thompson_probabilities(mean, np.diag(spread**2), 0.7, np.random.default_rng(0), n_draws=50_000)
    assert (np.abs(got - thompson_probabilities(mean, 0.7 * spread)) < 4.5 * errors).all()
    np.testing.assert_allclose(errors, np.sqrt(got * (1 - got) / 50_000), rtol=0.01)
    assert got.sum() == pytest.approx(1)


def test_joint_probabilities_know_correlation_and_ties() -> None:
    covariance = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    got, errors = joint_thompson_probabilities(
        np.zeros(3), covariance, 1.0, np.random.default_rng(1), n_draws=20_000, tolerance=1e-10
    )
    assert got[0] == got[1]  # the same value in every draw
    assert (np.abs(got - [0.25, 0.25, 0.5]) < 4.5 * errors).all()
    got, _ = joint_thompson_probabilities(np.array([0.0, 0.1, -9.0]), covariance, 1.0, np.random.default_rng(1))
    assert got[0] == 0.0


def test_joint_errors_are_never_nought_unless_nothing_is_drawn() -> None:
    rng = np.random.default_rng(2)
    _, errors = joint_thompson_probabilities(np.array([0.0, 100.0]), np.eye(2), 1.0, rng, n_draws=1000)
    np.testing.assert_allclose(errors, 1e-3)
    got, errors = joint_thompson_probabilities(np.array([0.0, 1.0]), np.eye(2), 0.0, rng)
    assert got.tolist() == [0.0, 1.0]
    assert errors.tolist() == [0.0, 0.0]


def test_draws_in_blocks_are_all_made() -> None:
    got, _ = joint_thompson_probabilities(np.zeros(2), np.eye(2), 1.0, np.random.default_rng(0), n_draws=1001, block=7)
    assert got.sum() == pytest.approx(1)
    with pytest.raises(ParameterError, match="n_draws is 0"):
        joint_thompson_probabilities(np.zeros(2), np.eye(2), 1.0, np.random.default_rng(0), n_draws=0)


@given(st.integers(1, 9), st.floats(0, 1))
def test_uniform_exploration_reaches_the_floor_whatever_the_policy_would_do(size: int, part: float) -> None:
    floor = part / size
    share, _ = exploration(Draws(0), 0, size, floor)
    never = Propensities(np.eye(size)[0]).with_exploration(share).probabilities
    assert never.min() == pytest.approx(floor, abs=1e-12) or size == 1
    assert never.sum() == pytest.approx(1)


@pytest.mark.parametrize("floor", [0.4, -0.1, float("nan")])
def test_a_floor_that_cannot_be_reached_is_refused_by_name(floor: float) -> None:
    with pytest.raises(ParameterError, match=rf"min_propensity is {floor} with 3 candidates; .* 1/3 = 0\.333333"):
        check_least(floor, 3)


@pytest.mark.parametrize(
    ("mean", "spread", "error"),
    [
        ([0.0, np.nan], [1.0, 1.0], NumericalError),
        ([0.0, 1.0], [1.0, np.inf], NumericalError),
        ([0.0, 1.0], [1.0], DimensionError),
        ([0.0, 1.0], [1.0, -1.0], DimensionError),
        ([], [], DimensionError),
    ],
)
def test_what_is_no_belief_is_refused(mean: list[float], spread: list[float], error: type[Exception]) -> None:
    with pytest.raises(error):
        thompson_probabilities(np.array(mean), np.array(spread))


def trained(name: str, **settings: Any) -> ct.Policy:
    """Returns a policy that has learned a dozen rewards."""
    rng = np.random.default_rng(4)
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)])
    policy = ct.make_policy(name, graph=graph, arms=ct.ArmPool(rng.normal(size=(6, 3))), **settings)
    for _ in range(12):
        policy.update(graph.users[rng.integers(3)], int(rng.integers(6)), float(rng.normal()))
    return policy


def frequencies(policy: ct.Policy, shown: list[int], rounds: int) -> Array:
    """Returns how often each candidate is chosen, the belief staying as it is."""
    chosen = [policy.select("bo", shown).index for _ in range(rounds)]
    return np.bincount(chosen, minlength=len(shown)) / rounds


def found(policy: ct.Policy, shown: list[int]) -> Propensities:
    row = policy.graph.index["bo"]
    got = policy.propensities(row, np.array(shown), rng=np.random.default_rng(0))
    assert got is not None
    return got


@pytest.mark.parametrize(("name", "settings"), [*((name, {}) for name in OTHERS), ("gob-lin-ts", {"noise_var": 0.05})])
def test_every_policy_chooses_as_often_as_its_propensities_say(name: str, settings: dict[str, Any]) -> None:
    policy, shown, rounds = trained(name, **settings), [4, 0, 3, 1], 1500
    got = found(policy, shown)
    error = np.sqrt(got.probabilities * (1 - got.probabilities) / rounds)
    assert (np.abs(frequencies(policy, shown, rounds) - got.probabilities) <= 4.5 * error + 1e-6).all()
    assert got.standard_errors is None


@pytest.mark.parametrize("name", ["lk-gp-ts", "gob-lin-ts"])
def test_joint_sampling_chooses_as_often_as_its_propensities_say(name: str) -> None:
    policy, shown, rounds = trained(name, sampling="joint"), [4, 0, 3, 1], 1500
    got = found(policy, shown)
    assert got.standard_errors is not None
    error = np.hypot(np.sqrt(got.probabilities * (1 - got.probabilities) / rounds), got.standard_errors)
    assert (np.abs(frequencies(policy, shown, rounds) - got.probabilities) <= 4.5 * error).all()
    with pytest.raises(ParameterError, match="rng is None"):
        policy.propensities(1, np.array(shown))


def test_a_user_nobody_knows_is_shown_all_alike() -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo")])
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=ct.ArmPool(np.eye(4)))
    assert found(policy, [0, 1, 3]).probabilities.tolist() == [1 / 3] * 3


def test_without_a_pool_arms_are_vectors() -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo")])
    policy = ct.make_policy("lk-gp-ts", graph=graph, arm_kernel=ct.SquaredExponential(1.0))
    policy.update("bo", np.array([0.0, 1.0]), 3.0)
    got = policy.propensities(1, np.array([[0.0, 1.0], [5.0, 5.0]]))
    assert got is not None
    mean, std = policy.predict("bo", np.array([[0.0, 1.0], [5.0, 5.0]]))
    assert got.probabilities[0] == pytest.approx(ndtr((mean[0] - mean[1]) / np.hypot(*std)), abs=WITHIN)


def test_width_counts_as_in_the_policy() -> None:
    assert set(found(trained("lk-gp-ts", width=0.0), [4, 0, 3]).probabilities) == {0.0, 1.0}
    narrow = found(trained("lk-gp-ts", width=lambda t, _: 0.01 * t), [4, 0, 3]).probabilities
    np.testing.assert_allclose(narrow, found(trained("lk-gp-ts", width=0.13), [4, 0, 3]).probabilities, atol=1e-12)


def test_what_is_not_known_is_none() -> None:
    def own(mean: Array, std: Array, width: float | Array, **_: object) -> Array:
        return mean - width * std

    for policy in (
        trained("gp-ucb", score=own),
        trained("gp-ucb", score=InNoiseUnits(FunctionScore(own))),
        *map(trained, STAGED),
    ):
        assert policy.propensities(0, np.arange(3)) is None
    assert trained("gp-ucb", score=InNoiseUnits(ucb)).propensities(0, np.arange(3)) is not None
