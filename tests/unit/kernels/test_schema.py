"""What a context may hold: everything else is refused by name, and refusing changes nothing."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import ContextError
from coterie.kernels.schema import MOST_CATEGORIES, UNKNOWN, ContextSchema

GIVEN = {"hour": "number", "new": "flag", "device": ["phone", "desktop"], "page": "category"}
FIRST = {"hour": 21, "new": True, "device": "phone", "page": "home"}
WITH_DEFAULTS = {
    "hour": {"kind": "number", "default": 12},
    "new": {"kind": "flag", "default": False},
    "device": {"kind": ["phone", "desktop"], "default": "phone"},
}


def test_numbers_and_flags_come_first_and_then_codes_of_categories() -> None:
    schema = ContextSchema.of(GIVEN)
    row, after = schema.encoded(FIRST)
    np.testing.assert_array_equal(row, [21.0, 1.0, 1.0, 1.0])
    assert (schema.n_numbers, schema.n_categories) == (2, 2)
    assert after.fields[3].categories == ("home",)
    np.testing.assert_array_equal(after.encoded(FIRST | {"device": "desktop"})[0], [21.0, 1.0, 2.0, 1.0])
    np.testing.assert_array_equal(after.encoded(FIRST | {"page": "news"})[0], [21.0, 1.0, 1.0, 2.0])


def test_what_is_known_already_changes_nothing() -> None:
    after = ContextSchema.of(GIVEN).encoded(FIRST)[1]
    assert after.encoded(FIRST)[1] is after


@pytest.mark.parametrize(
    ("odd", "problem"),
    [
        ({"hour": "late"}, "'hour' of the context is 'late'; it is a number"),
        ({"hour": True}, "'hour' of the context is True; it is a number"),
        ({"hour": None}, "the context has no 'hour'"),
        ({"hour": [21]}, "'hour' of the context is .*; it is a number"),
        ({"hour": 1j}, "'hour' of the context is 1j; it is a number"),
        ({"hour": float("nan")}, "'hour' of the context is nan; a number of a context is finite"),
        ({"hour": np.float64("inf")}, "a number of a context is finite"),
        ({"hour": 1e51}, "a number of a context is finite and at most 1e\\+50"),
        ({"hour": 10**400}, "a number of a context is finite"),
        ({"new": 1}, "'new' of the context is 1; it is a flag"),
        ({"new": "yes"}, "'new' of the context is 'yes'; it is a flag"),
        ({"device": 3}, "'device' of the context is 3; it is a category, which is a text"),
        ({"device": float("nan")}, "'device' of the context is nan; it is a category"),
        ({"page": True}, "'page' of the context is True; it is a category"),
        ({"device": b"phone"}, "it is a category, which is a text"),
        ({"hours": 3}, "the context has the unknown name 'hours'; names are 'hour', .* Did you mean 'hour'"),
        ({7: 3}, "the context has the unknown name 7"),
        ({None: 3}, "the context has the unknown name None"),
    ],
)
def test_what_a_context_cannot_hold_is_refused_and_changes_nothing(odd: dict[Any, Any], problem: str) -> None:
    schema = ContextSchema.of(GIVEN)
    plain = json.dumps(schema.as_plain())
    with pytest.raises(ContextError, match=problem):
        schema.encoded(FIRST | {"page": "never seen", "device": "nor this"} | odd)
    assert json.dumps(schema.as_plain()) == plain


@pytest.mark.parametrize("context", ["hour", 21, [21.0, 1.0], {("hour", 21)}, np.zeros(4)])
def test_a_context_of_names_is_a_mapping(context: Any) -> None:
    with pytest.raises(ContextError, match=r"the context is a .*; it maps the names 'hour'"):
        ContextSchema.of(GIVEN).encoded(context)


def test_a_missing_name_is_an_error_or_its_default() -> None:
    schema = ContextSchema.of({**WITH_DEFAULTS, "page": "category"})
    with pytest.raises(ContextError, match=r"the context has no 'page'; names without a default .*: 'page'"):
        schema.encoded({"hour": 3})
    row, _ = schema.encoded({"page": "home"})
    np.testing.assert_array_equal(row, [12.0, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(ContextSchema.of(WITH_DEFAULTS).encoded(None)[0], [12.0, 0.0, 1.0])
    with pytest.raises(ContextError, match="the context has no 'page'"):
        schema.encoded(None)


@pytest.mark.parametrize(
    "given",
    [
        "hour",
        0,
        True,
        2.0,
        [1, 2],
        {"hour": "numbers"},
        {"hour": 3},
        {"hour": None},
        {"hour": {"default": 3}},
        {"hour": {"kind": "number", "unit": "h"}},
        {"hour": {"kind": "number", "default": "noon"}},
        {"hour": {"kind": "number", "default": float("nan")}},
        {"new": {"kind": "flag", "default": 1}},
        {"device": {"kind": "category", "default": 1}},
        {"device": []},
        {"device": [1, 2]},
        {"device": ["phone", "phone"]},
        {"": "number"},
        {3: "number"},
    ],
)
def test_a_schema_that_says_nothing_is_refused(given: Any) -> None:
    with pytest.raises(ContextError):
        ContextSchema.of(given)


def test_categories_of_a_list_are_all_there_are_and_others_are_counted() -> None:
    schema = ContextSchema.of({"device": ["phone", "desktop"], "page": "category"})
    row, schema = schema.encoded({"device": "fridge", "page": "home"})
    np.testing.assert_array_equal(row, [UNKNOWN, 1])
    row, schema = schema.encoded({"device": "car", "page": "news"})
    np.testing.assert_array_equal(row, [UNKNOWN, 2])
    assert schema.n_unknown == {"device": 2}
    assert schema.fields[0].categories == ("phone", "desktop")


def test_categories_that_are_learned_are_bounded() -> None:
    schema = ContextSchema.learned({"page": "0"})
    for number in range(MOST_CATEGORIES):
        row, schema = schema.encoded({"page": str(number)})
        assert row[0] == number + 1
    row, schema = schema.encoded({"page": "one more"})
    assert (row[0], schema.n_unknown) == (UNKNOWN, {"page": 1})


def test_a_schema_is_learned_from_the_first_context() -> None:
    schema = ContextSchema.learned({**FIRST, "price": np.float32(0.5), "share": Fraction(1, 4), "is": np.bool_(True)})
    kinds = {field.name: field.kind for field in schema.fields}
    assert kinds == {
        "hour": "number",
        "new": "flag",
        "device": "category",
        "page": "category",
        "price": "number",
        "share": "number",
        "is": "flag",
    }
    assert all(field.is_open == (field.kind == "category") for field in schema.fields)
    for odd in ({}, {"hour": None}, {"hour": float("inf")}, {"hour": [1]}, {"": 1}, {2: 1}):
        with pytest.raises(ContextError):
            ContextSchema.learned(odd)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ([1.0, 2.0], "the context is a row of 2 numbers; it is a row of 3 numbers"),
        ([1.0, 2.0, 3.0, 4.0], "the context is a row of 4 numbers; it is a row of 3 numbers"),
        ([], "the context is \\[\\]; a context is a mapping"),
        ([1.0, float("nan"), 2.0], "number 1 of the context is nan; a number of a context is finite"),
        ([1.0, 2.0, 1e60], "number 2 of the context is 1e\\+60"),
        (["a", "b", "c"], "the context is a row of type"),
        ([1, None, 2], "the context is a row of type"),
        ([1, [2, 3], 4], "the context is \\[1, \\[2, 3\\], 4\\]; a context is a mapping"),
        ([[1, 2, 3]], "the context is"),
        ("abc", "the context is 'abc'"),
        (3.0, "the context is 3.0"),
        (None, "no context was given; it is a row of 3 numbers"),
        ({"hour": 1}, "the context is a dict; it is a row of 3 numbers"),
    ],
)
def test_a_row_of_numbers_has_its_length_and_finite_numbers(row: Any, problem: str) -> None:
    schema = ContextSchema.of(3)
    with pytest.raises(ContextError, match=problem):
        schema.encoded(row)
    np.testing.assert_array_equal(schema.encoded((1, 2, 3))[0], [1.0, 2.0, 3.0])
    assert ContextSchema.learned(np.arange(3)) == schema


values = st.one_of(st.floats(-1e6, 1e6), st.booleans(), st.text(max_size=3))


@given(st.dictionaries(st.text(min_size=1, max_size=4), values, min_size=1, max_size=4))
def test_a_first_context_makes_a_schema_that_takes_it_and_survives_plain_values(context: dict[str, Any]) -> None:
    schema = ContextSchema.learned(context)
    row, after = schema.encoded(context)
    assert len(row) == len(context) == schema.n_numbers + schema.n_categories
    again = ContextSchema.from_plain(json.loads(json.dumps(after.as_plain())))
    assert again == after
    assert ContextSchema.of(json.loads(json.dumps(after.given()))) == schema
    np.testing.assert_array_equal(again.encoded(context)[0], row)


def test_plain_values_keep_what_was_counted_and_defaults() -> None:
    for given_ in (WITH_DEFAULTS, GIVEN, 4):
        schema = ContextSchema.of(given_)
        assert ContextSchema.from_plain(json.loads(json.dumps(schema.as_plain()))) == schema
    counted = ContextSchema.of({"device": ["phone"]}).encoded({"device": "car"})[1]
    assert ContextSchema.from_plain(counted.as_plain()).n_unknown == {"device": 1}
    assert ContextSchema.of(counted) is counted
