"""A study on disk: a manifest, one Parquet file a trial, timings apart; each file written whole and then renamed.

    OUT/manifest.json                       the study with every default, and the versions
    OUT/pilot/WORLD/trial-000.parquet       policy, setting, values, regret: one row a setting tried
    OUT/tuned.json                          what the pilot chose, and the mean regret of every setting
    OUT/trials/WORLD/trial-000.parquet      world, trial, policy, t, user, arm, reward, regret: one row a round
    OUT/timings/WORLD/trial-000.json        seconds of each policy, and the machine

Everything but the timings depends on the study, the versions and the processor's arithmetic alone, byte for byte.
"""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from coterie.contracts import VERSION, UserId
from coterie.errors import StoreError
from coterie.kernels import Heat, SpectralRBF
from coterie.policies.following.schedules import SpectralSchedule
from coterie.policies.following.similarity import LearnedSimilarity
from coterie.runs.extras import require_extra
from coterie.runs.learners import found_method
from coterie.runs.play import Played
from coterie.runs.results import Results
from coterie.runs.study import Study, study_from

try:
    import fcntl
except ImportError:  # pragma: no cover - not on this system: two runs on one folder are then the user's own care
    fcntl = None  # type: ignore[assignment] # a module, or nothing where there is none

FORMAT = 1
PARTIAL = ".partial"

Pilot = dict[str, list[tuple[dict[str, Any], float]]]


def versions() -> dict[str, str]:
    """Returns what results depend on beside the study and the processor: versions."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    core = {"coterie": VERSION, "python": python, "numpy": np.__version__, "scipy": scipy.__version__}
    return {**core, "pyarrow": metadata.version("pyarrow")}


def constants() -> dict[str, Any]:
    """Returns what no study can change: the noise schedule's, the learned similarity's and the heat kernel's."""
    schedule = {each.name: each.default for each in fields(SpectralSchedule) if each.default is not MISSING}
    learned = {each.name: each.default for each in fields(LearnedSimilarity) if isinstance(each.default, int)}
    fixed = {"heat_time": Heat().time, "spectral_rbf_eigenvectors": SpectralRBF().k}
    return {"noise_schedule": schedule, "learned_mmd": learned, **fixed}


def source_hash(place: str) -> str:
    """Returns a hash of the file of a method of one's own, "module:function"."""
    file = getattr(sys.modules[found_method(place).__module__], "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""


def machine() -> dict[str, Any]:
    """Returns what timings depend on."""
    return {"processor": platform.machine(), "system": platform.system(), "cores": os.cpu_count()}


class Store:
    """The files of one study under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other runs out of the folder; the lock is gone with the process that holds it, however it ends."""
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError(f"{str(self.folder)!r} is a file", "results go into a folder", "Choose another --out")
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    raise StoreError(
                        f"another run is at work in {str(self.folder)!r}",
                        "one run at a time writes to a folder",
                        "Wait for it, or choose another --out",
                    ) from None
            yield

    def create(self, study: Study) -> None:
        """Writes the manifest; refuses a folder that holds a study already."""
        if any((self.folder / part).exists() for part in ("pilot", "trials")):
            raise StoreError(
                f"{str(self.folder)!r} holds a study already",
                "results are never overwritten",
                "Choose another --out, or add --resume to go on with it",
            )
        manifest = {"format": FORMAT, "versions": versions(), "study": study.as_dict(), "constants": constants()}
        own = {each.policy: source_hash(each.policy) for each in study.policies if ":" in each.policy}
        self.write_json(self._manifest, {**manifest, "methods": own})

    def extend(self, study: Study) -> None:
        """Takes the same study with more trials."""
        self.write_json(self._manifest, {**self.manifest, "study": study.as_dict()})

    def open(self) -> Study:
        """Returns the study that lies here, to go on with it; sweeps away files that were never finished."""
        manifest = self.manifest
        for name, version in versions().items():
            before = manifest["versions"].get(name)
            if before != version:
                raise StoreError(
                    f"{str(self.folder)!r} was begun with {name} {before}, and this is {version}",
                    "the trials of a study are made with the same versions",
                    "Go on with those versions, or begin anew with another --out",
                )
        for place, known in manifest["methods"].items():
            if source_hash(place) != known:
                raise StoreError(
                    f"the file of {place!r} has changed since {str(self.folder)!r} was begun",
                    "the trials of a study are made with the same methods",
                    "Restore it, or begin anew with another --out",
                )
        study = study_from(manifest["study"])
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
                f"{str(self._manifest)!r} cannot be read: {error}",
                "a result folder has a manifest.json",
                "Name the folder that was given as --out, or restore the file",
            ) from None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            found = manifest.get("format") if isinstance(manifest, dict) else None
            raise StoreError(
                f"{str(self.folder)!r} has format {found!r}",
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
        self.write_json(self.folder / "timings" / world / f"trial-{number:03d}.json", timing)
        horizon, parts = len(users), list(played.values())
        columns = {
            "world": _repeated(pa, [world], horizon * len(parts)),
            "trial": np.full(horizon * len(parts), number, dtype=np.int32),
            "policy": _repeated(pa, list(played), horizon),
            "t": np.tile(np.arange(horizon, dtype=np.int32), len(parts)),
            "user": _names(pa, users * len(parts)),
            "arm": _names(pa, [arm for each in parts for arm in each.arms]),
            "reward": np.concatenate([each.rewards for each in parts]),
            "regret": np.concatenate([each.regrets for each in parts]),
        }
        path = self._trial(world, number)
        self.write(path, lambda partial: parquet.write_table(pa.table(columns), partial, compression="zstd"))

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
        self.write(path, lambda partial: parquet.write_table(pa.Table.from_pylist(rows), partial, compression="zstd"))

    def read_pilot(self, world: str, number: int) -> Pilot:
        """Returns a pilot trial."""
        pilot: Pilot = {}
        for row in self.read(self._pilot(world, number), None).to_pylist():
            pilot.setdefault(row["policy"], []).append((json.loads(row["values"]), row["regret"]))
        return pilot

    def write_tuned(self, tuned: Mapping[str, Any]) -> None:
        """Writes what the pilot chose."""
        self.write_json(self.folder / "tuned.json", tuned)

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
        table = self.read(self._trial(world, number), ["policy", "t", "regret"])
        horizon = int(table["t"].to_numpy().max()) + 1
        labels = table["policy"].to_pylist()[::horizon]
        rows = table["regret"].to_numpy().reshape(len(labels), horizon)
        return dict(zip(labels, rows, strict=True))

    def read(self, path: Path, columns: list[str] | None) -> Any:
        """Returns these columns of a Parquet file, or all."""
        from pyarrow import ArrowException, parquet

        try:
            return parquet.read_table(path, columns=columns)
        except (ArrowException, OSError) as error:
            raise StoreError(
                f"{str(path)!r} cannot be read: {error}",
                "it is a Parquet file of ours",
                "Delete it, and go on with --resume",
            ) from None

    def _seconds(self, world: str, number: int, labels: Iterable[str]) -> dict[str, float]:
        path = self.folder / "timings" / world / f"trial-{number:03d}.json"
        try:
            timing = json.loads(path.read_text(encoding="utf-8"))
            return {label: timing["seconds"][label] / timing["rounds"] for label in labels}
        except (OSError, ValueError, KeyError):
            return dict.fromkeys(labels, float("nan"))

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    def _trial(self, world: str, number: int) -> Path:
        return self.folder / "trials" / world / f"trial-{number:03d}.parquet"

    def _pilot(self, world: str, number: int) -> Path:
        return self.folder / "pilot" / world / f"trial-{number:03d}.parquet"

    def write_json(self, path: Path, value: Any) -> None:
        """Writes plain values as a file that is there whole or not at all."""
        text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
        self.write(path, lambda partial: partial.write_text(text, encoding="utf-8"))

    def write(self, path: Path, write: Callable[[Path], Any]) -> None:
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
