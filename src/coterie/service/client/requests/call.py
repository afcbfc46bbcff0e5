"""A call of the service as data: what is sent, and what the answer means. Nothing here sends anything."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Generic, Protocol, TypeAlias, TypeVar
from urllib.parse import quote

from msgspec import MsgspecError, Struct
from msgspec.json import Encoder, decode

from coterie.errors import ParameterError
from coterie.service.client.sending.failures import ServiceError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R", bound=Struct)


def _plain(value: Any) -> Any:
    """Returns a number of another library, such as numpy, as Python's own."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise ParameterError(f"a value is {value!r}", "requests hold texts, numbers, lists and maps", "Pass one of these")


encode = Encoder(enc_hook=_plain).encode


class Plan(Protocol[T_co]):
    """Calls and what comes of them: one call, or steps of several."""

    def __iter__(self) -> "Generator[Call[Any], Any, T_co]":
        """Starts: yields each call, is given its answer, and returns what the caller gets."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T_co]):
    """One request and how to read its answer.

    Attributes:
        method: Of HTTP.
        path: From the base address on.
        params: The query.
        body: JSON; None for none.
        decode: What makes the answer of its content.
        is_repeatable: Whether it may be sent again when nobody knows what became of it.
        attempts: How often it is tried at most; None for as often as the client does.
    """

    method: str
    path: str
    decode: Callable[[bytes], T_co]
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    is_repeatable: bool = True
    attempts: int | None = None

    def __iter__(self) -> "Steps[T_co]":
        """Is a plan of this call alone."""
        answer: T_co = yield self
        return answer

    def read(self, status: int, content: bytes) -> T_co:
        """Returns what an answer of success says."""
        try:
            return self.decode(content)
        except MsgspecError as error:
            problem = f"the answer to {self.method} {self.path} cannot be read: {error}"
            remedy = "Check the address, and the versions of client and service"
            raise ServiceError(problem, "an answer is as the service describes it", remedy, status=status) from None


Steps: TypeAlias = Generator[Call[Any], Any, T]
"""Calls one after the other: yields each, is given its answer, and returns what the caller gets."""


def as_record(kind: type[T]) -> Callable[[bytes], T]:
    """Returns what reads JSON as a record."""
    return lambda content: decode(content, type=kind)


def as_any(content: bytes) -> Any:
    """Returns JSON as maps, lists, texts and numbers."""
    return decode(content)


def as_nothing(_: bytes) -> None:
    """Returns nothing: the status says it all."""


def as_lines(content: bytes) -> list[dict[str, Any]]:
    """Returns NDJSON, one map for each line."""
    return [decode(line, type=dict[str, Any]) for line in content.splitlines() if line]


def path_of(*parts: str) -> str:
    """Returns a path of its parts, each of which is one, whatever it holds.

    Examples:
        >>> path_of("v1", "experiments", "a/b", "graph", "edges")
        '/v1/experiments/a%2Fb/graph/edges'
    """
    return "/" + "/".join(quote(part, safe=":~") for part in parts)


def got(kind: type[R], *parts: str) -> Call[R]:
    """Returns the call that reads a record."""
    return Call(method="GET", path=path_of(*parts), decode=as_record(kind))


def sent(kind: type[R], method: str, body: Struct | None, *parts: str, is_repeatable: bool = True) -> Call[R]:
    """Returns the call that sends a body, if there is one, and is answered with a record."""
    content = None if body is None else encode(body)
    return Call(method=method, path=path_of(*parts), decode=as_record(kind), body=content, is_repeatable=is_repeatable)
