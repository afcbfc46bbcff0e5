"""The command line as people call it: a process of its own, its output, its exit code and what it leaves behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import coterie as ct
from coterie import __main__ as command_line
from coterie.errors import ParameterError

LEARNERS = {"lk-gp-ucb", "lk-gp-ts", "per-user-gp-ucb", "gp-ucb"}


def coterie(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    wide = {"COLUMNS": "160", "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "coterie", *map(str, arguments)],
        cwd=folder,
        env=os.environ | wide,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def table(output: str) -> dict[str, tuple[float, float, float]]:
    """Returns the printed rows in their order: regret, standard error and ratio to the best of each learner."""
    number = r"\s*(\d+(?:\.\d+)?)\s*"
    rows = re.findall(rf"^│ (\S+) .*│{number}│{number}│{number}│$", output, flags=re.MULTILINE)
    return {name: (float(regret), float(error), float(ratio)) for name, regret, error, ratio in rows}


def test_demo_prints_the_table_and_writes_the_picture(tmp_path: Path) -> None:
    done = coterie("demo", "--trials", 2, "--rounds", 60, "--out", tmp_path / "new", "--name", "duel", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "60 rounds" in done.stdout
    assert "2 worlds" in done.stdout
    rows = table(done.stdout)
    assert set(rows) == LEARNERS
    regrets, _, ratios = zip(*rows.values(), strict=True)
    assert list(regrets) == sorted(regrets)
    assert min(regrets) > 0
    assert list(ratios) == sorted(ratios)
    assert ratios[0] == 1.0
    picture = tmp_path / "new" / "duel.png"
    assert str(picture) in done.stdout.replace("\n", "")
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert picture.stat().st_size > 15_000
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["duel.png"]


def test_demo_follows_its_seed(tmp_path: Path) -> None:
    def run(seed: int) -> dict[str, tuple[float, float, float]]:
        done = coterie("demo", "--trials", 2, "--rounds", 30, "--seed", seed, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return table(done.stdout)

    first, again, other = run(11), run(11), run(12)
    assert len(first) == 4
    assert first == again
    assert first != other
    assert (tmp_path / "coterie-demo" / "regret.png").is_file()


def test_learning_along_the_graph_beats_learning_alone_and_learning_pooled(tmp_path: Path) -> None:
    """In a dozen seeds at this size the nearer of the two had at least 1.4 times the regret."""
    done = coterie("demo", "--trials", 4, "--rounds", 600, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    regret = {name: row[0] for name, row in table(done.stdout).items()}
    assert 1.1 * regret["lk-gp-ucb"] < regret["per-user-gp-ucb"]
    assert 1.1 * regret["lk-gp-ucb"] < regret["gp-ucb"]


def test_version(tmp_path: Path) -> None:
    done = coterie("--version", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"coterie {ct.__version__}\n", "")


def test_the_installed_command_is_the_same() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("coterie"), "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"coterie {ct.__version__}\n"


def test_help_names_the_commands_and_their_defaults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = coterie("--help", folder=tmp_path)
    assert done.returncode == 0
    assert {"demo", "policies", "--version"} <= set(done.stdout.split())
    with pytest.raises(SystemExit) as stopped:
        command_line.main(["demo", "--help"])
    assert stopped.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    defaults = vars(command_line.parser().parse_args(["demo"]))
    for option in ("out", "name", "trials", "rounds", "seed"):
        assert re.search(rf"--{option} [A-Z]+ [^(]*\(default: {defaults[option]}\)", shown), option


def test_policies_lists_every_policy_with_a_summary(tmp_path: Path) -> None:
    done = coterie("policies", folder=tmp_path)
    assert done.returncode == 0
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ct.list_policies()
    assert all(len(line) == 2 for line in lines)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["dance"], "'dance'"),
        (["demo", "--trials", "0"], "argument --trials: '0' is not a whole number >= 1"),
        (["demo", "--rounds", "-5"], "argument --rounds: '-5' is not a whole number >= 1"),
        (["demo", "--rounds", "many"], "argument --rounds"),
        (["demo", "--seed", "1.5"], "argument --seed"),
        (["demo", "--name", "a/b"], "'a/b'"),
        (["demo", "--colour", "red"], "--colour"),
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


def test_a_wrong_argument_ends_the_process_with_2(tmp_path: Path) -> None:
    done = coterie("demo", "--trials", 0, "--out", tmp_path / "new", folder=tmp_path)
    assert done.returncode == 2
    assert "'0' is not a whole number >= 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "new").exists()


def test_an_error_of_ours_is_one_line_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise ParameterError("seed is red", "it is a number", "Choose, say, 0")

    monkeypatch.setattr(command_line, "run_demo", fail)
    assert command_line.main(["demo"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "coterie: seed is red; it is a number. Choose, say, 0.\n"


def test_an_error_that_is_not_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(command_line, "run_demo", fail)
    with pytest.raises(KeyError, match="a defect"):
        command_line.main(["demo"])


def test_an_interrupt_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "run_demo", stop)
    assert command_line.main(["demo"]) == 130
    assert capsys.readouterr().err.startswith("coterie: stopped")


def test_a_demonstration_of_one_round_has_nothing_to_compare(tmp_path: Path) -> None:
    result = coterie("demo", "--trials", "1", "--rounds", "1", "--seed", "3", "--out", tmp_path, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "regret.png").exists()


def test_mistakes_are_named_before_the_work(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("not a folder", encoding="utf-8")
    for arguments in (["--seed=-1"], ["--out", str(occupied)]):
        result = coterie("demo", *arguments, folder=tmp_path)
        assert result.returncode == 2
        assert "Traceback" not in result.stderr
        assert "worlds" not in result.stdout


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main([]) == 0
    assert "demo" in capsys.readouterr().out


def test_a_name_may_end_in_png(tmp_path: Path) -> None:
    done = coterie("demo", "--trials", 1, "--rounds", 5, "--out", tmp_path, "--name", "mine.png", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.png"]
