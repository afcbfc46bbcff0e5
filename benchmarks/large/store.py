"""Runs as they are kept: one JSON file, rewritten whole after every run, so that an interrupted benchmark goes on."""

import json
from pathlib import Path
from typing import Any

import numpy as np


class Kept:
    """The runs of all cases in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._all: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"cases": {}}

    @property
    def machine(self) -> str:
        return str(self._all.get("machine", "Nothing has been measured yet."))

    def runs(self, key: str) -> list[dict[str, float]]:
        """The runs of a case, none if it was never run."""
        return list(self._all["cases"].get(key, []))

    def median(self, key: str) -> dict[str, float]:
        """The median of each number of a case, empty if it was never run."""
        runs = self.runs(key)
        return {name: float(np.median([run[name] for run in runs])) for name in (runs[0] if runs else ())}

    def add(self, key: str, run: dict[str, float], *, machine: str) -> None:
        """Keeps one run."""
        self._all["machine"] = machine
        rounded = {name: float(f"{value:.4g}") for name, value in run.items()}
        self._all["cases"][key] = [*self.runs(key), rounded]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(self._all, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        fresh.replace(self._path)
