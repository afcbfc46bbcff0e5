"""A bandit of one's own from the shell, each command a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coterie import __main__ as command_line
from coterie.product import Bandit
from terminal import coterie

KILLED = """
import os, sys
from coterie.product.files.saving import kept
with kept(sys.argv[1]) as bandit:
    bandit.decide("ana")
    os._exit(9)
"""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    (tmp_path / "e.csv").write_text("user,friend\nana,bo\nbo,cy\n", encoding="utf-8")
    (tmp_path / "a.csv").write_text("song,tempo\ns1,0\ns2,1\n", encoding="utf-8")
    return tmp_path


def init(folder: Path, *more: str) -> int:
    paths = ("--edges", str(folder / "e.csv"), "--arms", str(folder / "a.csv"))
    return command_line.main(["init", str(folder / "shop"), *paths, *more])


def test_init_decide_reward_inspect(
    tables: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = coterie("init", "shop", "--edges", "e.csv", "--arms", "a.csv", "--seed", 3, folder=tables)
    assert (made.returncode, made.stderr) == (0, "")
    following = made.stdout.splitlines()[-1].removeprefix("next: coterie ").split()
    decided = coterie(*following, "s1", "s2", "--json", folder=tables)
    decision = json.loads(decided.stdout)
    assert (decision["id"], decision["user"], decision["propensity"]) == (
        0,
        "ana",
        0.5,
    )  # both are as far from the mean
    monkeypatch.chdir(tables)
    assert command_line.main(["reward", "shop/bandit.coterie", str(decision["id"]), "-0.5"]) == 0
    assert capsys.readouterr().out == "decision 0: learned -0.5; rewards 1, pending 0\n"
    assert command_line.main(["inspect", "shop/bandit.coterie", "--user", "bo", "--arm", "s1"]) == 0
    assert capsys.readouterr().out.startswith("'s1' for 'bo': -0.5 ±")
    assert command_line.main(["export", "shop/bandit.coterie", "plain"]) == 0
    assert capsys.readouterr().out == "wrote plain: rewards 1, pending 0\n"
    assert json.loads(Path("plain/state.json").read_text(encoding="utf-8"))["counts"]["rewards"] == 1


def test_a_context_from_the_shell(
    tables: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(tables) == 0
    monkeypatch.chdir(tables)
    file = "shop/bandit.coterie"
    assert command_line.main(["decide", file, "ana", "--context", "hour=21,device=phone"]) == 0
    assert command_line.main(["reward", file, "0", "1.0"]) == 0
    assert command_line.main(["decide", file, "bo", "s1", "--context", '{"hour": 9, "device": "desktop"}']) == 0
    capsys.readouterr()
    assert command_line.main(["decide", file, "bo", "--context", "hour=9"]) == 2
    assert "the context has no 'device'" in capsys.readouterr().err
    about = ["--user", "ana", "--arm", "s1", "--context", "hour=21,device=phone"]
    assert command_line.main(["inspect", file, *about]) == 0
    assert capsys.readouterr().out.startswith("'s1' for 'ana':")


def test_init_takes_binary_rewards_and_a_least_propensity(
    tables: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(tables, "--reward", "binary", "--min-propensity", "0.25") == 0
    monkeypatch.chdir(tables)
    with Bandit.load("shop/bandit.coterie").frozen() as parts:
        assert (parts["settings"]["reward"], parts["settings"]["min_propensity"]) == ("binary", 0.25)
    capsys.readouterr()
    assert command_line.main(["decide", "shop/bandit.coterie", "ana", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["propensity"] == 0.5  # both are as far from the mean
    assert command_line.main(["reward", "shop/bandit.coterie", "0", "0.5"]) == 2
    assert "0 or 1" in capsys.readouterr().err


def test_what_init_writes_can_decide_among_all_arms(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables / "a.csv").write_text("song,tempo\ns1,0\ns2,1\ns3,2\n", encoding="utf-8")
    assert init(tables, "--min-propensity", "0.4") == 2
    assert "min_propensity is 0.4 with 3 candidates" in capsys.readouterr().err
    assert not (tables / "shop").exists()


def test_replay(tables: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    init(tables)
    monkeypatch.chdir(tables)
    bandit = Bandit.load("shop/bandit.coterie", journal="shop/journal")
    first = bandit.decide("ana")
    bandit.reward(first.id, 2.0)
    second = bandit.decide("bo")
    capsys.readouterr()
    assert command_line.main(["replay", "shop/bandit.coterie", "shop/journal", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["id"], told["user"], told["arm"], told["mean"]) == (1, "bo", second.arm, second.mean)
    assert command_line.main(["replay", "shop/bandit.coterie", "shop/journal", "0"]) == 0
    assert capsys.readouterr().out.startswith(f"decision 0: {first.arm} (propensity ")
    assert command_line.main(["replay", "shop/bandit.coterie", "shop/journal", "2"]) == 2
    assert "decision 2 is not in 'shop/journal', which ends before decision 2" in capsys.readouterr().err


def test_the_program_runs_as_it_is(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tables) == 0
    for answer, rewards, pending in (("2.5\n", 1, 0), ("", 1, 1)):
        done = subprocess.run(
            [sys.executable, tables / "shop" / "app.py"], input=answer, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith(f"decision {pending}: show 's")
        bandit = Bandit.load(tables / "shop" / "bandit.coterie")
        assert (bandit.n_rewards, bandit.n_pending) == (rewards, pending)
    assert len((tables / "shop" / "app.py").read_text(encoding="utf-8").splitlines()) <= 20
    assert "made" in capsys.readouterr().out


def test_a_program_that_is_killed_leaves_the_file_whole_and_free(tables: Path) -> None:
    init(tables)
    file = tables / "shop" / "bandit.coterie"
    before = file.read_bytes()
    assert subprocess.run([sys.executable, "-c", KILLED, file], check=False).returncode == 9
    assert file.read_bytes() == before
    assert command_line.main(["decide", str(file), "ana"]) == 0


@pytest.mark.parametrize("where", ["> /dev/full", ">&-", ""], ids=["full", "closed", "a pipe without a reader"])
def test_a_decision_that_nobody_saw_is_not_kept(tables: Path, where: str) -> None:
    init(tables)
    file = tables / "shop" / "bandit.coterie"
    before = file.read_bytes()
    command = f'"{sys.executable}" -m coterie decide "{file}" ana {where}'
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        ["sh", "-c", command], env=buffered, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert done.returncode == 2
    assert done.stderr.startswith("coterie: the decision cannot be printed: ")
    assert done.stderr.count("\n") == 1
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["decide", "shop/bandit.coterie", "zoe"], "user 'zoe' is unknown; users are 'ana', 'bo', 'cy'"),
        (["decide", "shop/bandit.coterie", "ana", "s3"], "arm 's3' is unknown"),
        (["decide", "shop/app.py", "ana"], "is not a file that Coterie saved"),
        (["decide", "nowhere", "ana"], "No such file or directory"),
        (["reward", "shop/bandit.coterie", "0", "1"], "decision 0 is unknown; no decision was made yet"),
        (["reward", "shop/bandit.coterie", "0", "nan"], "reward is nan"),
        (["inspect", "nowhere"], "No such file or directory"),
        (["export", "shop/bandit.coterie", "shop"], "'shop' exists already; an export is a new folder"),
        (["inspect", "shop/bandit.coterie", "--arm", "s1"], "--arm is given without --user"),
        (["init", "shop", "--edges", "e.csv", "--arms", "a.csv"], "exists already; init never overwrites a file"),
        (["init", "new", "--edges", "e.csv", "--arms", "a.csv", "--policy", "best"], "'best'"),
        (
            ["init", "new", "--edges", "e.csv", "--arms", "a.csv", "--min-propensity", "0.6"],
            "min_propensity is 0.6; it is a probability of at most 1/2",
        ),
        (
            ["init", "new", "--edges", "nowhere.csv", "--arms", "a.csv"],
            "there is no file 'nowhere.csv'; a table is a file of CSV or Parquet. Check the path",
        ),
        (["init", "new", "--edges", "e.csv", "--arms", "e.csv"], "e.csv, line 2, column 'friend': the value is 'bo'"),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(
    tables: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    told: str,
) -> None:
    init(tables)
    monkeypatch.chdir(tables)
    before = {path: path.read_bytes() for path in tables.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert command_line.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("coterie: ")
    assert told in printed.err
    assert printed.err.count("\n") == 1
    assert {path: path.read_bytes() for path in tables.rglob("*") if path.is_file()} == before
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["init", "shop", "--edges", "e.csv"], "--arms"),
        (["decide", "shop/bandit.coterie"], "USER"),
        (["reward", "shop/bandit.coterie", "first", "1"], "argument DECISION: 'first' is not a whole number >= 0"),
        (["reward", "shop/bandit.coterie", "0", "good"], "argument REWARD: 'good' is not a number"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        command_line.main(arguments)
    assert stopped.value.code == 2
    assert named in capsys.readouterr().err


def test_arms_are_not_among_what_decide_requires(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["decide", "bandit.coterie"])
    assert "required: USER\n" in capsys.readouterr().err
