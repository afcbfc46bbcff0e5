"""The drawn worlds against their formulas, and streams that do not disturb one another."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import coterie as ct
from coterie.errors import ParameterError
from coterie.problems import (
    Round,
    World,
    WorldSettings,
    draw_rounds,
    draw_truth,
    draw_world,
    sphere_pool,
    world_settings,
)

Array = NDArray[np.float64]

GRAPH = ct.make_graph("erdos-renyi", 5, edge_prob=0.6, seed=0)
ARMS = sphere_pool(6, 3, seed=1)
SEED = np.random.SeedSequence(11, spawn_key=(0, 3))


def small(**changes: Any) -> WorldSettings:
    return WorldSettings(**({"n_users": 12, "n_arms": 8, "dimension": 3, "horizon": 60} | changes))


def drawn(seed: int = 0, **settings: Any) -> Array:
    """Returns a truth on the graph and arms of this file."""
    return draw_truth(WorldSettings(**settings), GRAPH, ARMS, np.random.default_rng(seed))


def truth_of(world: World, t: int = 0) -> Array:
    """Returns the table of expected rewards, asked for as a runner asks: reward by reward, without noise."""
    ids = world.arms.ids
    return np.array([[world.judge(Round(t, user, ids, 0.0), arm)[0] for arm in ids] for user in world.graph.users])


def energy(truth: Array, graph: ct.UserGraph) -> float:
    """Returns the Dirichlet energy in units of the spread: 0 where neighbours agree."""
    return float(np.sum(truth * (graph.laplacian() @ truth)) / np.sum(truth**2))


@pytest.mark.parametrize("homophily", [0.0, 1.0, 7.0])
def test_linear_rewards_are_smoothed_along_the_graph(homophily: float) -> None:
    start = np.random.default_rng(3).standard_normal((5, 3))
    weights = np.linalg.inv(np.eye(5) + homophily * GRAPH.laplacian().toarray()) @ start
    truth = drawn(3, kind="linear-gob", homophily=homophily)
    np.testing.assert_allclose(truth, weights @ ARMS.features.T, atol=1e-12)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_a_representer_draw_is_the_kernel_times_coefficients(power: float) -> None:
    users = ct.Green(laplacian_ridge=0.1, power=power).matrix(GRAPH)
    arms = ct.SquaredExponential(0.7).gram(ARMS.features)
    coefficients = np.random.default_rng(4).standard_normal((5, 6))
    truth = drawn(4, kind="representer", laplacian_ridge=0.1, power=power, lengthscale=0.7)
    np.testing.assert_allclose(truth.ravel(), np.kron(users, arms) @ coefficients.ravel(), atol=1e-11)


def test_gp_draws_have_the_joint_covariance() -> None:
    settings = WorldSettings(kind="gp-draw", laplacian_ridge=0.1, power=0.5)
    rng = np.random.default_rng(0)
    draws = np.array([draw_truth(settings, GRAPH, ARMS, rng).ravel() for _ in range(1500)])
    users = ct.Green(laplacian_ridge=0.1, power=0.5).matrix(GRAPH)
    expected = np.kron(users, ct.SquaredExponential(1.0).gram(ARMS.features))
    assert np.abs(np.cov(draws.T) - expected).max() < 0.15 * expected.max()


@pytest.mark.parametrize("kind", ["linear-gob", "gp-draw", "representer"])
def test_unit_spread_scales_and_nothing_else(kind: Any) -> None:
    raw, scaled = (drawn(2, kind=kind, unit_spread=unit) for unit in (False, True))
    assert scaled.std() == pytest.approx(1.0)
    np.testing.assert_allclose(scaled, raw / raw.std())


def test_one_pair_has_no_spread_to_scale() -> None:
    lone = small(n_users=1, n_arms=1, n_candidates=1, unit_spread=True)
    assert np.isfinite(truth_of(draw_world(lone, SEED))).all()


@pytest.mark.parametrize("kind", ["linear-gob", "gp-draw", "representer"])
@pytest.mark.parametrize("graph", ["erdos-renyi", "rbf", "sbm"])
def test_neighbours_differ_under_heterophily(kind: Any, graph: str) -> None:
    for number in range(5):
        seed = np.random.SeedSequence(number)
        alike, unlike = (
            draw_world(small(kind=kind, graph=graph, heterophily=each, laplacian_ridge=0.1), seed)
            for each in (False, True)
        )
        assert energy(truth_of(unlike), unlike.graph) > energy(truth_of(alike), alike.graph)


def test_without_edges_there_is_nothing_to_mirror() -> None:
    alike, unlike = (
        truth_of(draw_world(small(graph="empty", connected="keep", heterophily=each), SEED)) for each in (False, True)
    )
    np.testing.assert_array_equal(alike, unlike)


def test_the_pool_lies_on_the_sphere_under_names() -> None:
    pool = sphere_pool(120, 4, seed=0)
    np.testing.assert_allclose(np.linalg.norm(pool.features, axis=1), 1.0)
    assert (pool.ids[7], sphere_pool(20, 4, seed=0).ids[7]) == ("arm-007", "arm-07")


def same(one: World, other: World) -> set[str]:
    """Returns the parts that two worlds have in common, bit by bit."""
    parts = {
        "graph": one.graph == other.graph,
        "pool": np.array_equal(one.arms.features, other.arms.features),
        "truth": truth_of(one).shape == truth_of(other).shape and bool(np.all(truth_of(one) == truth_of(other))),
    }
    return {name for name, equal in parts.items() if equal}


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({"noise": "heavy-tailed"}, {"graph", "pool", "truth"}),
        ({"noise_std": 2.0}, {"graph", "pool", "truth"}),
        ({"horizon": 30}, {"graph", "pool", "truth"}),
        ({"n_candidates": 2}, {"graph", "pool", "truth"}),
        ({"late_share": 0.5}, {"graph", "pool", "truth"}),
        ({"drift": 1.0}, {"graph", "pool", "truth"}),
        ({"shown_graph": "permuted"}, {"pool", "truth"}),
        ({"shown_graph": "rewired"}, {"pool", "truth"}),
        ({"shown_graph": "rewired", "rewired_share": 0.5}, {"pool", "truth"}),
        ({"rewards": "binary"}, {"graph", "pool"}),
        ({"kind": "linear-gob"}, {"graph", "pool"}),
        ({"heterophily": True}, {"graph", "pool"}),
        ({"graph": "sbm"}, {"pool"}),
        ({"n_arms": 9}, {"graph"}),
    ],
)
def test_a_setting_changes_only_the_parts_it_speaks_of(changes: dict[str, Any], kept: set[str]) -> None:
    assert same(draw_world(small(), SEED), draw_world(small(**changes), SEED)) == kept


@pytest.mark.parametrize(
    "changes",
    [{"shown_graph": "permuted"}, {"kind": "representer"}, {"drift": 1.0}, {"graph": "ring"}, {"lengthscale": 2.0}],
)
def test_rounds_do_not_depend_on_truth_or_graph(changes: dict[str, Any]) -> None:
    plain, other = (draw_rounds(each, draw_world(each, SEED), SEED) for each in (small(), small(**changes)))
    assert plain == other


def test_the_law_of_the_noise_leaves_users_and_candidates() -> None:
    kinds = (small(), small(noise="heavy-tailed"), small(rewards="binary"), small(noise_std=0.0))
    plain, *others = (draw_rounds(each, draw_world(each, SEED), SEED) for each in kinds)
    for rounds in others:
        assert [(s.t, s.user, s.candidates) for s in rounds] == [(s.t, s.user, s.candidates) for s in plain]
        assert [s.noise for s in rounds] != [s.noise for s in plain]


def test_the_seed_fixes_everything_and_its_key_counts() -> None:
    again = np.random.SeedSequence(11, spawn_key=(0, 3))
    again.spawn(5)  # a runner's own children change nothing here
    world = draw_world(small(), SEED)
    assert same(world, draw_world(small(), again)) == {"graph", "pool", "truth"}
    assert draw_rounds(small(), world, SEED) == draw_rounds(small(), world, again)
    other = np.random.SeedSequence(11, spawn_key=(0, 4))
    assert same(world, draw_world(small(), other)) == set()
    assert draw_rounds(small(), world, SEED) != draw_rounds(small(), world, other)


def test_a_plain_number_is_no_seed_of_a_trial() -> None:
    with pytest.raises(ParameterError, match="seed is 7; the seed of a trial is a numpy SeedSequence"):
        draw_world(small(), 7)  # type: ignore[arg-type]


def test_permuted_and_rewired_graphs_keep_degrees() -> None:
    true, permuted, rewired = (
        draw_world(small(shown_graph=shown), SEED).graph for shown in ("true", "permuted", "rewired")
    )
    assert sorted(permuted.degrees) == sorted(true.degrees)
    np.testing.assert_array_equal(rewired.degrees, true.degrees)
    assert len({true, permuted, rewired}) == 3


@given(drift=st.floats(0, 2), seed=st.integers(0, 20))
def test_a_world_that_drifts_starts_where_the_static_one_is(drift: float, seed: int) -> None:
    static, moving = (draw_world(small(drift=each), np.random.SeedSequence(seed)) for each in (0.0, drift))
    np.testing.assert_array_equal(truth_of(static), truth_of(moving))
    np.testing.assert_array_equal(truth_of(static, t=59), truth_of(static))


def test_drift_ends_at_an_independent_draw_and_keeps_the_variance() -> None:
    """Over many worlds, every moment of a drifting one has the law of a static one."""
    settings = small(drift=1.0, horizon=40, n_users=4, graph="ring", laplacian_ridge=1.0)
    worlds = [draw_world(settings, np.random.SeedSequence(number)) for number in range(300)]
    start, middle, end = (np.array([truth_of(world, t) for world in worlds]) for t in (0, 20, 40))
    for moment in (middle, end):
        assert moment.var() == pytest.approx(start.var(), rel=0.15)
    assert abs(np.mean(start * end)) < 0.1 * start.var()
    assert np.mean(start * middle) == pytest.approx(start.var() * np.sqrt(0.5), rel=0.15)


@pytest.mark.parametrize("preset", ["paper-literal", "paper-text", "paper-table"])
def test_presets_can_be_drawn(preset: str) -> None:
    settings = world_settings({"preset": preset, "horizon": 20})
    world = draw_world(settings, SEED)
    assert world.graph.is_connected
    assert (world.graph.n_users, len(world.arms), world.arms.dimension) == (20, settings.n_arms, settings.dimension)
    assert len(draw_rounds(settings, world, SEED)) == 20
