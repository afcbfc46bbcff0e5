"""Choosing: ids, ties, randomness that depends on (seed, decision number) alone, schedules and widths."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.errors import DimensionError, FitWarning, ParameterError
from coterie.graphs import make_graph
from coterie.models import ENGINES
from coterie.policies.factory.recipes import RECIPES
from coterie.policies.rules.draws import Draws

ENGINE_NAMES = sorted(ENGINES)


@pytest.fixture
def graph() -> ct.UserGraph:
    return ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)], users=["ana", "bo", "cy", "dee"])


@pytest.fixture
def arms() -> ct.ArmPool:
    return ct.ArmPool(np.random.default_rng(0).normal(size=(10, 5)), ids=[f"song-{i}" for i in range(10)])


def play(policy: ct.Policy, rounds: int = 150, n_candidates: int = 4) -> list[Any]:
    """Plays against a fixed world and returns the choices."""
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(policy.graph.n_users, 10))
    chosen = []
    for _ in range(rounds):
        row = int(rng.integers(policy.graph.n_users))
        shown = [f"song-{i}" for i in rng.permutation(10)[:n_candidates]]
        noise = float(0.1 * rng.normal())
        choice = policy.select(policy.graph.users[row], shown)
        policy.update(policy.graph.users[row], choice.arm, truth[row, int(str(choice.arm)[5:])] + noise)
        chosen.append(choice.arm)
    return chosen


def test_the_issues_example_runs_as_written(graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    policy = ct.make_policy(
        "lk-gp-ucb",
        graph=graph,
        arms=arms,
        arm_kernel=ct.SquaredExponential(lengthscale="median"),
        laplacian_ridge=0.1,
        noise_var=0.01,
        width=1.0,
        seed=0,
    )
    choice = policy.select("bo", ["song-1", "song-4", "song-7"])
    assert choice.score == pytest.approx(choice.mean + choice.std)
    policy.update("bo", choice.arm, reward=0.3)
    mean, std = policy.predict("dee", ["song-1", "song-4"])
    assert mean.shape == std.shape == (2,)
    assert mean.tolist() == [0.0, 0.0]  # dee has no friends
    assert policy.predict("bo", [choice.arm])[0][0] == pytest.approx(0.3, rel=0.02)


def test_candidates_come_in_any_iterable_and_none_means_all(graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms)
    policy.update("ana", "song-3", 1.0)
    mean, _ = policy.predict("ana")
    assert len(mean) == 10
    for candidates in (("song-3", "song-1"), iter(["song-3", "song-1"]), np.array(["song-3", "song-1"])):
        np.testing.assert_array_equal(policy.predict("ana", candidates)[0], mean[[3, 1]])
    assert policy.select("ana").arm in arms.ids


@pytest.mark.parametrize(("name", "sampling"), [*((name, None) for name in sorted(RECIPES)), ("lk-gp-ts", "joint")])
def test_the_same_seed_gives_the_same_run_on_every_exact_engine(
    name: str, sampling: str | None, graph: ct.UserGraph, arms: ct.ArmPool
) -> None:
    runs = [
        play(ct.make_policy(name, graph=graph, arms=arms, engine=engine, sampling=sampling, seed=3))
        for engine in ENGINE_NAMES
    ]
    assert all(run == runs[0] for run in runs[1:])
    assert len(set(runs[0])) > 1


def test_different_seeds_differ(graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    runs = [play(ct.make_policy("lk-gp-ts", graph=graph, arms=arms, seed=seed)) for seed in (0, 1)]
    assert runs[0] != runs[1]


def test_ties_are_broken_evenly_and_without_touching_other_draws(graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms)
    chosen = [policy.select("ana", ["song-0", "song-1", "song-2"]).arm for _ in range(3000)]
    shares = [chosen.count(f"song-{i}") / 3000 for i in range(3)]
    assert all(abs(share - 1 / 3) < 0.05 for share in shares)


@given(seed=st.integers(0, 2**40), number=st.integers(0, 2**40), others=st.lists(st.integers(0, 1000), max_size=5))
def test_a_decisions_draws_depend_on_seed_and_number_alone(seed: int, number: int, others: list[int]) -> None:
    fresh, used = Draws(seed), Draws(seed)
    for other in others:
        used.normals(other, 3)
        used.pick(other, 7)
    np.testing.assert_array_equal(fresh.normals(number, 4), used.normals(number, 4))
    assert used.pick(number, 9) == fresh.pick(number, 9)


def test_thompson_draws_have_the_right_spread(graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    policy = ct.make_policy("lk-gp-ts", graph=graph, arms=arms, width=0.5)
    scores = np.array([policy.select("dee", ["song-1"]).score for _ in range(4000)])
    assert scores.std() == pytest.approx(0.5 * policy.predict("dee", ["song-1"])[1][0], rel=0.05)
    assert abs(scores.mean()) < 0.1


def test_joint_thompson_draws_from_the_joint_posterior(graph: ct.UserGraph) -> None:
    """Two arms that are one and the same get the same draw, so they always tie; drawn apart they never do."""
    twins = ct.ArmPool([[0.0, 1.0], [0.0, 1.0], [4.0, 4.0]], ids=["a", "b", "far"])
    joint = ct.make_policy("lk-gp-ts", graph=graph, arms=twins, sampling="joint")
    model, draws = joint.model, Draws(5)
    rows = np.arange(3)
    mean, std = model.predict(0, rows)
    samples = np.array(
        [
            joint._score(mean, std, 1.0, model=model, user=0, arms=rows, draws=draws, number=number)
            for number in range(4000)
        ]
    )
    assert np.max(np.abs(samples[:, 0] - samples[:, 1])) < 1e-7
    np.testing.assert_allclose(np.cov(samples.T), model.covariance(0), atol=0.25)


def test_width_may_be_a_function_of_round_and_model(graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    seen: list[tuple[int, int]] = []

    def width(t: int, model: Any) -> float:
        seen.append((t, model.n_observations))
        return 2.0

    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, width=width)
    choice = policy.select("ana", ["song-1"])
    policy.update("ana", "song-1", 0.1)
    policy.select("ana", ["song-1"])
    assert choice.score == pytest.approx(2 * choice.std)
    assert seen == [(1, 0), (2, 1)]


def test_theory_width_is_the_papers_beta(graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    width = ct.TheoryWidth(norm_bound=2.0, noise_std=0.3, failure_prob=0.1)
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, width=width, noise_var=0.05)
    policy.update("ana", "song-2", 1.0)
    k = policy.model.prior_std(0, [2])[0] ** 2
    expected = 2.0 + np.sqrt(0.3**2 / 0.05 * (2 * np.log(10) + np.log(1 + k / 0.05)))
    choice = policy.select("bo", ["song-4"])
    assert (choice.score - choice.mean) / choice.std == pytest.approx(expected)


def test_the_schedule_follows_the_paper() -> None:
    """lambda_t = base S_spec T/(T+t), on doubling epochs, and only when it moves by more than 20 %."""
    graph = make_graph("ring", 6)
    arms = ct.ArmPool([[0.0], [1.0]])
    schedule = ct.SpectralSchedule(base=0.1, horizon=1000)
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, noise_var=schedule)
    ratio = graph.spectral_ratio
    assert policy.model.noise_var == pytest.approx(0.1 * ratio)
    seen = {}
    for t in range(1, 901):
        policy.update(t % 6, t % 2, 0.5)
        seen[t] = policy.model.noise_var
    assert seen[199] == pytest.approx(0.1 * ratio)
    assert seen[200] == pytest.approx(0.1 * ratio)  # 17 % less: not worth a rebuild
    assert seen[399] == pytest.approx(0.1 * ratio)
    assert seen[400] == pytest.approx(0.1 * ratio * 1000 / 1400)
    assert seen[800] == pytest.approx(0.1 * ratio * 1000 / 1800)
    batch = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, noise_var=schedule)
    batch.update_many([t % 6 for t in range(1, 901)], [t % 2 for t in range(1, 901)], [0.5] * 900)
    assert batch.model.noise_var == pytest.approx(seen[900])
    np.testing.assert_allclose(batch.predict(0)[0], policy.predict(0)[0], atol=1e-9)


def test_the_schedule_is_clipped() -> None:
    schedule = ct.SpectralSchedule(base=1.0, horizon=10)
    assert schedule.value(0, spectral_ratio=0.9) == 0.1
    assert schedule.value(10**9, spectral_ratio=1e-9) == 1e-6


def test_without_a_pool_candidates_are_vectors(graph: ct.UserGraph) -> None:
    for engine in ("auto", "exact", "dense"):
        policy = ct.make_policy("lk-gp-ucb", graph=graph, arm_kernel=ct.SquaredExponential(1.0), engine=engine)
        vectors = np.array([[0.0, 1.0], [2.0, 0.5], [-1.0, 3.0]])
        choice = policy.select("bo", vectors)
        np.testing.assert_array_equal(choice.arm, vectors[choice.index])
        policy.update("bo", choice.arm, 1.0)
        mean, std = policy.predict("bo", vectors)
        assert mean[choice.index] == pytest.approx(1.0, abs=0.02)
        assert mean.argmax() == choice.index
        assert std.argmin() == choice.index


def test_update_many_equals_one_by_one(graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    users, songs, rewards = ["ana", "bo", "ana", "dee"], ["song-1", "song-2", "song-1", "song-9"], [1.0, 0.5, 0.0, 2.0]
    one, many = (ct.make_policy("lk-gp-ucb", graph=graph, arms=arms) for _ in range(2))
    many.update_many(users, songs, rewards)
    for row in zip(users, songs, rewards, strict=True):
        one.update(*row)
    for user in graph.users:
        np.testing.assert_allclose(one.predict(user), many.predict(user), atol=1e-10)


def test_list_policies_is_sorted_names() -> None:
    names = ct.list_policies()
    assert names == sorted(names)
    assert {"lk-gp-ucb", "lk-gp-ts"} <= set(names)
    assert all(type(name) is str for name in names)


def test_explain_says_what_and_why(graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    text = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms).describe()
    assert "engine 'grid'" in text
    assert "4 users x 10 arms = 40 pairs" in text


@pytest.mark.parametrize("name", ["lk-gp-ucb", "lk-gp-ts"])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_twin_arms_tie_alike_on_every_exact_engine(name: str, scale: float, graph: ct.UserGraph) -> None:
    """Twins make the covariance singular and every score a tie; large rewards make rounding large."""
    twins = ct.ArmPool(np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 2, axis=0))
    samplings = [None, "joint"] if name == "lk-gp-ts" else [None]
    for sampling in samplings:
        runs = []
        for engine in ENGINE_NAMES:
            rng = np.random.default_rng(1)
            policy = ct.make_policy(name, graph=graph, arms=twins, engine=engine, sampling=sampling)
            chosen = []
            for _ in range(80):
                user = graph.users[int(rng.integers(4))]
                choice = policy.select(user)
                policy.update(user, choice.arm, scale * float(rng.normal()))
                chosen.append(choice.arm)
            runs.append(chosen)
        assert all(run == runs[0] for run in runs[1:])


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@pytest.mark.parametrize("again", [copy.deepcopy, lambda policy: pickle.loads(pickle.dumps(policy))])
def test_a_copy_goes_on_as_the_original_would(engine: str, again: Any, graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    policy = ct.make_policy("lk-gp-ts", graph=graph, arms=arms, engine=engine, seed=4)
    play(policy, rounds=40)
    twin = again(policy)
    assert play(twin, rounds=40) == play(policy, rounds=40)
    np.testing.assert_array_equal(twin.predict("ana"), policy.predict("ana"))


def test_a_choice_names_the_pools_own_ids(graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms)
    choice = policy.select(np.str_("ana"), np.array(["song-3"]))
    assert type(choice.user) is str
    assert type(choice.arm) is str


@pytest.mark.parametrize("value", [None, "1", float("nan"), -1.0, np.ones(2)])
def test_a_width_that_is_no_number_is_named_and_no_decision_is_counted(
    value: Any, graph: ct.UserGraph, arms: ct.ArmPool
) -> None:
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, width=lambda _t, _model: value)
    with pytest.raises(ParameterError, match="round 1"):
        policy.select("ana")
    assert policy.n_decisions == 0


def test_a_score_of_the_wrong_shape_is_named(graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    model = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms).model
    policy = ct.Policy(
        name="mine", graph=graph, arms=arms, model=model, score=lambda mean, *_, **__: mean.sum(), width=1.0
    )
    with pytest.raises(DimensionError, match="10 candidates"):
        policy.select("ana")


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_the_joint_covariance_goes_with_the_std(engine: str, graph: ct.UserGraph, arms: ct.ArmPool) -> None:
    policy = ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, engine=engine)
    policy.update("ana", "song-3", 1.0)
    candidates = ["song-7", "song-3", "song-1"]
    covariance = policy.covariance("bo", candidates)
    np.testing.assert_allclose(np.sqrt(covariance.diagonal()), policy.predict("bo", candidates)[1])
    np.testing.assert_allclose(covariance, covariance.T)
    assert covariance[0, 1] == pytest.approx(policy.covariance("bo", ["song-3", "song-7"])[0, 1])


def test_a_change_that_the_model_refuses_is_told_and_the_reward_is_kept() -> None:
    """The schedule asks for a noise variance that would drown in the rounding of a huge prior variance."""
    graph = ct.UserGraph.from_edges([(i, (i + 1) % 4, 1e-3) for i in range(4)])
    schedule = ct.SpectralSchedule(base=0.1, horizon=10, floor=1e-9, first_epoch=2)
    policy = ct.make_policy(
        "lk-gp-ucb", graph=graph, arms=ct.ArmPool([[0.0], [1.0]]), laplacian_ridge=6e-12, noise_var=schedule
    )
    noise_var = policy.model.noise_var
    for t in range(1, 4):
        policy.update(t % 4, t % 2, 1.0)
    with pytest.warns(FitWarning, match="after 4 rewards was not made"):
        policy.update(0, 0, 1.0)
    assert policy.model.n_observations == 4
    assert policy.model.noise_var == noise_var
    assert "after 4 rewards was not made" in policy.describe()
