"""A finite set of arms: ids, and features that are finite numbers whose squares neither overflow nor vanish."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isfinite
from types import MappingProxyType
from typing import Any

import numpy as np

from coterie.contracts import FEATURE_RULE, LARGEST_FEATURE, LEAST_SPREAD, SPREAD_RULE, ArmId, Array
from coterie.errors import ArmError, DimensionError, DuplicateIdError, UnknownArmError, counted, listed, or_similar

MOST_FEATURELESS = 5_000  # arms: a matrix over all of them is made
RESCALE = "Measure it from another origin or in another unit"


class ArmPool:
    """Arms with features, one row each.

    Args:
        features: Array of shape (n_arms, dimension), finite numbers of at most 1e50 in size.
        ids: One id for each arm, any hashable values; default 0, 1, 2, ...
        feature_names: One name for each feature, if they have names.

    Attributes:
        has_features: Whether the features say more than which arm it is.

    Examples:
        >>> pool = ArmPool([[0.0, 1.0], [1.0, 0.0]], ids=["tea", "coffee"])
        >>> pool.index_of("coffee"), len(pool)
        (1, 2)
    """

    __slots__ = ("feature_names", "features", "has_features", "ids", "index")

    def __init__(
        self, features: Any, ids: Iterable[ArmId] | None = None, *, feature_names: Iterable[str] | None = None
    ) -> None:
        self.features = as_rows(features, what="features of the pool")
        self.has_features = True
        self.ids = _as_tuple(range(len(self.features)) if ids is None else ids)
        if len(self.ids) != len(self.features):
            raise DimensionError(
                f"{len(self.ids)} ids for {len(self.features)} rows of features",
                "an arm has one id and one row",
                "Give as many ids as rows",
            )
        self.index: Mapping[ArmId, int] = MappingProxyType(_indexed(self.ids))
        self.feature_names = None if feature_names is None else _checked_names(feature_names, self.dimension)
        check_range(self.features, whose=lambda row: f"arm {self.ids[row]!r}", names=self.feature_names)

    @classmethod
    def without_features(cls, ids: Iterable[ArmId]) -> "ArmPool":
        """Returns a pool of arms of which nothing is known but which is which: one is as far from another as any.

        Examples:
            >>> pool = ArmPool.without_features(["tea", "coffee"])
            >>> pool.features.tolist(), pool.has_features
            ([[1.0, 0.0], [0.0, 1.0]], False)
        """
        given = _as_tuple(ids)
        if not 1 <= len(given) <= MOST_FEATURELESS:
            rule = f"arms without features are from 1 to {MOST_FEATURELESS}"
            raise ArmError(f"there are {len(given)} arms without features", rule, "Give arms features")
        out = cls(np.eye(len(given)), ids=given)
        out.has_features = False
        return out

    def __len__(self) -> int:
        return len(self.ids)

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.has_features:
            return ArmPool.without_features, (self.ids,)
        return partial(ArmPool, feature_names=self.feature_names), (self.features, self.ids)

    def __repr__(self) -> str:
        return f"ArmPool({len(self)} arms, dimension {self.dimension})"

    @property
    def dimension(self) -> int:
        """How many features an arm has."""
        return int(self.features.shape[1])

    def index_of(self, arm: ArmId) -> int:
        """Returns the row of this arm, or raises UnknownArmError."""
        try:
            return self.index[arm]
        except (KeyError, TypeError):
            remedy = or_similar(arm, self.ids, "Use one of these ids")
            raise UnknownArmError(
                f"arm {arm!r} is unknown", f"the pool's arms are {listed(self.ids)}", remedy
            ) from None


def as_rows(features: Any, *, what: str) -> Array:
    """Returns a read-only float64 copy of a two-dimensional array of numbers, or raises a typed error."""
    try:
        given = np.asarray(features)
    except ValueError:
        raise _of_different_lengths(features, what) from None
    if given.dtype.kind not in "biuf":
        rule = "a row of finite numbers for each arm"
        raise ArmError(f"the {what} are of type {given.dtype}", rule, "Encode text and categories as numbers")
    rows = np.array(given, dtype=np.float64, order="C")
    if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] == 0:
        raise DimensionError(
            f"the {what} have shape {rows.shape}",
            "the shape is (number of arms, dimension), neither of them 0",
            "Pass one row for each arm",
        )
    rows.flags.writeable = False
    return rows


def _of_different_lengths(features: Any, what: str) -> DimensionError:
    """Returns the error that names the first row that has not as many features as the first."""
    sizes = [np.size(row) for row in features]
    odd = next((row for row, size in enumerate(sizes) if size != sizes[0]), None)
    if odd is None:
        where = f"the {what} have rows of different shapes"
    else:
        where = f"row {odd} of the {what} has {counted(sizes[odd], 'number')}, and row 0 has {sizes[0]}"
    return DimensionError(where, "every arm has the same number of features", "Give every arm the same features")


def check_range(
    features: Array, *, whose: Callable[[int], str] = "row {}".format, names: Sequence[str] | None = None
) -> None:
    """Raises at the first feature that is no finite number or too large.

    Args:
        features: A row for each arm.
        whose: Returns whose features a row are.
        names: Those of the features, if they have names.

    Examples:
        >>> check_range(np.array([[1e-300, 1e200]]), names=["hot", "sweet"])
        Traceback (most recent call last):
        coterie.errors.ArmError: feature 'sweet' of row 0 is 1e+200; a feature is a finite number of at most 1e+50 in
        size. Measure it from another origin or in another unit.
    """
    if features.max(initial=0.0) <= LARGEST_FEATURE and features.min(initial=0.0) >= -LARGEST_FEATURE:
        return
    row, column = np.argwhere(~(np.abs(features) <= LARGEST_FEATURE))[0].tolist()
    value = float(features[row, column])
    remedy = RESCALE if isfinite(value) else "Fill it in, or drop that arm"
    raise ArmError(f"feature {_named(column, names)} of {whose(row)} is {value}", FEATURE_RULE, remedy)


def check_spread(features: Array, *, names: Sequence[str] | None = None) -> None:
    """Raises if arms differ by so little that their squared distances vanish.

    Examples:
        >>> check_spread(np.array([[1.0, 1e-160], [1.0, 3e-160]]))
        Traceback (most recent call last):
        coterie.errors.ArmError: feature 1 differs by 2e-160, and no other by more; some feature differs by at least
        1e-50 from row to row, or none differs at all. Measure the features in another unit.
    """
    spreads = np.ptp(features, axis=0)
    widest = int(np.argmax(spreads))
    if 0 < spreads[widest] < LEAST_SPREAD:
        what = f"feature {_named(widest, names)} differs by {spreads[widest]:g}, and no other by more"
        raise ArmError(what, SPREAD_RULE, "Measure the features in another unit")


def _named(column: int, names: Sequence[str] | None) -> str:
    return repr(column if names is None else names[column])


def _as_tuple(ids: Iterable[ArmId]) -> tuple[ArmId, ...]:
    if not isinstance(ids, Iterable):
        raise ArmError(f"ids are {ids!r}", "they are a list with one id for each arm", "Pass a list of ids")
    return tuple(each.item() if isinstance(each, np.str_ | np.integer) else each for each in ids)


def _checked_names(names: Iterable[str], dimension: int) -> tuple[str, ...]:
    held = tuple(map(str, names))
    if len(set(held)) != len(held) or len(held) != dimension:
        raise DimensionError(
            f"the names of features are {listed(held)}, for {dimension} features",
            "every feature has a name of its own, or none has one",
            "Give as many different names as features",
        )
    return held


def _indexed(ids: tuple[ArmId, ...]) -> dict[ArmId, int]:
    index: dict[ArmId, int] = {}
    for i, arm in enumerate(ids):
        try:
            known = index.setdefault(arm, i)
        except TypeError:
            raise ArmError(f"arm id {arm!r} is not hashable", "ids are hashable values", "Use str or int ids") from None
        if known != i:
            raise DuplicateIdError(f"arm id {arm!r} is given twice", "ids are unique", "Rename or drop one of the two")
    return index
