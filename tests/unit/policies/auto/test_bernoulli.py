"""The Gaussian nearest to a posterior of logits: against dense integration, its slope, and its bound."""

from itertools import pairwise
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit

import coterie as ct
from coterie.models import History
from coterie.policies.auto import bernoulli
from coterie.policies.auto.bernoulli import LogitBelief, Sites, Trials, believed, bound, probabilities, settled
from coterie.policies.auto.bernoulli_likelihood import BernoulliEvidence, level_of, logit_prior
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.hyper import Hyper
from coterie.policies.auto.prior import fit

GRAPH = ct.make_graph("sbm", 8, seed=3, connected="retry")
ARMS = ct.ArmPool(np.random.default_rng(1).normal(size=(6, 3)))
GROUND = FitContext(GRAPH, ARMS)
PARTS = GROUND.parts


def dense_truth(gram: np.ndarray, trials: Trials) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns mean and std of both probabilities and the log evidence, by sums over a fine grid of two logits."""
    axis = np.linspace(-8, 8, 801) * np.sqrt(gram.diagonal()[:, None])
    f = np.stack(np.meshgrid(*axis, indexing="ij"), axis=-1).reshape(-1, 2)
    logits = f + trials.level
    likely = logits @ trials.successes - np.logaddexp(0, logits) @ trials.counts
    prior = -0.5 * np.einsum("ij,jk,ik->i", f, np.linalg.inv(gram), f) - 0.5 * np.linalg.slogdet(2 * np.pi * gram)[1]
    cell = np.prod(axis[:, 1] - axis[:, 0])
    weights = np.exp(likely + prior) * cell
    mean = weights @ expit(logits) / weights.sum()
    return mean, np.sqrt(weights @ (expit(logits) - mean) ** 2 / weights.sum()), log(weights.sum())


@pytest.mark.parametrize("variance", [1.0, 4.0])
@pytest.mark.parametrize(("counts", "successes"), [([1, 1], [1, 0]), ([5, 2], [5, 1]), ([40, 3], [38, 0])])
def test_probabilities_and_evidence_are_near_the_exact_ones(
    variance: float, counts: list[float], successes: list[float]
) -> None:
    gram = variance * np.array([[1.0, 0.6], [0.6, 1.0]])
    trials = Trials(np.array(counts, dtype=float), np.array(successes, dtype=float), level=0.4)
    exact_mean, exact_std, exact_evidence = dense_truth(gram, trials)
    sites, belief = settled(gram, trials)
    mean, std = probabilities(belief.mean + trials.level, np.sqrt(belief.variance))
    np.testing.assert_allclose(mean, exact_mean, atol=0.005)
    np.testing.assert_allclose(std, exact_std, rtol=0.1)
    assert exact_evidence - 0.05 < bound(belief, sites, trials) < exact_evidence


@settings(max_examples=60, deadline=None)
@given(st.floats(-10, 10), st.floats(0, 5))
def test_probabilities_are_within_their_error(mean: float, std: float) -> None:
    def expected(power: int) -> float:
        return float(quad(lambda z: expit(mean + std * z) ** power * np.exp(-z * z / 2), -9, 9, limit=200)[0])

    first, second = expected(1) / np.sqrt(2 * np.pi), expected(2) / np.sqrt(2 * np.pi)
    told, spread = probabilities(np.array([mean]), np.array([std]))
    assert told[0] == pytest.approx(first, abs=1e-6)
    assert spread[0] ** 2 == pytest.approx(second - first**2, abs=2e-6)


def drawn(size: int, seed: int, variance: float, most: int = 40) -> tuple[np.ndarray, Trials]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size + 2)) / np.sqrt(size + 2)
    gram = variance * root @ root.T
    counts = rng.integers(1, most + 1, size=size).astype(float)
    truth = np.linalg.cholesky(gram) @ rng.normal(size=size)
    return gram, Trials(counts, rng.binomial(counts.astype(int), expit(truth + 0.3)).astype(float), level=0.3)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 100), st.sampled_from([0.1, 1.0, 4.0, 12.0]), st.sampled_from([1, 40, 2000]))
def test_settled_is_within_its_tolerance_of_the_fixed_point(size: int, seed: int, variance: float, most: int) -> None:
    gram, trials = drawn(size, seed, variance, most)
    _, belief = settled(gram, trials)
    sites, exact = settled(gram, trials, tolerance=1e-13, most_passes=500)
    told, wanted = (probabilities(each.mean + trials.level, np.sqrt(each.variance)) for each in (belief, exact))
    np.testing.assert_allclose(told, wanted, atol=1e-4)
    surplus = trials.successes - trials.counts * wanted[0]  # a settled mean is the surplus, spread by the kernel
    np.testing.assert_allclose(sites.pull - sites.precision * exact.mean, surplus, atol=1e-5 * most)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 10), st.integers(0, 100), st.sampled_from([1.0, 12.0, 100.0]))
def test_each_pass_raises_the_bound(size: int, seed: int, variance: float) -> None:
    gram, trials = drawn(size, seed, variance, 500)
    values = []
    for passes in (1, 2, 4, 8, 16):
        sites, belief = settled(gram, trials, most_passes=passes)
        values.append(bound(belief, sites, trials))
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in pairwise(values))


def test_no_other_gaussian_has_a_higher_bound() -> None:
    gram, trials = drawn(5, 7, 4.0)
    sites, belief = settled(gram, trials)
    best, rng = bound(belief, sites, trials), np.random.default_rng(0)
    for _ in range(200):
        shift = 0.05 * rng.normal(size=(2, 5))
        other = Sites(sites.precision * np.exp(shift[0]), sites.pull + shift[1])
        assert bound(believed(gram, other), other, trials) < best + 1e-9


def test_from_where_one_begins_is_irrelevant() -> None:
    gram, trials = drawn(10, 3, 4.0)
    sites, belief = settled(gram, trials)
    _, again = settled(gram, trials, Sites(3 * sites.precision, -sites.pull))
    np.testing.assert_allclose(again.mean, belief.mean, atol=1e-3)
    np.testing.assert_allclose(again.variance, belief.variance, atol=1e-3)


def damped(gram: np.ndarray, trials: Trials, passes: int = 1500) -> LogitBelief:
    """Returns the belief at the fixed point by many short steps."""
    sites = Sites(0.1 * trials.counts, np.zeros(len(gram)))
    for _ in range(passes):
        belief = believed(gram, sites)
        logits = belief.mean[:, None] + trials.level + np.sqrt(belief.variance)[:, None] * bernoulli._NODES
        expected, slope = expit(logits) @ bernoulli._WEIGHTS, (expit(logits) * expit(-logits)) @ bernoulli._WEIGHTS
        pull = trials.counts * slope * belief.mean + trials.successes - trials.counts * expected
        sites = Sites(*(0.93 * old + 0.07 * new for old, new in zip(sites, (trials.counts * slope, pull), strict=True)))
    return believed(gram, sites)


@pytest.mark.parametrize("repeats", [1.0, 30.0, 300.0, 10_000.0, 111.1])
@pytest.mark.parametrize("share", [0.0, 0.01, 1.0, None])
def test_logits_are_settled_where_probabilities_are_near_0_and_1(repeats: float, share: float | None) -> None:
    gram, _ = drawn(6, 2, 12.0)
    shares = np.array([0.0, 1.0] * 3) if share is None else np.full(6, share)
    trials = Trials(np.full(6, repeats), repeats * shares, level=0.5)
    exact = damped(gram, trials)
    far = Sites(np.full(6, 1e-4 * repeats), 2e-3 * repeats * np.array([-1.0, 0.0, 1.0] * 2))
    for start in (None, far, Sites(0.25 * trials.counts, 5 * (trials.successes - 0.5 * trials.counts))):
        _, belief = settled(gram, trials, start)
        np.testing.assert_allclose((belief.mean - exact.mean) / np.sqrt(exact.variance), 0.0, atol=5e-3)
        np.testing.assert_allclose(belief.variance, exact.variance, rtol=5e-3)


def history(size: int, seed: int) -> History:
    rng, out = np.random.default_rng(seed), History()
    for _ in range(size):
        user, arm = int(rng.integers(8)), int(rng.integers(6))
        out.add((user, arm), user, arm, float(rng.random() < 0.3 + 0.5 * (arm % 2)))
    return out


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=7, max_size=7), st.integers(2, 60), st.integers(0, 5))
def test_the_gradient_is_the_slope_of_the_bound(point: list[float], size: int, seed: int) -> None:
    evidence = BernoulliEvidence(PARTS, history(size, seed), 0.2, tolerance=1e-10)
    at = np.array([*point, 0.0])
    _, gradient = evidence.value_and_gradient(at)
    for i, unit in enumerate(np.eye(8)):
        up, down = (evidence.value_and_gradient(at + sign * 1e-4 * unit)[0] for sign in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-4, rel=1e-3, abs=1e-3)


def test_a_fit_climbs_and_leaves_the_noise_alone() -> None:
    trials = history(80, 0)
    evidence, prior = BernoulliEvidence(PARTS, trials, level_of(trials)), logit_prior(GROUND)
    found, value = fit(evidence, prior, prior.centre, corners=False)
    assert value > evidence.value_and_gradient(np.array(prior.centre))[0] + 1.0
    assert found.noise_var == 1.0
    assert Hyper._fields[-1] == "noise"


def test_the_level_is_the_logit_of_the_share_of_successes() -> None:
    trials = History()
    for reward in (1.0, 1.0, 1.0, 0.0):
        trials.add("pair", 0, 0, reward)
    assert level_of(trials) == pytest.approx(log(4 / 2))
    assert level_of(History()) == 0.0
