"""Arms in their contexts as rows of numbers."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ArmError, ContextError, DimensionError
from coterie.kernels.input_space import InputSpace
from coterie.kernels.inputs import InputLayout
from coterie.kernels.schema import ContextSchema

PLAIN = ct.ArmPool([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], ids=list("abc"))
BARE = ct.ArmPool.without_features(list("abc"))
SCHEMA = ContextSchema.of({"hour": "number", "device": "category"})


@pytest.mark.parametrize(
    ("arms", "schema", "requests", "layout"),
    [
        (PLAIN, SCHEMA, (), InputLayout(0, 2, 1, 1)),
        (BARE, SCHEMA, (), InputLayout(3, 0, 1, 1)),
        (PLAIN, ContextSchema(), ("price",), InputLayout(0, 2, 1, 0)),
        (BARE, ContextSchema.of(4), ("price", "distance"), InputLayout(3, 0, 6, 0)),
        (BARE, ContextSchema(), (), InputLayout(3, 0, 0, 0)),
    ],
)
def test_the_layout_is_that_of_the_rows(
    arms: ct.ArmPool, schema: ContextSchema, requests: tuple[str, ...], layout: InputLayout
) -> None:
    space = InputSpace(arms, schema, requests)
    assert space.layout == layout
    of_request = np.ones((2, len(requests))) if requests else None
    context = np.arange(schema.n_numbers + schema.n_categories, dtype=np.float64)
    rows = space.rows(space.of_arms(np.array([2, 0])), context, of_request)
    assert rows.shape == (2, layout.width)
    shown = np.concatenate([np.ones(len(requests)), context])
    np.testing.assert_array_equal(rows[:, layout.of_context], [shown, shown])
    own = PLAIN.features[[2, 0]] if arms is PLAIN else np.array([[2.0], [0.0]])
    np.testing.assert_array_equal(rows[:, : own.shape[1]], own)
    other = space.with_arm(rows[0], 1)
    np.testing.assert_array_equal(other[: own.shape[1]], PLAIN.features[1] if arms is PLAIN else [1.0])
    np.testing.assert_array_equal(other[layout.of_context], shown)


def test_a_context_is_learned_into_another_space() -> None:
    space = InputSpace(BARE, SCHEMA)
    row, after = space.encoded({"hour": 3, "device": "phone"})
    np.testing.assert_array_equal(row, [3.0, 1.0])
    assert space.schema is SCHEMA
    assert after.schema.fields[1].categories == ("phone",)
    assert after.encoded({"hour": 5, "device": "phone"})[1] is after
    assert after.arms is space.arms


def test_contexts_are_refused_where_none_are_known() -> None:
    space = InputSpace(BARE)
    assert space.encoded(None)[0].shape == (0,)
    with pytest.raises(ContextError, match="a context was given; this one knows no contexts"):
        space.encoded({"hour": 3})
    with pytest.raises(ContextError, match="the context has no 'hour'"):
        InputSpace(BARE, SCHEMA).encoded(None)


def test_arms_that_are_not_of_the_pool_have_its_features() -> None:
    space = InputSpace(PLAIN)
    np.testing.assert_array_equal(space.of_features([[1, 2]]), [[1.0, 2.0]])
    with pytest.raises(DimensionError, match="a candidate has 3 features; the arms of the pool have 2"):
        space.of_features([[1.0, 2.0, 3.0]])
    with pytest.raises(DimensionError, match="the arms of the pool have none"):
        InputSpace(BARE).of_features([[1.0, 0.0, 0.0]])
    odd: Any
    for odd in ([[1.0, float("nan")]], [[1.0, 1e60]], [["x", "y"]]):
        with pytest.raises(ArmError):
            space.of_features(odd)
