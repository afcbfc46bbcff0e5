"""A study on disk: a manifest, one Parquet file a trial, timings apart; each file written whole and then renamed.

    OUT/manifest.json                       the study with every default, and the versions
    OUT/pilot/WORLD/trial-000.parquet       policy, setting, values, regret: one row a setting tried
    OUT/tuned.json                          what the pilot chose, and the mean regret of every setting
    OUT/trials/WORLD/trial-000.parquet      policy, t, user, arm, reward, regret: one row a round
    OUT/timings/WORLD/trial-000.json        seconds of each policy, and the machine

Everything but the timings depends on the study and the versions alone, byte for byte.
"""

import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from coterie.contracts import UserId
from coterie.errors import StoreError
from coterie.runs.extras import require_extra
from coterie.runs.play import Played
from coterie.runs.results import Results
from coterie.runs.study import Study, study_from

FORMAT = 1
PARTIAL = ".partial"

Pilot = dict[str, list[tuple[dict[str, Any], float]]]


def versions() -> dict[str, str]:
    """Returns what results depend on: the versions of Coterie, Python, NumPy and SciPy."""
    from coterie import __version__

    python = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    return {"coterie": __version__, "python": python, "numpy": np.__version__, "scipy": scipy.__version__}


def machine() -> dict[str, Any]:
    """Returns what timings depend on."""
    return {"processor": platform.machine(), "system": platform.system(), "cores": os.cpu_count()}


class Store:
    """The files of one study under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, study: Study) -> None:
        """Writes the manifest; refuses a folder that holds a study already."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._manifest.exists():
            raise StoreError(
                f"{str(self.folder)!r} holds a study already",
                "results are never overwritten",
                "Choose another --out, or add --resume to go on with it",
            )
        self._write_json(self._manifest, {"format": FORMAT, "versions": versions(), "study": study.as_dict()})

    def open(self) -> Study:
        """Returns the study that lies here, after sweeping away files that were never finished."""
        study = study_from(self.manifest["study"])
        for partial in self.folder.rglob(f"*{PARTIAL}"):
            partial.unlink(missing_ok=True)
        return study

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, checked."""
        try:
            manifest: dict[str, Any] = json.loads(self._manifest.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise StoreError(
                f"{str(self.folder)!r} holds no study",
                "a result folder has a manifest.json",
                "Name the folder that was given as --out",
            ) from None
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{str(self._manifest)!r} cannot be read: {error}", "it is JSON", "Run the study anew"
            ) from None
        if manifest.get("format") != FORMAT:
            raise StoreError(
                f"{str(self.folder)!r} has format {manifest.get('format')!r}",
                f"this version reads format {FORMAT}",
                "Use the version of Coterie that wrote it",
            )
        return manifest

    def has_trial(self, world: str, number: int) -> bool:
        """Whether this trial is finished."""
        return self._trial(world, number).exists()

    def has_pilot(self, world: str, number: int) -> bool:
        """Whether this pilot trial is finished."""
        return self._pilot(world, number).exists()

    def write_trial(self, world: str, number: int, users: list[UserId], played: Mapping[str, Played]) -> None:
        """Writes the timings, then the trial: once the trial is there, all of it is."""
        with require_extra("lab", "a store of results"):
            import pyarrow as pa
            from pyarrow import parquet
        seconds = {label: each.seconds for label, each in played.items()}
        timing = {"machine": machine(), "rounds": len(users), "seconds": seconds}
        self._write_json(self.folder / "timings" / world / f"trial-{number:03d}.json", timing)
        horizon, parts = len(users), list(played.values())
        columns = {
            "policy": _repeated(pa, list(played), horizon),
            "t": np.tile(np.arange(horizon, dtype=np.int32), len(parts)),
            "user": _names(pa, users * len(parts)),
            "arm": _names(pa, [arm for each in parts for arm in each.arms]),
            "reward": np.concatenate([each.rewards for each in parts]),
            "regret": np.concatenate([each.regrets for each in parts]),
        }
        path = self._trial(world, number)
        self._write(path, lambda partial: parquet.write_table(pa.table(columns), partial, compression="zstd"))

    def write_pilot(self, world: str, number: int, pilot: Pilot) -> None:
        """Writes what each setting of each policy regretted in a pilot trial."""
        with require_extra("lab", "a store of results"):
            import pyarrow as pa
            from pyarrow import parquet
        rows = [
            {"policy": label, "setting": i, "values": json.dumps(values), "regret": regret}
            for label, tried in pilot.items()
            for i, (values, regret) in enumerate(tried)
        ]
        path = self._pilot(world, number)
        self._write(path, lambda partial: parquet.write_table(pa.Table.from_pylist(rows), partial, compression="zstd"))

    def read_pilot(self, world: str, number: int) -> Pilot:
        """Returns a pilot trial."""
        from pyarrow import parquet

        pilot: Pilot = {}
        for row in parquet.read_table(self._pilot(world, number)).to_pylist():
            pilot.setdefault(row["policy"], []).append((json.loads(row["values"]), row["regret"]))
        return pilot

    def write_tuned(self, tuned: Mapping[str, Any]) -> None:
        """Writes what the pilot chose."""
        self._write_json(self.folder / "tuned.json", tuned)

    def read_tuned(self) -> dict[str, Any]:
        """Returns what the pilot chose; empty if there was none."""
        path = self.folder / "tuned.json"
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return found

    def results(self) -> Results:
        """Returns the results of the finished trials; a world without any is left out."""
        manifest = self.manifest
        study = study_from(manifest["study"])
        regrets, seconds = {}, {}
        for world in study.worlds:
            done = [i for i in range(study.trials) if self.has_trial(world.name, i)]
            if done:
                labels = [each.label for each in study.playing(world.name)]
                regrets[world.name] = _stacked(labels, [self._regrets(world.name, i) for i in done])
                seconds[world.name] = _stacked(labels, [self._seconds(world.name, i, labels) for i in done])
        if not regrets:
            raise StoreError(
                f"{str(self.folder)!r} holds no finished trial", "there is nothing to show", "Go on with --resume"
            )
        tuned = self.read_tuned()
        return Results(
            name=study.name,
            title=study.title,
            settings=manifest["study"],
            versions=manifest["versions"],
            regrets=regrets,
            seconds=seconds,
            tuned={w: {p: record["chosen"] for p, record in each.items()} for w, each in tuned.items()},
            pilot={w: {p: record["grid"] for p, record in each.items()} for w, each in tuned.items()},
        )

    def _regrets(self, world: str, number: int) -> dict[str, Any]:
        from pyarrow import parquet

        table = parquet.read_table(self._trial(world, number), columns=["policy", "t", "regret"])
        horizon = int(table["t"].to_numpy().max()) + 1
        labels = table["policy"].to_pylist()[::horizon]
        rows = table["regret"].to_numpy().reshape(len(labels), horizon)
        return dict(zip(labels, rows, strict=True))

    def _seconds(self, world: str, number: int, labels: Iterable[str]) -> dict[str, float]:
        path = self.folder / "timings" / world / f"trial-{number:03d}.json"
        if not path.exists():
            return dict.fromkeys(labels, float("nan"))
        timing = json.loads(path.read_text(encoding="utf-8"))
        return {label: timing["seconds"][label] / timing["rounds"] for label in labels}

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    def _trial(self, world: str, number: int) -> Path:
        return self.folder / "trials" / world / f"trial-{number:03d}.parquet"

    def _pilot(self, world: str, number: int) -> Path:
        return self.folder / "pilot" / world / f"trial-{number:03d}.parquet"

    def _write_json(self, path: Path, value: Any) -> None:
        text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
        self._write(path, lambda partial: partial.write_text(text, encoding="utf-8"))

    def _write(self, path: Path, write: Callable[[Path], Any]) -> None:
        """Writes a file under another name and renames it: it is there whole or not at all, also after a crash."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}")
        write(partial)
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(path)


def _stacked(labels: list[str], trials: list[dict[str, Any]]) -> dict[str, Any]:
    return {label: np.array([each[label] for each in trials]) for label in labels}


def _repeated(pa: Any, names: list[str], times: int) -> Any:
    indices = np.repeat(np.arange(len(names), dtype=np.int32), times)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()))


def _names(pa: Any, ids: list[Any]) -> Any:
    return pa.array([str(each) for each in ids], pa.string()).dictionary_encode()
