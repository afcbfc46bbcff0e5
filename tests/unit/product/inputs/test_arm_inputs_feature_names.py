"""Features go by the names they were given, wherever arms come and go."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ArmError, DimensionError, UnknownNameError

DRINKS = {"tea": {"hot": 1.0, "sweet": 0.1}, "cola": {"hot": 0.0, "sweet": 0.9}}


def make(arms: Any = DRINKS, **options: Any) -> ct.Bandit:
    return ct.Bandit(graph=ct.UserGraph.from_edges([("ana", "bo")]), arms=arms, **options)


def test_newcomers_and_changes_go_by_name_and_arrays_by_position() -> None:
    bandit = make()
    bandit.add_arms({"milk": {"sweet": 0.3, "hot": 0.5}})
    bandit.update_features({"tea": {"sweet": 0.2, "hot": 0.8}})
    bandit.add_arms({"water": [0.25, 0.75]})
    assert bandit.arms.feature_names == ("hot", "sweet")
    np.testing.assert_array_equal(bandit.arms.features, [[0.8, 0.2], [0.0, 0.9], [0.5, 0.3], [0.25, 0.75]])


def test_dataframes_go_by_name() -> None:
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("narwhals")
    bandit = make(pa.table({"hot": [1.0], "arm": ["tea"], "sweet": [0.1]}))
    bandit.add_arms(pa.table({"sweet": [0.9], "hot": [0.0], "arm": ["cola"]}))
    bandit.add_arms({"milk": {"sweet": 0.3, "hot": 0.5}})
    np.testing.assert_array_equal(bandit.arms.features, [[1.0, 0.1], [0.0, 0.9], [0.5, 0.3]])


@pytest.mark.parametrize(
    ("features", "told"),
    [
        ({"hot": 1.0}, r"arm 'milk' lacks 'sweet'; the features are 'hot', 'sweet'\."),
        ({"hot": 1.0, "sweet": 0.1, "fat": 3.0}, "arm 'milk' brings the unknown 'fat'"),
        ({"hot": 1.0, "sweat": 0.1}, "arm 'milk' lacks 'sweet' and brings the unknown 'sweat'"),
    ],
)
def test_other_names_are_told_and_change_nothing(features: dict[str, float], told: str) -> None:
    bandit = make()
    with pytest.raises(ArmError, match=told):
        bandit.add_arms({"milk": features})
    with pytest.raises(ArmError, match=told.replace("milk", "tea")):
        bandit.update_features({"tea": features})
    assert bandit.arms.ids == ("tea", "cola")


def test_a_feature_out_of_range_is_named_and_changes_nothing() -> None:
    bandit, told = make(), r"feature 'sweet' of arm '\w+' is 1e\+200; a feature is a finite number of at most"
    with pytest.raises(ArmError, match=told):
        make(DRINKS | {"milk": {"hot": 0.5, "sweet": 1e200}})
    with pytest.raises(ArmError, match=told):
        bandit.add_arms({"milk": {"sweet": 1e200, "hot": 0.5}})
    with pytest.raises(ArmError, match=told):
        bandit.update_features({"tea": {"hot": 0.5, "sweet": 1e200}})
    with pytest.raises(ArmError, match="feature 'hot' of arm 'milk' is None"):
        bandit.add_arms({"milk": {"hot": None, "sweet": 0.1}})
    assert bandit.arms.ids == ("tea", "cola")
    np.testing.assert_array_equal(bandit.arms.features, [[1.0, 0.1], [0.0, 0.9]])


def test_one_arm_that_is_faint_joins_others_that_are_not() -> None:
    bandit = make()
    bandit.add_arms({"water": [1e-80, 1e-80]})
    assert bandit.decide("ana", ["water"]).arm == "water"


def test_names_are_saved_exported_pickled_and_replayed(tmp_path: Path) -> None:
    bandit = make(journal=tmp_path / "journal")
    bandit.save(tmp_path / "snapshot")
    bandit.export(tmp_path / "plain")
    bandit.add_arms({"milk": {"sweet": 0.3, "hot": 0.5}})
    features = bandit.arms.features
    assert pickle.loads(pickle.dumps(bandit.arms)).feature_names == ("hot", "sweet")
    del bandit  # which writes to the journal as long as it is there
    again = ct.Bandit.load(tmp_path / "snapshot", journal=tmp_path / "journal")
    assert again.arms.feature_names == ("hot", "sweet")
    np.testing.assert_array_equal(again.arms.features, features)
    assert json.loads((tmp_path / "plain" / "state.json").read_text())["feature_names"] == ["hot", "sweet"]


def test_a_pool_without_names_stays_so(tmp_path: Path) -> None:
    bandit = make({"tea": [1.0, 0.1]})
    bandit.add_arms({"cola": {"sweet": 0.0, "hot": 0.9}})
    bandit.save(tmp_path / "b")
    assert ct.Bandit.load(tmp_path / "b").arms.feature_names is None
    np.testing.assert_array_equal(bandit.arms.features, [[1.0, 0.1], [0.0, 0.9]])


@pytest.mark.parametrize("names", [["x"], ["x", "x"], ["x", "y", "z"]])
def test_names_that_do_not_fit_are_told(names: list[str]) -> None:
    with pytest.raises(DimensionError, match="for 2 features"):
        ct.ArmPool([[0.0, 1.0]], feature_names=names)


@pytest.mark.parametrize(
    ("arms", "told"),
    [
        ({}, "there are no arms"),
        ({"tea": {"hot": 1.0, "sweet": float("nan")}}, "feature 'sweet' of arm 'tea' is nan"),
        ({"tea": {"hot": None}}, "feature 'hot' of arm 'tea' is None"),
        ({"tea": [0.0, 1.0], "cola": [0.0, float("inf")]}, "feature 1 of arm 'cola' is inf"),
        ({"tea": np.array([np.nan])}, "feature 0 of arm 'tea' is nan"),
    ],
)
def test_arms_and_features_that_are_not_there_are_named(arms: Any, told: str) -> None:
    with pytest.raises(ArmError, match=told):
        make(arms)


def test_an_unknown_option_is_told_with_those_of_the_bandit() -> None:
    with pytest.raises(UnknownNameError, match=r"'window'.*'noise_var'.*\. Did you mean 'forgetting'\?$") as told:
        make(forgeting=0.9)
    assert str(told.value).count("'seed'") == 1
