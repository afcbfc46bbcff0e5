"""Parts of the kernel of `auto` that nothing speaks for are left out among many users."""

from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import coterie as ct
from coterie.models import History
from coterie.policies.auto.evidence import Evidence
from coterie.policies.auto.fitting import NONE, Prior, fit, without_idle_parts
from coterie.policies.auto.neighbourhoods import TRACE, Neighbourhoods
from coterie.policies.auto.parts import Hyper, Parts

GRAPH = ct.make_graph("sbm", 40, seed=2)
ARMS = ct.ArmPool(np.random.default_rng(1).normal(size=(12, 3)))
PARTS = Neighbourhoods(GRAPH, ARMS).parts
HYPER = Hyper(-1.0, -2.0, -1.5, -0.5, 0.3, 0.2, -2.0, -2.0)


def rewarded(rows: Any) -> History:
    out = History()
    for user, arm, reward in rows:
        out.add((int(user), int(arm)), int(user), int(arm), float(reward))
    return out


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.integers(0, 9), st.sampled_from([None, "own", "graph"]))
def test_a_part_as_noise_has_its_variance_and_ties_no_two_rewards(size: int, seed: int, part: str | None) -> None:
    rng = np.random.default_rng(seed)
    users, arms, rewards = rng.integers(40, size=size), rng.integers(12, size=size), rng.normal(size=size)
    kernel = PARTS.kernel(HYPER)
    graph = exp(HYPER.graph) * PARTS.graph_part(HYPER.ridge)[0]
    loose = {"own": np.full(40, exp(HYPER.own)), "graph": graph.diagonal(), None: np.zeros(40)}[part]
    tied = np.asarray(kernel.user_cov) - {"own": np.diag(loose), "graph": graph, None: np.zeros((40, 40))}[part]
    arm_cov = np.asarray(kernel.arm_cov)
    covariance = tied[np.ix_(users, users)] * arm_cov[np.ix_(arms, arms)]
    covariance += np.diag(HYPER.noise_var + loose[users] * arm_cov.diagonal()[arms])
    exact = multivariate_normal(np.zeros(size), covariance).logpdf(rewards)
    found = Evidence(PARTS, rewarded(zip(users, arms, rewards, strict=True))).value(HYPER, as_noise=part)
    assert found == pytest.approx(exact, rel=1e-8, abs=1e-7)


def test_the_value_is_the_one_with_a_gradient() -> None:
    rng = np.random.default_rng(0)
    evidence = Evidence(PARTS, rewarded((rng.integers(40), rng.integers(12), rng.normal()) for _ in range(90)))
    assert evidence.value(HYPER) == pytest.approx(evidence.value_and_gradient(np.array(HYPER))[0], rel=1e-10)


def simulated(hyper: Hyper, seed: int, size: int = 500) -> Evidence:
    """Returns the evidence of rewards drawn from the model itself."""
    rng, kernel = np.random.default_rng(seed), PARTS.kernel(hyper)
    half_users, half_arms = (
        np.linalg.cholesky(np.asarray(each) + 1e-9 * np.eye(len(each))) for each in kernel_of(kernel)
    )
    taste = half_users @ rng.normal(size=(40, 12)) @ half_arms.T
    rows = [(user, arm) for user, arm in zip(rng.integers(40, size=size), rng.integers(12, size=size), strict=True)]
    noise = np.sqrt(hyper.noise_var)
    return Evidence(PARTS, rewarded((u, a, taste[u, a] + noise * rng.normal()) for u, a in rows))


def kernel_of(kernel: Any) -> tuple[Any, Any]:
    return kernel.user_cov, kernel.arm_cov


@pytest.mark.parametrize("seed", range(3))
def test_a_part_that_nothing_speaks_for_is_left_out_and_others_stay(seed: int) -> None:
    rough = HYPER._replace(graph=0.5, own=-0.5, common=-3.0, noise=-3.0)
    evidence = simulated(rough._replace(common=NONE), seed)
    found = without_idle_parts(evidence, rough, reaches_all=True)
    assert found == rough._replace(common=NONE)
    assert without_idle_parts(evidence, rough, reaches_all=False) == rough  # users learn from others in some way
    assert np.isfinite(fit(evidence, Prior.of(PARTS, 1.0), found, corners=False)[1])  # from where it was left out


@pytest.mark.parametrize("seed", [1, 2, 3])  # of 0 what is drawn in common is next to nothing
def test_a_graph_that_carries_most_must_tie_users_only_where_other_parts_are_spoken_for(seed: int) -> None:
    rough = HYPER._replace(graph=1.3, own=NONE, common=1.0, ridge=3.0, noise=-1.0)
    assert rough.shares()["graph"] > 0.5
    beside = without_idle_parts(simulated(rough._replace(graph=NONE), seed), rough, reaches_all=True)
    assert (beside.graph, beside.common) == (NONE, rough.common)
    nothing = simulated(rough._replace(graph=NONE, common=NONE), seed, size=40)
    alone = without_idle_parts(nothing, rough._replace(common=-6.0), reaches_all=True)
    assert (alone.graph, alone.common) == (rough.graph, NONE)


MOSTLY_COMMON = HYPER._replace(common=1.0, graph=-1.0, own=-1.0, noise=-2.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_graph_that_ties_users_stays_and_one_that_does_not_turns_into_noise(seed: int) -> None:
    prior = Prior.of(PARTS, 4.0)
    for graph, stays in ((0.5, True), (NONE, False)):
        evidence = simulated(MOSTLY_COMMON._replace(graph=graph, own=NONE), seed)
        rough = fit(evidence, prior, prior.centre, corners=True)[0]
        found = without_idle_parts(evidence, rough, reaches_all=True)
        assert (found.graph > NONE) == stays
        gone = sum(exp(getattr(rough, part)) for part in ("own", "graph") if getattr(found, part) == NONE)
        assert found.noise_var == pytest.approx(rough.noise_var + gone * (1 + exp(rough.offset)))


@pytest.mark.parametrize("seed", range(3))
def test_where_users_own_parts_carry_a_graph_that_ties_nobody_goes_and_the_common_part_stays(seed: int) -> None:
    prior = Prior.of(PARTS, 2.0)
    evidence = simulated(HYPER._replace(own=0.5, graph=NONE, common=NONE, noise=-2.0), seed)
    rough = fit(evidence, prior, prior.centre, corners=True)[0]._replace(graph=-2.0)
    found = without_idle_parts(evidence, rough, reaches_all=True)
    assert found.graph == NONE
    assert exp(found.own) == pytest.approx(exp(rough.own) + exp(rough.graph))
    assert found.common == rough.common  # users learn from others in some way


def test_users_who_come_once_have_nothing_of_their_own() -> None:
    rng = np.random.default_rng(0)
    rows = [(user, user % 12, rng.normal() * (1 + 3 * (user % 3 == 0))) for user in range(40)]
    assert without_idle_parts(Evidence(PARTS, rewarded(rows)), HYPER._replace(own=1.0), reaches_all=True).own == NONE


def test_a_graph_without_a_part_leaves_a_trace_that_is_nothing() -> None:
    ground, bare = Neighbourhoods(GRAPH, ARMS), HYPER._replace(graph=NONE)
    assert ground.scale(bare) * ground.mean_gain(bare.ridge) == pytest.approx(TRACE * (exp(-2.0) + exp(-1.5)))
    assert ground.scale(HYPER) * ground.mean_gain(HYPER.ridge) == pytest.approx(exp(HYPER.graph))
    prior = Prior.of(ground, 1.0)
    rng = np.random.default_rng(0)
    evidence = Evidence(PARTS, rewarded((rng.integers(40), rng.integers(12), rng.normal()) for _ in range(90)))
    assert fit(evidence, prior, bare, corners=False)[0].graph > log(1e-12)  # it is looked for again
