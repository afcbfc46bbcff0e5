"""The log of the process: a line of JSON each, without keys or features."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.json import encode


class JsonLines(logging.Formatter):
    """Writes a record of logging as a line of JSON; one that is made of such lines stays as it is.

    Examples:
        >>> made = logging.LogRecord("coterie", logging.INFO, "", 0, "%d events", (7,), None)
        >>> made.created = made.msecs = 0.0
        >>> JsonLines().format(made)
        '{"at":"1970-01-01T00:00:00.000Z","level":"info","from":"coterie","message":"7 events"}'
    """

    converter = staticmethod(time.gmtime)
    default_time_format, default_msec_format = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        message = record.getMessage()
        if getattr(record, "is_lines", False):
            return message
        line = {
            "at": self.formatTime(record),
            "level": record.levelname.lower(),
            "from": record.name,
            "message": message,
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return encode(line).decode()


@contextmanager
def logged_to_stderr(level: str) -> Iterator[None]:
    """Sends what is logged from a level on to the standard error, but for each request of our own client."""
    root, handler = logging.getLogger(), logging.StreamHandler()
    handler.setFormatter(JsonLines())
    handler.addFilter(lambda record: record.name != "httpx" or record.levelno > logging.INFO)
    before = root.level
    root.addHandler(handler)
    root.setLevel(level.upper())
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
