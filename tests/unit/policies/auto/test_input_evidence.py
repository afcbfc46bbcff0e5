"""The evidence of inputs is a normal density, its gradient is the slope, and fits look at rows as they are."""

from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import coterie as ct
from coterie.contracts import Array
from coterie.kernels.inputs import InputLayout
from coterie.models import History
from coterie.policies.auto.evidence import level_of
from coterie.policies.auto.hyper import InputHyper
from coterie.policies.auto.input_context import InputFitContext
from coterie.policies.auto.input_evidence import InputEvidence
from coterie.policies.auto.sampling import BLOCK_PAIRS, PairSample, draw_input_samples

GRAPH = ct.make_graph("sbm", 6, seed=3, connected="retry")
TRAITS = np.random.default_rng(2).normal(size=(6, 2))
POOLS = {
    "features": ct.ArmPool(np.random.default_rng(1).normal(size=(5, 2))),
    "none": ct.ArmPool.without_features(range(4)),
}
# For each: the pool, numbers and categories of a context, and whether users have features
CASES = {
    "features, both, traits": ("features", 2, 1, True),
    "features, numbers": ("features", 2, 0, False),
    "features, categories": ("features", 0, 1, False),
    "features, nothing, traits": ("features", 0, 0, True),
    "none, both, traits": ("none", 2, 2, True),
    "none, categories": ("none", 0, 2, False),
    "none, numbers": ("none", 3, 0, False),
    "none, nothing": ("none", 0, 0, False),
}
every_case = pytest.mark.parametrize("name", list(CASES))
points = st.lists(st.floats(-1.5, 1.5), min_size=15, max_size=15).map(np.array)


def context_of(name: str) -> InputFitContext:
    pool, numbers, categories, has_traits = CASES[name]
    arms = POOLS[pool]
    codes, features = (0, 2) if arms.has_features else (4, 0)
    layout = InputLayout(codes, features, numbers, categories)
    return InputFitContext(GRAPH, arms, layout, traits=TRAITS if has_traits else None)


def rewards_of(context: InputFitContext, size: int, seed: int) -> list[tuple[int, Array, float]]:
    """Rewards of inputs some of which come twice: what differs is whole numbers."""
    rng, layout, arms = np.random.default_rng(seed), context.layout, context._arms
    out = []
    for _ in range(size):
        arm = int(rng.integers(len(arms)))
        own = arms.features[arm] if arms.has_features else [arm]
        row = np.concatenate(
            [own, rng.integers(-1, 2, size=layout.numbers), rng.integers(0, 2, size=layout.categories)]
        ).astype(np.float64)
        out.append((int(rng.integers(6)), row, float(rng.normal())))
    return out


def collapsed(context: InputFitContext, rewards: list[tuple[int, Array, float]]) -> History:
    out = History()
    for user, row, reward in rewards:
        out.add(context.key(user, row), user, row, reward)
    return out


def evidence_of(context: InputFitContext, history: History, level_var: float = 0.0) -> Any:
    users, places = np.unique(history.user_array(), return_inverse=True)
    sample = PairSample(users, np.arange(len(history)), places)
    return context.sampled_evidence(history, sample, level_var=level_var)


def users_of(context: InputFitContext, h: InputHyper) -> Array:
    """Ku of all users, written out."""
    laplacian = GRAPH.laplacian(normalised=context.normalised).toarray()
    green = np.linalg.inv(laplacian + exp(h.ridge) * np.eye(6))
    out = exp(h.graph) * green / green.diagonal().mean() + exp(h.own) * np.eye(6) + exp(h.common)
    if context.traits is not None:
        squared = ((TRAITS[:, None] - TRAITS) ** 2).sum(axis=2)
        out = out + exp(h.traits) * np.exp(-squared / (2 * exp(2 * h.trait_scale)))
    return np.asarray(out)


def made(name: str, size: int, seed: int) -> tuple[InputFitContext, list[tuple[int, Array, float]], History]:
    rewards = rewards_of(context_of(name), size, seed)
    history = collapsed(context_of(name), rewards)
    return context_of(name).rescaled(history), rewards, history


def plain_value(context: InputFitContext, rewards: Any, hyper: InputHyper, level: float) -> float:
    """The log density of all rewards, one by one, at a level."""
    users, rows, values = (np.array([each[i] for each in rewards]) for i in range(3))
    inputs = context._input_kernel(hyper, 1.0).cross(rows, rows)
    cov = users_of(context, hyper)[np.ix_(users, users)] * inputs + hyper.noise_var * np.eye(len(users))
    return float(multivariate_normal.logpdf(values, np.full(len(users), level), cov))


@every_case
@settings(max_examples=12)
@given(point=points, size=st.integers(1, 40), seed=st.integers(0, 50), level_var=st.sampled_from([0.0, 0.7]))
def test_the_value_is_a_normal_density(name: str, point: Array, size: int, seed: int, level_var: float) -> None:
    context, rewards, history = made(name, size, seed)
    hyper, evidence = InputHyper(*point), evidence_of(context, history, level_var)
    level = level_of([evidence], hyper)
    expected = plain_value(context, rewards, hyper, level)
    expected -= 0.5 * level * level / level_var if level_var else 0.0
    assert evidence.value_and_gradient(point)[0] == pytest.approx(expected, rel=1e-7, abs=1e-7)
    if not level_var:
        assert level == 0.0
        return
    for other in (level - 0.1, level + 0.1):  # it is the most likely one
        assert plain_value(context, rewards, hyper, other) - 0.5 * other * other / level_var < expected + 1e-9


@every_case
@settings(max_examples=12)
@given(point=points, size=st.integers(2, 40), seed=st.integers(0, 50), level_var=st.sampled_from([0.0, 0.7]))
def test_the_gradient_is_the_slope(name: str, point: Array, size: int, seed: int, level_var: float) -> None:
    context, _, history = made(name, size, seed)
    evidence, step = evidence_of(context, history, level_var), 1e-5
    _, gradient = evidence.value_and_gradient(point)
    for i, unit in enumerate(np.eye(15)):
        up, down = (evidence.value_and_gradient(point + sign * step * unit)[0] for sign in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-4), InputHyper._fields[i]


def test_repeats_of_an_input_are_collapsed_and_every_hyperparameter_matters_somewhere() -> None:
    context, rewards, history = made("none, both, traits", 60, 1)
    assert max(history.counts) > 1
    assert len(history) < len(rewards)
    matters = np.zeros(15, dtype=bool)
    for name in CASES:
        context, _, history = made(name, 60, 1)
        matters |= np.abs(evidence_of(context, history).value_and_gradient(np.zeros(15))[1]) > 1e-6
    assert matters.all()


@every_case
def test_the_kernel_that_decides_is_the_one_whose_evidence_was_taken(name: str) -> None:
    context, _, history = made(name, 40, 3)
    hyper = InputHyper(*np.linspace(-1.0, 0.7, 15))
    if context.traits is None:
        hyper = hyper._replace(traits=-700.0)
    users, rows = history.user_array(), history.arm_array()
    found = context.kernel(hyper).cross(users, rows, users, rows)
    expected = users_of(context, hyper)[np.ix_(users, users)] * context._input_kernel(hyper, 1.0).cross(rows, rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_matrix_that_has_no_factor_has_no_evidence() -> None:
    context, _, history = made("features, both, traits", 30, 1)
    point = np.zeros(15)
    point[7] = -800.0  # no noise at all, and users and inputs that cannot be told apart
    point[:2] = point[13] = -800.0
    point[4] = point[10] = point[11] = 20.0
    value, gradient = evidence_of(context, history).value_and_gradient(point)
    assert value == -np.inf
    np.testing.assert_array_equal(gradient, np.zeros(15))


@pytest.mark.parametrize("n_users", [1, 6])
def test_samples_of_many_rows_are_of_rows_of_users_who_come_together(n_users: int) -> None:
    graph = GRAPH if n_users == 6 else ct.UserGraph.from_edges([], users=[0])
    rng, history = np.random.default_rng(0), History()
    for i in range(3 * BLOCK_PAIRS):
        history.add(i, int(rng.integers(n_users)), np.array([float(i)]), 0.0)
    samples = draw_input_samples(graph, history, near, np.random.default_rng(1))
    users, seen = history.user_array(), np.concatenate([each.rows for each in samples])
    assert len(samples) == 3
    assert all(0.75 * BLOCK_PAIRS < len(each.rows) <= BLOCK_PAIRS for each in samples)
    assert len(set(seen.tolist())) == len(seen)  # none is looked at twice
    for sample in samples:
        np.testing.assert_array_equal(sample.users[sample.places], users[sample.rows])
    (few,) = draw_input_samples(graph, collapsed(context_of("none, numbers"), []), near, np.random.default_rng(1))
    assert len(few.rows) == 0


def near(row: int, others: Any) -> Any:
    """Says that rows are alike that came one after another."""
    return -np.abs(others - row)


def test_a_sample_has_rows_that_are_alike_and_more_of_the_first_ones() -> None:
    graph, history = ct.UserGraph.from_edges([], users=[0]), History()
    for i in range(20 * BLOCK_PAIRS):
        history.add(i, 0, np.array([float(i)]), 0.0)
    sample, *_ = draw_input_samples(graph, history, near, np.random.default_rng(1))
    rows = np.sort(sample.rows)
    assert np.median(np.diff(rows)) <= 4  # of 4,096 rows drawn from 5,120; drawn apart they would be 20 apart
    assert np.mean(rows < 2 * BLOCK_PAIRS) > 0.2  # a tenth of all


def test_evidence_takes_rows_in_any_order() -> None:
    context, _, history = made("none, both, traits", 50, 4)
    users, places = np.unique(history.user_array(), return_inverse=True)
    order = np.random.default_rng(0).permutation(len(history))
    mixed = context.sampled_evidence(history, PairSample(users, order, places[order]))
    assert isinstance(mixed, InputEvidence)
    point = np.linspace(-1.0, 1.0, 15)
    value, gradient = evidence_of(context, history).value_and_gradient(point)
    again, other = mixed.value_and_gradient(point)
    assert again == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(other, gradient, rtol=1e-8, atol=1e-10)
