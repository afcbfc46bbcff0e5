"""Arms in their contexts as rows of numbers, which `InputKernel` compares."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coterie.contracts import Array, Index
from coterie.errors import ContextError, DimensionError, listed
from coterie.kernels.inputs import InputLayout
from coterie.kernels.pool import ArmPool, as_rows, check_range
from coterie.kernels.schema import CATEGORY, ContextSchema

FIRST_PLACE = 1.0  # of a slate; also that of a decision that is of none


@dataclass(frozen=True, slots=True, eq=False)
class InputSpace:
    """Makes rows of arms and contexts.

    Attributes:
        arms: The pool.
        schema: What a context holds.
        request_features: Names of features of an arm that each request gives, such as a price: numbers of the context
            in which the arm is shown.
        has_places: Whether the place of a slate, from 1, is a last category of the context, which no context names;
            it is 1 unless `at_place` says otherwise.

    Examples:
        >>> space = InputSpace(ArmPool.without_features(["tea", "coffee"]), ContextSchema.of({"hour": "number"}))
        >>> space.rows(space.of_arms(np.array([0, 1])), space.encoded({"hour": 9})[0])
        array([[0., 9.], [1., 9.]])
    """

    arms: ArmPool
    schema: ContextSchema = field(default_factory=ContextSchema)
    request_features: tuple[str, ...] = ()
    has_places: bool = False

    @property
    def layout(self) -> InputLayout:
        """Which columns an input has."""
        arms, schema = self.arms, self.schema
        codes, features = (0, arms.dimension) if arms.has_features else (len(arms), 0)
        numbers, categories = len(self.request_features) + schema.n_numbers, schema.n_categories + self.has_places
        return InputLayout(codes, features, numbers, categories)

    @property
    def columns(self) -> list[str]:
        """What the columns of an input are called; "arm" is the row of an arm without features.

        Examples:
            >>> InputSpace(ArmPool([[0.5, 1.0]]), ContextSchema.of({"device": "category", "hour": "number"})).columns
            ['feature 0', 'feature 1', 'hour', 'device']
        """
        names = self.arms.feature_names or [f"feature {i}" for i in range(self.arms.dimension)]
        fields = sorted(self.schema.fields, key=lambda field: field.kind == CATEGORY)  # which come last
        of_arm = names if self.arms.has_features else ["arm"]
        of_places = ["place"] if self.has_places else []
        return [*of_arm, *self.request_features, *(field.name for field in fields), *of_places]

    @property
    def needs_context(self) -> bool:
        """Whether an arm is nothing without a context: there are names of it, or features of the request."""
        return bool(self.schema.fields or self.request_features)

    def encoded(self, context: Any) -> tuple[Array, "InputSpace"]:
        """Returns a context as a row, and the space after it has come; raises if it is not as the schema says."""
        if context is not None and not self.schema.fields:
            raise ContextError(
                "a context was given", "this one knows no contexts", "Name what they hold with context_schema"
            )
        row, schema = self.schema.encoded(context)
        if self.has_places:
            row = np.append(row, FIRST_PLACE)
        return row, self if schema is self.schema else replace(self, schema=schema)

    def of_arms(self, rows: Index) -> Array:
        """Returns the columns of arms of the pool: their features, or which they are."""
        return self.arms.features[rows] if self.arms.has_features else np.asarray(rows, dtype=np.float64)[:, None]

    def of_features(self, features: Any) -> Array:
        """Returns the columns of arms that are not of the pool, from their features; raises if they are no good."""
        out = as_rows(features, what="features of the candidates")
        if not self.arms.has_features or out.shape[1] != self.arms.dimension:
            have = f"{self.arms.dimension}" if self.arms.has_features else "none"
            what, rule = f"a candidate has {out.shape[1]} features", f"the arms of the pool have {have}"
            raise DimensionError(what, rule, "Give every arm the same features")
        check_range(out, whose="candidate {}".format)
        return out

    def with_arm(self, row: Array, arm: int) -> Array:
        """Returns an input with the features that an arm of the pool has."""
        own = self.of_arms(np.array([arm]))[0]
        return np.concatenate([own, row[len(own) :]]) + 0.0

    def at_place(self, rows: Array, place: int) -> Array:
        """Returns inputs at a place of a slate, from 1, where places count.

        Examples:
            >>> space = InputSpace(ArmPool.without_features(["tea", "coffee"]), has_places=True)
            >>> space.at_place(space.rows(space.of_arms(np.array([0, 1])), space.encoded(None)[0]), 3)
            array([[0., 3.], [1., 3.]])
        """
        if not self.has_places or place == FIRST_PLACE:
            return rows
        out = rows.copy()
        out[:, -1] = place
        return out

    def rows(self, of_arms: Array, context: Array, of_request: Array | None = None) -> Array:
        """Returns an input for each arm, all in the same context.

        Args:
            of_arms: The columns of the arms.
            context: The row of the context.
            of_request: The features that the request gives, a row for each arm.

        Raises:
            ContextError: If there are such features and they are not given.
        """
        if of_request is None and self.request_features:
            what = "candidates are ids, without features of the request"
            rule = f"each has {listed(self.request_features, 20)}"
            raise ContextError(what, rule, 'Pass a mapping, such as {"arm": {"price": 2.0}}')
        parts = [of_arms, np.broadcast_to(context, (len(of_arms), len(context)))]
        if of_request is not None:
            parts.insert(1, of_request)
        return np.concatenate(parts, axis=1) + 0.0  # zero has one sign, or the same input would have two keys
