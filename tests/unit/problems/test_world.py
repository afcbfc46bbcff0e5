"""The world: rounds that depend on the seed alone, rewards and regrets from a truth that nobody else can read."""

import pickle
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
from coterie.errors import CandidatesError, DimensionError, ParameterError, SettingError
from coterie.graphs import make_graph
from coterie.problems import Round, World, gp_world
from coterie.problems.rounds import shown_arms

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
    return np.array([[world.judge(Round(0, user, ids, 0.0), arm)[0] for arm in ids] for user in world.graph.users])


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


def test_every_ordered_choice_of_candidates_is_as_likely() -> None:
    rounds = make_world(arms=ct.ArmPool(np.eye(4), ids="abcd"), truth=np.zeros((4, 4))).rounds(
        12_000, n_candidates=2, seed=0
    )
    counts = Counter(shown.candidates for shown in rounds)
    assert len(counts) == 12
    assert all(abs(count - 1000) < 160 for count in counts.values())  # more than five standard deviations


def test_candidates_are_the_same_whatever_the_size_of_a_chunk() -> None:
    whole, pieces = (list(shown_arms(6, 3, 100, np.random.default_rng(4), chunk=chunk)) for chunk in (2**18, 42))
    assert pieces == whole


def test_rounds_are_numbered_from_nought() -> None:
    assert [shown.t for shown in make_world().rounds(5, n_candidates=1, seed=0)] == [0, 1, 2, 3, 4]
    assert list(make_world().rounds(0, n_candidates=1, seed=0)) == []


@given(seed=st.integers(0, 1000), n_candidates=st.integers(1, 6))
def test_regret_is_what_the_best_candidate_would_pay_more(seed: int, n_candidates: int) -> None:
    truth = np.random.default_rng(seed).normal(size=(4, 6))
    world = make_world(truth=truth)
    for shown in world.rounds(5, n_candidates=n_candidates, seed=seed):
        row = truth[USERS.index(str(shown.user))]
        values = np.array([row[ARMS.index(str(arm))] for arm in shown.candidates])
        regrets = [world.judge(shown, arm)[1] for arm in shown.candidates]
        assert min(regrets) == 0.0
        assert (
            shown.candidates[int(np.argmin(regrets))] == shown.candidates[int(np.argmax(values))] == world.best(shown)
        )
        np.testing.assert_allclose(regrets, values.max() - values, rtol=1e-15)


def test_reward_is_the_truth_plus_the_noise_of_the_round() -> None:
    truth = np.random.default_rng(5).normal(size=(4, 6))
    world = make_world(truth=truth)
    for shown in world.rounds(20, n_candidates=3, seed=1):
        for arm in shown.candidates:
            expected = truth[USERS.index(str(shown.user)), ARMS.index(str(arm))]
            assert world.judge(shown, arm)[0] == expected + shown.noise


def test_an_arm_that_was_not_shown_is_refused() -> None:
    shown = Round(t=0, user="ana", candidates=("song-1", "song-2"), noise=0.0)
    for arm in ("song-3", "no song"):
        with pytest.raises(CandidatesError, match=f"'{arm}' was not shown; candidates were 'song-1', 'song-2'"):
            make_world().judge(shown, arm)


def test_binary_rewards_are_nought_or_one_and_regret_is_in_probabilities() -> None:
    truth = np.random.default_rng(5).normal(size=(4, 6))
    probs = 1 / (1 + np.exp(-truth))
    world = make_world(truth=truth, rewards="binary")
    rounds = list(world.rounds(4000, n_candidates=6, seed=1))
    for arm, column in zip(ARMS, probs.T, strict=True):
        paid = np.array([world.judge(shown, arm)[0] for shown in rounds])
        assert set(paid) <= {0.0, 1.0}
        expected = np.array([column[USERS.index(str(shown.user))] for shown in rounds])
        assert abs(paid.mean() - expected.mean()) < 0.04  # five standard errors
    for shown in rounds[:20]:
        row = probs[USERS.index(str(shown.user))]
        regret = row.max() - row[0]
        assert world.judge(shown, ARMS[0])[1] == pytest.approx(regret)


@pytest.mark.parametrize("rewards", ["real", "binary"])
def test_the_truth_turns_from_the_first_to_the_later_one(rewards: Any) -> None:
    first, later = np.random.default_rng(2).normal(size=(2, 4, 6))
    world = make_world(truth=first, later=later, turn=0.01, rewards=rewards)
    for t in (0, 50, 157):
        now = np.cos(0.01 * t) * first[0] + np.sin(0.01 * t) * later[0]
        values = now if rewards == "real" else 1 / (1 + np.exp(-now))
        shown = Round(t=t, user="ana", candidates=ARMS, noise=0.0)
        np.testing.assert_allclose([world.judge(shown, arm)[1] for arm in ARMS], values.max() - values, atol=1e-12)
        assert world.best(shown) == ARMS[int(values.argmax())]


def test_heavy_tailed_noise_has_its_spread_and_heavier_tails() -> None:
    gaussian, heavy = (
        np.array([shown.noise for shown in make_world(noise=noise).rounds(40_000, n_candidates=1, seed=0)])
        for noise in ("gaussian", "heavy-tailed")
    )
    assert heavy.std() == pytest.approx(0.5, rel=0.1)
    assert abs(heavy.mean()) < 0.02
    assert (np.abs(heavy) > 2.5).mean() > 10 * (np.abs(gaussian) > 2.5).mean()  # five standard deviations out
    assert np.median(np.abs(heavy)) < np.median(np.abs(gaussian))


@given(late_share=st.floats(0, 0.99), late_after=st.floats(0, 0.99), seed=st.integers(0, 50))
def test_late_users_are_absent_before_and_there_after(late_share: float, late_after: float, seed: int) -> None:
    rounds = list(make_world().rounds(400, n_candidates=1, seed=seed, late_share=late_share, late_after=late_after))
    before = {shown.user for shown in rounds if shown.t < late_after * 400}
    assert len(before) <= 4 - min(round(late_share * 4), 3)
    on_time = list(make_world().rounds(400, n_candidates=1, seed=seed))
    assert [shown for shown in rounds if shown.t >= late_after * 400] == [
        shown for shown in on_time if shown.t >= late_after * 400
    ]


def test_late_users_are_the_share_asked_for() -> None:
    rounds = list(make_world().rounds(400, n_candidates=1, seed=0, late_share=0.5, late_after=0.5))
    assert len({shown.user for shown in rounds if shown.t < 200}) == 2
    assert {shown.user for shown in rounds if shown.t >= 200} == set(USERS)


def test_a_world_can_be_sent_to_another_process() -> None:
    world = make_world(rewards="binary")
    copy = pickle.loads(pickle.dumps(world))
    np.testing.assert_array_equal(truth_of(copy), truth_of(world))
    assert list(copy.rounds(5, n_candidates=2, seed=0)) == list(world.rounds(5, n_candidates=2, seed=0))


def test_the_truth_is_no_public_attribute() -> None:
    world = make_world()
    assert not hasattr(world, "__dict__")
    values = [getattr(world, name) for name in dir(world) if not name.startswith("_")]
    held = [value for value in values if not callable(value)]
    assert len(held) == 5  # the graph, the arms, size and law of the noise, the kind of rewards
    assert not any(isinstance(value, np.ndarray) for value in held)
    assert {field.name for field in fields(Round)} == {"t", "user", "candidates", "noise", "context"}


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
        ({"noise": "loud"}, ParameterError, "noise is 'loud'; it is one of 'gaussian', 'heavy-tailed'"),
        ({"rewards": "gold"}, ParameterError, "rewards is 'gold'; it is one of 'real', 'binary'"),
        ({"later": np.zeros((1, 6)), "turn": 0.1}, DimensionError, "a truth of shape (1, 6); it is (4, 6)"),
        ({"turn": -0.1}, ParameterError, "turn is -0.1"),
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


@pytest.mark.parametrize(
    ("changes", "error", "named"),
    [
        ({"horizon": -1}, SettingError, "horizon is -1"),
        ({"late_share": 1.0}, SettingError, "late_share is 1.0"),
        ({"late_after": -0.5}, SettingError, "late_after is -0.5"),
        ({"seed": -1}, ParameterError, "seed is -1"),
        ({"seed": "x"}, ParameterError, "seed is 'x'"),
    ],
)
def test_rounds_that_cannot_be_are_refused(changes: dict[str, Any], error: type[Exception], named: str) -> None:
    settings: dict[str, Any] = {"horizon": 3, "n_candidates": 2, "seed": 0}
    with pytest.raises(error, match=re.escape(named)):
        make_world().rounds(**(settings | changes))
