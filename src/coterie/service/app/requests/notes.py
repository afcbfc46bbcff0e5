"""What is kept of a request once it is answered: a count, a time, and a line in the log without keys or bodies."""

import logging

from coterie.service.app.requests.answers import encode
from coterie.service.app.requests.calls import Call, Route

log = logging.getLogger("coterie.service.requests")


def note(route: Route, status: int, seconds: float, call: Call) -> None:
    """Counts a request, and logs it where that is wanted."""
    call.service.metrics.request(route.method, route.path, status, seconds)
    if call.service.settings.log_requests and log.isEnabledFor(logging.INFO):
        line = {
            "method": route.method,
            "route": route.path,
            "status": status,
            "ms": round(seconds * 1000, 3),
            "key": "" if call.key is None else call.key.id,
            "experiment": call.experiment,
        }
        log.info("%s", encode(line).decode())
