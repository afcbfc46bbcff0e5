"""The evidence of rewards that are noisier than others is that of a normal density, but for a constant."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import coterie as ct
from coterie.models import History
from coterie.policies.auto.evidence import Evidence, Together, share_of
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.hyper import Hyper

GRAPH, ARMS = ct.make_graph("sbm", 8, seed=2), ct.ArmPool(np.random.default_rng(1).normal(size=(5, 2)))
RNG = np.random.default_rng(0)
USERS, COLUMNS = RNG.integers(8, size=40), RNG.integers(5, size=40)
REWARDS, WEIGHTS = RNG.normal(size=40), RNG.choice([1.0, 0.36, 0.09], size=40)
POINTS = [Hyper(-1.0, -2.0, -1.5, -0.5, 0.3, 0.2, -2.0, noise) for noise in (-3.0, -1.0, 0.5)]


def collapsed() -> History:
    out = History()
    for user, arm, reward, weight in zip(USERS.tolist(), COLUMNS.tolist(), REWARDS, WEIGHTS.tolist(), strict=True):
        out.add((user, arm), user, arm, float(reward), weight=weight)
    out.spare = float(np.sum(1 - WEIGHTS))
    return out


def density(hyper: Hyper) -> float:
    """The log density of all rewards, each with a noise of its own."""
    kernel = FitContext(GRAPH, ARMS).parts.kernel(hyper)
    cov = kernel.cross(USERS, COLUMNS, USERS, COLUMNS) + np.diag(hyper.noise_var / WEIGHTS)
    return float(multivariate_normal(np.zeros(40), cov).logpdf(REWARDS))


def test_evidence_differs_from_the_density_by_a_constant() -> None:
    evidence = Evidence(FitContext(GRAPH, ARMS).parts, collapsed())
    gaps = [evidence.value_and_gradient(np.array(each))[0] - density(each) for each in POINTS]
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-8)


def test_its_gradient_is_the_slope() -> None:
    evidence = Evidence(FitContext(GRAPH, ARMS).parts, collapsed())
    for each in POINTS:
        point, step = np.array(each), 1e-5
        found = evidence.value_and_gradient(point)[1]
        for place in range(len(point)):
            moved = point + step * (np.arange(len(point)) == place), point - step * (np.arange(len(point)) == place)
            slope = np.diff([evidence.value_and_gradient(at)[0] for at in moved[::-1]])[0] / (2 * step)
            assert found[place] == pytest.approx(slope, abs=1e-4)


def test_fits_look_at_it_in_the_same_way() -> None:
    context, history = FitContext(GRAPH, ARMS), collapsed()
    found = Together(context.evidences(history, 40)).value_and_gradient(np.array(POINTS[0]))
    wanted = Evidence(context.parts, history).value_and_gradient(np.array(POINTS[0]))
    assert found[0] == pytest.approx(wanted[0], rel=1e-9)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-6, atol=1e-8)


def test_a_sample_has_its_share() -> None:
    history = collapsed()
    rows = np.arange(len(history))
    assert share_of(history, rows) == pytest.approx(1.0)
    assert share_of(history, rows[:7]) + share_of(history, rows[7:]) == pytest.approx(1.0)
    assert share_of(History(), np.zeros(0, dtype=np.intp)) == 0.0
