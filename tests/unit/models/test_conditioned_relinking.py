"""A belief that follows a change of the graph equals the one computed anew there."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.kernels import PoolKernel
from coterie.kernels.links import GraphCovariance
from coterie.models import ENGINES, DenseModel, HybridModel, Model
from coterie.models.engines.grid import FEW, GridModel
from coterie.policies.added_edges import link_between
from strategies import Array, graphs

FORM = GraphCovariance(ridge=0.1)
AUTO = GraphCovariance(ridge=0.05, scale=0.3, own=0.1, common=0.4)
rng = np.random.default_rng(0)
TWINS = np.vstack([np.eye(2), np.eye(2)[:1]])
ARMS: dict[str, Array] = {
    "few features": (lambda x: x @ x.T)(rng.normal(size=(5, 2))),
    "twins": ct.SquaredExponential(1.0).gram(TWINS),
    "smooth": ct.SquaredExponential(1.0).gram(rng.normal(size=(4, 3))),
    "one": np.array([[2.0]]),
}
NARROW = ct.SquaredExponential(1.0).gram(np.linspace(0, 1, 6)[:, None])


def covariance(form: GraphCovariance, graph: ct.UserGraph) -> Array:
    inverse = np.linalg.inv(graph.laplacian().toarray() + form.ridge * np.eye(graph.n_users))
    inverse = (inverse + inverse.T) / 2
    return np.asarray(form.scale * inverse + form.own * np.eye(graph.n_users) + form.common)


def teach(model: Model, seed: int, size: int, n_users: int) -> None:
    draws = np.random.default_rng(seed)
    for _ in range(size):
        user, arm = int(draws.integers(n_users)), int(draws.integers(model.kernel.checked_arms(None).size))
        model.update(user, arm, float(draws.normal()))


def follow(model: Model, form: GraphCovariance, before: ct.UserGraph, after: ct.UserGraph) -> bool:
    link = link_between(before, after, form, model)
    assert link is not None
    return model.relink(link)


def everything(model: Model) -> list[Any]:
    users = range(model.n_users)
    return [
        np.array([model.predict(user)[0] for user in users]),
        np.array([model.predict(user)[1] ** 2 for user in users]),
        np.array([model.covariance(user) for user in users]),
        model.info_gain,
        model.log_marginal_likelihood,
        model.kernel.user_cov,
    ]


def assert_same(model: Model, other: Model, tolerance: float = 1e-9) -> None:
    for mine, theirs in zip(everything(model), everything(other), strict=True):
        scale = max(1.0, float(np.max(np.abs(theirs), initial=0.0)))
        np.testing.assert_allclose(mine, theirs, atol=tolerance * scale, rtol=0)
    assert model.n_observations == other.n_observations


changes = st.lists(st.sampled_from(["friends", "loner", "cohort", "everybody", "connect", "heavier"]), max_size=4)


def changed(graph: ct.UserGraph, change: str, number: int) -> ct.UserGraph:
    users, name = graph.users, f"new-{number}"
    if change == "friends":
        return graph.add_user(name, {users[0]: 1.0, users[-1]: 0.3})[0]
    if change == "loner":
        return graph.add_user(name)[0]
    if change == "cohort":
        return graph.add_users({name: {users[-1]: 2.0}, f"{name}-b": {name: 1.0}, f"{name}-c": None})[0]
    if change == "everybody":
        return graph.add_user(name, dict.fromkeys(users, 0.2))[0]
    if change == "connect" or not graph.n_edges:
        first, last = users[0], users[-1]
        weight = graph.weight(first, last) if first != last else 0.0
        return graph.set_edge(first, last, weight + 0.7)[0] if first != last else graph
    return ct.UserGraph.from_matrix(2 * graph.weights, users=users)


@pytest.mark.parametrize("form", [FORM, AUTO])
@given(
    graph=graphs(max_users=5),
    arms=st.sampled_from(sorted(ARMS)),
    edits=changes,
    size=st.integers(0, 25),
    seed=st.integers(0, 100),
    noise_var=st.sampled_from([0.01, 0.3]),
)
def test_it_equals_the_belief_computed_anew(
    form: GraphCovariance, graph: ct.UserGraph, arms: str, edits: list[str], size: int, seed: int, noise_var: float
) -> None:
    n_before = graph.n_users
    model = GridModel(PoolKernel(covariance(form, graph), ARMS[arms]), noise_var=noise_var)
    teach(model, seed, size, n_before)
    for number, edit in enumerate(edits):
        after = changed(graph, edit, number)
        many = edit == "heavier" and graph.n_edges * len(ARMS[arms]) > FEW  # a rebuild costs less
        if after.n_users * len(ARMS[arms]) > 500 or many:
            break
        assert follow(model, form, graph, after)
        graph = after
    dense = DenseModel(PoolKernel(covariance(form, graph), ARMS[arms]), noise_var=noise_var)
    teach(dense, seed, size, n_before)
    assert_same(model, dense)
    for each in (model, dense):  # and it goes on learning alike, newcomers included
        teach(each, seed + 1, 5, graph.n_users)
    assert_same(model, dense)
    assert model.check().healed is False


def test_many_changes_in_a_row_do_not_drift() -> None:
    graph = ct.make_graph("erdos-renyi", 12, edge_prob=0.3, seed=0)
    model = GridModel(PoolKernel(covariance(FORM, graph), ARMS["smooth"]), noise_var=0.01)
    teach(model, 0, 60, 12)
    for number in range(40):
        after = changed(graph, ("friends", "loner", "connect")[number % 3], number)
        assert follow(model, FORM, graph, after)
        graph = after
        model.update(number % graph.n_users, number % 4, float(number % 3))
    fresh = GridModel(PoolKernel(covariance(FORM, graph), ARMS["smooth"]), noise_var=0.01)
    fresh.relearn(model.history)
    assert_same(model, fresh)


def test_hybrid_follows_on_its_grid() -> None:
    graph = ct.make_graph("erdos-renyi", 6, edge_prob=0.5, seed=0)
    after = graph.add_user("new", {0: 1.0, 3: 2.0})[0]
    kernel = PoolKernel(covariance(FORM, graph), ARMS["smooth"])
    early, late = HybridModel(kernel, switch_after=1000), HybridModel(kernel, switch_after=5)
    for model in (early, late):
        teach(model, 0, 20, 6)
    assert not follow(early, FORM, graph, after)
    assert follow(late, FORM, graph, after)
    dense = DenseModel(PoolKernel(covariance(FORM, after), ARMS["smooth"]))
    teach(dense, 0, 20, 6)
    assert_same(late, dense)
    for each in (late, dense):
        teach(each, 1, 20, 7)
    assert_same(late, dense)


def refused() -> dict[str, tuple[Model, GraphCovariance, ct.UserGraph, ct.UserGraph]]:
    graph = ct.make_graph("ring", 4)
    more = graph.add_user("new", {0: 1.0})[0]
    cov = covariance(FORM, graph)
    small = GridModel(PoolKernel(cov, ARMS["smooth"]), memory_limit=8 * 16 * (16 + 40))
    alike = np.ones((4, 4))
    return {
        **{
            engine: (ENGINES[engine](PoolKernel(cov, ARMS["smooth"])), FORM, graph, more)
            for engine in sorted(set(ENGINES) - {"grid", "hybrid"})
        },
        "nearly singular arms": (GridModel(PoolKernel(cov, NARROW)), FORM, graph, more),
        "a very heavy edge": (
            GridModel(PoolKernel(cov, ARMS["smooth"])),
            FORM,
            graph,
            graph.add_user("new", {0: 1e7})[0],
        ),
        "users who are one": (GridModel(PoolKernel(alike, ARMS["smooth"])), FORM, graph, more),
        "no memory": (small, FORM, graph, more),
    }


@pytest.mark.parametrize("why", sorted(refused()))
def test_what_cannot_follow_says_so_and_changes_nothing(why: str) -> None:
    model, form, before, after = refused()[why]
    teach(model, 0, 10, 4)
    was = everything(model)
    assert not follow(model, form, before, after)
    for mine, theirs in zip(everything(model), was, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_small_grid_that_grows_large_is_left_to_the_choice_of_engines() -> None:
    graph = ct.make_graph("ring", 128)
    model = GridModel(PoolKernel(covariance(FORM, graph), ARMS["smooth"]))
    assert model.kernel.n_pairs == 512
    assert link_between(graph, graph.add_user("new")[0], FORM, model) is None
    assert link_between(graph, graph.set_edge(0, 9, 1.0)[0], FORM, model) is not None
