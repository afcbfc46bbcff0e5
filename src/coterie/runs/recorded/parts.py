"""A study on logs on disk: one file for each policy of each trial, written as soon as it is done.

OUT/worlds/WORLD.json                          what the log holds: users, edges, arms, who can come
OUT/trials/WORLD/trial-000/POLICY.parquet      t, user, degree, arm, reward, regret: one row a round
OUT/timings/WORLD/trial-000/POLICY.json        seconds, those at work on a core, memory; or why it failed
OUT/estimates/WORLD/POLICY.json                seconds to make it and of a round, from its first rounds
"""

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.runs.extras import require_extra
from coterie.runs.play import Played
from coterie.runs.recorded.trial import RecordedTrial
from coterie.runs.store import Store, machine


@dataclass(frozen=True, slots=True)
class Part:
    """One policy in one trial of a world."""

    world: str
    number: int
    label: str

    @property
    def stem(self) -> Path:
        """Where it lies below `trials` and `timings`, without the file's ending."""
        return Path(self.world) / f"trial-{self.number:03d}" / file_name(self.label)


def file_name(label: str) -> str:
    """Returns a name for a file that two labels never share.

    Examples:
        >>> file_name("auto-ucb"), file_name("auto-ucb, no graph")
        ('auto-ucb', 'auto-ucb-no-graph-cf8ca479')
    """
    plain = re.sub(r"[^A-Za-z0-9._=+-]+", "-", label).strip("-.")
    return plain if plain == label else f"{plain}-{zlib.crc32(label.encode()):08x}"


class Parts:
    """The files of a study on logs."""

    def __init__(self, store: Store) -> None:
        self._store, self._folder = store, store.folder

    def has(self, part: Part) -> bool:
        """Whether this policy has played this trial, or could not."""
        return self._rows(part).exists() or "failed" in self.timing(part)

    def write(self, part: Part, trial: RecordedTrial, played: Played, *, memory: int, core_seconds: float) -> None:
        """Writes the timing and then the rounds: once these are there, all of it is."""
        with require_extra("lab", "a store of results"):
            import pyarrow as pa
            from pyarrow import parquet
        took = {"seconds": played.seconds, "core_seconds": core_seconds, "rounds": len(played.arms)}
        timing = {**took, "peak_memory": memory, "machine": machine()} | ({"fits": played.fits} if played.fits else {})
        self._store.write_json(self._timing(part), timing)
        columns = {
            "t": np.arange(len(played.arms), dtype=np.int32),
            "user": _texts(pa, trial.users),
            "degree": np.array(trial.degrees(), dtype=np.int32),
            "arm": _texts(pa, played.arms),
            "reward": played.rewards,
            "regret": played.regrets,
        }
        path = self._rows(part)
        self._store.write(path, lambda partial: parquet.write_table(pa.table(columns), partial, compression="zstd"))

    def write_failure(self, part: Part, reason: str) -> None:
        """Writes why a policy could not play."""
        self._store.write_json(self._timing(part), {"failed": reason})

    def rows(self, part: Part) -> Any:
        """Returns the rounds of a part as a table, or nothing if it has none."""
        path = self._rows(part)
        return self._store.read(path, ["user", "degree", "reward"]) if path.exists() else None

    def timing(self, part: Part) -> dict[str, Any]:
        """Returns seconds and memory, or why it failed; nothing if it is not there."""
        return _read(self._timing(part))

    def write_facts(self, world: str, facts: Mapping[str, Any]) -> None:
        """Writes what a log holds; the same whoever writes it."""
        self._store.write_json(self._folder / "worlds" / f"{world}.json", facts)

    def facts(self, world: str) -> dict[str, Any]:
        """Returns what a log holds; nothing before anybody has read it."""
        return _read(self._folder / "worlds" / f"{world}.json")

    def write_estimate(self, world: str, label: str, seconds: Mapping[str, Any]) -> None:
        """Writes how long a policy takes, from its first rounds."""
        self._store.write_json(self._folder / "estimates" / world / f"{file_name(label)}.json", seconds)

    def estimate(self, world: str, label: str) -> dict[str, Any]:
        """Returns how long a policy takes; nothing if nobody has looked."""
        return _read(self._folder / "estimates" / world / f"{file_name(label)}.json")

    def _rows(self, part: Part) -> Path:
        return self._folder / "trials" / part.stem.with_name(f"{part.stem.name}.parquet")

    def _timing(self, part: Part) -> Path:
        return self._folder / "timings" / part.stem.with_name(f"{part.stem.name}.json")


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def _texts(pa: Any, ids: list[Any]) -> Any:
    return pa.array([str(each) for each in ids], pa.string()).dictionary_encode()
