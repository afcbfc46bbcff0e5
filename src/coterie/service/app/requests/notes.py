"""What is kept of a request once it is answered: a count, a time, and a line in the log without keys or bodies."""

import asyncio
import logging
from datetime import UTC, datetime

from coterie.service.app.requests.answers import encode
from coterie.service.app.requests.calls import Call, Route

log = logging.getLogger("coterie.service.requests")
WRITTEN_AFTER = 0.2  # seconds: lines are written together


class Notes:
    """Counts and logs requests.

    Args:
        log_requests: Whether there is a line in the log for each request.
    """

    def __init__(self, *, log_requests: bool) -> None:
        self._log_requests = log_requests
        self._lines: list[bytes] = []

    def take(self, route: Route, status: int, seconds: float, call: Call) -> None:
        """Counts a request, and logs it where that is wanted."""
        call.service.metrics.request(route.method, route.path, status, seconds)
        if not self._log_requests:
            return
        line = {
            "at": datetime.now(UTC),
            "from": log.name,
            "method": route.method,
            "route": route.path,
            "status": status,
            "ms": round(seconds * 1000, 3),
            "key": "" if call.key is None else call.key.id,
            "experiment": call.experiment,
        }
        self._lines.append(encode(line))
        if len(self._lines) == 1:
            asyncio.get_running_loop().call_later(WRITTEN_AFTER, self.write)

    def write(self) -> None:
        """Writes the lines that there are, as one record, which says that it is made of lines."""
        lines, self._lines = self._lines, []
        if lines:
            log.info("%s", b"\n".join(lines).decode(), extra={"is_lines": True})
