"""Every store keeps what a store promises, in the formats of former versions too: written, read, resumed, damaged."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.errors import StoreError
from coterie.logs import write_log
from coterie.runs.results import results_of
from coterie.runs.runner import missing_units, run_study
from coterie.runs.store import FORMAT, READABLE, Store, Unit, versions
from coterie.runs.study import Study, study_from
from coterie.runs.worlds import StudyWorld
from recorded import small_log

DATA = Path(__file__).parents[1] / "data"
STORED = {
    f"{path.parent.parent.name}-{path.parent.name}": path.parent for path in DATA.glob("stores-*/*/manifest.json")
}
COLUMNS = ["t", "user", "arm", "reward", "regret"]


def copied(source: Path, out: Path) -> Path:
    """Returns a copy of a stored study, as if it was started with the versions and on the log that are here."""
    shutil.copytree(source, out)
    log = out.parent / "log-files"
    if not log.exists():
        write_log(small_log(n_arms=16, liked=6), log)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["versions"] = versions()
    for world in manifest["study"]["worlds"]:
        if "folder" in world:
            world["folder"] = str(log)
    (out / "manifest.json").write_text(json.dumps(manifest))
    return out


@pytest.fixture(scope="module", params=[f"{name}, {age}" for name in STORED for age in ("as stored", "run today")])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a finished study."""
    name, age = request.param.split(", ")
    folder = tmp_path_factory.mktemp("stores")
    out = copied(STORED[name], folder / "stored")
    return out if age == "as stored" else run_study(study_in(out), folder / "today").folder


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    """Returns a copy of it that a test may damage."""
    return Path(shutil.copytree(whole, tmp_path / "out"))


def study_in(folder: Path) -> Study:
    return study_from(json.loads((folder / "manifest.json").read_text())["study"])


def units(study: Study) -> Iterator[Unit]:
    for world in study.worlds:
        for number in range(study.trials):
            yield from (Unit(world.name, number, policy.label) for policy in study.playing(world.name))
        for number in range(study.tuning.trials if study.tuning else 0):
            yield from (Unit(world.name, number, label, "pilot") for label in study.grids(world.name))


def rows(folder: Path, unit: Unit) -> dict[str, Any]:
    table = Store(folder).rows(unit, ["values", "regret"] if unit.kind == "pilot" else COLUMNS)
    return {name: table[name].to_pylist() for name in table.column_names}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, column in one.items():
        if isinstance(column[0], float):
            np.testing.assert_allclose(column, other[name], rtol=1e-9, atol=1e-12)
        else:
            assert column == other[name]


def test_every_kind_of_world_and_every_format_is_a_subject() -> None:
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in STORED.values()]
    met = {type(each).__name__ for folder in STORED.values() for each in study_in(folder).worlds}
    assert met == {each.__name__ for each in StudyWorld.__subclasses__()}
    assert {each["format"] for each in manifests} | {FORMAT} == set(READABLE)


def test_all_of_it_is_there_and_is_read(whole: Path) -> None:
    study, store = study_in(whole), Store(whole)
    assert missing_units(study, store) == ([], [])
    for unit in units(study):
        assert store.has(unit)
        found = rows(whole, unit)
        assert len({len(column) for column in found.values()}) == 1
        if unit.kind == "trial":
            assert found["t"] == list(range(len(found["t"])))
            assert store.timing(unit)["rounds"] == len(found["t"])


def test_it_says_what_the_study_says_today(whole: Path, tmp_path: Path) -> None:
    today = run_study(study_in(whole), tmp_path / "again")
    for unit in units(study_in(whole)):
        assert_same(rows(whole, unit), rows(today.folder, unit))
    assert Store(whole).read_tuned().keys() == today.read_tuned().keys()


def test_what_was_never_run_is_not_there(whole: Path) -> None:
    store = Store(whole)
    for unit in units(study_in(whole)):
        absent = replace(unit, number=99)
        assert not store.has(absent)
        assert store.rows(absent, ["regret"]) is None
        assert store.timing(absent) == {}


def files_of(folder: Path, unit: Unit) -> list[Path]:
    """Returns the file of a unit's rows, of which a former format had one for all policies of a trial."""
    return [path for path in Store(folder)._paths(unit) if path.exists()]


def resumed(folder: Path) -> list[tuple[str, int, str]]:
    done: list[Unit] = []
    run_study(study_in(folder), folder, resume=True, on_unit=lambda unit, *_: done.append(unit))
    return [(unit.kind, unit.number, unit.policy) for unit in done]


def test_what_is_missing_is_run_again_and_nothing_else(out: Path, whole: Path) -> None:
    last = [unit for unit in units(study_in(out)) if unit.kind == "trial"][-1]
    gone = files_of(out, last)
    for path in gone:
        path.unlink()
    lost = [unit for unit in units(study_in(out)) if not Store(out).has(unit)]
    assert last in lost
    kept = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    assert sorted(resumed(out)) == sorted((unit.kind, unit.number, unit.policy) for unit in lost)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    for unit in units(study_in(out)):
        assert_same(rows(out, unit), rows(whole, unit))
    assert resumed(out) == []


@pytest.mark.parametrize("left", [0, 0.5])
def test_a_torn_file_is_named_and_can_be_made_again(out: Path, whole: Path, left: float) -> None:
    torn = next(unit for unit in units(study_in(out)) if unit.kind == "trial")
    (path,) = files_of(out, torn)
    path.write_bytes(path.read_bytes()[: int(left * path.stat().st_size)])
    with pytest.raises(StoreError, match=rf"{path.name}.*cannot be read.*Delete it, and go on with --resume"):
        results_of(Store(out))
    path.unlink()
    resumed(out)
    assert_same(rows(out, torn), rows(whole, torn))


def test_what_was_being_written_is_swept_away(out: Path) -> None:
    half = out / "trials" / "half.parquet.partial"
    half.write_bytes(b"half")
    assert resumed(out) == []
    assert not half.exists()


def test_one_run_at_a_time_writes_to_it(out: Path) -> None:
    with Store(out).locked(), pytest.raises(StoreError, match="another run is at work"):
        resumed(out)
    assert resumed(out) == []


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def test_another_study_is_refused_and_nothing_changes(out: Path) -> None:
    before = contents(out)
    other = replace(study_in(out), seed=study_in(out).seed + 1)
    for resume, message in ((True, "another 'seed'"), (False, "never overwritten")):
        with pytest.raises(StoreError, match=message):
            run_study(other, out, resume=resume)
    assert contents(out) == before


@pytest.mark.parametrize("format", [0, FORMAT + 1, None])
def test_a_format_that_is_not_known_is_refused(out: Path, format: int | None) -> None:
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({**manifest, "format": format}))
    with pytest.raises(StoreError, match=f"has format {format}; this version reads the formats"):
        results_of(Store(out))


def test_other_versions_do_not_go_on_with_it(out: Path) -> None:
    manifest = json.loads((out / "manifest.json").read_text())
    changed = {**manifest["versions"], "numpy": "0.0"}
    (out / "manifest.json").write_text(json.dumps({**manifest, "versions": changed}))
    with pytest.raises(StoreError, match=r"was started with numpy 0\.0"):
        resumed(out)
    assert results_of(Store(out)).worlds  # it is still read
