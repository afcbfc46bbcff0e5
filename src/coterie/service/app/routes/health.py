"""Whether the service lives, and whether it is ready."""

from typing import Literal

from msgspec import Struct

from coterie.service.app.requests.answers import Answer, answer_of
from coterie.service.app.requests.calls import Call, Route


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


ROUTES = (
    Route(method="GET", path="/livez", scope=None, handler=live, answer={200: Live}),
    Route(method="GET", path="/readyz", scope=None, handler=ready, answer={200: Ready}),
)
