"""A saved file is anybody's: whatever is changed in it, loading gives the same belief or a clear error.

What one change may turn into another bandit that is as possible as the first is listed in `MAY_CHANGE`.
"""

import json
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.errors import CoterieError, SavedFileError
from coterie.product.bandit import Bandit
from coterie.product.files.container import FIXED, MAGIC
from hostile import Raw, mutated

pytest.importorskip("numba")

ARMS = dict(zip("abcdef", np.random.default_rng(0).normal(size=(6, 3)), strict=True))
CASES: dict[str, dict[str, Any]] = {
    "dense": {"engine": "dense"},
    "exact": {"engine": "exact"},
    "grid": {"engine": "grid"},
    "hybrid": {"engine": "hybrid"},
    "linear": {"engine": "linear"},
    "features": {"engine": "features"},
    "truncated": {"engine": "features", "engine_options": {"user_rank": 2, "arm_rank": 3}},
    "sparse": {"engine": "sparse"},
    "groups": {"policy": "per-user-gp-ucb", "engine": "groups"},
    "alone": {"policy": "per-user-linucb"},
    "auto": {"policy": "auto-ucb"},
    "auto exact": {"policy": "auto-ts", "engine": "exact"},
    "auto trend": {"engine": "local", "policy": "auto-ucb", "engine_options": {"near_rows": 8, "trend_features": 6}},
    "club": {"policy": "club"},
    "window": {"window": 20},
    "forgetting": {"policy": "auto-ucb", "forgetting": 0.95},
    "bernoulli": {"policy": "auto-ucb", "reward": "binary", "likelihood": "bernoulli"},
    "hallucinate": {"policy": "lk-gp-ts", "pending": "hallucinate"},
    "expiring": {"expire_after": 1e6},
    "journal": {"journal": "journal"},
    "places": {"policy": "auto-ucb", "places": [1.0, 0.5], "wait_for_fits": True},
}
# One change here makes another bandit, which could have been saved as well, or changes only when work is done.
MAY_CHANGE = [
    r"settings/.*",  # another policy, seed, limit or width, as far as the belief could be one of it
    r"(users|arms|retired|feature_names|journal)(/.*)?",  # other names
    r"pending|pending_made_at|pending_examined|settled|learned_at_once",  # other decisions, another past
    r"belief/(refused|n_refused|model/reason|fits|settled_at|moved)(/.*)?",  # what is told, and when sites are settled
    r"belief/.*/largest",  # how large rewards ever were, which ties go by
    r"belief/(model|doubt)/certified",
    # What engine "sparse" knows only by bounds, or when it looks: the means are those of the rewards all the same.
    r"belief/(model|doubt)/(info_gain|log_likelihood|marginals/.*)",
    r"belief/(model|doubt)/residual/(rounding|queue|since|total|uneven|measured|largest|refreshed).*",
]
LEARNED_AGAIN = r"event_(users|arms|rewards)|features|graph_.*"  # where the file holds no belief to contradict
LEVEL = r"belief/centre"  # of a Bernoulli belief, whose sites are approximate


def made(name: str, folder: Path) -> Bandit:
    """Returns a bandit that has decided, learned, forgotten and grown."""
    options = {"policy": "lk-gp-ucb", "clock": lambda: 50.0, **CASES[name]}
    if "journal" in options:
        options["journal"] = folder / "journal"
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", 7, 0.5)], users=["ana", "bo", 7, "dee"])
    bandit, rng = Bandit(graph=graph, arms=ARMS, seed=3, **options), np.random.default_rng(1)
    for number in range(40):
        user = graph.users[int(rng.integers(4))]
        decision = bandit.rank(user, k=2)[number % 2] if "places" in CASES[name] else bandit.decide(user)
        if number % 5:
            bandit.reward(decision.id, float(rng.integers(2)) if name == "bernoulli" else float(rng.normal()))
    bandit.retire_arms(["c"])
    if name in ("auto", "sparse"):
        bandit.add_user("eve", {"ana": 2.0})
    bandit.decide("ana")
    return bandit


@cache
def saved(name: str) -> bytes:
    with TemporaryDirectory() as folder:
        made(name, Path(folder)).save(Path(folder) / "b")
        return (Path(folder) / "b").read_bytes()


def loaded(path: Path) -> Bandit:
    return Bandit.load(path, clock=lambda: 60.0, journal=None)


def told(bandit: Bandit) -> list[Any]:
    """Returns what is believed now, and after one more reward and decision."""
    users, arms = bandit.graph.users, bandit.arms.ids
    now = [each for user in users for pair in bandit.predict(user, arms).values() for each in pair]
    bandit.learn(users[0], arms[1], 1.0)
    bandit.decide(users[1])
    return now + [each for pair in bandit.predict(users[1], arms).values() for each in pair]


@cache
def wanted(name: str) -> list[Any]:
    with TemporaryDirectory() as folder:
        (Path(folder) / "b").write_bytes(saved(name))
        return told(loaded(Path(folder) / "b"))


def may_change(name: str, where: str) -> bool:
    also = [LEARNED_AGAIN] if name == "club" else [LEVEL] if name == "bernoulli" else []
    return any(re.fullmatch(pattern, where) for pattern in [*MAY_CHANGE, *also])


def check_mutation(name: str, seed: int) -> None:
    """Changes one thing in a file and loads it; a CoterieError is well, and so is the same belief."""
    where, content = mutated(Raw.of(saved(name)), Random(seed))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "b"
        path.write_bytes(content)
        try:
            bandit = loaded(path)
            found = told(bandit)
        except CoterieError:
            return
        finally:
            assert [each.name for each in Path(folder).iterdir()] == ["b"]
            assert not Path("journal").exists()
    if not may_change(name, where):
        check_same(name, found, where)


def check_same(name: str, found: list[Any], where: str = "") -> None:
    """Raises if another thing is believed; `sparse`, conditioned anew, is within its error, and a std is any bound."""
    every, atol = (2, 0.05) if "sparse" in name else (1, 1e-5)
    np.testing.assert_allclose(found[::every], wanted(name)[::every], rtol=0, atol=atol, err_msg=where)


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(list(CASES)), seed=st.integers(0, 2**32))
def test_a_changed_file_is_refused_or_believes_the_same(name: str, seed: int) -> None:
    check_mutation(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_ten_thousand_changed_files_are_refused_or_believe_the_same(name: str) -> None:
    for seed in range(500):
        check_mutation(name, seed)


def refusal(content: bytes) -> str:
    """Returns what a file is refused with."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "b"
        path.write_bytes(content)
        with pytest.raises(SavedFileError) as caught:
            loaded(path)
        assert [each.name for each in Path(folder).iterdir()] == ["b"]
    return caught.value.problem


def with_header(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Returns the file with another header, as long as the first."""
    length = FIXED.unpack(content[: FIXED.size])[3]
    header = change(content[FIXED.size :][:length].rstrip())
    assert len(header) <= length
    header = header.ljust(length)
    return FIXED.pack(MAGIC, 2, zlib.crc32(header), length) + header + content[FIXED.size + length :]


def object_pointers() -> bytes:
    """Returns a file whose rewards are read as pointers to objects, if anybody is so careless."""
    return with_header(saved("grid"), lambda header: header.replace(b'"<f8"', b'"|O"'))


def rows_out_of_range() -> bytes:
    """Returns a file whose waiting users and blocks are far outside of what compiled loops have room for."""
    raw = Raw.of(saved("sparse"))
    for i, each in enumerate(raw.told):
        if each["dtype"] in ("<i8", "<i4") and each["name"].startswith("belief") and raw.blobs[i]:
            raw.blobs[i] = np.full(each["shape"], 2**30, each["dtype"]).tobytes()
    return raw.packed()


def graph_out_of_range() -> bytes:
    raw = Raw.of(saved("grid"))
    place = next(i for i, each in enumerate(raw.told) if each["name"] == "graph_columns")
    raw.blobs[place] = np.full(raw.told[place]["shape"], 2**40, "<i8").tobytes()
    return raw.packed()


@pytest.mark.parametrize("content", [object_pointers, rows_out_of_range, graph_out_of_range])
def test_no_file_makes_the_process_crash(content: Callable[[], bytes], tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(content())
    code = (
        "import sys, coterie as ct\ntry: ct.Bandit.load(sys.argv[1])\nexcept ct.errors.SavedFileError: print('refused')"
    )
    child = subprocess.run([sys.executable, "-c", code, tmp_path / "b"], capture_output=True, check=False)
    assert (child.returncode, child.stdout) == (0, b"refused\n"), child.stderr


@pytest.mark.parametrize("name", ["journal", "clock", "graph", "arms", "x"])
def test_settings_are_what_settings_are(name: str, tmp_path: Path) -> None:
    raw = Raw.of(saved("grid"))
    for table in (raw.state["settings"], raw.state["settings"]["options"]):
        table[name] = str(tmp_path / "made")
        assert "its state/settings" in refusal(raw.packed())
        del table[name]
    assert not list(tmp_path.iterdir())


def test_a_header_has_one_meaning() -> None:
    deep = FIXED.pack(MAGIC, 2, zlib.crc32(b"[" * 10**5), 10**5) + b"[" * 10**5
    assert "cannot be loaded" in refusal(deep)
    twice = with_header(saved("grid"), lambda header: header.replace(b'"reward": "real"', b'"reward": 1,"seed":1', 1))
    assert "'seed' is there twice" in refusal(twice)
    infinite = with_header(saved("grid"), lambda header: header.replace(b'"forgetting": 1.0', b'"forgetting": NaN', 1))
    assert "NaN is no number" in refusal(infinite)
    beyond = with_header(saved("grid"), lambda header: header.replace(b'"forgetting": 1.0', b'"forgetting":1e999', 1))
    assert "1e999 is no number" in refusal(beyond)


def test_arrays_lie_one_after_the_other_and_fill_the_file() -> None:
    whole = Raw.of(saved("grid"))
    for moved in ({0: 64}, {1: -64}, {2: 1}):
        assert "not where it belongs" in refusal(whole.packed(moved=moved))
    assert "cannot lie in a file of" in refusal(whole.packed(moved={2: 2**62}))
    whole.tail = b"more"
    assert "its header speaks of" in refusal(whole.packed())
    large = Raw.of(saved("grid"))
    large.told[3]["shape"] = [2**60, 2**60]
    assert "cannot lie in a file of" in refusal(large.packed())
    long = Raw.of(saved("grid"))
    long.told[3]["shape"] = [4096, 4096]
    assert "cut off" in refusal(long.packed())


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("dense", "rewards"),
        ("exact", "whitened"),
        ("exact", "factor/diagonal/0"),
        ("grid", "mean"),
        ("grid", "variance"),
        ("grid", "cov/matrix"),
        ("hybrid", "inner/cov/pending"),
        ("linear", "weights/mean"),
        ("alone", "weights/tables"),
        ("features", "user_features"),
        ("truncated", "weights"),
        ("truncated", "own"),
        ("groups", "tables"),
        ("sparse", "residual/weights"),
        ("sparse", "growth/reach"),
    ],
)
def test_a_posterior_with_a_wrong_number_is_refused_or_conditioned_anew(name: str, array: str, tmp_path: Path) -> None:
    raw = Raw.of(saved(name))
    place = next(i for i, each in enumerate(raw.told) if each["name"] == f"belief/model/{array}")
    numbers = np.frombuffer(raw.blobs[place], "<f8").copy()
    numbers[0] += 1e-3
    raw.blobs[place] = numbers.tobytes()
    (tmp_path / "b").write_bytes(raw.packed())
    try:
        bandit = loaded(tmp_path / "b")
    except SavedFileError:
        return
    check_same(name, told(bandit))


@pytest.mark.parametrize("name", sorted(set(CASES) - {"club"}))
def test_a_reward_that_the_belief_does_not_know_is_noticed(name: str) -> None:
    raw = Raw.of(saved(name))
    place = next(i for i, each in enumerate(raw.told) if each["name"] == "event_rewards")
    rewards = np.frombuffer(raw.blobs[place], "<f8").copy()
    rewards[-1] = 1.0 - rewards[-1]
    raw.blobs[place] = rewards.tobytes()
    assert "its belief is of other rewards" in refusal(raw.packed())


@pytest.mark.parametrize(("name", "part"), [("auto", "ridge"), ("auto exact", "lengthscale"), ("auto trend", "own")])
def test_hyperparameters_that_the_kernel_does_not_have_are_noticed(name: str, part: str) -> None:
    raw = Raw.of(saved(name))
    raw.state["belief"]["hyper"][part] += 0.01
    assert "that was saved is off by" in refusal(raw.packed())


def test_a_file_is_refused_while_its_bandit_lives_on(tmp_path: Path) -> None:
    """Whoever puts another file in the place of one that was loaded changes nothing in memory."""
    path = tmp_path / "b"
    path.write_bytes(saved("grid"))
    bandit = loaded(path)
    path.write_bytes(object_pointers())
    assert told(bandit) == wanted("grid")


def test_json_is_as_it_was_saved() -> None:
    """Every way of a real file through the taking apart of these tests gives the file itself."""
    for name in CASES:
        raw = Raw.of(saved(name))
        again = Raw.of(raw.packed())
        assert json.dumps(again.state) == json.dumps(raw.state)
        assert again.blobs == raw.blobs


@pytest.mark.parametrize("slip", [1e4, 1e5, 3e5, 1e6, 1e7])
@pytest.mark.parametrize("policy", ["auto-ucb", "auto-ts", "lk-gp-ucb"])
def test_a_bandit_whose_slip_was_replaced_loads(tmp_path: Path, policy: str, slip: float) -> None:
    rng, users = np.random.default_rng(0), ["ana", "bo", "cy"]
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])
    bandit = Bandit(graph=graph, arms=np.random.default_rng(0).normal(size=(5, 2)), policy=policy)
    for number in range(13):
        bandit.reward(bandit.decide(users[number % 3]).id, slip if number == 0 else float(rng.normal()))
    bandit.reward(0, 0.5, replace=True)
    bandit.save(tmp_path / "b")
    believed, found = bandit.predict("bo"), Bandit.load(tmp_path / "b").predict("bo")
    np.testing.assert_allclose(list(found.values()), list(believed.values()), atol=1e-6)


@pytest.mark.parametrize("weight", [1e3, 1e5, 1e6])
@pytest.mark.parametrize("noise_var", [0.01, 1.0, 100.0])
def test_a_bandit_on_heavy_edges_loads(tmp_path: Path, weight: float, noise_var: float) -> None:
    rng = np.random.default_rng(0)
    graph = ct.UserGraph.from_edges([("a", "b", weight), ("b", "c", 1.0), ("c", "d", weight)])
    arms = rng.normal(size=(5, 2))
    bandit = Bandit(graph=graph, arms=arms, policy="lk-gp-ucb", engine="sparse", noise_var=noise_var)
    for number in range(12):
        bandit.reward(bandit.decide("abcd"[number % 4]).id, float(rng.normal()))
    bandit.save(tmp_path / "b")
    believed, found = bandit.predict("b"), Bandit.load(tmp_path / "b").predict("b")
    np.testing.assert_allclose([each[0] for each in found.values()], [each[0] for each in believed.values()], atol=0.05)


@pytest.mark.parametrize("size", [1e-323, 1e-160, 1e-60, 5e49])
@pytest.mark.parametrize("options", [{}, {"engine": "exact"}, {"policy": "lk-gp-ucb"}])
def test_bandits_of_tiny_and_huge_rewards_learn_and_load(tmp_path: Path, options: dict[str, Any], size: float) -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])
    bandit = Bandit(graph=graph, arms=np.random.default_rng(0).normal(size=(5, 2)), **options)
    for number in range(20):
        bandit.reward(bandit.decide(["ana", "bo", "cy"][number % 3]).id, size * (-1) ** number * (number % 3))
    bandit.save(tmp_path / "b")
    assert Bandit.load(tmp_path / "b").n_rewards == 20


@pytest.mark.parametrize("change", [lambda means: -means, lambda means: means[::-1].copy()])
def test_sites_that_the_trials_do_not_call_for_are_settled_again(change: Any, tmp_path: Path) -> None:
    """Their evidence may be the same: that of a mirrored belief is."""
    raw = Raw.of(saved("bernoulli"))
    place = next(i for i, each in enumerate(raw.told) if each["name"] == "belief/model/history/means")
    raw.blobs[place] = change(np.frombuffer(raw.blobs[place])).tobytes()
    (tmp_path / "b").write_bytes(raw.packed())
    try:
        found = told(loaded(tmp_path / "b"))
    except SavedFileError:
        return
    check_same("bernoulli", found)
