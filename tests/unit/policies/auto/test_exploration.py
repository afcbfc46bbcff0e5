"""What is found out is explored as far as it is of use again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.policies.auto import AutoPolicy
from coterie.policies.auto.exploration import expected_visits, explored_widths, worth


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


def test_each_part_has_the_width_of_its_rounds_of_use() -> None:
    std, visits = np.array([[2.0, 1.0], [2.0, 1.0]]), np.array([80.0, 240.0])
    in_common = explored_widths(std, np.zeros((2, 2)), 1_000.0, visits)
    np.testing.assert_allclose(in_common**2, np.full((2, 2), worth(1_000.0)))
    own = explored_widths(std, std * std, 1_000.0, visits)
    np.testing.assert_allclose(own**2, np.repeat(worth(visits)[:, None], 2, axis=1))
    half = explored_widths(std, std * std / 2, 1_000.0, visits)
    np.testing.assert_allclose(half**2, (in_common**2 + own**2) / 2)


def test_a_width_never_falls_below_that_of_the_users_visits_however_little_is_left_to_learn() -> None:
    found = explored_widths(np.array([1e-9]), np.ones(1), 1_000.0, np.array(50.0))
    assert found.item() ** 2 == pytest.approx(float(worth(50.0)))


def test_arms_that_are_always_shown_are_explored_wider_than_a_few_of_many() -> None:
    rng, graph = np.random.default_rng(0), ct.make_graph("sbm", 20, seed=1)
    policy = ct.make_policy("auto-ucb", graph=graph, arms=ct.ArmPool(rng.normal(size=(30, 3))), seed=0)
    all_shown, few_shown = (np.asarray(policy.widths(0, np.arange(n), np.ones(n))) for n in (30, 3))
    assert (all_shown[:3] > few_shown).all()


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
