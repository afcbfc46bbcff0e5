"""Saving replaces a file whole, leaves what it should not touch, and clears up after those who were killed."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import JournalError, SavedFileError
from coterie.product.bandit import Bandit
from coterie.product.files.atomic import replacing
from coterie.product.files.container import read_container, write_container

LARGE = 2**21  # numbers: 16 MiB


def make(**options: Any) -> Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo")])
    return Bandit(graph=graph, arms={"tea": [0.0], "coffee": [1.0]}, policy="lk-gp-ucb", **options)


def run(code: str, *args: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), *map(str, args)], stdout=subprocess.PIPE)


def test_what_was_loaded_stays_whatever_becomes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_container(path, {}, {"rows": np.ones(LARGE)})
    rows = read_container(path).arrays["rows"]
    with path.open("r+b") as file:  # in place, as `cp` writes
        file.seek(-8 * LARGE, os.SEEK_END)
        file.write(b"\xaa" * 4096)
    os.truncate(path, 4096)
    assert rows.sum() == LARGE


def test_the_mode_of_the_file_is_kept(tmp_path: Path) -> None:
    make().save(tmp_path / "b")
    (tmp_path / "b").chmod(0o600)
    make().save(tmp_path / "b")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600


def test_nobody_may_read_what_is_written_before_they_may_read_what_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.touch(0o600)
    with replacing(path) as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store" / "b")
    for _ in range(2):  # the first time it points to nothing yet
        make().save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert [each.name for each in (tmp_path / "store").iterdir()] == ["b"]
    assert Bandit.load(tmp_path / "link").n_rewards == 0


def test_what_is_no_plain_file_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/full"), tmp_path / "pipe", tmp_path):
        with pytest.raises(SavedFileError, match=r"not a plain file|is a folder"):
            make().save(path)
    with pytest.raises(SavedFileError, match="not a plain file"):
        Bandit.load(tmp_path / "pipe")
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_an_error_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_bytes(b"before")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise OSError(28, "No space left on device")

    with pytest.raises(SavedFileError, match="No space left"):
        fail()
    assert path.read_bytes() == b"before"
    assert [each.name for each in tmp_path.iterdir()] == ["b"]


def test_what_a_killed_program_left_is_gone_after_the_next_save(tmp_path: Path) -> None:
    code = """
        import sys, time
        from pathlib import Path
        from coterie.product.files.atomic import replacing
        with replacing(Path(sys.argv[1])) as file:
            file.write(b"half")
            file.flush()
            print("writing", flush=True)
            time.sleep(60)
    """
    child = run(code, tmp_path / "b")
    assert child.stdout is not None
    assert child.stdout.readline() == b"writing\n"
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert [each.name for each in tmp_path.iterdir()] == ["b.partial"]
    make().save(tmp_path / "b")
    assert [each.name for each in tmp_path.iterdir()] == ["b"]


def test_programs_that_save_to_the_same_file_wait_for_each_other(tmp_path: Path) -> None:
    code = """
        import sys
        from pathlib import Path
        import numpy as np
        from coterie.product.files.container import write_container
        for _ in range(60):
            write_container(Path(sys.argv[1]), {"number": int(sys.argv[2])}, {"same": np.full(9999, int(sys.argv[2]))})
    """
    children = [run(code, tmp_path / "c", number) for number in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    for child in children:
        child.communicate()
    state, arrays, _ = read_container(tmp_path / "c")
    assert set(arrays["same"].tolist()) == {state["number"]}
    assert [each.name for each in tmp_path.iterdir()] == ["c"]


def test_what_json_cannot_hold_is_told(tmp_path: Path) -> None:
    for odd in (float("nan"), "\ud800"):
        with pytest.raises(SavedFileError, match="cannot be written"):
            write_container(tmp_path / "c", {"odd": odd}, {})
    assert not list(tmp_path.iterdir())


def test_a_journal_without_room_for_a_line_is_told_when_a_bandit_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit = make(journal=tmp_path / "j")
    bandit.learn("ana", "tea", 1.0)
    bandit.save(tmp_path / "b")
    bandit._journal.close()  # type: ignore[union-attr] # it has one

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("coterie.product.files.journal.os.write", full)
    with pytest.raises(JournalError, match="No space left"):
        Bandit.load(tmp_path / "b", journal=tmp_path / "j")
    monkeypatch.undo()
    assert Bandit.load(tmp_path / "b", journal=tmp_path / "j").n_rewards == 1


@pytest.mark.parametrize("name", ["a\0b", "\ud800x", "x" * 300])
def test_what_is_no_path_is_told(tmp_path: Path, name: str) -> None:
    bandit = make()
    path = f"{tmp_path}/{name}"
    for call in (bandit.save, bandit.export, Bandit.load, lambda journal: make(journal=journal)):
        with pytest.raises(SavedFileError, match="is no path"):
            call(path)


@pytest.mark.parametrize("path", ["/dev/null", "/dev/full"])
def test_a_journal_is_a_plain_file(path: str) -> None:
    with pytest.raises(JournalError, match="not a plain file"):
        make(journal=path)


def test_a_journal_that_could_not_be_begun_is_not_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, content: os.pwrite(handle, content[:9], 0))
        with pytest.raises(JournalError, match="cannot be started"):
            make(journal=tmp_path / "journal")
    assert make(journal=tmp_path / "journal").decide("ana").id == 0
