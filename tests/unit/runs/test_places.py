"""Where a study runs: what cannot be is told before anything is run."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from coterie.__main__ import main
from coterie.errors import MissingExtraError, SettingError
from coterie.runs.cluster.methods import sources_of
from coterie.runs.places import open_place
from coterie.runs.studies import run_study
from coterie.runs.study import study_from

WORLD = {"n_users": 4, "n_arms": 4, "n_candidates": 2, "dimension": 2, "horizon": 5}


@pytest.mark.parametrize(
    ("on", "address", "told"),
    [
        ("dask", None, "on is 'dask'; it is one of 'processes', 'ray'"),
        ("processes", "auto", "the address 'auto' is given; only Ray has one"),
        ("ray", "ray://head:10001", "address is 'ray://head:10001'; it is 'auto' or HOST:PORT"),
        ("ray", "head", "address is 'head'"),
        ("ray", "head:70000", "address is 'head:70000'"),
    ],
)
def test_a_place_that_cannot_be_is_told(on: str, address: str | None, told: str) -> None:
    with pytest.raises(SettingError, match=told), open_place(on, address=address):
        pass


def test_without_ray_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    study = {"worlds": [WORLD], "policies": [{"policy": "random"}]}
    with pytest.raises(MissingExtraError, match="'ray', which is not installed"):
        run_study(study, out=tmp_path / "out", on="ray")
    assert main(["run", "demo", "--on", "ray", "--out", str(tmp_path / "out")]) == 2
    assert "pip install 'coterie[ray]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_method_goes_along_with_the_files_beside_it_or_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boxed" / "inner").mkdir(parents=True)
    for place in ("boxed/__init__.py", "boxed/inner/__init__.py", "aside_of_it.py"):
        (tmp_path / place).write_text("")
    (tmp_path / "boxed" / "inner" / "deep.py").write_text("def make(*, graph, arms, seed): ...\n")
    (tmp_path / "alone_here.py").write_text("import aside_of_it\ndef make(*, graph, arms, seed): ...\n")
    (tmp_path / "data.csv").write_text("no file of Python\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def sent(policy: str) -> set[str]:
        return set(sources_of(study_from({"worlds": [WORLD], "policies": [{"policy": policy}]})))

    assert sent("boxed.inner.deep:make") == {"boxed/__init__.py", "boxed/inner/__init__.py", "boxed/inner/deep.py"}
    assert sent("alone_here:make") == {"alone_here.py", "aside_of_it.py"}
    assert sent("numpy:array") == set()  # installed, here and there
    assert sources_of(SimpleNamespace(policies=[SimpleNamespace(policy="random")])) == {}  # type: ignore[arg-type]
