"""Features of users as rows of numbers."""

from typing import Any

import numpy as np
import pytest

from coterie.errors import ContextError
from coterie.kernels.user_features import user_rows

TABLE = {
    "ana": {"age": 20, "region": "north", "new": True},
    "bo": {"age": 30, "region": "south", "new": False},
    "cy": {"age": 40, "region": "north", "new": False},
}


def test_numbers_are_standardised_and_categories_one_hot() -> None:
    rows = user_rows(["cy", "ana", "bo"], TABLE)
    assert rows.shape == (3, 4)
    np.testing.assert_allclose(rows[:, 0], np.array([1, -1, 0]) * np.sqrt(1.5))
    np.testing.assert_allclose(rows[:, :2].mean(axis=0), [0, 0], atol=1e-12)
    np.testing.assert_allclose(rows[:, :2].std(axis=0), [1, 1])
    np.testing.assert_array_equal(rows[:, 2:], [[1, 0], [1, 0], [0, 1]])


def test_other_users_of_a_table_are_left_out_and_units_make_no_difference() -> None:
    some = user_rows(["bo", "ana"], TABLE)
    assert some.shape == (2, 4)
    moved = {user: {**each, "age": 1000 * each["age"] + 5e6} for user, each in TABLE.items()}  # type: ignore[operator]
    np.testing.assert_allclose(user_rows(["bo", "ana"], moved), some, atol=1e-9)


def test_rows_of_numbers() -> None:
    np.testing.assert_allclose(user_rows([0, 1], {0: [1.0, 7.0], 1: [3.0, 7.0]}), [[-1, 0], [1, 0]])
    assert user_rows([0], {0: [1.0, 7.0]}).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("odd", "problem"),
    [
        ({"age": "old", "region": "north", "new": True}, "'age' of the features of user 'cy' is 'old'"),
        ({"age": 30, "region": "north"}, "the features of user 'cy' has no 'new'"),
        ({"age": 30, "region": "north", "new": True, "size": 3}, "the unknown name 'size'"),
        ([30.0], "the features of user 'cy' is a list"),
        ({"age": float("nan"), "region": "north", "new": True}, "'age' of the features of user 'cy' is nan"),
    ],
)
def test_a_user_whose_features_are_others_is_named(odd: Any, problem: str) -> None:
    with pytest.raises(ContextError, match=problem):
        user_rows(["ana", "bo", "cy"], TABLE | {"cy": odd})


def test_users_without_features_are_named() -> None:
    with pytest.raises(ContextError, match="users 'dee' have no features; every user of the graph has them"):
        user_rows(["ana", "dee"], TABLE)
