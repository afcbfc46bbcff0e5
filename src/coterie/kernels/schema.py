"""What a context holds: names of numbers, flags and categories, or a row of numbers; checked, and turned into a row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from coterie.contracts import LARGEST_FEATURE, Array
from coterie.errors import ContextError, listed, or_similar
from coterie.errors.checks import is_number, is_whole

NUMBER, FLAG, CATEGORY = "number", "flag", "category"
KINDS = (NUMBER, FLAG, CATEGORY)
MOST_CATEGORIES = 1000  # of one name; further ones are unknown
UNKNOWN = 0  # the code of a category that is not known
NUMBER_RULE = f"a number of a context is finite and at most {LARGEST_FEATURE:g} in size"
SCHEMA_RULE = 'a name has "number", "flag", "category", a list of categories, or {"kind": ..., "default": ...}'


class ContextField(NamedTuple):
    """A name of a context.

    Attributes:
        name: Its name.
        kind: "number", "flag" or "category".
        categories: Those that are known.
        is_open: Whether categories that come are learned; otherwise they are unknown.
        default: What it is where a context does not say; None where it must.
        n_unknown: How many unknown categories have come.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    is_open: bool = False
    default: Any = None
    n_unknown: int = 0

    def checked(self, value: Any) -> float | str:
        """Returns a value as a number or a category, or raises if it is neither, or not of this kind."""
        if self.kind == CATEGORY:
            if isinstance(value, str) and _can_be_kept(value):
                return value
            raise self._odd(value, "it is a category, which is a text of whole characters")
        flag = isinstance(value, bool | np.bool_)
        if self.kind == FLAG:
            if flag:
                return float(value)
            raise self._odd(value, "it is a flag, which is True or False")
        if not flag and is_number(value) and abs(float(value)) <= LARGEST_FEATURE:
            return float(value)
        rule = NUMBER_RULE if not flag and isinstance(value, int | float | np.number) else "it is a number"
        raise self._odd(value, rule)

    def _odd(self, value: Any, rule: str) -> ContextError:
        return ContextError(f"{self.name!r} of the context is {value!r:.80}", rule, "Mend it, or begin anew")

    def code_of(self, category: str) -> tuple[int, "ContextField"]:
        """Returns the code of a category, and this field after it has come."""
        if category in self.categories:
            return self.categories.index(category) + 1, self
        if self.is_open and len(self.categories) < MOST_CATEGORIES:
            return len(self.categories) + 1, self._replace(categories=(*self.categories, category))
        return UNKNOWN, self._replace(n_unknown=self.n_unknown + 1)


@dataclass(frozen=True, slots=True)
class ContextSchema:
    """Which names a context has, and of which kinds; or of how many numbers it is a row.

    Attributes:
        fields: The names, in order.
        is_named: Whether a context is a mapping; otherwise it is a row of numbers.

    Examples:
        >>> schema = ContextSchema.learned({"hour": 21, "device": "phone"})
        >>> row, schema = schema.encoded({"hour": 9, "device": "desktop"})
        >>> row, schema.fields[1].categories
        (array([9., 1.]), ('desktop',))
        >>> schema.encoded({"hour": "late", "device": "phone"})
        Traceback (most recent call last):
        coterie.errors.ContextError: 'hour' of the context is 'late'; it is a number. Mend it, or begin anew.
    """

    fields: tuple[ContextField, ...] = ()
    is_named: bool = True

    @classmethod
    def of(cls, given: Any) -> "ContextSchema":
        """Returns the schema that was given: a mapping from names to kinds, or how many numbers a row has.

        Examples:
            >>> ContextSchema.of({"hour": {"kind": "number", "default": 12}, "device": ["phone", "desktop"]}).n_numbers
            1
            >>> ContextSchema.of(3).n_numbers
            3
        """
        if isinstance(given, ContextSchema):
            return given
        if is_whole(given, 1):
            return cls(tuple(ContextField(str(i), NUMBER) for i in range(int(given))), is_named=False)
        if not isinstance(given, Mapping):
            rule = "it maps names to kinds, or is the number of numbers in a row"
            raise ContextError(f"context_schema is {given!r}", rule, 'Pass, say, {"hour": "number"}')
        return cls(tuple(_field(name, each) for name, each in given.items()))

    @classmethod
    def learned(cls, context: Any) -> "ContextSchema":
        """Returns the schema of the first context: texts are categories, of which more may come."""
        if not isinstance(context, Mapping):
            return cls.of(len(_numbers(context)))
        if not context:
            raise ContextError("the context is empty", "the first one says which names there are", "Name what it holds")
        fields = []
        for name, value in context.items():
            kind = NUMBER
            if isinstance(value, str):
                kind = CATEGORY
            elif isinstance(value, bool | np.bool_):
                kind = FLAG
            field = ContextField(_checked_name(name), kind, is_open=kind == CATEGORY)
            field.checked(value)
            fields.append(field)
        return cls(tuple(fields))

    @property
    def n_numbers(self) -> int:
        """How many numbers and flags there are."""
        return sum(field.kind != CATEGORY for field in self.fields)

    @property
    def n_categories(self) -> int:
        """How many categories a context has."""
        return len(self.fields) - self.n_numbers

    @property
    def n_unknown(self) -> dict[str, int]:
        """How many unknown categories have come, by name."""
        return {field.name: field.n_unknown for field in self.fields if field.n_unknown}

    def encoded(self, context: Any) -> tuple[Array, "ContextSchema"]:
        """Returns a context as a row, numbers first and then codes of categories, and the schema after it has come.

        Raises:
            ContextError: If the context is not as the schema says.
        """
        if not self.is_named:
            return self._row(context), self
        values = self._values(context)
        numbers = [value for field, value in zip(self.fields, values, strict=True) if field.kind != CATEGORY]
        codes, fields = [], []
        for field, value in zip(self.fields, values, strict=True):
            after = field
            if field.kind == CATEGORY:
                code, after = field.code_of(str(value))
                codes.append(float(code))
            fields.append(after)
        changed = any(after is not before for after, before in zip(fields, self.fields, strict=True))
        return np.array([*numbers, *codes]), replace(self, fields=tuple(fields)) if changed else self

    def filled(self, context: Any) -> Any:
        """Returns a context with defaults where it does not say, or raises if it is not as the schema says.

        Examples:
            >>> ContextSchema.of({"hour": {"kind": "number", "default": 12}, "late": "flag"}).filled({"late": True})
            {'hour': 12.0, 'late': True}
        """
        if not self.is_named:
            return tuple(self._row(context).tolist())
        values = zip(self.fields, self._values(context), strict=True)
        return {field.name: bool(value) if field.kind == FLAG else value for field, value in values}

    def _row(self, context: Any) -> Array:
        rule, remedy = f"it is a row of {len(self.fields)} numbers", "Pass as many, in the same order"
        if isinstance(context, Mapping) or context is None:
            what = "no context was given" if context is None else f"the context is a {type(context).__name__}"
            raise ContextError(what, rule, remedy)
        row = _numbers(context)
        if len(row) != len(self.fields):
            raise ContextError(f"the context is a row of {len(row)} numbers", rule, remedy)
        return row

    def _values(self, context: Any) -> list[float | str]:
        given: Mapping[Any, Any] = {} if context is None else context
        names = [field.name for field in self.fields]
        if not isinstance(given, Mapping):
            rule = f"it maps the names {listed(names, 20)} to values"
            raise ContextError(f"the context is a {type(context).__name__}", rule, "Pass a mapping")
        for name in given:
            if name not in names:
                remedy = or_similar(name, names, "Leave it out, or begin anew with it")
                raise ContextError(
                    f"the context has the unknown name {name!r}", f"names are {listed(names, 20)}", remedy
                )
        out = []
        for field in self.fields:
            value = given.get(field.name)
            value = field.default if value is None else value
            if value is None:
                rule = f"names without a default are in every context: {listed(self._required(), 20)}"
                raise ContextError(
                    f"the context has no {field.name!r}", rule, "Give it, or a default in context_schema"
                )
            out.append(field.checked(value))
        return out

    def _required(self) -> list[str]:
        return [field.name for field in self.fields if field.default is None]

    def given(self) -> Any:
        """Returns what `of` makes the same schema from, without the categories that were learned.

        Examples:
            >>> ContextSchema.of({"hour": "number", "device": ["phone"]}).given()
            {'hour': {'kind': 'number', 'default': None}, 'device': {'kind': ['phone'], 'default': None}}
        """
        if not self.is_named:
            return len(self.fields)
        return {
            field.name: {
                "kind": list(field.categories) if field.categories and not field.is_open else field.kind,
                "default": field.default,
            }
            for field in self.fields
        }

    def is_like(self, other: "ContextSchema") -> bool:
        """Returns whether both take the same contexts, in the same order, whatever categories they have learned."""
        return self.is_named == other.is_named and self._stated() == other._stated()

    def _stated(self) -> list[ContextField]:
        learned: dict[str, Any] = {"categories": ()}
        return [field._replace(n_unknown=0, **(learned if field.is_open else {})) for field in self.fields]

    def as_plain(self) -> Any:
        """Returns it as plain values, which JSON can hold."""
        fields = [{**field._asdict(), "categories": list(field.categories)} for field in self.fields]
        return {"fields": fields, "is_named": self.is_named}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "ContextSchema":
        """Returns the schema of plain values.

        Examples:
            >>> schema = ContextSchema.of({"device": ["phone"]})
            >>> ContextSchema.from_plain(schema.as_plain()) == schema
            True
        """
        fields = [ContextField(**{**each, "categories": tuple(each["categories"])}) for each in plain["fields"]]
        return cls(tuple(fields), is_named=plain["is_named"])


def _field(name: Any, given: Any) -> ContextField:
    """Returns the field that a schema gives a name."""
    stated = dict(given) if isinstance(given, Mapping) else {"kind": given}
    kind, default = stated.pop("kind", None), stated.pop("default", None)
    categories: tuple[str, ...] = ()
    if not isinstance(kind, str) and isinstance(kind, Iterable):
        categories, kind = tuple(kind), CATEGORY
        if not categories or not all(isinstance(each, str) for each in categories):
            raise ContextError(f"categories of {name!r} are {listed(categories)}", "they are texts", "List them")
        if len(set(categories)) < len(categories):
            raise ContextError(f"a category of {name!r} is given twice", "categories are distinct", "Drop one")
    if kind not in KINDS or stated:
        raise ContextError(f"{name!r} of context_schema is {given!r}", SCHEMA_RULE, "Use one of these")
    is_open = kind == CATEGORY and not categories
    field = ContextField(_checked_name(name), kind, categories, is_open=is_open, default=default)
    if default is None:
        return field
    checked = field.checked(default)
    return field._replace(default=bool(checked) if kind == FLAG else checked)  # which JSON can hold, too


def _checked_name(name: Any) -> str:
    if isinstance(name, str) and name and _can_be_kept(name):
        return name
    raise ContextError(f"a name of the context is {name!r}", "names are texts that are not empty", "Use such a name")


def _can_be_kept(text: str) -> bool:
    """Returns whether a file can hold a text: not where it has half of a character.

    Examples:
        >>> _can_be_kept("phone"), _can_be_kept(chr(0xD800))
        (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _numbers(context: Any) -> Array:
    """Returns a row of finite numbers, or raises."""
    rule = "a context is a mapping from names to values, or a row of numbers"
    try:
        row = np.asarray(context)
    except ValueError:  # a list of lists of different lengths
        row = np.empty(0)
    if row.ndim != 1 or len(row) == 0:
        raise ContextError(f"the context is {context!r:.100}", rule, "Pass one of these")
    if row.dtype.kind not in "iuf":
        raise ContextError(f"the context is a row of type {row.dtype}", rule, "Pass numbers, or a mapping")
    row = row.astype(np.float64)
    odd = np.flatnonzero(~(np.abs(row) <= LARGEST_FEATURE))
    if odd.size:
        raise ContextError(f"number {odd[0]} of the context is {row[odd[0]]}", NUMBER_RULE, "Mend it")
    return row
