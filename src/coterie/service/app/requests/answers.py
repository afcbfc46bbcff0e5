"""What goes back: a status, a body and headers."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from msgspec.json import Encoder

Send: TypeAlias = Callable[[Any], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

JSON = b"application/json"
NDJSON = b"application/x-ndjson"
SAFE: tuple[Header, ...] = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))

encode = Encoder().encode


class Answer(NamedTuple):
    """An answer.

    Attributes:
        status: The status of HTTP.
        body: What is sent.
        media_type: What that is.
        headers: Further headers.
    """

    status: int
    body: bytes
    media_type: bytes = JSON
    headers: tuple[Header, ...] = ()

    @property
    def start(self) -> dict[str, Any]:
        """The first message of ASGI."""
        if self.status == 204:
            return {"type": "http.response.start", "status": 204, "headers": [*SAFE, *self.headers]}
        size = str(len(self.body)).encode()
        headers = [(b"content-type", self.media_type), (b"content-length", size), *SAFE, *self.headers]
        return {"type": "http.response.start", "status": self.status, "headers": headers}


def answer_of(content: Any, status: int = 200) -> Answer:
    """Returns an answer whose body is a record as JSON.

    Examples:
        >>> answer_of({"status": "live"})[:2]
        (200, b'{"status":"live"}')
    """
    return Answer(status, encode(content))
