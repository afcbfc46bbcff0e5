"""Saving: the loaded bandit goes on as the saved one would have, and a bad file is told."""

import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.errors import DecisionError, SavedFileError
from coterie.models import ENGINES, make_model
from coterie.product.bandit import Bandit
from coterie.product.files.container import FIXED, read_container, write_container
from hostile import Raw

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
    assert live(again, 40, seed=2) == live(bandit, 40, seed=2)


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "auto-ucb"},
        {"policy": "auto-ts"},
        {"policy": "club"},
        {"policy": "lk-gp-ucb", "forgetting": 0.95},
        {"policy": "lk-gp-ucb", "window": 20},
        {"policy": "lk-gp-ts", "pending": "hallucinate"},
        {"arm_kernel": 2.0 * ct.SquaredExponential([1.0, 2.0, 3.0]) + 0.5 * ct.Constant()},
        {"arm_kernel": ct.Linear(offset=0.5) * ct.Matern52(1.0), "user_kernel": ct.Heat(time=2.0)},
        {"arm_kernel": 0.5 * ct.Linear(), "user_kernel": ct.Green(normalised=True), "engine": "sparse"},
        {"policy": "auto-ucb", "pending": "hallucinate"},
        {"policy": "club", "pending": "hallucinate"},
        {"policy": "coop-kernel-ts"},
        {"policy": "random"},
        {"policy": "lk-gp-ucb", "engine": "grid", "engine_options": {"block_size": 8}},
        {"policy": "lk-gp-ucb", "engine_options": {"memory_limit": 2**30}},
        {"policy": "per-user-gp-ucb", "engine": "groups", "engine_options": {"max_features": 5}},
        {"policy": "club", "engine": "groups", "pending": "hallucinate"},
        {"policy": "popularity", "engine": "groups", "forgetting": 0.95},
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


STEPS = st.lists(st.sampled_from(["live", "learn", "replace", "connect", "add", "remove", "arms", "fade"]), max_size=6)


def take(step: str, bandit: Bandit, number: int) -> None:
    """Takes one of the steps that leave different things behind: work that waits, weights, another kernel."""
    users, settled = bandit.graph.users, [number for number, _ in bandit._ledger.settled()]
    if step == "live":
        live(bandit, 9, seed=number)
    elif step == "learn":
        bandit.learn(users[0], "b", float(number))
    elif step == "replace" and settled:
        bandit.reward(settled[0], 0.25, replace=True)
    elif step == "connect":
        bandit.connect(users[0], users[-1], 1.5 + number)
    elif step == "add":
        bandit.add_user(f"new-{number}", {users[0]: 1.0})
    elif step == "remove" and len(users) > 2:
        bandit.remove_user(users[-1])
    elif step == "arms":
        bandit.add_arms({f"arm-{number}": [0.1 * number, 1.0, 0.0]})
    elif step == "fade":
        bandit.predict(users[0])


@pytest.mark.parametrize("engine", sorted(ENGINES))
@settings(max_examples=8)
@given(
    steps=STEPS,
    policy=st.sampled_from(["lk-gp-ucb", "auto-ucb", "gp-ts", "per-user-linucb"]),
    memory=st.sampled_from([{}, {"forgetting": 0.95}, {"window": 7}]),
    pending=st.sampled_from(["ignore", "hallucinate"]),
)
def test_whatever_happened_the_loaded_bandit_is_the_saved_one_to_the_bit(
    engine: str, steps: list[str], policy: str, memory: dict[str, Any], pending: str
) -> None:
    """It decides the same and learns the same from there on, and would be saved to the very same bytes."""
    bandit = make(engine=engine, policy=policy, pending=pending, **memory)
    with TemporaryDirectory() as folder:
        first, second = Path(folder) / "first", Path(folder) / "second"
        for number, step in enumerate(["live", *steps]):
            take(step, bandit, number)
        bandit.save(first)
        again = Bandit.load(first)
        again.save(second)
        assert first.read_bytes() == second.read_bytes()
        assert live(again, 12, seed=99) == live(bandit, 12, seed=99)
        for each in (bandit, again):
            each.connect(each.graph.users[0], each.graph.users[1], 3.0)
        assert live(again, 3, seed=5) == live(bandit, 3, seed=5)
        again.save(first)
        bandit.save(second)
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("options", [{}, {"reward": "binary", "likelihood": "bernoulli"}])
def test_what_was_learned_stays_when_those_who_leave_take_most_rewards_along(tmp_path: Path, options: Any) -> None:
    """With fewer rewards than a first fit needs, hyperparameters do not go back to where they began."""
    bandit = make(policy="auto-ucb", wait_for_fits=True, **options)
    for number in range(12):
        bandit.learn("bo" if number < 8 else "dee", "abcdef"[number % 6], float(number % 2))
    assert bandit._learned.policy.fits
    bandit.remove_user("bo")
    before = (bandit._learned.policy.hyperparameters() or {})["hyper"]
    bandit.learn("ana", "b", 1.0)
    assert (bandit._learned.policy.hyperparameters() or {})["hyper"] == before
    bandit.save(tmp_path / "b")
    assert Bandit.load(tmp_path / "b").predict("ana") == bandit.predict("ana")


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "auto-ucb"])
def test_loading_learns_nothing_anew(tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = make(policy=policy)
    live(bandit, 40, seed=1)
    bandit.save(tmp_path / "b")

    def refuse(*_: Any) -> None:
        raise AssertionError("a reward was learned")

    kind = type(bandit._learned.policy)
    monkeypatch.setattr(kind, "learn", refuse)
    monkeypatch.setattr(kind, "relearn", refuse)
    again = Bandit.load(tmp_path / "b")
    assert again.predict("ana") == bandit.predict("ana")
    assert again.describe() == bandit.describe()


def test_the_engine_of_a_loaded_bandit_is_the_saved_one_and_so_is_the_next(tmp_path: Path) -> None:
    """With engine "auto" another machine might choose another; what was asked for holds again at the next change."""
    bandit = make(policy="lk-gp-ucb")
    assert bandit._learned.policy.model.engine == "grid"
    bandit._learned.policy._model = make_model(bandit._learned.policy.model.kernel, engine="exact")
    bandit.learn("ana", "a", 1.0)
    bandit.save(tmp_path / "b")
    again = Bandit.load(tmp_path / "b")
    assert again._learned.policy.model.engine == "exact"
    again.connect("ana", "dee")
    assert again._learned.policy.model.engine == "grid"


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


def test_threads_that_save_to_the_same_file_do_not_meet(tmp_path: Path) -> None:
    def save(number: int) -> None:
        for _ in range(60):
            write_container(tmp_path / "c", {"number": number}, {"same": np.full(9, number)})

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(save, range(4)))
    state, arrays, _ = read_container(tmp_path / "c")
    assert set(arrays["same"].tolist()) == {state["number"]}
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


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
    whole[8:12] = struct.pack("<I", 3)
    path.write_bytes(bytes(whole))
    with pytest.raises(SavedFileError, match=r"format 3; this version .* up to 2"):
        Bandit.load(path)
    path.write_bytes(b"something else altogether")
    with pytest.raises(SavedFileError, match="not a file that Coterie saved"):
        Bandit.load(path)
    with pytest.raises(SavedFileError, match="No such file"):
        Bandit.load(tmp_path / "nowhere")


def test_what_cannot_be_saved_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    given = make(user_kernel=ct.GivenMatrix(np.eye(4)))
    with pytest.raises(SavedFileError, match="option 'user_kernel'"):
        given.save(tmp_path / "b")
    assert not list(tmp_path.iterdir())


def test_a_container_gives_back_what_it_was_given(tmp_path: Path) -> None:
    arrays = {
        "none": np.zeros((0, 3)),
        "some": np.arange(6.0).reshape(2, 3),
        "whole": np.array([1, -2], dtype=np.int64),
        "by column": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "every other": np.arange(12.0).reshape(3, 4)[:, ::2],
    }
    write_container(tmp_path / "c", {"name": "größe", "list": [1, None, True]}, arrays)
    state, read, _ = read_container(tmp_path / "c")
    assert state == {"name": "größe", "list": [1, None, True]}
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype
        assert read[name].flags.writeable
    assert read["by column"].flags.f_contiguous  # laid out as it was, so that arithmetic on it is the same to the bit


def test_a_file_of_version_0_1_stays_loadable() -> None:
    """Written once by 0.1; it is never written anew."""
    bandit = Bandit.load(Path(__file__).parents[3] / "data" / "bandit-0.1.coterie", clock=lambda: 0.0)
    assert bandit.graph.users == ("ana", "bo", 7, "dee")
    assert (bandit.n_rewards, bandit.n_pending) == (29, 11)
    assert set(bandit.predict("ana")) == set("abcde")
    assert bandit.decide("dee").id == 40


def test_a_file_of_format_2_that_version_0_1_wrote_stays_loadable() -> None:
    """Written once by 0.1, never anew. Hyperparameters meant something else there: the rewards are learned again."""
    bandit = Bandit.load(Path(__file__).parents[3] / "data" / "bandit-0.1-format-2.coterie", clock=lambda: 0.0)
    assert (bandit.n_decisions, bandit.n_rewards, bandit.n_pending) == (41, 32, 9)
    fresh = Bandit(graph=bandit.graph, arms=bandit.arms, seed=bandit._seed)
    fresh._learned.events = bandit._learned.events
    fresh._learned.relearn(None)
    for user in bandit.graph.users:
        assert bandit.predict(user)["a"] == pytest.approx(fresh.predict(user)["a"], rel=1e-9)


def test_options_that_version_0_1_took_though_they_change_nothing_are_dropped(tmp_path: Path) -> None:
    bandit = Bandit(graph=ct.UserGraph.from_edges([("ana", "bo")]), arms={"a": [0.0], "b": [1.0]}, policy="random")
    bandit.save(tmp_path / "bandit.coterie")
    raw = Raw.of((tmp_path / "bandit.coterie").read_bytes())
    raw.state["settings"]["options"] = {"width": 2.0}
    (tmp_path / "bandit.coterie").write_bytes(raw.packed())
    again = Bandit.load(tmp_path / "bandit.coterie")
    again.add_user("cy", friends={"ana": 1.0})
    assert again.decide("cy").arm in ("a", "b")
