"""Effective dimension and features, against formulas written out; and what is planted is told apart."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from coterie.kernels import ArmPool
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.hyper import Hyper
from coterie.policies.auto.prior import Prior
from coterie.runs.diagnosis.feature_value import FeatureReport, Sampled, effective_dimension, feature_report
from coterie.runs.diagnosis.outcomes import look, outcomes_of
from planted import planted_log

LOW = log(0.1)


@pytest.fixture(scope="module")
def context() -> tuple[FitContext, Sampled, Hyper, ArmPool]:
    world = planted_log(n_users=40, each=8)
    assert isinstance(world.arms, ArmPool)
    made = FitContext(world.graph, world.arms)
    seen = look(world, outcomes_of(world), seed=0)
    hyper = Prior.of(made, 3.0).centre._replace(linear=2.0, noise=log(0.1))
    return made, Sampled.of(made, seen.history, seen.together(10_000), 0.25), hyper, world.arms


def test_log_evidence_is_that_of_the_fit_but_for_constants(
    context: tuple[FitContext, Sampled, Hyper, ArmPool],
) -> None:
    made, sampled, hyper, _ = context
    world = planted_log(n_users=40, each=8)
    seen = look(world, outcomes_of(world), seed=0)
    theirs = made.sampled_evidence(seen.history, seen.together(10_000), 0.25)
    other = hyper._replace(ridge=hyper.ridge + 1, lengthscale=0.0)
    ours = [sampled.log_evidence(each, sampled.parts) for each in (hyper, other)]
    exact = [theirs.value_and_gradient(np.array(each))[0] for each in (hyper, other)]
    assert ours[0] - ours[1] == pytest.approx(exact[0] - exact[1])


def test_effective_dimension_is_the_trace_of_what_is_explained(
    context: tuple[FitContext, Sampled, Hyper, ArmPool],
) -> None:
    _, sampled, hyper, _ = context
    covariance = sampled.covariance(sampled.parts.kernel(hyper))
    explained = np.linalg.solve(covariance + hyper.noise_var * np.eye(len(covariance)), covariance)
    assert effective_dimension(sampled.eigenvalues(hyper)) == pytest.approx(np.trace(explained))


def test_features_that_matter_come_first_and_the_dull_one_can_go(
    context: tuple[FitContext, Sampled, Hyper, ArmPool],
) -> None:
    _, sampled, hyper, arms = context
    found = feature_report(sampled, hyper, arms)
    assert set(found.names[:2]) == {"sweet", "hot"}
    assert found.names[2] == "dull"
    assert found.losses[1] > 10 > found.losses[2]
    assert found.kept == [1, 2, 3]
    assert found.kept_losses[0] > 10
    assert found.enough == 2


def test_enough_is_the_first_number_that_loses_nothing_clear() -> None:
    losses = np.array([9.0, 2.9, -1.0])
    report = FeatureReport(n_features=3, names=["a", "b", "c"], losses=losses, kept=[1, 2, 3], kept_losses=losses)
    assert report.enough == 2


def test_features_that_lie_far_from_zero_are_told_apart_as_well() -> None:
    """Multiples of 1/64 stay exact at these offsets, and of the linear part only its level is left there."""
    log, found = planted_log(n_users=40, each=8), []
    assert isinstance(log.arms, ArmPool)
    grid = np.round(64 * log.arms.features) / 64
    for offset in (1e6, 1e7, 1e8):
        moved = replace(log, arms=ArmPool(grid + offset, feature_names=log.arms.feature_names))
        assert isinstance(moved.arms, ArmPool)
        made, seen = FitContext(moved.graph, moved.arms), look(moved, outcomes_of(moved), seed=0)
        hyper = Prior.of(made, 3.0).centre._replace(noise=LOW)
        sampled = Sampled.of(made, seen.history, seen.together(10_000), 0.25)
        found.append(feature_report(sampled, hyper, moved.arms))
    for each in found[1:]:
        assert each.names == found[0].names
        np.testing.assert_allclose(each.losses, found[0].losses, atol=0.01)
