"""The world: rounds that depend on the seed alone, rewards and regrets from a truth that nobody else can read."""

import re
from collections import Counter
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import coterie as ct
from coterie.errors import DimensionError, ParameterError
from coterie.graphs import make_graph
from coterie.problems import Round, World, gp_world

Array = NDArray[np.float64]

USERS = ("ana", "bo", "cy", "dee")
ARMS = tuple(f"song-{i}" for i in range(6))


def make_world(**changes: Any) -> World:
    settings: dict[str, Any] = {
        "graph": ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")], users=USERS),
        "arms": ct.ArmPool(np.random.default_rng(0).normal(size=(6, 2)), ids=ARMS),
        "truth": np.random.default_rng(1).normal(size=(4, 6)),
        "noise_std": 0.5,
    }
    return World(**(settings | changes))


def truth_of(world: World) -> Array:
    """Returns the table of expected rewards, asked for as a runner asks: reward by reward, without noise."""
    ids = world.arms.ids
    return np.array([[world.reward(Round(user, ids, 0.0), arm) for arm in ids] for user in world.graph.users])


def drawn(seed: int, **changes: Any) -> World:
    settings: dict[str, Any] = {
        "graph": ct.UserGraph.from_edges([("ana", "bo")]),
        "arms": ct.ArmPool([[0.0], [1.0], [5.0]]),
        "user_kernel": ct.Green(laplacian_ridge=0.5),
        "arm_kernel": ct.SquaredExponential(1.0),
        "noise_std": 0.1,
    }
    return gp_world(**(settings | changes), seed=seed, unit_spread=True)


def test_the_seed_fixes_the_rounds() -> None:
    world = make_world()
    first = list(world.rounds(50, n_candidates=3, seed=7))
    assert len(first) == 50
    assert first == list(world.rounds(50, n_candidates=3, seed=7))
    assert first == list(make_world(truth=np.zeros((4, 6))).rounds(50, n_candidates=3, seed=7))
    assert first[:20] == list(world.rounds(20, n_candidates=3, seed=7))
    assert first != list(world.rounds(50, n_candidates=3, seed=8))


def test_users_candidates_and_noise_have_streams_of_their_own() -> None:
    few, many = (list(make_world().rounds(40, n_candidates=n, seed=3)) for n in (2, 5))
    assert [shown.user for shown in few] == [shown.user for shown in many]
    assert [shown.noise for shown in few] == [shown.noise for shown in many]
    quiet = list(make_world(noise_std=0.0).rounds(40, n_candidates=2, seed=3))
    assert [(shown.user, shown.candidates) for shown in quiet] == [(shown.user, shown.candidates) for shown in few]
    assert {shown.noise for shown in quiet} == {0.0}


@pytest.mark.parametrize("n_candidates", [1, 3, 6])
def test_candidates_are_distinct_arms_of_the_pool(n_candidates: int) -> None:
    for shown in make_world().rounds(200, n_candidates=n_candidates, seed=0):
        assert len(shown.candidates) == len(set(shown.candidates)) == n_candidates
        assert set(shown.candidates) <= set(ARMS)
        assert shown.user in USERS


def test_users_and_candidates_are_uniform_and_the_noise_has_its_spread() -> None:
    shown = list(make_world(noise_std=0.5).rounds(4000, n_candidates=3, seed=0))
    users = Counter(each.user for each in shown)
    assert set(users) == set(USERS)
    assert all(abs(count - 1000) < 150 for count in users.values())  # more than five standard deviations
    arms = Counter(arm for each in shown for arm in each.candidates)
    assert all(abs(arms[arm] - 2000) < 170 for arm in ARMS)
    noise = np.array([each.noise for each in shown])
    assert noise.std() == pytest.approx(0.5, rel=0.06)
    assert abs(noise.mean()) < 0.05


@given(seed=st.integers(0, 1000), n_candidates=st.integers(1, 6))
def test_regret_is_what_the_best_candidate_would_pay_more(seed: int, n_candidates: int) -> None:
    truth = np.random.default_rng(seed).normal(size=(4, 6))
    world = make_world(truth=truth)
    for shown in world.rounds(5, n_candidates=n_candidates, seed=seed):
        row = truth[USERS.index(str(shown.user))]
        values = np.array([row[ARMS.index(str(arm))] for arm in shown.candidates])
        regrets = [world.regret(shown, arm) for arm in shown.candidates]
        assert min(regrets) == 0.0
        assert shown.candidates[int(np.argmin(regrets))] == shown.candidates[int(np.argmax(values))]
        np.testing.assert_allclose(regrets, values.max() - values, rtol=1e-15)


def test_reward_is_the_truth_plus_the_noise_of_the_round() -> None:
    truth = np.random.default_rng(5).normal(size=(4, 6))
    world = make_world(truth=truth)
    for shown in world.rounds(20, n_candidates=3, seed=1):
        for arm in shown.candidates:
            expected = truth[USERS.index(str(shown.user)), ARMS.index(str(arm))]
            assert world.reward(shown, arm) == expected + shown.noise


def test_the_truth_is_no_public_attribute() -> None:
    world = make_world()
    assert not hasattr(world, "__dict__")
    values = [getattr(world, name) for name in dir(world) if not name.startswith("_")]
    held = [value for value in values if not callable(value)]
    assert len(held) == 3  # the graph, the arms and the size of the noise
    assert not any(isinstance(value, np.ndarray) for value in held)
    assert {field.name for field in fields(Round)} == {"user", "candidates", "noise"}


def test_a_round_cannot_be_changed() -> None:
    shown = next(make_world().rounds(1, n_candidates=2, seed=0))
    with pytest.raises(FrozenInstanceError):
        shown.noise = 0.0  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(5))
def test_a_drawn_truth_has_unit_spread_and_follows_the_seed(seed: int) -> None:
    truth = truth_of(drawn(seed))
    assert truth.std() == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_array_equal(truth_of(drawn(seed)), truth)
    assert not np.allclose(truth_of(drawn(seed + 1)), truth)


def test_a_drawn_truth_has_the_users_covariance() -> None:
    """Over many arms that share nothing, the users' second moments are the user kernel, scaled to mean variance 1."""
    graph = ct.UserGraph.from_edges([("ana", "bo", 2.0)], users=["ana", "bo", "cy"])
    arms = ct.ArmPool(100.0 * np.arange(60.0)[:, None])
    kernel = ct.Green(laplacian_ridge=0.5)
    worlds = (drawn(seed, graph=graph, arms=arms, user_kernel=kernel) for seed in range(60))
    moments = np.mean([truth @ truth.T / 60 for truth in map(truth_of, worlds)], axis=0)
    want = kernel.matrix(graph)
    np.testing.assert_allclose(moments, want / want.diagonal().mean(), atol=0.08)


def test_a_drawn_truth_has_the_arms_covariance() -> None:
    """Over many users who share nothing, the arms' second moments are the arm kernel."""
    arms = ct.ArmPool([[0.0], [1.0], [2.5]])
    worlds = (drawn(seed, graph=make_graph("empty", 60), arms=arms) for seed in range(60))
    moments = np.mean([truth.T @ truth / 60 for truth in map(truth_of, worlds)], axis=0)
    np.testing.assert_allclose(moments, ct.SquaredExponential(1.0).gram(arms.features), atol=0.08)


def test_friends_agree_more_than_strangers() -> None:
    graph = ct.UserGraph.from_edges([(0, 1, 5.0), (2, 3, 5.0)])
    truths = [truth_of(drawn(seed, graph=graph)) for seed in range(200)]
    friends, strangers = (np.mean([truth[0] @ truth[other] / 3 for truth in truths]) for other in (1, 2))
    assert friends > 0.5
    assert abs(strangers) < 0.2


def test_a_prior_without_variance_gives_a_flat_world() -> None:
    world = drawn(0, graph=make_graph("empty", 2), user_kernel=ct.HighPass())
    np.testing.assert_array_equal(truth_of(world), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("changes", "error", "named"),
    [
        ({"truth": np.zeros((6, 4))}, DimensionError, "a truth of shape (6, 4); it is (4, 6)"),
        ({"truth": np.zeros(4)}, DimensionError, "(4,)"),
        ({"noise_std": -0.1}, ParameterError, "noise_std is -0.1"),
        ({"noise_std": np.nan}, ParameterError, "noise_std is nan"),
        ({"noise_std": np.inf}, ParameterError, "noise_std is inf"),
    ],
)
def test_a_world_that_does_not_fit_together_is_refused(
    changes: dict[str, Any], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=re.escape(named)):
        make_world(**changes)


@pytest.mark.parametrize("n_candidates", [0, -1, 7])
def test_more_candidates_than_arms_or_none_are_refused(n_candidates: int) -> None:
    with pytest.raises(ParameterError, match=f"n_candidates is {n_candidates}; it lies between 1 and 6"):
        next(make_world().rounds(3, n_candidates=n_candidates, seed=0))
