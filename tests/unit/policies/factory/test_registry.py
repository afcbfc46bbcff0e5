"""Policies by name: one's own score, the popular arm, the oracle that nobody can build, the choice of engine."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import coterie as ct
from coterie.errors import ParameterError, UnknownNameError
from coterie.policies.factory.recipes import RECIPES
from coterie.policies.factory.registry import summary

GRAPH = ct.make_graph("ring", 5)
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(6, 3)), ids=list("abcdef"))


def make(name: str, **options: Any) -> ct.Policy:
    settings: dict[str, Any] = {"graph": GRAPH, "arms": ARMS} | options
    return ct.make_policy(name, **settings)


def careful(mean: NDArray[np.float64], std: NDArray[np.float64], width: float, **_: object) -> NDArray[np.float64]:
    return mean - width * std


@pytest.mark.parametrize("name", sorted(set(RECIPES) - {"sup-kernel-ucb"}))
def test_any_model_works_with_ones_own_score(name: str) -> None:
    policy = make(name, score=careful, width=0.5)
    policy.update(1, "c", 1.0)
    choice = policy.select(1)
    mean, std = policy.predict(1)
    width = policy.widths(1, np.arange(len(std)), std)
    assert choice.score == pytest.approx(np.max(mean - width * std))
    assert np.all(width > 0)


@pytest.mark.parametrize("score", ["ucb", 3, careful.__class__])
def test_a_score_that_is_no_function_is_named(score: Any) -> None:
    with pytest.raises(ParameterError, match="score is"):
        make("lk-gp-ucb", score=score)


def test_a_score_and_a_way_of_sampling_exclude_each_other() -> None:
    with pytest.raises(ParameterError, match="sampling='joint'"):
        make("lk-gp-ts", score=careful, sampling="joint")


GIVEN: dict[str, Any] = {
    "arm_kernel": ct.Linear(),
    "user_kernel": ct.Heat(time=1.0),
    "laplacian_ridge": 0.2,
    "noise_var": 0.5,
    "width": 2.0,
    "sampling": "joint",
    "similarity": "heat",
    "score": careful,
    "cluster_width": 1.0,
}


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_an_option_is_taken_or_refused_with_those_that_are(name: str) -> None:
    takes = RECIPES[name].takes
    for option, value in GIVEN.items():
        if option in takes:
            make(name, **{option: value})
            continue
        with pytest.raises(ParameterError, match=f"^{option} was given to '{name}'; '{name}' takes '"):
            make(name, **{option: value})


@pytest.mark.parametrize(
    ("name", "option"),
    [("random", "width"), ("greedy", "width"), ("popularity", "width"), ("gp-ucb", "laplacian_ridge")],
)
def test_what_would_change_nothing_is_not_taken(name: str, option: str) -> None:
    assert option not in RECIPES[name].takes
    options: dict[str, Any] = {option: 2.0}
    with pytest.raises(ParameterError, match=f"{option} was given to '{name}'"):
        ct.Bandit(graph=GRAPH, arms=ARMS, policy=name, **options)


def test_a_ridge_beside_a_user_kernel_is_refused() -> None:
    with pytest.raises(ParameterError, match="both user_kernel and laplacian_ridge"):
        make("lk-gp-ucb", user_kernel=ct.Heat(time=1.0), laplacian_ridge=0.2)


def test_popularity_is_the_best_shrunk_mean_over_all_users() -> None:
    policy = make("popularity")
    rewards = {"a": [1.0, 0.0, 1.0], "b": [1.2], "c": [], "d": [-1.0], "e": [0.3, 0.2], "f": [0.0]}
    for arm, values in rewards.items():
        for user, value in enumerate(values):
            policy.update(user, arm, value)
    expected = [sum(values) / (len(values) + 1) for values in rewards.values()]
    for user in range(5):
        np.testing.assert_allclose(policy.predict(user)[0], expected, atol=1e-12)
        assert policy.select(user).arm == "b"
    policy.update(4, "b", 0.0)
    assert policy.select(0).arm == "a"


def test_popularity_takes_arms_of_the_same_features_for_one() -> None:
    twins = ct.ArmPool([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]])
    policy = make("popularity", arms=twins)
    policy.update(0, 0, 1.0)
    np.testing.assert_allclose(policy.predict(3)[0], [0.5, 0.5, 0.0], atol=1e-12)


@pytest.mark.parametrize("option", [{"arm_kernel": ct.Linear()}, {"user_kernel": ct.Green()}])
def test_popularity_keeps_its_kernels(option: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="given to 'popularity'"):
        make("popularity", **option)


def test_the_oracle_is_listed_and_out_of_reach() -> None:
    assert "oracle" in ct.list_policies()
    with pytest.raises(ParameterError, match="must know the truth"):
        make("oracle")
    with pytest.raises(UnknownNameError, match=r"'random'.*\. Use one of these\.") as told:
        make("oracel")
    assert "'oracle'" not in str(told.value)


def test_a_suggestion_is_a_question() -> None:
    with pytest.raises(UnknownNameError) as told:
        make("LK-GP-UCB")
    assert str(told.value).endswith(". Did you mean 'lk-gp-ucb'?")


def test_every_policy_has_a_summary_of_its_own() -> None:
    summaries = [summary(name) for name in ct.list_policies()]
    assert all(summaries)
    assert len(set(summaries)) == len(summaries)


def test_pooled_users_cost_what_one_does() -> None:
    arms = ct.ArmPool(np.random.default_rng(1).normal(size=(50, 5)))
    one, many = (make("gp-ucb", graph=ct.make_graph("empty", n), arms=arms) for n in (1, 200))
    assert many.model.engine == one.model.engine == "grid"
    assert many.model.nbytes == one.model.nbytes
    assert "200 users, 1 of them distinct, x 50 arms = 50 pairs" in many.describe()


@pytest.mark.parametrize(
    ("n_users", "rounds", "engine"), [(20, 5000, "grid"), (200, 5000, "exact"), (50, 1000, "exact")]
)
def test_a_similarity_learned_anew_every_200_rounds_counts_as_rebuilds(n_users: int, rounds: int, engine: str) -> None:
    graph = ct.make_graph("empty", n_users)
    arms = ct.ArmPool(np.random.default_rng(1).normal(size=(50, 5)))
    limit = {"memory_limit": 4 * 2**30}
    settings: dict[str, Any] = {"graph": graph, "arms": arms, "engine_options": limit}
    assert make("coop-kernel-ucb", expected_rounds=rounds, **settings).model.engine == engine
    assert make("coop-kernel-ucb", **settings).model.engine == "exact"
