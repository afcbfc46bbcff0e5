"""Worlds with contexts: what rewards depend on, which part of the variance each part has, and what cannot be."""

import pickle
import re
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from coterie.errors import ContextError, DimensionError, SettingError
from coterie.kernels.schema import ContextSchema
from coterie.problems import (
    ContextSettings,
    ContextWorld,
    Round,
    WorldSettings,
    context_settings,
    draw_context_world,
    draw_rounds,
    draw_world,
)
from coterie.problems.contexts import SHARES, Categories, Contexts, LinearNumbers, Matter, SmoothNumbers
from coterie.runs.study import study_from

KINDS, MATTERS = get_args(Contexts), get_args(Matter)
SEED = np.random.SeedSequence(3)
Array = NDArray[np.float64]


def settings(**changes: Any) -> ContextSettings:
    small: dict[str, Any] = {
        "contexts": "smooth",
        "n_users": 5,
        "n_arms": 7,
        "n_candidates": 4,
        "dimension": 3,
        "horizon": 30,
    }
    return ContextSettings(**(small | changes))


def drawn(**changes: Any) -> ContextWorld:
    return draw_context_world(settings(**changes), SEED)


def truth_in(world: ContextWorld, context: Any) -> Array:
    """Returns the table of expected rewards in a context, asked for as a runner asks, without noise."""
    ids = world.arms.ids
    rounds = [Round(0, user, ids, 0.0, context) for user in world.graph.users]
    return np.array([[world.judge(shown, arm)[0] for arm in ids] for shown in rounds])


def truths(world: ContextWorld, n_contexts: int = 300) -> Array:
    """Returns the tables in many contexts, one after another."""
    rounds = world.rounds(n_contexts, n_candidates=1, seed=9)
    return np.array([truth_in(world, shown.context) for shown in rounds])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("matter", MATTERS)
def test_each_part_has_its_share_of_the_variance(kind: Any, matter: Any) -> None:
    found = truths(drawn(contexts=kind, matter=matter, kind="linear-gob" if kind == "linear" else "gp-draw"))
    assert found.std() == pytest.approx(1.0, rel=0.25)  # the parts are drawn apart and need not be uncorrelated
    moves = found.std(axis=0)
    if matter == "no":
        assert moves.max() < 1e-12
    else:
        assert moves.mean() > 0.4


def test_shares_add_up() -> None:
    assert set(SHARES) == set(MATTERS)
    assert all(sum(each) == pytest.approx(1.0) for each in SHARES.values())


@pytest.mark.parametrize("kind", KINDS)
def test_which_arm_is_best_depends_on_contexts_that_matter_and_on_no_others(kind: Any) -> None:
    for matter, expected in (("yes", True), ("partly", True), ("no", False)):
        best = truths(drawn(contexts=kind, matter=matter)).argmax(axis=2)
        assert bool((best != best[0]).any()) == expected


def test_rewards_are_bilinear_where_both_are_linear() -> None:
    world = drawn(contexts="linear", kind="linear-gob", matter="partly")
    names = list(world.context_schema)
    zero, one, two = (truth_in(world, dict.fromkeys(names, size)) for size in (0.0, 1.0, 2.0))
    np.testing.assert_allclose(two - one, one - zero, atol=1e-12)
    of_arms = np.column_stack([np.ones(7), draw_context_world(settings(), SEED).arms.features])
    left = (one - zero).T - of_arms @ np.linalg.lstsq(of_arms, (one - zero).T, rcond=None)[0]
    np.testing.assert_allclose(left, 0.0, atol=1e-12)


def test_smooth_rewards_are_not_linear_in_the_context() -> None:
    world = drawn(contexts="smooth")
    zero, one, two = (truth_in(world, dict.fromkeys(world.context_schema, size)) for size in (0.0, 1.0, 2.0))
    assert np.abs(two - 2 * one + zero).mean() > 0.1


def test_effects_of_categories_add_up() -> None:
    world = drawn(contexts="categorical", matter="partly")
    table = {
        (device, hour): truth_in(world, {"device": device, "hour": hour})
        for device in ("phone", "tablet")
        for hour in ("noon", "night")
    }
    crossed = table["phone", "noon"] + table["tablet", "night"] - table["phone", "night"] - table["tablet", "noon"]
    np.testing.assert_allclose(crossed, 0.0, atol=1e-12)
    assert not np.allclose(table["phone", "noon"], table["tablet", "noon"])


@pytest.mark.parametrize("kind", KINDS)
def test_friends_agree_more_than_strangers_in_every_context(kind: Any) -> None:
    agree = []
    for seed in range(15):
        chosen = settings(contexts=kind, n_users=12, graph="sbm", connected="keep", laplacian_ridge=0.1, power=1.0)
        world = draw_context_world(chosen, np.random.SeedSequence(seed))
        weights = world.graph.weights.toarray() > 0
        alike = np.atleast_2d(np.corrcoef(truths(world, 20).transpose(1, 0, 2).reshape(12, -1)))
        others = ~weights & ~np.eye(12, dtype=bool)
        agree.append(alike[weights].mean() - alike[others].mean())
    assert np.mean(agree) > 0.1


def test_the_truth_is_the_same_whether_learners_are_shown_features_or_not() -> None:
    shown, hidden = drawn(arm_features=True), drawn(arm_features=False)
    assert shown.arms.has_features
    assert not hidden.arms.has_features
    assert shown.arms.ids == hidden.arms.ids
    np.testing.assert_array_equal(truths(shown, 5), truths(hidden, 5))


def test_users_candidates_and_noise_are_those_of_a_world_without_contexts() -> None:
    chosen = settings()
    without = WorldSettings(n_users=5, n_arms=7, n_candidates=4, dimension=3, horizon=30)
    rounds = draw_rounds(chosen, draw_context_world(chosen, SEED), SEED)
    plain = draw_rounds(without, draw_world(without, SEED), SEED)
    assert [each.user for each in rounds] == [each.user for each in plain]
    assert [(each.candidates, each.noise) for each in rounds] == [(each.candidates, each.noise) for each in plain]
    assert {each.context for each in plain} == {None}


@pytest.mark.parametrize("kind", KINDS)
def test_contexts_depend_on_the_seed_alone_and_not_on_the_horizon(kind: Any) -> None:
    world = drawn(contexts=kind)
    long, short = (list(world.rounds(size, n_candidates=2, seed=1)) for size in (40, 15))
    assert long[:15] == short
    assert len({str(each.context) for each in long}) > 5
    other = list(world.rounds(40, n_candidates=2, seed=2))
    assert [each.context for each in other] != [each.context for each in long]


@pytest.mark.parametrize("kind", KINDS)
def test_a_learner_can_read_the_schema_and_every_context(kind: Any) -> None:
    world = drawn(contexts=kind)
    schema = ContextSchema.of(world.context_schema)
    for shown in world.rounds(30, n_candidates=1, seed=0):
        _, after = schema.encoded(shown.context)
        assert after is schema  # nothing unknown


def test_regret_is_what_the_best_candidate_pays_more_in_this_context() -> None:
    world = drawn()
    for shown in world.rounds(20, n_candidates=4, seed=0):
        row = truth_in(world, shown.context)[world.graph.index_of(shown.user)]
        values = np.array([row[world.arms.index_of(arm)] for arm in shown.candidates])
        regrets = [world.judge(shown, arm)[1] for arm in shown.candidates]
        np.testing.assert_allclose(regrets, values.max() - values, atol=1e-12)
        assert world.best(shown) == shown.candidates[int(values.argmax())]
        assert world.judge(shown, shown.candidates[0])[0] == pytest.approx(values[0] + shown.noise)


def test_a_world_of_one_user_is_legal() -> None:
    world = drawn(n_users=1)
    assert world.graph.n_users == 1
    assert truths(world, 3).shape == (3, 1, 7)


def test_the_truth_is_no_public_attribute() -> None:
    world = drawn()
    assert not hasattr(world, "__dict__")
    values = [getattr(world, name) for name in dir(world) if not name.startswith("_")]
    assert not any(isinstance(value, np.ndarray | LinearNumbers) for value in values)


def test_it_can_be_sent_to_another_process() -> None:
    world = drawn(contexts="categorical")
    np.testing.assert_array_equal(truths(pickle.loads(pickle.dumps(world)), 4), truths(world, 4))


def test_features_have_a_mean_square_length_of_one() -> None:
    rng = np.random.default_rng(0)
    laws: list[Any] = [LinearNumbers(3), SmoothNumbers(3, 1.0, rng), Categories()]
    for law in laws:
        rows = np.array([law.features(each) for each in law.draw(4000, rng)])
        assert np.mean(np.sum(rows**2, axis=1)) == pytest.approx(1.0, rel=0.1)


def test_smooth_features_have_the_kernel_of_their_length_scale() -> None:
    rng = np.random.default_rng(0)
    law = SmoothNumbers(2, 1.0, rng)
    found = []
    for size in (0.0, 1.0, 2.0):
        pairs = [[law.features({"number-1": x, "number-2": 0.0}) for x in (start, start + size)] for start in range(40)]
        found.append(np.mean([one @ other for one, other in pairs]))
    np.testing.assert_allclose(found, np.exp(-np.array([0.0, 1.0, 4.0]) / 4), atol=0.2)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"contexts": "smoth"}, "contexts is 'smoth'; it is one of"),
        ({"matter": "maybe"}, "matter is 'maybe'; it is one of"),
        ({"arm_features": "no"}, "arm_features is 'no'"),
        ({"n_numbers": 0}, "n_numbers is 0"),
        ({"context_lengthscale": 0}, "context_lengthscale is 0"),
        ({"rewards": "binary"}, "rewards is 'binary'"),
        ({"drift": 0.5}, "drift is 0.5"),
        ({"n_users": 2001, "graph": "empty", "connected": "keep"}, "n_users is 2001"),
        ({"n_arms": 3}, "n_candidates is 4"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingError, match=re.escape(named)):
        settings(**changes)


def test_a_random_world_has_no_contexts() -> None:
    with pytest.raises(SettingError, match="kind is 'random'"):
        context_settings({"contexts": "smooth", "kind": "random", "number": 3})


def test_weights_of_another_shape_and_rounds_without_contexts_are_refused() -> None:
    world = drawn()
    parts: dict[str, Any] = {"graph": world.graph, "arms": world.arms, "truth": np.zeros((5, 7)), "noise_std": 0.1}
    with pytest.raises(DimensionError, match=re.escape("weights of shape (5, 7)")):
        ContextWorld(law=Categories(), weights=np.zeros((5, 7)), **parts)
    with pytest.raises(ContextError, match="a round has no context"):
        world.judge(Round(0, world.graph.users[0], world.arms.ids, 0.0), world.arms.ids[0])


def test_a_study_names_such_a_world() -> None:
    world = {"contexts": "categorical", "matter": "partly", "arm_features": False, "level": "easy"}
    study = study_from({"worlds": [world], "policies": [{"policy": "random"}]})
    assert study.worlds[0].settings == context_settings(world)
    assert study_from(study.as_dict()) == study
