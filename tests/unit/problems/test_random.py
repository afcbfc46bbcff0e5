"""Worlds by number: the same for ever, within the family, and played by the laboratory like any other."""

import numpy as np
import pytest

from coterie.errors import SettingError
from coterie.problems import (
    WorldSettings,
    draw_rounds,
    draw_world,
    random_traits,
    random_world,
    settings_as_dict,
    world_settings,
)

SEED = np.random.SeedSequence(0)


def smallest(numbers: range) -> list[int]:
    """Returns the numbers of the worlds of few users."""
    return sorted(numbers, key=lambda number: random_traits(number).n_users)[: len(numbers) // 4]


def test_the_family_is_wide_and_keeps_its_bounds() -> None:
    found = [random_traits(number) for number in range(200)]
    assert {each.family for each in found} == {"communities", "neighbours", "hubs", "ring", "random"}
    assert min(each.n_users for each in found) < 40
    assert max(each.n_users for each in found) > 1000
    assert all(20 <= each.n_users <= 1500 and 10 <= each.n_arms <= 1000 for each in found)
    assert all(2 <= each.dimension <= 40 and 500 <= each.horizon <= 4000 for each in found)
    assert all(2 <= each.n_candidates <= each.n_arms for each in found)
    assert 0.2 < np.mean([each.clicks for each in found]) < 0.5
    assert 0.1 < np.mean([each.shares[0] < 0.01 for each in found]) < 0.35
    assert all(sum(each.shares) == pytest.approx(1.0) for each in found)


@pytest.mark.parametrize("number", smallest(range(40)))
def test_a_number_is_the_same_world_for_ever_and_of_its_size(number: int) -> None:
    world, again = random_world(number), random_world(number)
    np.testing.assert_array_equal(world.truth, again.truth)
    traits = world.traits
    assert world.truth.shape == (traits.n_users, traits.n_arms)
    assert world.arms.features.shape == (traits.n_arms, traits.dimension)
    assert world.chances.sum() == pytest.approx(1.0)
    scale = 1.5 if traits.clicks else traits.unit
    assert world.truth.std() == pytest.approx(scale)
    variances = np.multiply.outer(world.user_cov.diagonal(), world.arm_cov.diagonal())
    assert 0.05 < variances.mean() / scale**2 < 20  # the truth is a draw from this prior


def test_the_laboratory_plays_it_and_users_come_by_their_chances() -> None:
    number = next(each for each in smallest(range(80)) if random_traits(each).activity > 0.8)
    settings = world_settings({"kind": "random", "number": number})
    assert world_settings(settings_as_dict(settings)) == settings
    world = draw_world(settings, SEED)
    rounds = draw_rounds(settings, world, SEED)
    assert len(rounds) == random_traits(number).horizon
    assert {len(shown.candidates) for shown in rounds} == {random_traits(number).n_candidates}
    chances = random_world(number).chances
    often = np.argsort(-chances)[:3].tolist()
    share = np.mean([shown.user in often for shown in rounds])
    assert share == pytest.approx(chances[often].sum(), abs=0.08)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "random", "number": 3, "n_users": 5}, "28 in world 3"),
        ({"kind": "random", "number": 3, "drift": 1.0}, "0.0 in world 3"),
        ({"kind": "random", "number": -1}, "at least 0"),
        ({"number": 3}, "worlds of kind 'random' have a number"),
    ],
)
def test_what_the_number_says_cannot_be_said_otherwise(given: dict[str, object], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        world_settings(given)


def test_it_may_be_cut_short() -> None:
    whole = world_settings({"kind": "random", "number": 3})
    assert world_settings(settings_as_dict(whole) | {"horizon": 10}).horizon == 10
    with pytest.raises(SettingError, match="horizon"):
        WorldSettings(**(settings_as_dict(whole) | {"horizon": 10**6}))
