"""Saving: the loaded bandit goes on as the saved one would have, and a bad file is told."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import DecisionError, SavedFileError
from coterie.models import ENGINES
from coterie.product.bandit import Bandit
from coterie.product.container import FIXED, read_container, write_container

ARMS = dict(zip("abcdef", np.random.default_rng(0).normal(size=(6, 3)), strict=True))


def make(**options: Any) -> Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", 7, 0.5)], users=["ana", "bo", 7, "dee"])
    return Bandit(**{"graph": graph, "arms": ARMS, "policy": "lk-gp-ts", "seed": 3, **options})


def live(bandit: Bandit, rounds: int, seed: int) -> list[Any]:
    """Decides, rewards most decisions late, and returns what was decided to the bit."""
    rng, out, waiting = np.random.default_rng(seed), [], []
    for _ in range(rounds):
        decision = bandit.decide(bandit.graph.users[int(rng.integers(bandit.graph.n_users))])
        out.append((decision.id, decision.arm, decision.mean, decision.std))
        waiting.append(decision.id)
        if rng.random() < 0.8:
            bandit.reward(waiting.pop(int(rng.integers(len(waiting)))), float(rng.normal()))
    return out


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_a_loaded_bandit_decides_as_the_saved_one_on_every_engine(tmp_path: Path, engine: str) -> None:
    bandit = make(engine=engine)
    live(bandit, 60, seed=1)
    bandit.save(tmp_path / "bandit.coterie")
    again = Bandit.load(tmp_path / "bandit.coterie")
    assert repr(again) == repr(bandit)
    mine, theirs = live(again, 40, seed=2), live(bandit, 40, seed=2)
    assert [each[:2] for each in mine] == [each[:2] for each in theirs]
    # `exact` learns from the row that a decision has just computed, which differs in the last bit from a row anew
    tolerance = 1e-12 if engine == "exact" else 0.0
    np.testing.assert_allclose([each[2:] for each in mine], [each[2:] for each in theirs], atol=tolerance, rtol=0.0)


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "auto-ucb"},
        {"policy": "auto-ts"},
        {"policy": "club"},
        {"policy": "lk-gp-ucb", "forgetting": 0.95},
        {"policy": "lk-gp-ucb", "window": 20},
    ],
)
def test_a_loaded_bandit_decides_as_the_saved_one_whatever_it_is(tmp_path: Path, options: dict[str, Any]) -> None:
    bandit = make(**options)
    live(bandit, 50, seed=1)
    bandit.add_user("eve", {"ana": 2.0})
    bandit.add_arms({"z": [0.0, 1.0, 0.0]})
    bandit.retire_arms(["a"])
    live(bandit, 30, seed=4)
    bandit.save(tmp_path / "bandit.coterie")
    again = Bandit.load(tmp_path / "bandit.coterie")
    assert live(again, 40, seed=2) == live(bandit, 40, seed=2)
    assert again.graph.users == bandit.graph.users
    assert set(again.predict("eve")) == set("bcdefz")


def test_pending_and_settled_decisions_are_kept(tmp_path: Path) -> None:
    bandit = make(expire_after=100.0, clock=lambda: 50.0)
    first, second = bandit.decide("ana"), bandit.decide(7)
    bandit.reward(first.id, 1.0)
    bandit.save(tmp_path / "b")
    again = Bandit.load(tmp_path / "b", clock=lambda: 60.0)
    with pytest.raises(DecisionError, match="rewarded already"):
        again.reward(first.id, 1.0)
    again.reward(second.id, 1.0)
    late = Bandit.load(tmp_path / "b", clock=lambda: 151.0)
    with pytest.raises(DecisionError, match="no longer remembered"):
        late.reward(second.id, 1.0)


def test_saving_replaces_the_file_whole_and_leaves_nothing_else(tmp_path: Path) -> None:
    bandit = make()
    bandit.save(tmp_path / "b")
    live(bandit, 5, seed=0)
    bandit.save(tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    assert Bandit.load(tmp_path / "b").n_rewards == bandit.n_rewards


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "b"
    bandit = make()
    live(bandit, 20, seed=0)
    bandit.save(path)
    whole = path.read_bytes()
    used = [i for i in range(len(whole)) if whole[i] != 0]
    for place in np.random.default_rng(0).choice(used, size=60, replace=False).tolist():
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        with pytest.raises(SavedFileError):
            Bandit.load(path)
    for length in (0, 5, FIXED.size, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(SavedFileError):
            Bandit.load(path)


def test_a_newer_format_and_other_files_are_told(tmp_path: Path) -> None:
    path = tmp_path / "b"
    make().save(path)
    whole = bytearray(path.read_bytes())
    whole[8:12] = struct.pack("<I", 2)
    path.write_bytes(bytes(whole))
    with pytest.raises(SavedFileError, match=r"format 2; this version .* up to 1"):
        Bandit.load(path)
    path.write_bytes(b"something else altogether")
    with pytest.raises(SavedFileError, match="not a file that Coterie saved"):
        Bandit.load(path)
    with pytest.raises(SavedFileError, match="No such file"):
        Bandit.load(tmp_path / "nowhere")


def test_what_cannot_be_saved_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    odd = Bandit(graph=ct.UserGraph.from_edges([(("a", 1), "bo")]), arms=ARMS)
    with pytest.raises(SavedFileError, match="neither text nor number"):
        odd.save(tmp_path / "b")
    kernel = make(arm_kernel=ct.Matern32(1.0))
    with pytest.raises(SavedFileError, match="option 'arm_kernel'"):
        kernel.save(tmp_path / "b")
    assert not list(tmp_path.iterdir())


def test_a_container_gives_back_what_it_was_given(tmp_path: Path) -> None:
    arrays = {
        "none": np.zeros((0, 3)),
        "some": np.arange(6.0).reshape(2, 3),
        "whole": np.array([1, -2], dtype=np.int64),
    }
    write_container(tmp_path / "c", {"name": "größe", "list": [1, None, True]}, arrays)
    state, read = read_container(tmp_path / "c")
    assert state == {"name": "größe", "list": [1, None, True]}
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype


def test_a_file_of_version_0_1_stays_loadable() -> None:
    """Written once by 0.1; it is never written anew."""
    bandit = Bandit.load(Path(__file__).parents[2] / "data" / "bandit-0.1.coterie", clock=lambda: 0.0)
    assert bandit.graph.users == ("ana", "bo", 7, "dee")
    assert (bandit.n_rewards, bandit.n_pending) == (29, 11)
    assert set(bandit.predict("ana")) == set("abcde")
    assert bandit.decide("dee").id == 40
