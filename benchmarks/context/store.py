"""Passes as they are kept: a line of JSON for each set, method and seed, written as it ends, so that a run goes on."""

import json
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Kept:
    """The passes in one file. A last line that was cut off is dropped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole, encoding="utf-8")
        self.lines: list[Line] = []
        self._found: dict[tuple[str, str], dict[int, Line]] = {}
        for line in whole.splitlines():
            self._take(json.loads(line))

    def of(self, data: str, method: str) -> dict[int, Line]:
        """Returns the passes of a method over a set, by seed."""
        return self._found.get((data, method), {})

    def add(self, line: Line) -> None:
        """Keeps one pass."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._take(line)

    def _take(self, line: Line) -> None:
        self.lines.append(line)
        self._found.setdefault((line["set"], line["method"]), {})[line["seed"]] = line
