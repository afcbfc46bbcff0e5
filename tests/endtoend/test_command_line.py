"""The command line as people call it: a process of its own, its output, its exit code and what it leaves behind."""

import subprocess
import sys
from pathlib import Path

import pytest

import coterie as ct
from coterie import __main__ as command_line
from coterie.errors import ParameterError
from coterie.runs import console
from coterie.runs.console import free_folder
from terminal import coterie, regrets

STUDY = """\
title = "A tiny study"
trials = 2

[[worlds]]
name = "tiny"
n_users = 6
n_arms = 5
n_candidates = 3
dimension = 2
horizon = 40

[[policies]]
policy = "lk-gp-ucb"

[[policies]]
policy = "random"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def test_run_prints_the_tables_and_writes_the_report(study: Path) -> None:
    done = coterie("run", study, "--jobs", 1, folder=study.parent)
    assert done.returncode == 0, done.stderr
    found = regrets(done.stdout)
    assert set(found) == {"lk-gp-ucb", "random"}
    assert found["lk-gp-ucb"] < found["random"]
    out = study.parent / "results" / "tiny"
    assert str(Path("results/tiny/report.html")) in done.stdout
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {"manifest.json", "report.html", "figures/regret.png", "figures/regret.svg"} <= names
    assert {"trials/tiny/trial-000/random.parquet", "trials/tiny/trial-001/random.parquet"} <= names
    assert (out / "figures" / "regret.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_a_result_is_refused_resumed_compared_drawn_and_reported(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def coterie_here(*arguments: str) -> tuple[int, str, str]:
        code = command_line.main(arguments)
        printed = capsys.readouterr()
        return code, " ".join(printed.out.split()), printed.err

    monkeypatch.chdir(study.parent)
    monkeypatch.setenv("COLUMNS", "160")
    run = ("run", "tiny.toml", "--jobs", "1")
    _, first, _ = coterie_here(*run, "--out", "one")
    code, _, error = coterie_here(*run, "--out", "one")
    assert (code, "never overwritten" in error) == (2, True)
    code, resumed, _ = coterie_here(*run, "--out", "one", "--resume")
    assert code == 0
    assert "to go" in first
    assert "to go" not in resumed
    assert resumed.split("Final regret")[1] == first.split("Final regret")[1]
    coterie_here(*run, "--out", "two", "--seed", "1")
    code, compared, _ = coterie_here("compare", "one", "two")
    assert code == 0
    for words in ("Final regret", "Difference", "Time per round", "Ranks", "lk-gp-ucb"):
        assert words in compared
    Path("one/report.html").unlink()
    assert coterie_here("report", "one")[0] == 0
    assert Path("one/report.html").is_file()
    code, plotted, _ = coterie_here("plot", "one")
    assert code == 0
    assert all(Path(name).is_file() for name in plotted.split())
    code, _, error = coterie_here("report", "nowhere")
    assert (code, "holds no study" in error) == (2, True)


def test_a_bad_study_is_told_its_line_and_nothing_is_written(study: Path) -> None:
    study.write_text(STUDY.replace("n_candidates = 3", "n_candidates = 9"), encoding="utf-8")
    done = coterie("run", study, folder=study.parent)
    assert done.returncode == 2
    assert done.stderr.startswith("coterie: tiny.toml, line 8: n_candidates is 9")
    assert "Traceback" not in done.stderr
    assert [path.name for path in study.parent.iterdir()] == ["tiny.toml"]


def test_demo_runs_every_main_policy_on_two_worlds(tmp_path: Path) -> None:
    done = coterie("demo", "--quick", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 worlds" in done.stdout
    assert len(regrets(done.stdout)) >= 9
    assert (tmp_path / "coterie-demo" / "report.html").is_file()
    assert "coterie-demo/report.html" in done.stdout
    assert free_folder(tmp_path / "coterie-demo") == tmp_path / "coterie-demo-2"
    assert free_folder(tmp_path / "new") == tmp_path / "new"


def test_studies_and_policies_are_listed(tmp_path: Path) -> None:
    studies = coterie("studies", folder=tmp_path)
    assert {"demo", "gp-draw", "linear", "representer", "table-n"} <= {
        line.split()[0] for line in studies.stdout.splitlines()
    }
    policies = coterie("policies", folder=tmp_path)
    lines = [line.split(maxsplit=1) for line in policies.stdout.splitlines()]
    assert [line[0] for line in lines] == ct.list_policies()
    assert all(len(line) == 2 for line in lines)
    assert "oracle" in ct.list_policies()


def test_version(tmp_path: Path) -> None:
    done = coterie("--version", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"coterie {ct.__version__}\n", "")


def test_the_installed_command_is_the_same() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("coterie"), "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"coterie {ct.__version__}\n"


@pytest.mark.parametrize("command", [*command_line._COMMANDS])
def test_help_names_every_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        command_line.main([command, "--help"])
    assert stopped.value.code == 0
    assert f"usage: coterie {command}" in capsys.readouterr().out
    assert command_line.main([]) == 0
    assert command in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["dance"], "'dance'"),
        (["run"], "STUDY"),
        (["run", "demo", "--trials", "0"], "argument --trials: '0' is not a whole number >= 1"),
        (["run", "demo", "--jobs", "-2"], "argument --jobs: '-2' is not a whole number >= 1"),
        (["run", "demo", "--jobs", "many"], "argument --jobs"),
        (["demo", "--seed", "1.5"], "argument --seed"),
        (["demo", "--colour", "red"], "--colour"),
        (["reproduce", "figure-2"], "'figure-2'"),
        (["policies", "all"], "all"),
    ],
)
def test_wrong_arguments_are_named_and_exit_with_2(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        command_line.main(arguments)
    assert stopped.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert named in printed.err
    assert "usage: coterie" in printed.err


def test_an_unknown_study_is_told_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["run", "gp-drawn"]) == 2
    assert "Did you mean 'gp-draw'" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_named(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    occupied = study.parent / "file"
    occupied.write_text("not a folder", encoding="utf-8")
    assert command_line.main(["run", str(study), "--jobs", "1", "--out", str(occupied)]) == 2
    assert str(occupied) in capsys.readouterr().err


def test_an_error_of_ours_is_one_line_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise ParameterError("seed is red", "it is a number", "Choose, say, 0")

    monkeypatch.setattr(console, "run_demo", fail)
    assert command_line.main(["demo"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "coterie: seed is red; it is a number. Choose, say, 0.\n"


def test_an_error_that_is_not_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(console, "run_demo", fail)
    with pytest.raises(KeyError, match="a defect"):
        command_line.main(["demo"])


def test_help_lists_every_command_once_by_what_a_person_is_doing(capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for group in command_line.GROUPS.values() for name in group]
    assert sorted(names) == sorted(command_line._COMMANDS)
    assert command_line.main([]) == 0
    told = capsys.readouterr().out
    assert [told.count(f"\n  {name} ") for name in names] == [1] * len(names)
