"""What a value from a file may be: a small language, in which `schema.py` says what a saved bandit is.

A kind is a function of a value, where it stands, and what the file holds. It returns the value, arrays in the place of
their names, or raises ValueError and says where the value is not what it must be.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

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

    def is_empty(self, value: Any) -> bool:
        """Returns whether a value is the name of an array without numbers."""
        name = value.get("array") if isinstance(value, dict) else None
        return isinstance(name, str) and name in self.arrays and not self.arrays[name].size

    def agree(self, size: str | int | None, length: int, where: str) -> None:
        """Raises unless the size is the one that is known; one that is not known yet is from now on."""
        if isinstance(size, str):
            name, more = size.removesuffix("+1"), int(size.endswith("+1"))
            size = self.sizes.setdefault(name, length - more) + more
        if size is not None and size != length:
            raise ValueError(f"{where} has a side of {length}, and not {size}")


Kind = Callable[[Any, str, Held], Any]
Table = Mapping[str, Kind]


def value_that(holds: Callable[[Any, Held], bool], rule: str) -> Kind:
    """Returns the kind of a plain value for which this holds."""

    def read(value: Any, where: str, held: Held) -> Any:
        if holds(value, held):
            return value
        raise ValueError(f"{where} is {value!r:.80}, and not {rule}")

    return read


def real(least: float = -inf, most: float = inf) -> Kind:
    """Returns the kind of a finite number within bounds.

    Examples:
        >>> real(0.0, 1.0)(2.5, "its share", Held({}))
        Traceback (most recent call last):
        ValueError: its share is 2.5, and not a number from 0.0 to 1.0
    """
    return value_that(
        lambda value, _: type(value) in (int, float) and least <= value <= most and abs(value) <= LARGEST,
        f"a number from {least} to {most}",
    )


def whole(least: int = 0, below: str = "", most: float = 2**63 - 1) -> Kind:
    """Returns the kind of a whole number within bounds; `below` names a size."""
    return value_that(
        lambda value, held: type(value) is int and least <= value <= most and (not below or value < held.sizes[below]),
        "a whole number that is possible there",
    )


def plain(*types: type) -> Kind:
    """Returns the kind of a value of one of these types."""
    return value_that(lambda value, _: type(value) in types, " or ".join(each.__name__ for each in types))


def one_of(*names: str) -> Kind:
    """Returns the kind of one of these texts."""
    return value_that(lambda value, _: isinstance(value, str) and value in names, f"one of {', '.join(names)}")


def any_plain(value: Any, where: str, held: Held) -> Any:
    """Returns plain values in tables and lists of any depth that JSON has: what reads them checks them."""
    if isinstance(value, dict):
        return {name: any_plain(each, f"{where}/{name}", held) for name, each in value.items()}
    if isinstance(value, list):
        return [any_plain(each, where, held) for each in value]
    return plain(str, int, float, bool, type(None))(value, where, held)


def maybe(kind: Kind) -> Kind:
    """Returns the kind of None, or of what else it says."""
    return lambda value, where, held: None if value is None else kind(value, where, held)


def row_of(*kinds: Kind) -> Kind:
    """Returns the kind of a list of these, one of each."""

    def read(value: Any, where: str, held: Held) -> Any:
        if not isinstance(value, list) or len(value) != len(kinds):
            raise ValueError(f"{where} is {value!r:.80}, and not a list of {len(kinds)}")
        return [kind(each, where, held) for kind, each in zip(kinds, value, strict=True)]

    return read


def list_of(kind: Kind, size: str | None = None) -> Kind:
    """Returns the kind of a list of the same kind; its length is a size, if it has a name."""

    def read(value: Any, where: str, held: Held) -> Any:
        if not isinstance(value, list):
            raise ValueError(f"{where} is {value!r:.80}, and not a list")
        held.agree(size, len(value), where)
        return [kind(each, f"{where}/{i}", held) for i, each in enumerate(value)]

    return read


def table_of(
    kinds: Table, optional: Table | None = None, *, own: tuple[str, ...] = (), gone: Table | None = None
) -> Kind:
    """Returns the kind of a table of these names, and no others.

    Args:
        kinds: What each is.
        optional: What may be missing.
        own: Sizes that mean something in this table alone.
        gone: What earlier versions wrote: it is checked, and left out.
    """
    allowed, old = {**kinds, **(optional or {})}, gone or {}
    known = {**allowed, **old}

    def read(value: Any, where: str, held: Held) -> Any:
        names = set(value) if isinstance(value, dict) else set()
        if not isinstance(value, dict) or set(kinds) - names or names - set(known):
            wanted = ", ".join(sorted(set(allowed) ^ names))
            raise ValueError(f"{where} is not the table that it was: look for {wanted:.200}")
        outside = {name: held.sizes.pop(name) for name in own if name in held.sizes}
        out = {name: known[name](each, f"{where}/{name}", held) for name, each in value.items()}
        for name in own:
            held.sizes.pop(name, None)
        held.sizes.update(outside)
        return {name: each for name, each in out.items() if name not in old}

    return read


def tagged(tag: str, kinds: Table) -> Kind:
    """Returns the kind of a table whose kind is named by one of its values."""
    known = one_of(*kinds)

    def read(value: Any, where: str, held: Held) -> Any:
        name = known(value.get(tag) if isinstance(value, dict) else None, f"{where}/{tag}", held)
        return kinds[name](value, where, held)

    return read


def either(*tables: Table) -> Kind:
    """Returns the kind of one of several tables, each of which has names of its own."""

    def read(value: Any, where: str, held: Held) -> Any:
        for kinds in tables:
            if isinstance(value, dict) and set(value) == set(kinds):
                return table_of(kinds)(value, where, held)
        raise ValueError(f"{where} is none of the tables that it may be")

    return read


@dataclass(frozen=True, slots=True)
class Values:
    """The kind of an array, {"array": name} in the JSON, of these sizes: a number, a name, a name and "+1", or None.

    Attributes:
        dtypes: Which numbers.
        shape: A size for each axis; None for any.
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

    def __call__(self, value: Any, where: str, held: Held) -> Any:
        """Returns the array."""
        if not isinstance(value, dict) or set(value) != {"array"}:
            raise ValueError(f"{where} is {value!r:.80}, and not an array")
        array = held.take(value["array"], where)
        if (array.size and array.dtype.str not in self.dtypes) or array.ndim != len(self.shape):
            raise ValueError(f"{where} has dtype {array.dtype.str} and {array.ndim} axes")
        for size, length in reversed(list(zip(self.shape, array.shape, strict=True))):
            held.agree(size, length, where)
        if self.by_rows and not array.flags.c_contiguous:
            raise ValueError(f"{where} does not lie row by row")
        if array.size and self.least is not None:
            self._check_numbers(array, where, held)
        return array

    def _check_numbers(self, array: Any, where: str, held: Held) -> None:
        low, high = float(array.min()), float(array.max())  # NaN, if one of them is
        most = held.sizes[self.below] - 1 if self.below else inf
        if not (self.least <= low and high <= most and low > -inf and high < inf):  # type: ignore[operator]
            raise ValueError(f"{where} holds {low} to {high}, and not what is possible there")
        if self.once and len(np.unique(array)) < array.size:
            raise ValueError(f"{where} holds a number twice")
