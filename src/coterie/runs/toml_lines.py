"""Where a key stands in a TOML file, so that an error can name the line."""

import re
from collections.abc import Iterator

Path = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?")
_KEY = re.compile(r"""^\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)\s*=""")


def line_of(text: str, path: Path) -> int | None:
    r"""Returns the line of a key, or of the nearest table above it that the file writes down; None if there is none.

    Args:
        text: The file.
        path: Keys from the top, with the number of the entry after the name of an array of tables.

    Examples:
        >>> text = 'trials = 2\n[[policies]]\npolicy = "random"\n[[policies]]\npolicy = "gredy"\n'
        >>> line_of(text, ("policies", 1, "policy")), line_of(text, ("policies", 1, "width")), line_of(text, ("x",))
        (5, 4, None)
    """
    lines = dict(_reversed(_keys(text)))
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _reversed(found: Iterator[tuple[Path, int]]) -> list[tuple[Path, int]]:
    """Returns the places, last first, so that the first of each wins in a dict."""
    return list(found)[::-1]


def _keys(text: str) -> Iterator[tuple[Path, int]]:
    """Yields every header and key at the start of a line, with its path and line number."""
    table: Path = ()
    entries: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header:
            name = header.group(2).strip("\"'")
            entries[name] = entries.get(name, -1) + 1
            table = (name, entries[name]) if header.group(1) == "[[" else tuple(name.split("."))
            yield table, number
        elif key:
            yield (*table, key.group(1).strip("\"'")), number
