"""Settings of worlds: every bad one is named with its rule; presets and levels are those of the notes."""

import json
import pickle
import re
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from coterie.errors import SettingError
from coterie.graphs import FAMILIES
from coterie.problems import LEVELS, PRESET_NOTES, PRESETS, WorldSettings, settings_as_dict, world_settings
from coterie.problems.settings import RULES

NAN = float("nan")


def test_every_setting_has_a_rule() -> None:
    assert {field.name for field in fields(WorldSettings)} == {*RULES, "graph_options"}


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("kind", "gp", "it is one of 'linear-gob', 'gp-draw', 'representer'"),
        ("kind", 3, "it is one of"),
        ("n_users", 0, "it is a whole number of at least 1"),
        ("n_users", True, "whole number"),
        ("n_arms", "20", "whole number"),
        ("n_arms", 20.0, "whole number"),
        ("n_candidates", 21, "it is at most n_arms, which is 20"),
        ("n_candidates", 0, "at least 1"),
        ("dimension", -3, "at least 1"),
        ("horizon", 0, "at least 1"),
        ("horizon", 1e3, "whole number"),
        ("graph", "erdos", "it is one of 'erdos-renyi', 'rbf', 'sbm'"),
        ("graph", ["ring"], "it is one of"),
        ("graph_options", {"prob": 0.2}, "its options are 'edge_prob'"),
        ("graph_options", {"edge_prob": 1.2}, "edge_prob is a number from 0 and at most 1"),
        ("graph_options", {"edge_prob": "often"}, "edge_prob is a number"),
        ("graph_options", 0.2, "they map the options of erdos-renyi to numbers"),
        ("connected", "yes", "it is one of 'retry', 'keep', 'error'"),
        ("homophily", -1.0, "it is a finite number of at least 0"),
        ("power", 0, "it is a finite number above 0"),
        ("laplacian_ridge", 0.0, "above 0"),
        ("lengthscale", "median", "above 0"),
        ("lengthscale", float("inf"), "finite"),
        ("unit_spread", 1, "it is true or false"),
        ("heterophily", "no", "it is true or false"),
        ("noise_std", -0.1, "at least 0"),
        ("noise_std", NAN, "at least 0"),
        ("noise", "cauchy", "it is one of 'gaussian', 'heavy-tailed'"),
        ("rewards", "clicks", "it is one of 'real', 'binary'"),
        ("shown_graph", "false", "it is one of 'true', 'permuted', 'rewired'"),
        ("rewired_share", 1.1, "from 0 to 1"),
        ("rewired_share", 0.5, "a share is rewired only where shown_graph is 'rewired'"),
        ("drift", -0.5, "at least 0"),
        ("late_share", 1.0, "below 1"),
        ("late_after", 1.0, "below 1"),
    ],
)
def test_a_bad_setting_is_named_with_its_rule(key: str, value: Any, rule: str) -> None:
    with pytest.raises(SettingError, match=re.escape(rule)) as caught:
        world_settings({key: value})
    assert caught.value.key == key
    named = next(iter(value.items())) if isinstance(value, dict) else (value,)
    assert any(repr(each) in str(caught.value) for each in named)


@pytest.mark.parametrize(
    ("values", "key", "named"),
    [
        ({"noise": "heavy-tailed", "rewards": "binary"}, "noise", "binary rewards have no noise but their own"),
        ({"graph": "sbm", "n_users": 3}, "graph_options", "n_blocks = 4 is out of range"),
        ({"graph": "watts-strogatz", "n_users": 2}, "n_users", "n_users = 2 is out of range"),
        ({"graph": "watts-strogatz", "graph_options": {"k": 3}}, "graph_options", "k = 3 is odd"),
        ({"graph": "ring", "graph_options": {"k": 3}}, "graph_options", "its options are none"),
        ({"graph": "empty"}, "connected", "empty with n_users=20 has 20 components"),
        ({"n_arm": 5}, "n_arm", "Did you mean 'n_arms'"),
        ({"rho": 5}, "rho", "settings are 'preset', 'level', 'kind', 'number', 'n_users'"),
        ({"preset": "paper-tabel"}, "preset", "Did you mean 'paper-table'"),
        ({"preset": ["paper-text"]}, "preset", "it is one of 'paper-literal', 'paper-text', 'paper-table'"),
        ({"level": "hardest"}, "level", "it is one of 'easy', 'medium', 'hard'. Did you mean 'hard'"),
        ({"kind": "gp_draw"}, "kind", "Did you mean 'gp-draw'"),
        ({"graph": "Ring"}, "graph", "Did you mean 'ring'"),
        ({"graph_options": {"edge_probs": 0.1}}, "graph_options", "Did you mean 'edge_prob'"),
    ],
)
def test_settings_that_do_not_go_together_or_do_not_exist(values: dict[str, Any], key: str, named: str) -> None:
    with pytest.raises(SettingError, match=re.escape(named)) as caught:
        world_settings(values)
    assert caught.value.key == key


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_named(family: str) -> None:
    settings = world_settings({"graph": family, "connected": "keep"})
    assert world_settings(settings_as_dict(settings)) == settings


def test_graph_options_are_written_out_with_the_familys_defaults() -> None:
    assert WorldSettings().graph_options == {"edge_prob": 0.2}
    assert WorldSettings(graph="rbf").graph_options == {"latent_dim": 4, "scale": 0.1, "threshold": 0.1}
    partly = WorldSettings(graph="sbm", graph_options={"n_blocks": 2})
    assert partly.graph_options == {"n_blocks": 2, "inside": 0.6, "across": 0.05}


def test_settings_are_plain_values_and_come_back() -> None:
    settings = WorldSettings(
        n_users=np.int64(30),  # type: ignore[arg-type]
        noise_std=1,
        graph="sbm",
        graph_options={"n_blocks": np.int64(3)},  # type: ignore[dict-item]
        shown_graph="rewired",
        rewired_share=0.5,
        late_share=0.25,
    )
    plain = settings_as_dict(settings)
    assert list(plain) == [field.name for field in fields(WorldSettings)]
    assert type(plain["noise_std"]) is float
    assert world_settings(json.loads(json.dumps(plain))) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(replace(settings))


def test_levels_are_the_papers() -> None:
    assert [(level.n_arms, level.n_candidates, level.dimension, level.horizon) for level in LEVELS.values()] == [
        (10, 5, 5, 1000),
        (20, 5, 10, 3000),
        (50, 5, 20, 5000),
    ]


@pytest.mark.parametrize(
    ("preset", "level", "noise_std", "laplacian_ridge", "power"),
    [
        ("paper-literal", "medium", 0.1, 0.01, 0.5),
        ("paper-text", "medium", 0.1, 0.1, 1.0),
        ("paper-table", "hard", 0.4, 0.1, 0.5),
    ],
)
def test_presets_are_those_of_the_notes(
    preset: str, level: str, noise_std: float, laplacian_ridge: float, power: float
) -> None:
    wanted = world_settings(
        {"level": level, "noise_std": noise_std, "laplacian_ridge": laplacian_ridge, "power": power}
    )
    settings = world_settings({"preset": preset})
    assert settings == wanted
    assert (settings.graph, settings.graph_options, settings.connected) == ("erdos-renyi", {"edge_prob": 0.2}, "retry")
    assert (settings.kind, settings.n_users, settings.lengthscale) == ("gp-draw", 20, 1.0)


def test_each_preset_has_a_note_and_the_fitted_one_says_so() -> None:
    assert set(PRESET_NOTES) == set(PRESETS)
    assert [name for name, note in PRESET_NOTES.items() if "found by fit" in note] == ["paper-table"]


def test_the_preset_comes_first_then_the_level_then_the_rest() -> None:
    settings = world_settings({"horizon": 70, "level": "easy", "preset": "paper-table"})
    assert (settings.noise_std, settings.n_arms, settings.horizon) == (0.4, 10, 70)


def test_another_family_than_the_presets_has_its_own_options() -> None:
    assert world_settings({"preset": "paper-text", "graph": "rbf"}) == replace(
        WorldSettings(graph="rbf"), power=1.0, laplacian_ridge=0.1
    )
    dense = world_settings({"preset": "paper-text", "graph_options": {"edge_prob": 0.5}})
    assert dense.graph_options == {"edge_prob": 0.5}
