"""What only some users have in common is explored as far as they come again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.policies.auto import AutoPolicy
from coterie.policies.auto.exploration import ENOUGH, UserVariances, expected_visits, explored_share, reach
from coterie.policies.auto.parts import Density


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(0, 5_000))
def test_expected_visits_of_all_users_are_the_rounds_ahead(pairs: list[int], rewards: int) -> None:
    found = expected_visits(np.array(pairs, dtype=float), sum(pairs), len(pairs), rewards)
    assert found.sum() == pytest.approx(max(rewards, 1_000))
    assert (found > 0).all()
    order = np.argsort(pairs, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


def test_a_million_users_who_never_came_leave_those_who_did_their_share() -> None:
    often, never = expected_visits(np.array([50.0, 0.0]), n_pairs=500, n_users=1_000_000, n_rewards=500)
    assert often > 40
    assert never < 0.01


def test_a_user_shares_the_graph_part_with_everybody_where_all_are_tied_and_with_nobody_without_edges() -> None:
    alone, tied = Density(np.zeros(1), np.ones(1)), Density(np.array([0.0, 1e6]), np.array([0.1, 0.9]))
    assert reach(alone, 0.5) == pytest.approx(1)
    assert reach(tied, 0.5) == pytest.approx(10, rel=1e-3)


def test_what_all_have_in_common_is_explored_in_full_and_what_is_a_users_own_by_visits() -> None:
    std, arm_variance = np.array([[2.0, 1.0], [2.0, 1.0]]), np.array([4.0, 1.0])
    visits = np.array([ENOUGH, 3.0 * ENOUGH])
    nothing, everything = UserVariances(0.0, np.zeros(2)), UserVariances(1.0, np.zeros(2))
    np.testing.assert_array_equal(explored_share(std, arm_variance, nothing, visits, visits), np.ones((2, 2)))
    own = explored_share(std, arm_variance, everything, visits, visits)
    np.testing.assert_allclose(own**2, [[0.5, 0.5], [0.75, 0.75]])
    graph = UserVariances(0.0, np.ones(2))
    np.testing.assert_allclose(explored_share(std, arm_variance, graph, visits, visits), own)
    wide = explored_share(std, arm_variance, graph, visits, 1e12 * visits)
    np.testing.assert_allclose(wide, 1.0)


def test_a_share_never_falls_below_that_of_the_visits_however_little_is_left_to_learn() -> None:
    share = explored_share(
        np.array([[1e-9]]), np.ones(1), UserVariances(1.0, np.ones(1)), np.full(1, ENOUGH), np.full(1, ENOUGH)
    )
    assert share == pytest.approx(np.sqrt(0.5))


def test_a_user_who_came_often_is_explored_wider_than_one_who_never_did() -> None:
    rng, graph = np.random.default_rng(0), ct.make_graph("sbm", 200, seed=1)
    policy = ct.make_policy("auto-ucb", graph=graph, arms=ct.ArmPool(rng.normal(size=(30, 3))), seed=0)
    assert isinstance(policy, AutoPolicy)
    for _ in range(60):
        policy.update(0, int(rng.integers(30)), float(rng.normal()))
    arms, std = np.arange(30), np.ones((2, 30))
    often, never = np.asarray(policy.widths(np.array([0, 150]), arms, std))
    assert (often > never).all()
    np.testing.assert_array_equal(policy.widths(150, arms, std[1]), never)
