"""A context on the command line: hour=21,device=phone, or JSON."""

import json
from typing import Any

from coterie.errors import ContextError, listed
from coterie.kernels.schema import CATEGORY, FLAG, NUMBER, ContextSchema
from coterie.logs.tables import as_number

FLAGS = {"true": True, "false": False}
RULE, REMEDY = "a context is name=value,name=value, or JSON", "Write, say, --context hour=21,device=phone"


def read_context(text: str, schema: ContextSchema | None) -> Any:
    """Returns the context that a text means; a value is of the kind that the schema says, else what it looks like.

    Examples:
        >>> read_context("hour=21,device=phone,late=true", None)
        {'hour': 21.0, 'device': 'phone', 'late': True}
        >>> read_context("device=7", ContextSchema.of({"device": "category"}))
        {'device': '7'}
        >>> read_context("[1, 2.5]", None)
        [1, 2.5]
    """
    if text.lstrip().startswith(("{", "[")):
        return _of_json(text)
    kinds = {} if schema is None else {field.name: field.kind for field in schema.fields}
    out: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not (name and equals):
            raise ContextError(f"{part!r} of the context has no name and value", RULE, REMEDY)
        if name in out:
            raise ContextError(f"the context has {name!r} twice", "a name has one value", "Drop one")
        out[name] = _value(value, kinds.get(name))
    return out


def _of_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once_each)
    except ValueError as error:
        if isinstance(error, ContextError):
            raise
        raise ContextError(f"the context {text!r:.80} is no JSON: {error}", RULE, REMEDY) from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise ContextError(f"the context has {listed(twice)} twice", "a name has one value", "Drop one")
    return dict(pairs)


def _value(text: str, kind: str | None) -> Any:
    """Returns a value of a kind, or of the kind that it looks like; what is not of its kind stays a text."""
    number, flag = as_number(text), FLAGS.get(text.casefold())
    if kind == CATEGORY:
        return text
    if kind == NUMBER:
        return text if number is None else number
    if kind == FLAG:
        return text if flag is None else flag
    return flag if flag is not None else text if number is None else number
