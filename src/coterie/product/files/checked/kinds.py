"""What a value from a file may be: a small language, in which `schema.py` says what a saved bandit is.

Every kind has `read(value, where, held)`, which returns the value, arrays in the place of their names, or raises
ValueError and says where it is not what it must be.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol

import numpy as np

LARGEST = 1e308
FLOATS, WHOLES = ("<f8",), ("<i8", "<i4")


@dataclass(slots=True)
class Held:
    """The arrays of a file, and the sizes that they agree on.

    Attributes:
        arrays: By name.
        sizes: How many there are of what, as far as it is known; an array that has a new size makes it known.
        used: The names of the arrays that have been asked for.
    """

    arrays: Mapping[str, Any]
    sizes: dict[str, int] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def take(self, name: Any, where: str) -> Any:
        """Returns an array, which has one place only."""
        if not isinstance(name, str) or name not in self.arrays or name in self.used:
            raise ValueError(f"{where} is the array {name!r:.80}, which is not there or elsewhere already")
        self.used.add(name)
        return self.arrays[name]


class Kind(Protocol):
    """What a value may be."""

    def read(self, value: Any, where: str, held: Held) -> Any:
        """Returns the value as it is to be used, or raises ValueError."""
        ...


@dataclass(frozen=True, slots=True)
class Real:
    """A finite number within bounds.

    Examples:
        >>> Real(0.0, 1.0).read(2.5, "its share", Held({}))
        Traceback (most recent call last):
        ValueError: its share is 2.5, and not a number from 0.0 to 1.0
    """

    least: float = -inf
    most: float = inf

    def read(self, value: Any, where: str, held: Held) -> Any:  # noqa: ARG002 - as every kind
        """Returns the number."""
        if type(value) in (int, float) and self.least <= value <= self.most and abs(value) <= LARGEST:
            return value
        raise ValueError(f"{where} is {value!r:.80}, and not a number from {self.least} to {self.most}")


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within bounds; `below` names a size."""

    least: int = 0
    below: str = ""
    most: int | None = 2**63 - 1

    def read(self, value: Any, where: str, held: Held) -> Any:
        """Returns the number."""
        below = held.sizes[self.below] if self.below else inf
        if type(value) is int and self.least <= value < below and (self.most is None or value <= self.most):
            return value
        raise ValueError(f"{where} is {value!r:.80}, and not a whole number that is possible there")


@dataclass(frozen=True, slots=True)
class Plain:
    """A value of one of these types."""

    types: tuple[type, ...]

    def read(self, value: Any, where: str, held: Held) -> Any:  # noqa: ARG002 - as every kind
        """Returns the value."""
        if type(value) in self.types:
            return value
        raise ValueError(f"{where} is {value!r:.80}")


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these texts."""

    names: tuple[str, ...]

    def read(self, value: Any, where: str, held: Held) -> Any:  # noqa: ARG002 - as every kind
        """Returns the text."""
        if isinstance(value, str) and value in self.names:
            return value
        raise ValueError(f"{where} is {value!r:.80}, and not one of {', '.join(self.names)}")


@dataclass(frozen=True, slots=True)
class Maybe:
    """Nothing, or what else it says."""

    kind: Kind

    def read(self, value: Any, where: str, held: Held) -> Any:
        """Returns the value."""
        return None if value is None else self.kind.read(value, where, held)


@dataclass(frozen=True, slots=True)
class Row:
    """A list of these kinds, one of each."""

    kinds: tuple[Kind, ...]

    def read(self, value: Any, where: str, held: Held) -> Any:
        """Returns the list."""
        if not isinstance(value, list) or len(value) != len(self.kinds):
            raise ValueError(f"{where} is {value!r:.80}, and not a list of {len(self.kinds)}")
        return [kind.read(each, where, held) for kind, each in zip(self.kinds, value, strict=True)]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of the same kind; its length is a size, if it has a name."""

    kind: Kind
    size: str = ""

    def read(self, value: Any, where: str, held: Held) -> Any:
        """Returns the list."""
        if not isinstance(value, list):
            raise ValueError(f"{where} is {value!r:.80}, and not a list")
        if self.size:
            _agree(self.size, len(value), where, held)
        return [self.kind.read(each, f"{where}/{i}", held) for i, each in enumerate(value)]


@dataclass(frozen=True, slots=True)
class Fields:
    """A table of these names, and no others.

    Attributes:
        kinds: What each is.
        optional: What may be missing.
        own: Sizes that mean something in this table alone.
        gone: What earlier versions wrote: it is checked, and left out.
    """

    kinds: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    gone: Mapping[str, Kind] = field(default_factory=dict)

    def read(self, value: Any, where: str, held: Held) -> Any:
        """Returns the table."""
        names = set(value) if isinstance(value, dict) else set()
        known = {**self.kinds, **self.optional, **self.gone}
        if not isinstance(value, dict) or set(self.kinds) - names or names - set(known):
            wanted = ", ".join(sorted({*self.kinds, *self.optional} ^ names))
            raise ValueError(f"{where} is not the table that it was: look for {wanted:.200}")
        outside = {name: held.sizes.pop(name) for name in self.own if name in held.sizes}
        out = {name: known[name].read(each, f"{where}/{name}", held) for name, each in value.items()}
        for name in self.own:
            held.sizes.pop(name, None)
        held.sizes.update(outside)
        return {name: each for name, each in out.items() if name not in self.gone}


@dataclass(frozen=True, slots=True)
class TaggedKind:
    """A table whose kind one of its values tells."""

    tag: str
    kinds: Mapping[str, Kind]

    def read(self, value: Any, where: str, held: Held) -> Any:
        """Returns the table."""
        tag = value.get(self.tag) if isinstance(value, dict) else None
        OneOf(tuple(self.kinds)).read(tag, f"{where}/{self.tag}", held)
        return self.kinds[str(tag)].read(value, where, held)


@dataclass(frozen=True, slots=True)
class Either:
    """One of several tables, each of which has names of its own."""

    kinds: tuple[Fields, ...]

    def read(self, value: Any, where: str, held: Held) -> Any:
        """Returns the table."""
        for kind in self.kinds:
            if isinstance(value, dict) and set(value) == set(kind.kinds):
                return kind.read(value, where, held)
        raise ValueError(f"{where} is none of the tables that it may be")


@dataclass(frozen=True, slots=True)
class Values:
    """An array, {"array": name} in the JSON, of these sizes: a number, a name, a name and "+1", or None for any.

    Attributes:
        dtypes: Which numbers.
        shape: A size for each axis.
        least: No number is smaller; None where numbers are not looked at.
        below: The size that every number is below.
        once: Whether no number is there twice.
        by_rows: Whether it must lie row by row, for what works on it in place.
    """

    dtypes: tuple[str, ...]
    shape: tuple[str | int | None, ...]
    least: float | None = -inf
    below: str = ""
    once: bool = False
    by_rows: bool = False

    def read(self, value: Any, where: str, held: Held) -> Any:
        """Returns the array."""
        if not isinstance(value, dict) or set(value) != {"array"}:
            raise ValueError(f"{where} is {value!r:.80}, and not an array")
        array = held.take(value["array"], where)
        if (array.size and array.dtype.str not in self.dtypes) or array.ndim != len(self.shape):
            raise ValueError(f"{where} has dtype {array.dtype.str} and {array.ndim} axes")
        for size, length in reversed(list(zip(self.shape, array.shape, strict=True))):
            _agree(size, length, where, held)
        self._check_numbers(array, where, held)
        return array

    def _check_numbers(self, array: Any, where: str, held: Held) -> None:
        if self.by_rows and not array.flags.c_contiguous:
            raise ValueError(f"{where} does not lie row by row")
        if array.size == 0 or self.least is None:
            return
        low, high = float(array.min()), float(array.max())  # NaN, if one of them is
        most = held.sizes[self.below] - 1 if self.below else inf
        if not (self.least <= low and high <= most and low > -inf and high < inf):
            raise ValueError(f"{where} holds {low} to {high}, and not what is possible there")
        if self.once and len(np.unique(array)) < array.size:
            raise ValueError(f"{where} holds a number twice")


def _agree(size: str | int | None, length: int, where: str, held: Held) -> None:
    """Raises unless the size is the one that is known; one that is not known yet is from now on."""
    if isinstance(size, str):
        name, more = size.removesuffix("+1"), int(size.endswith("+1"))
        size = held.sizes.setdefault(name, length - more) + more
    if size is not None and size != length:
        raise ValueError(f"{where} has a side of {length}, and not {size}")
