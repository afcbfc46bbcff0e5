"""The log of the process: a line of JSON each, without keys or features."""

import logging
import time

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


def log_to_stderr(level: str) -> None:
    """Sends what is logged from a level on to the standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)
