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
        self._hold([json.loads(line) for line in whole.splitlines()])
        if whole != text:
            self._write()

    def of(self, data: str, method: str) -> dict[int, Line]:
        """Returns the passes of a method over a set, by seed."""
        return self._found.get((data, method), {})

    def add(self, line: Line) -> None:
        """Keeps one pass."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._take(line)

    def forget(self, text: str) -> None:
        """Drops the passes of the methods whose names hold a text, to make them again."""
        self._hold([line for line in self.lines if text not in line["method"]])
        self._write()

    def _write(self) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text("".join(json.dumps(line) + "\n" for line in self.lines), encoding="utf-8")
        fresh.replace(self._path)

    def _hold(self, lines: list[Line]) -> None:
        self.lines: list[Line] = []
        self._found: dict[tuple[str, str], dict[int, Line]] = {}
        for line in lines:
            self._take(line)

    def _take(self, line: Line) -> None:
        self.lines.append(line)
        self._found.setdefault((line["set"], line["method"]), {})[line["seed"]] = line
