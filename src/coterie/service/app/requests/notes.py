"""What is kept of a request once it is answered: a count, a time, and a line in the log without keys or bodies."""

import logging

from coterie.service.app.requests.answers import encode
from coterie.service.app.requests.calls import Call, Route

log = logging.getLogger("coterie.service.requests")


class Notes:
    """Counts and logs requests.

    Args:
        log_requests: Whether there is a line in the log for each request.
    """

    def __init__(self, *, log_requests: bool) -> None:
        self._log_requests = log_requests

    def take(self, route: Route, status: int, seconds: float, call: Call) -> None:
        """Counts a request, and logs it."""
        if self._log_requests:
            line = {
                "method": route.method,
                "route": route.path,
                "status": status,
                "ms": round(seconds * 1000, 3),
                "key": "" if call.key is None else call.key.id,
                "experiment": call.experiment,
            }
            log.info("%s", encode(line).decode())
