"""`coterie data` from the command line."""

from pathlib import Path

import pytest

from coterie.__main__ import main
from coterie.logs import read_log
from originals import tiny_deezer, tiny_filmtrust, tiny_lastfm, tiny_open_bandit

TABLES = {"edges": "user,other\nana,bo\n", "arms": "arm\ntea\n", "events": "user,arm,reward\nana,tea,1\n"}


def written(folder: Path, **changed: str) -> str:
    for name, text in (TABLES | changed).items():
        (folder / f"{name}.csv").write_text(text)
    return str(folder)


def test_check_prints_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", written(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["users", "2"] in lines
    assert ["with", "propensity", "0"] in lines


def test_check_prints_the_first_mistake_of_each_kind_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = "user,arm,reward\n" + "ana,tea,x\n" * 20 + "nobody,tea,1\n" * 2
    assert main(["data", "check", written(tmp_path, events=events)]) == 2
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[2][:8] for line in told[:2]] == [" line 2,", " line 22"]
    assert told[0].endswith("(19 more like it)")
    assert told[1].endswith("(1 more like it)")
    assert told[2] == "22 mistakes of 2 kinds"
    assert main(["data", "check", written(tmp_path, events=events), "--limit", "1"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
    many = "user,arm,reward\n" + "ana,tea,x\n" * 1_200
    assert main(["data", "check", written(tmp_path, events=many)]) == 2
    assert "1000 mistakes or more; the rest was not read" in capsys.readouterr().err
    assert main(["data", "check", str(tmp_path / "nowhere")]) == 2
    assert "there is no folder" in capsys.readouterr().err


CONVERTED = [
    ("lastfm", tiny_lastfm, ["--dimension", "2"], (4, 4)),
    ("deezer", tiny_deezer, ["--country", "HU"], (5, 3)),
    ("filmtrust", tiny_filmtrust, ["--dimension", "3", "--format", "parquet", "--reward", "rating"], (120, 12)),
    ("open-bandit", tiny_open_bandit, ["--users", "one", "--position", "1"], (2, 3)),
]


@pytest.mark.parametrize(("name", "make", "options", "counts"), CONVERTED, ids=[each[0] for each in CONVERTED])
def test_convert_writes_what_check_reads(
    name: str,
    make: object,
    options: list[str],
    counts: tuple[int, int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert callable(make)
    out = tmp_path / "out"
    assert main(["data", "convert", name, str(make(tmp_path / "src")), str(out), *options]) == 0
    assert "left out" in capsys.readouterr().out or name == "deezer"
    log = read_log(out)
    assert (len(log.events), len(log.arm_ids)) == counts
    assert main(["data", "check", str(out)]) == 0
    assert main(["data", "convert", name, str(tmp_path / "src"), str(out), *options]) == 2
    assert "nothing is overwritten" in capsys.readouterr().err


def test_convert_of_a_missing_folder_says_where_the_data_is_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "convert", "lastfm", str(tmp_path / "nowhere"), str(tmp_path / "out")]) == 2
    assert "usually had from GroupLens" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [["data"], ["data", "check"], ["data", "convert"], ["data", "convert", "lastfm"]])
def test_every_command_explains_itself(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--help"])
    assert stopped.value.code == 0
    assert "usage: coterie data" in capsys.readouterr().out
