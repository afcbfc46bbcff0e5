"""Bodies of requests: read up to a limit of size and time, and decoded strictly.

msgspec refuses NaN, infinities, numbers out of range, text or true for a number, unknown fields and what is no UTF-8.
It does not see a key that is given twice: `json` looks for those.
"""

import json
import re
from typing import Any, NoReturn

from msgspec import DecodeError, ValidationError, convert
from msgspec.json import Decoder

from coterie.errors import listed
from coterie.service.app.requests.choices import choices_at
from coterie.service.app.requests.failures import RequestError
from coterie.service.records import MOST_ROWS

_AT = re.compile(r" - at `(.*)`$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(.*)`|missing required field `(.*)`", re.DOTALL)


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON, with every key as often as it was given."""


class BodyType:
    """What the body of a route holds.

    Args:
        record: The record of a JSON body.
        line: The record of each line of an NDJSON body; none means that there are no such bodies.
    """

    def __init__(self, record: Any, line: Any = None) -> None:
        self.record, self.line = record, line
        self._decoder = Decoder(record)
        self._line_decoder = None if line is None else Decoder(line)

    def decode(self, body: bytes) -> Any:
        """Returns the record of a JSON body, or raises RequestError."""
        return strictly(self._decoder, body)

    def decode_lines(self, body: bytes) -> list[Any]:
        """Returns the records of an NDJSON body, or raises RequestError."""
        assert self._line_decoder is not None
        lines = [line for line in body.splitlines() if line.strip()]
        if len(lines) > MOST_ROWS:
            rule = f"a body has at most {MOST_ROWS} lines"
            raise RequestError(400, "body", f"there are {len(lines)} lines", rule, "Send several requests", path="$")
        return [strictly(self._line_decoder, line, f"$[{number}]") for number, line in enumerate(lines)]


def strictly(decoder: Decoder[Any], body: bytes, root: str = "$") -> Any:
    """Returns what a decoder makes of a body, or raises RequestError with the path of the field.

    Examples:
        >>> strictly(Decoder(dict[str, float]), b'{"x": 1, "x": 2}')
        Traceback (most recent call last):
        coterie.service.app.requests.failures.RequestError: field 'x' is given twice; a field is given once. Leave one
        of them out.
    """
    try:
        decoded = decoder.decode(body)
        _look_for_repeats(body.decode())
        return decoded
    except ValidationError as error:
        _refuse_value(str(error), root, decoder.type)
    except DecodeError as error:
        _refuse(f"the body is no JSON: {error}", "bodies are JSON", "Send one JSON value", root)
    except UnicodeDecodeError as error:
        _refuse(f"byte {error.start} is no UTF-8", "bodies are JSON in UTF-8", "Encode the body as UTF-8", root)
    except RecursionError:
        _refuse("the body is nested too deep", "fields nest as the records do", "Send what the records have", root)
    except _RepeatError as error:
        path = root + (_path_of_repeat(json.loads(body, object_pairs_hook=_Pairs)) or "")
        _refuse(f"field {error.args[0]!r} is given twice", "a field is given once", "Leave one of them out", path)
    except ValueError:  # such as a number of too many digits
        _refuse("the body has a number that is none", "numbers are finite, of 64 bits", "Send smaller ones", root)


def converted(value: Any, record: Any, *, root: str = "$", strict: bool = True) -> Any:
    """Returns a value as a record, or raises RequestError."""
    try:
        return convert(value, record, strict=strict)
    except ValidationError as error:
        _refuse_value(str(error), root, record)


class _RepeatError(ValueError):
    """A key that is given twice."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len(dict(pairs)) < len(pairs):
        seen: set[str] = set()
        raise _RepeatError(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]


_look_for_repeats = json.JSONDecoder(object_pairs_hook=_without_repeats).decode


def _path_of_repeat(value: Any) -> str | None:
    """Returns where the first object with a repeated key is; none if there is none."""
    if isinstance(value, _Pairs):
        keys = [key for key, _ in value]
        inside = ((f".{key}", _path_of_repeat(each)) for key, each in value)
        found = next((step + path for step, path in inside if path is not None), None)
        if found is not None or len(set(keys)) == len(keys):
            return found
        return f".{next(key for number, key in enumerate(keys) if key in keys[:number])}"
    if isinstance(value, list):
        inside = ((f"[{number}]", _path_of_repeat(each)) for number, each in enumerate(value))
        return next((step + path for step, path in inside if path is not None), None)
    return None


def _refuse_value(message: str, root: str, record: Any) -> NoReturn:
    """Raises with the path that msgspec names at the end of its message, and what is allowed or missing there."""
    at = _AT.search(message)
    what = message if at is None else message[: at.start()]
    path = root if at is None else root + at[1][1:]
    field = _UNKNOWN.search(what)
    if field is not None:
        path += f".{field[1] or field[2]}"
    rule = "a request has the fields of its record, each of its type"
    if what.startswith("Invalid enum value"):
        rule = f"it is one of {listed(choices_at(record, '$' if at is None else at[1]), 20)}"
    _refuse(what, rule, "See /docs", path)


def _refuse(problem: str, rule: str, remedy: str, path: str) -> NoReturn:
    raise RequestError(400, "body", problem, rule, remedy, path=path) from None
