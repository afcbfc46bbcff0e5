"""A study on disk: one file for each policy of each trial; each file is written whole and then renamed.

    OUT/manifest.json                              the study with every default, and the versions
    OUT/pilot/WORLD/trial-000/POLICY.parquet       policy, setting, values, regret: one row a setting tried
    OUT/tuned.json                                 what the pilot chose, and the mean regret of every setting
    OUT/trials/WORLD/trial-000/POLICY.parquet      world, trial, policy, t, user, degree, arm, reward, regret
    OUT/timings/WORLD/trial-000/POLICY.json        seconds, those at work on a core, memory; or why it failed
    OUT/worlds/WORLD.json                          what a log holds: users, edges, arms, who can come
    OUT/estimates/WORLD/POLICY.json                seconds to make a policy and of a round, where they were timed first

Everything but timings and estimates depends on the study, the versions and the processor's arithmetic alone, byte for
byte. Stores of format 1 are read too: there a trial of a synthetic world was one file, trial-000.parquet.
"""

import hashlib
import json
import os
import platform
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import numpy as np
import scipy

from coterie.contracts import VERSION
from coterie.errors import StoreError
from coterie.errors.extras import require_extra
from coterie.kernels import Heat, SpectralRBF
from coterie.policies.adaptation.followers import SpectralSchedule
from coterie.policies.adaptation.similarity import LearnedSimilarity
from coterie.product.files.atomic import UNFINISHED, lock, replacing
from coterie.runs.learners import found_method
from coterie.runs.study import Study, study_from
from coterie.runs.trial import Played, Trial

FORMAT, READABLE = 2, (1, 2)
TUNED, ESTIMATES = "tuned.json", "estimates"  # what units read

Kind: TypeAlias = Literal["trial", "pilot", "timing"]
Tried = list[tuple[dict[str, Any], float]]  # settings of a grid, and what each regretted in a trial


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of work: a policy in a trial of a world.

    Attributes:
        world: The world.
        number: The trial.
        policy: The policy's label.
        kind: A "trial" of the study, one of the "pilot", or "timing" for the first rounds of a trial.
        cost: What it takes, roughly, in seconds.
    """

    world: str
    number: int
    policy: str
    kind: Kind = "trial"
    cost: float = 0.0

    def __str__(self) -> str:
        if self.kind == "timing":
            return f"{self.policy}: first rounds"
        return f"{self.world}: {self.kind} {self.number + 1}, {self.policy}"

    @property
    def place(self) -> Path:
        """Where its files lie below their folder, without an ending."""
        return Path(self.world) / f"trial-{self.number:03d}" / file_name(self.policy)

    @property
    def shared_place(self) -> Path:
        """Where format 1 kept it, with all policies of the trial."""
        return Path(self.world) / f"trial-{self.number:03d}"


def file_name(label: str) -> str:
    """Returns a name for a file that two labels never share.

    Examples:
        >>> file_name("auto-ucb"), file_name("auto-ucb, no graph")
        ('auto-ucb', 'auto-ucb-no-graph-cf8ca479')
    """
    plain = re.sub(r"[^A-Za-z0-9._=+-]+", "-", label).strip("-.")
    return plain if plain == label else f"{plain}-{zlib.crc32(label.encode()):08x}"


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
        with (self.folder / ".lock").open("w") as file:
            try:
                lock(file.fileno(), until=0.0)  # at once or not at all
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
                    f"{str(self.folder)!r} was started with {name} {before}, and this is {version}",
                    "the trials of a study are made with the same versions",
                    "Go on with those versions, or start again with another --out",
                )
        for place, known in manifest["methods"].items():
            if source_hash(place) != known:
                raise StoreError(
                    f"the file of {place!r} has changed since {str(self.folder)!r} was started",
                    "the trials of a study are made with the same methods",
                    "Restore it, or start again with another --out",
                )
        study = study_from(manifest["study"])
        for partial in self.folder.rglob(f"*{UNFINISHED}"):
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
        if not isinstance(manifest, dict) or manifest.get("format") not in READABLE:
            found = manifest.get("format") if isinstance(manifest, dict) else None
            raise StoreError(
                f"{str(self.folder)!r} has format {found!r}",
                f"this version reads the formats {READABLE[0]} to {READABLE[-1]}",
                "Use the version of Coterie that wrote it",
            )
        return manifest

    def has(self, unit: Unit) -> bool:
        """Whether this unit is finished: its rows are there, or why it could not run."""
        if unit.kind == "timing":
            return bool(self.estimate(unit.world, unit.policy))
        return any(path.exists() for path in self._paths(unit)) or "failed" in self.timing(unit)

    def write_played(self, unit: Unit, trial: Trial, played: Played) -> None:
        """Writes the timing and then the rounds: once these are there, all of it is."""
        timing = {
            "seconds": played.seconds,
            "core_seconds": played.core_seconds,
            "rounds": trial.horizon,
            "peak_memory": played.memory,
            "machine": machine(),
        }
        self.write_json(self._timing(unit), timing | ({"fits": played.fits} if played.fits else {}))
        with require_extra("lab", "a store of results"):
            import pyarrow as pa
        columns = {
            "world": _repeated(pa, unit.world, trial.horizon),
            "trial": np.full(trial.horizon, unit.number, dtype=np.int32),
            "policy": _repeated(pa, unit.policy, trial.horizon),
            "t": np.arange(trial.horizon, dtype=np.int32),
            "user": _names(pa, trial.users),
            "degree": np.array(trial.degrees, dtype=np.int32),
            "arm": _names(pa, played.arms),
            "reward": played.rewards,
            "regret": played.regrets,
        }
        self._write_table(unit, pa.table(columns))

    def write_failure(self, unit: Unit, reason: str) -> None:
        """Writes why a policy could not play."""
        self.write_json(self._timing(unit), {"failed": reason})

    def rows(self, unit: Unit, columns: list[str]) -> Any:
        """Returns these columns of a unit as a table, or nothing if it has none."""
        own, shared = self._paths(unit)
        if own.exists():
            return self._read(own, columns)
        return self._read(shared, columns, filters=[("policy", "=", unit.policy)]) if shared.exists() else None

    def timing(self, unit: Unit) -> dict[str, Any]:
        """Returns seconds, rounds and memory, or why it failed; nothing if it is not there."""
        found = self._json(self._timing(unit))
        if found:
            return found
        shared = self._json(self.folder / "timings" / f"{unit.shared_place}.json")
        seconds = shared.get("seconds", {})
        return {**shared, "seconds": seconds[unit.policy]} if unit.policy in seconds else {}

    def write_pilot(self, unit: Unit, tried: Tried) -> None:
        """Writes what each setting of a policy regretted in a pilot trial."""
        with require_extra("lab", "a store of results"):
            import pyarrow as pa
        rows = [
            {"policy": unit.policy, "setting": i, "values": json.dumps(values), "regret": regret}
            for i, (values, regret) in enumerate(tried)
        ]
        self._write_table(unit, pa.Table.from_pylist(rows))

    def read_pilot(self, unit: Unit) -> Tried:
        """Returns what each setting of a policy regretted in a pilot trial."""
        rows = self.rows(unit, ["values", "regret"]).to_pylist()
        return [(json.loads(row["values"]), row["regret"]) for row in rows]

    def write_tuned(self, tuned: Mapping[str, Any]) -> None:
        """Writes what the pilot chose."""
        self.write_json(self.folder / TUNED, tuned)

    def read_tuned(self) -> dict[str, Any]:
        """Returns what the pilot chose; empty if there was none."""
        return self._json(self.folder / TUNED)

    def write_facts(self, world: str, facts: Mapping[str, Any]) -> None:
        """Writes what a log holds; the same whoever writes it."""
        self.write_json(self.folder / "worlds" / f"{world}.json", facts)

    def facts(self, world: str) -> dict[str, Any]:
        """Returns what a log holds; nothing before anybody has read it."""
        return self._json(self.folder / "worlds" / f"{world}.json")

    def write_estimate(self, world: str, policy: str, seconds: Mapping[str, Any]) -> None:
        """Writes how long a policy takes, from its first rounds."""
        self.write_json(self.folder / ESTIMATES / world / f"{file_name(policy)}.json", seconds)

    def estimate(self, world: str, policy: str) -> dict[str, Any]:
        """Returns how long a policy takes; nothing if nobody has looked."""
        return self._json(self.folder / ESTIMATES / world / f"{file_name(policy)}.json")

    def _read(self, path: Path, columns: list[str], filters: Any = None) -> Any:
        """Returns these columns of a Parquet file, of the rows that pass the filters."""
        from pyarrow import ArrowException, parquet

        try:
            # A world may be called "degree=3", which is no partition of the table.
            return parquet.read_table(path, columns=columns, filters=filters, partitioning=None)
        except (ArrowException, OSError) as error:
            raise StoreError(
                f"{str(path)!r} cannot be read: {error}",
                "it is a Parquet file of ours",
                "Delete it, and go on with --resume",
            ) from None

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    def _paths(self, unit: Unit) -> tuple[Path, Path]:
        """Returns the file of a unit's rows, and that of format 1, which held those of all policies of the trial."""
        folder = self.folder / ("pilot" if unit.kind == "pilot" else "trials")
        return folder / f"{unit.place}.parquet", folder / f"{unit.shared_place}.parquet"

    def _timing(self, unit: Unit) -> Path:
        return self.folder / "timings" / f"{unit.place}.json"

    def _write_table(self, unit: Unit, table: Any) -> None:
        from pyarrow import parquet

        with self._writing(self._paths(unit)[0]) as file:
            parquet.write_table(table, file, compression="zstd")

    def write_json(self, path: Path, value: Any) -> None:
        """Writes plain values as a file that is there whole or not at all."""
        with self._writing(path) as file:
            file.write((json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())

    def read_by_units(self) -> dict[str, bytes]:
        """Returns the files that units read, by place: what the pilot chose, and how long policies take."""
        paths = [self.folder / TUNED, *sorted((self.folder / ESTIMATES).rglob("*.json"))]
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in paths if path.exists()}

    def write_files(self, files: Mapping[str, bytes]) -> None:
        """Writes files that units made elsewhere, in the order in which they were made."""
        for place, content in files.items():
            with self._writing(self.folder / place) as file:
                file.write(content)

    @contextmanager
    def _writing(self, path: Path) -> Iterator[BinaryIO]:
        """Gives a file that is there whole or not at all, in a folder that is made where there is none."""
        with _written(path) as file:
            yield file

    def _json(self, path: Path) -> dict[str, Any]:
        """Returns the plain values in a file; nothing if it is not there."""
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return found


def write_text(path: Path, text: str) -> None:
    """Writes a text as a file that is there whole or not at all, in a folder that is made where there is none."""
    with _written(path) as file:
        file.write(text.encode())


@contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        yield file


def _repeated(pa: Any, name: str, times: int) -> Any:
    return pa.DictionaryArray.from_arrays(np.zeros(times, dtype=np.int32), pa.array([name], pa.string()))


def _names(pa: Any, ids: list[Any]) -> Any:
    return pa.array([str(each) for each in ids], pa.string()).dictionary_encode()
