"""Arms in dataframes: what is read, and what is told of a frame that cannot be."""

import sys
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ArmError, CoterieError, DimensionError, DuplicateIdError, MissingExtraError
from coterie.product.inputs.arm_inputs import as_arm_pool

pa = pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

DRINKS = {"hot": [True, False, False], "arm": ["tea", "cola", "milk"], "sweet": [0.1, 0.9, 0.3], "price": [2, 3, 1]}


def _polars(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def _pandas(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


def _nullable(columns: dict[str, list[Any]]) -> Any:
    with np.errstate(invalid="ignore"):  # pandas 2.2 compares infinity with itself as a whole number
        return _pandas(columns).convert_dtypes()


@pytest.fixture(params=[pa.table, _polars, _pandas, _nullable], ids=["pyarrow", "polars", "pandas", "nullable"])
def frame(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("name", ["arm", "id"])
def test_a_named_column_holds_the_ids_and_the_others_features(frame: Any, name: str) -> None:
    pool = as_arm_pool(frame({name if key == "arm" else key: values for key, values in DRINKS.items()}))
    assert pool.ids == ("tea", "cola", "milk")
    np.testing.assert_array_equal(pool.features, [[1, 0.1, 2], [0, 0.9, 3], [0, 0.3, 1]])


def test_whole_numbers_are_ids_and_can_be_saved(frame: Any, tmp_path: Any) -> None:
    bandit = ct.Bandit(graph=ct.UserGraph.from_edges([(0, 1)]), arms=frame({"id": [7, 9], "x": [0.0, 1.0]}))
    bandit.save(tmp_path / "b")
    assert ct.Bandit.load(tmp_path / "b").arms.ids == (7, 9)


def test_without_ids_the_rows_are_numbered(frame: Any) -> None:
    pool = as_arm_pool(frame({"x": [1.5, 2.5], "y": [0, 1]}))
    assert pool.ids == (0, 1)
    np.testing.assert_array_equal(pool.features, [[1.5, 0], [2.5, 1]])


def test_arms_are_added_and_changed_from_frames(frame: Any) -> None:
    bandit = ct.Bandit(graph=ct.UserGraph.from_edges([(0, 1)]), arms=frame({"arm": ["a", "b"], "x": [0.0, 1.0]}))
    bandit.add_arms(frame({"arm": ["c"], "x": [2]}))
    bandit.update_features(frame({"arm": ["a", "c"], "x": [5.0, 6.0]}))
    assert bandit.arms.ids == ("a", "b", "c")
    np.testing.assert_array_equal(bandit.arms.features, [[5], [1], [6]])


@pytest.mark.parametrize(
    ("columns", "error", "told"),
    [
        (
            {"arm": ["a", "b"], "x": ["low", "high"]},
            ArmError,
            r"column 'x' of the arms is of type String, such as 'low'",
        ),
        ({"song": ["a", "b"], "x": [0.0, 1.0]}, ArmError, r"column 'song' .* type String"),
        ({"arm": ["a", "b"], "x": [0.0, None]}, ArmError, r"column 'x' of the arms holds (None|nan|<NA>) at row 1"),
        ({"arm": ["a", "b"], "x": [0.0, float("inf")]}, ArmError, r"column 'x' of the arms holds inf at row 1"),
        ({"arm": ["a", None], "x": [0.0, 1.0]}, ArmError, r"column 'arm' .* holds (None|nan|<NA>) at row 1"),
        ({"id": [0.5, 1.5], "x": [0.0, 1.0]}, ArmError, r"column 'id' of the arms holds 0.5 at row 0"),
        ({"arm": ["a", "b", "a"], "x": [0, 1, 2]}, DuplicateIdError, r"holds 'a' at row 0 and at row 2"),
        ({"arm": ["a"], "id": [1], "x": [0]}, ArmError, "columns 'arm' and 'id'"),
        ({"arm": ["a", "b"]}, ArmError, "only the column 'arm'"),
        ({}, ArmError, "no columns"),
        ({"x": []}, CoterieError, "column 'x'|shape"),
    ],
)
def test_a_frame_that_cannot_be_read_is_told(
    frame: Any, columns: dict[str, list[Any]], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        as_arm_pool(frame(columns))


def test_nan_is_told() -> None:
    with pytest.raises(ArmError, match="column 'x' of the arms holds nan at row 1"):
        as_arm_pool(pa.table({"x": [0.0, float("nan")]}))


def test_a_lazy_frame_is_told_without_being_run() -> None:
    lazy = pytest.importorskip("polars").LazyFrame({"arm": ["a"], "x": [1.0]})
    with pytest.raises(ArmError, match=r"lazy LazyFrame.*Collect"):
        as_arm_pool(lazy)
    assert as_arm_pool(lazy.collect()).ids == ("a",)


def test_an_index_of_pandas_that_names_the_rows_is_told() -> None:
    pandas = pytest.importorskip("pandas")
    named = pandas.DataFrame({"x": [1.0, 2.0]}, index=["tea", "cola"])
    with pytest.raises(ArmError, match=r"index holds 'tea', 'cola'.*reset_index"):
        as_arm_pool(named)
    assert as_arm_pool(named.reset_index(names="arm")).ids == ("tea", "cola")
    assert as_arm_pool(named.reset_index(drop=True)).ids == (0, 1)
    numbered = pandas.DataFrame([[1.0, 2.0]])
    np.testing.assert_array_equal(as_arm_pool(numbered).features, [[1, 2]])
    with pytest.raises(ArmError, match="two columns of one name"):
        as_arm_pool(pandas.DataFrame([[1.0, 2.0]], columns=["x", "x"]))


def test_something_else_with_columns_is_told() -> None:
    class Odd:
        columns = ("arm", "x")

    with pytest.raises(ArmError, match="a Odd, which has columns but is no dataframe"):
        as_arm_pool(Odd())
    with pytest.raises(DimensionError):
        as_arm_pool(pa.array([1.0, 2.0]).to_numpy())


def test_without_narwhals_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtraError, match=r"narwhals.*the extra 'data'"):
        as_arm_pool(pa.table(DRINKS))
    assert as_arm_pool({"tea": [1.0]}).ids == ("tea",)
