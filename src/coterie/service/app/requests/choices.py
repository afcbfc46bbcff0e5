"""What a field of a record may be, where its type names every value."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec.inspect import DictType, ListType, LiteralType, Metadata, StructType, UnionType, type_info

_STEP = re.compile(r"\.(\w+)|\[(?:\d+|\.\.\.)\]")


def choices_at(record: Any, path: str) -> list[Any]:
    """Returns the values that a record's type names for the field at a path; none where it names none.

    Args:
        record: The type.
        path: Where the field is, as msgspec writes it.

    Examples:
        >>> from coterie.service.records import SettingsChange
        >>> choices_at(SettingsChange, "$.aggregation")
        ['first', 'last', 'max', 'mean', 'sum']
        >>> choices_at(SettingsChange, "$.wait_time")
        []
    """
    found = list(_unwrapped(type_info(record)))
    for name in _STEP.findall(path):
        found = [inner for each in found for inner in _inside(each, name)]
    return [value for each in found if isinstance(each, LiteralType) for value in each.values]


def _inside(kind: Any, name: str) -> Iterator[Any]:
    """Yields the types of a field, or those of the elements where no field is named."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            if field.encode_name == name:
                yield from _unwrapped(field.type)
    elif isinstance(kind, ListType):
        yield from _unwrapped(kind.item_type)
    elif isinstance(kind, DictType):
        yield from _unwrapped(kind.value_type)


def _unwrapped(kind: Any) -> Iterator[Any]:
    """Yields the types that a value may have."""
    if isinstance(kind, Metadata):
        yield from _unwrapped(kind.type)
    elif isinstance(kind, UnionType):
        for each in kind.types:
            yield from _unwrapped(each)
    else:
        yield kind
