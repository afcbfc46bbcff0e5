"""A bandit in a file that several use: one at a time, nothing is lost, and an error changes nothing."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import coterie as ct
from coterie.errors import CoterieError, DecisionError, SavedFileError
from coterie.product.bandit import Bandit
from coterie.product.files.saving import kept
from coterie.product.project import shell


@pytest.fixture
def file(tmp_path: Path) -> Path:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", 7)])
    path = tmp_path / "bandit.coterie"
    Bandit(graph=graph, arms={"tea": [0.0], "coffee": [1.0], 5: [2.0]}, policy="lk-gp-ucb").save(path)
    return path


def test_commands_at_once_lose_nothing(file: Path) -> None:
    def live(user: str) -> list[int]:
        made = []
        for _ in range(4):
            with kept(file) as bandit:
                made.append(bandit.decide(user).id)
            shell.reward(file, made[-1], 1.0)
        return made

    with ThreadPoolExecutor(4) as threads:
        ids = [number for numbers in threads.map(live, ["ana", "bo", "ana", "bo"]) for number in numbers]
    assert sorted(ids) == list(range(16))
    assert (Bandit.load(file).n_rewards, Bandit.load(file).n_pending) == (16, 0)


def test_who_waits_too_long_is_told_and_the_lock_ends_with_its_holder(file: Path) -> None:
    with (
        kept(file),
        pytest.raises(SavedFileError, match="is in use; one program at a time changes a saved bandit"),
        kept(file, wait=0.05),
    ):
        pass
    with kept(file, wait=0.0):
        pass


def test_an_error_leaves_the_file_as_it_was(file: Path) -> None:
    before = file.read_bytes()

    def fail() -> None:
        with kept(file) as bandit:
            bandit.decide("ana")
            raise FileNotFoundError("of the caller")

    with pytest.raises(FileNotFoundError, match="of the caller"):
        fail()
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_link_stays_a_link(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    shell.decide(link, "ana")
    assert link.is_symlink()
    assert Bandit.load(file).n_pending == 1


@pytest.mark.parametrize(
    ("user", "arms", "told"),
    [
        ("zoe", [], "user 'zoe' is unknown"),
        ("8", [], "user '8' is unknown"),
        ("ana", ["te"], "arm 'te' is unknown"),
        ("ana", ["tea", "tea"], "'tea'"),
    ],
)
def test_a_wrong_decision_changes_nothing(file: Path, user: str, arms: list[str], told: str) -> None:
    before = file.read_bytes()
    with pytest.raises(CoterieError, match=told):
        shell.decide(file, user, arms)
    assert file.read_bytes() == before


def test_numbers_on_the_command_line_find_ids_that_are_numbers(file: Path) -> None:
    assert shell.decide(file, "7", ["5"]).startswith("decision 0: 5 (propensity 1, mean 0 ± ")
    assert "1 made, 1 without a reward: 0 (5 for 7)" in shell.inspect(file)


def test_a_second_reward_needs_replace(file: Path) -> None:
    shell.decide(file, "ana", ["tea"])
    assert shell.reward(file, 0, 1.0) == "decision 0: learned 1; rewards 1, pending 0"
    before = file.read_bytes()
    with pytest.raises(DecisionError, match="Add --replace if"):
        shell.reward(file, 0, 3.0)
    with pytest.raises(DecisionError, match="See with coterie inspect"):
        shell.reward(file, 1, 3.0)
    assert file.read_bytes() == before
    shell.reward(file, 0, 3.0, replace=True)
    assert "1, on average 3, from 3 to 3" in shell.inspect(file)


def test_inspect_tells_what_the_file_holds_and_changes_nothing(file: Path) -> None:
    for _ in range(7):
        shell.decide(file, "ana")
    shell.reward(file, 6, 0.5)
    before = file.read_bytes()
    told = shell.inspect(file)
    for words in (
        f"{len(before) / 1000:.1f} kB",
        "3, with 2 edges, in 1 connected part",
        "3 with 1 feature",
        "7 made, 6 without a reward: ... 1 (",
        "every reward counts",
        "lk-gp-ucb, seed 0",
        "lk-gp-ucb: engine",
    ):
        assert words in told
    with kept(file) as bandit:
        why = str(bandit.explain("bo", "tea"))
    assert shell.inspect(file, user="bo", arm="tea") == why
    assert file.read_bytes() == before
    with pytest.raises(CoterieError, match="--user is given without --arm"):
        shell.inspect(file, user="bo")


def test_inspect_tells_the_memory(tmp_path: Path) -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo")])
    bandit = Bandit(graph=graph, arms={"tea": [0.0], "mint": [1.0]}, policy="lk-gp-ucb", forgetting=0.9, window=20)
    bandit.retire_arms(["mint"])
    bandit.save(tmp_path / "b")
    told = shell.inspect(tmp_path / "b")
    assert "the last 20 rewards count, each 0.9 times as much as the one after it" in told
    assert "2 with 1 feature, 1 of them retired" in told
    assert "rewards   none yet" in told
