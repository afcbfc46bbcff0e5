"""A pool of arms: ids of any kind, features that nobody can change, and errors that name the value."""

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ArmError, DimensionError, DuplicateIdError, UnknownArmError

MIXED: list[Any] = ["tea", 7, ("a", 1), None, frozenset({2}), 2.5, b"x"]


def test_ids_are_any_hashable_values_and_keep_their_order() -> None:
    pool = ct.ArmPool(np.arange(14.0).reshape(7, 2), ids=MIXED)
    assert pool.ids == tuple(MIXED)
    assert [pool.index_of(arm) for arm in MIXED] == list(range(7))
    assert dict(pool.index) == {arm: i for i, arm in enumerate(MIXED)}
    assert (len(pool), pool.dimension) == (7, 2)
    assert repr(pool) == "ArmPool(7 arms, dimension 2)"


def test_ids_default_to_the_rows_and_may_come_from_an_iterator() -> None:
    assert ct.ArmPool([[1], [2], [3]]).ids == (0, 1, 2)
    assert ct.ArmPool([[1], [2]], ids=(name for name in "ab")).ids == ("a", "b")


def test_the_callers_array_is_copied() -> None:
    given = np.array([[1.0, 2.0], [3.0, 4.0]])
    pool = ct.ArmPool(given)
    given[0, 0] = 99.0
    np.testing.assert_array_equal(pool.features, [[1.0, 2.0], [3.0, 4.0]])
    assert given.flags.writeable


@pytest.mark.parametrize("order", ["C", "F"])
def test_features_are_read_only_rows_of_float64(order: Any) -> None:
    pool = ct.ArmPool(np.array([[1, 2], [3, 4]], dtype=np.int32, order=order))
    assert pool.features.dtype == np.float64
    assert pool.features.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        pool.features[0, 0] = 9.0


def test_the_index_is_read_only() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        ct.ArmPool([[1.0]]).index["new"] = 3  # type: ignore[index]


def test_equal_features_may_belong_to_different_arms() -> None:
    assert len(ct.ArmPool([[1.0], [1.0]], ids=["a", "b"])) == 2


@pytest.mark.parametrize("arm", ["coffee", 5, ["tea"], {"tea"}])
def test_an_unknown_arm_is_named_with_those_that_exist(arm: Any) -> None:
    pool = ct.ArmPool([[1.0], [2.0]], ids=["tea", 7])
    with pytest.raises(UnknownArmError, match=re.escape(f"arm {arm!r} is unknown; the pool's arms are 'tea', 7")):
        pool.index_of(arm)


@pytest.mark.parametrize(
    ("features", "ids", "error", "named"),
    [
        ([[1.0], [2.0]], ["a", "a"], DuplicateIdError, "arm id 'a' is given twice"),
        ([[1.0], [2.0]], [1, True], DuplicateIdError, "arm id True is given twice"),
        ([[1.0], [2.0]], ["a"], DimensionError, "1 ids for 2 rows"),
        ([[1.0], [2.0]], ["a", "b", "c"], DimensionError, "3 ids for 2 rows"),
        ([[1.0]], [["a"]], ArmError, "arm id ['a'] is not hashable"),
        ([1.0, 2.0], None, DimensionError, "(2,)"),
        ([], None, DimensionError, "(0,)"),
        (np.empty((0, 3)), None, DimensionError, "(0, 3)"),
        (np.empty((3, 0)), None, DimensionError, "(3, 0)"),
        (
            [[1.0, 2.0], [3.0, np.nan]],
            None,
            ArmError,
            "feature 1 of arm 1 is nan; a feature is a finite number of at most",
        ),
        ([[-np.inf]], None, ArmError, "feature 0 of arm 0 is -inf"),
        ([[1.0, 2.0], [3.0, -1e200]], ["a", "b"], ArmError, "feature 1 of arm 'b' is -1e+200; a feature is a finite"),
        ([["tea"]], None, ArmError, "type <U3"),
        ([[1.0, 2.0], [3.0]], None, DimensionError, "row 1 of the features of the pool has 1 number, and row 0 has 2"),
        ([[None, object()]], None, ArmError, "type object"),
        ([["1"], ["2"]], None, ArmError, "type <U1"),
        ([[1j]], None, ArmError, "type complex128"),
    ],
)
def test_bad_input_is_named(features: Any, ids: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=re.escape(named)):
        ct.ArmPool(features, ids=ids)


def test_a_pool_survives_copying_and_pickling() -> None:
    pool = ct.ArmPool([[0.0, 1.0], [2.0, 3.0]], ids=["a", ("b", 1)])
    for again in (copy.deepcopy(pool), pickle.loads(pickle.dumps(pool))):
        assert again.ids == pool.ids
        assert again.index_of(("b", 1)) == 1
        np.testing.assert_array_equal(again.features, pool.features)
        assert not again.features.flags.writeable


def test_a_feature_that_is_too_large_is_named_with_a_way_out() -> None:
    with pytest.raises(ArmError) as raised:
        ct.ArmPool([[0.0, 1.0], [0.5, 1.1e50]], ids=["tea", "cola"], feature_names=["hot", "sweet"])
    assert str(raised.value) == (
        "feature 'sweet' of arm 'cola' is 1.1e+50; a feature is a finite number of at most 1e+50 in size. "
        "Measure it from another origin or in another unit."
    )


def test_features_up_to_the_limit_and_as_small_as_they_like_are_taken() -> None:
    features = [[1e50, -1e50, 1e-300], [0.0, 5e-324, 1.0]]
    np.testing.assert_array_equal(ct.ArmPool(features).features, features)


@pytest.mark.parametrize("scale", [1e-160, 1e-200, 1e-310])
def test_arms_that_differ_by_less_than_squares_can_tell_are_refused_unless_units_do_not_matter(scale: float) -> None:
    """A constant feature beside them does not help."""
    rows = np.column_stack([np.ones(5), scale * np.arange(5.0)])
    with pytest.raises(ArmError, match=r"feature 1 differs by 4e-\d+, and no other by more.*in another unit"):
        ct.make_policy("lk-gp-ucb", graph=ct.make_graph("ring", 4), arms=ct.ArmPool(rows))
    policy = ct.make_policy("auto-ucb", graph=ct.make_graph("ring", 4), arms=ct.ArmPool(rows))
    policy.update(0, 4, 1.0)
    policy.update(0, 0, 0.0)
    assert np.ptp(policy.predict(0)[0]) > 0.01


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "auto-ucb"])
def test_a_faint_feature_beside_others_is_as_none(policy: str) -> None:
    plain = np.column_stack([np.arange(5.0), np.zeros(5)])
    faint = plain + np.column_stack([np.zeros(5), 1e-160 * np.arange(5.0)])
    beliefs = []
    for rows in (plain, faint):
        made = ct.make_policy(policy, graph=ct.make_graph("ring", 4), arms=ct.ArmPool(rows))
        for arm in range(5):
            made.update(arm % 4, arm, float(arm))
        beliefs.append([made.predict(user) for user in range(4)])
    np.testing.assert_array_equal(beliefs[0], beliefs[1])
