"""The log of the process: a line of JSON each, without keys or features."""

import logging

from msgspec import DecodeError, Raw
from msgspec.json import decode, encode


class JsonLines(logging.Formatter):
    """Writes a record of logging as a line of JSON; a message that is JSON stays so, and one of such lines altogether.

    Examples:
        >>> made = logging.LogRecord("coterie", logging.INFO, "", 0, "%d events", (7,), None)
        >>> JsonLines(datefmt="now").format(made)
        '{"at":"now","level":"info","from":"coterie","message":"7 events"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        message = record.getMessage()
        if getattr(record, "is_lines", False):
            return message
        line = {
            "at": self.formatTime(record, self.datefmt),
            "level": record.levelname.lower(),
            "from": record.name,
            "message": Raw(message.encode()) if _is_object(message) else message,
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return encode(line).decode()


def _is_object(message: str) -> bool:
    if not message.startswith("{"):
        return False
    try:
        return isinstance(decode(message), dict)
    except DecodeError:
        return False


def log_to_stderr(level: str) -> None:
    """Sends what is logged from a level on to the standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)
