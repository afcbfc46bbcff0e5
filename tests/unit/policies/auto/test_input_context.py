"""What kernels over (user, arm, context) are made of: on large graphs no matrix over users, and nearly the same."""

import tracemalloc
from copy import deepcopy
from math import log
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.contracts import Array
from coterie.kernels.additive import AdditiveInputs
from coterie.kernels.inputs import InputLayout, InputsKernel
from coterie.kernels.user_features import user_rows
from coterie.models import make_model
from coterie.models.engines.local import LocalModel
from coterie.policies.auto.context_policy import ContextPolicy
from coterie.policies.auto.hyper import ABSENT, InputHyper
from coterie.policies.auto.input_context import TRAIT_ERROR, TRAIT_FEATURES, InputFitContext

GRAPH = ct.make_graph("sbm", 40, seed=2)
ARMS = ct.ArmPool.without_features(range(4))
LAYOUT = InputLayout(4, 0, 2, 1)
TRAITS = np.random.default_rng(5).normal(size=(40, 2))
HYPER = InputHyper(
    graph=-1.0,
    own=-2.0,
    common=-1.0,
    ridge=-0.5,
    lengthscale=0.3,
    linear=0.2,
    offset=-2.0,
    noise=-1.5,
    context=-1.0,
    interaction=0.2,
    number_scale=0.5,
    category_scale=0.1,
    context_linear=-1.0,
    traits=-0.5,
    trait_scale=0.5,
)


def contexts(traits: Array | None = TRAITS) -> tuple[InputFitContext, InputFitContext]:
    """The same with a matrix over users, and with none."""
    few, many = (InputFitContext(GRAPH, ARMS, LAYOUT, traits=traits, most_users=most) for most in (40, 39))
    return few, many


def hyper(traits: Array | None) -> InputHyper:
    return HYPER if traits is not None else HYPER._replace(traits=ABSENT)


def inputs_of(size: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(4, size=size), rng.normal(size=(size, 2)), rng.integers(3, size=size)])


@pytest.mark.parametrize("traits", [None, TRAITS], ids=["no features", "features"])
def test_both_kernels_are_the_same_among_all_users(traits: Array | None) -> None:
    few, many = (each.kernel(hyper(traits)) for each in contexts(traits))
    assert isinstance(few, InputsKernel)
    assert isinstance(many, AdditiveInputs)
    missed = TRAIT_ERROR * np.exp(HYPER.traits) / HYPER.variance if traits is not None else 0.0
    everybody = np.arange(40)
    np.testing.assert_allclose(many.user_block(everybody), few.user_cov, atol=missed + 1e-9)
    x = inputs_of(6, 0)
    np.testing.assert_array_equal(many.arm_cross(x, x), few.arm_cross(x, x))
    assert many.dimension == few.dimension == 4


@pytest.mark.parametrize("traits", [None, TRAITS], ids=["no features", "features"])
@pytest.mark.parametrize(("size", "error"), [(100, 0.02), (400, 0.3)])
def test_beliefs_are_nearly_the_same(traits: Array | None, size: int, error: float) -> None:
    """While rows are few all users are near and only the features' error is left; then the neighbourhood's, too."""
    few, many = (each.kernel(hyper(traits)) for each in contexts(traits))
    model, exact = LocalModel(many, noise_var=0.3), make_model(few, noise_var=0.3, engine="exact")
    rng = np.random.default_rng(1)
    for row in inputs_of(size, 2):
        user, reward = int(rng.integers(40)), float(rng.normal())
        for each in (model, exact):
            each.update(user, row, reward)
    model.rebuild()
    asked, gaps = inputs_of(10, 3), []
    for user in range(0, 40, 3):
        (mean, std), (exact_mean, exact_std) = model.predict(user, asked), exact.predict(user, asked)
        prior = exact.prior_std(user, asked)
        gaps += [*np.abs(mean - exact_mean) / prior, *np.abs(std - exact_std) / prior]
    assert np.max(gaps) < error
    assert np.sqrt(np.mean(np.square(gaps))) < error / 2


def test_the_trend_has_what_follows_users_features_beside_what_is_common() -> None:
    kernel = contexts()[1].kernel(HYPER)
    model, rng = LocalModel(kernel, noise_var=0.3, near_rows=20, exact_rows=20), np.random.default_rng(1)
    for row in inputs_of(150, 2):
        model.update(int(rng.integers(40)), row, float(rng.normal()))
    model.rebuild()
    trend = model._trend
    assert trend is not None
    assert trend.user_modes is None
    assert len(set(trend.users.tolist())) > 1
    users, rows = rng.integers(40, size=60), inputs_of(60, 4)
    features = model._features(users, kernel.prepared(rows))
    left = kernel.cross(users, rows, users, rows) - features @ features.T
    assert np.linalg.eigvalsh(left)[0] > -1e-8
    np.testing.assert_allclose(model._features(int(users[0]), kernel.prepared(rows[:1])), features[:1], atol=1e-12)


def test_a_friendless_user_of_a_large_graph_starts_from_those_who_are_alike() -> None:
    """Nobody is near: what is known of those who are alike comes by the trend alone."""
    graph = ct.make_graph("empty", 300)
    traits = np.repeat([[-1.0], [1.0]], 150, axis=0)
    context = InputFitContext(graph, ARMS, InputLayout(4, 0, 0, 0), traits=traits, most_users=100)
    kernel = context.kernel(HYPER._replace(context=ABSENT, interaction=ABSENT, trait_scale=log(0.5)))
    model, rng = LocalModel(kernel, noise_var=0.1), np.random.default_rng(0)
    for _ in range(300):
        user, arm = int(rng.choice([*range(100), *range(150, 250)])), int(rng.integers(4))
        model.update(user, [float(arm)], float(arm == (1 if user < 150 else 3)))
    arms = np.arange(4.0)[:, None]
    assert int(np.argmax(model.predict(140, arms)[0])) == 1
    assert int(np.argmax(model.predict(290, arms)[0])) == 3


def test_a_kernel_with_the_last_scales_costs_nothing_over_users() -> None:
    few, many = contexts()
    one, two = few.kernel(HYPER), few.kernel(HYPER._replace(noise=3.0, lengthscale=0.9))
    assert one.user_cov is two.user_cov
    other = few.kernel(HYPER._replace(trait_scale=0.9))
    assert np.abs(other.user_cov - one.user_cov).max() > 1e-3
    first, again = many.kernel(HYPER), many.kernel(HYPER._replace(traits=0.3))
    assert isinstance(first, AdditiveInputs)
    assert isinstance(again, AdditiveInputs)
    assert first.traits is not None
    assert again.traits is not None
    assert again.traits.features is first.traits.features
    assert first.traits.features.shape[1] <= TRAIT_FEATURES
    moved = few.with_traits(TRAITS[::-1].copy()).kernel(HYPER)
    assert np.abs(moved.user_cov - one.user_cov).max() > 1e-3
    np.testing.assert_array_equal(few.kernel(HYPER).user_cov, few.on(GRAPH).kernel(HYPER).user_cov)


def test_engines_that_need_a_matrix_have_one_whatever_the_number_of_users() -> None:
    context = InputFitContext(GRAPH, ARMS, LAYOUT, traits=TRAITS, most_users=10, matrices=True)
    assert isinstance(context.kernel(HYPER), InputsKernel)
    assert isinstance(
        ct.make_policy("auto-ucb", graph=GRAPH, arms=ARMS, context_schema=2, engine="exact"), ContextPolicy
    )


def play(policy: ct.Policy, rounds: int, *, n_users: int, start: int = 0) -> list[Any]:
    chosen = list[Any]()
    for number in range(start, start + rounds):
        rng = np.random.default_rng(number)
        user, hour = int(rng.integers(n_users)), float(rng.uniform(0, 24))
        context = {"hour": hour, "device": str(rng.choice(["a", "b"]))}
        arm = policy.select(user, context=context).arm
        policy.update(user, arm, float(arm == hour // 6) + 0.2 * float(rng.normal()), context=context)
        chosen.append(arm)
    return chosen


SCHEMA = {"hour": "number", "device": "category"}


def test_five_thousand_users_in_contexts_need_no_matrix() -> None:
    n_users = 5_000
    graph = ct.make_graph("ring", n_users)
    table = {user: {"age": float(user % 50), "region": "nesw"[user % 4]} for user in range(n_users)}
    tracemalloc.start()
    policy = ct.make_policy("auto-ucb", graph=graph, arms=ARMS, context_schema=SCHEMA, users=table)
    play(policy, 150, n_users=n_users)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(policy.model.kernel, AdditiveInputs)
    assert peak < 8 * n_users**2 / 2
    other = ct.make_policy("auto-ucb", graph=graph, arms=ARMS, context_schema=SCHEMA, users=table)
    other.restore(policy.state())
    asked = {"hour": 3.0, "device": "a"}
    np.testing.assert_array_equal(policy.predict(17, context=asked), other.predict(17, context=asked))


def made(graph: ct.UserGraph, table: dict[int, Any], most_users: int) -> ContextPolicy:
    policy = ct.make_policy("auto-ucb", graph=graph, arms=ARMS, context_schema=SCHEMA, users=table)
    assert isinstance(policy, ContextPolicy)
    traits, layout = user_rows(graph.users, table), policy.inputs.layout
    policy.context = InputFitContext(graph, ARMS, layout, traits=traits, most_users=most_users)
    return policy


@pytest.mark.parametrize("most_users", [2_000, 10])
def test_newcomers_come_with_their_features(most_users: int) -> None:
    table: dict[int, Any] = {user: {"age": float(user % 5), "region": "ns"[user % 2]} for user in range(43)}
    policy = made(GRAPH, table, most_users)
    play(policy, 45, n_users=40)
    assert isinstance(policy.model.kernel, AdditiveInputs) == (most_users == 10)
    graph = GRAPH
    for user in range(40, 43):
        graph = graph.add_user(user, {user - 40: 1.0})[0]
    assert not policy.relink(graph)  # nobody says which features they have
    assert policy.graph is GRAPH
    assert policy.relink(graph, user_rows(graph.users, table))
    fresh = made(graph, table, most_users)
    fresh.restore(deepcopy(policy.state()))
    assert fresh.is_sound()
    assert play(policy, 10, n_users=43, start=45) == play(fresh, 10, n_users=43, start=45)
    moved = policy.graph.set_edge(0, 41, 2.0)[0]
    assert policy.relink(moved)  # the users are the same
    assert policy.graph is moved
