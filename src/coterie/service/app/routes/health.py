"""Whether the service lives, whether it is ready, and how it is described."""

from typing import Any, Literal

from msgspec import Struct

from coterie.service.app.description.page import POLICY
from coterie.service.app.requests.answers import Answer, answer_of
from coterie.service.app.requests.calls import Call, Route

HTML = b"text/html; charset=utf-8"


class Live(Struct, frozen=True, kw_only=True):
    """The process answers."""

    status: Literal["live"] = "live"


class Ready(Struct, frozen=True, kw_only=True):
    """The replay is done: the number of the last event."""

    status: Literal["ready"] = "ready"
    seq: int


def live(_: Call) -> Answer:
    """Says that the process answers."""
    return answer_of(Live())


def ready(call: Call) -> Answer:
    """Says that the replay is done; 503 until then."""
    return answer_of(Ready(seq=call.engine.state.seq))


def openapi(call: Call) -> Answer:
    """Describes the routes, for programs."""
    return Answer(200, call.service.documents["openapi"])


def docs(call: Call) -> Answer:
    """Describes the routes, for people."""
    return Answer(200, call.service.documents["docs"], HTML, headers=((b"content-security-policy", POLICY.encode()),))


ROUTES = (
    Route(method="GET", path="/livez", scope=None, handler=live, answer={200: Live}),
    Route(method="GET", path="/readyz", scope=None, handler=ready, answer={200: Ready}),
    Route(method="GET", path="/openapi.json", scope=None, handler=openapi, answer={200: dict[str, Any]}),
    Route(method="GET", path="/docs", scope=None, handler=docs, answer={200: HTML}),
)
