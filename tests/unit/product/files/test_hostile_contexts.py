"""A saved file of a bandit with contexts is anybody's, too: changed, it is refused or believes the same."""

import re
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
from hostile import Raw, mutated

USERS = ["ana", "bo", 7, "dee"]
GRAPH = ct.UserGraph.from_edges([("ana", "bo"), ("bo", 7, 0.5)], users=USERS)
ARMS = dict(zip("abcdef", np.random.default_rng(0).normal(size=(6, 2)).tolist(), strict=True))
TABLE = {user: {"age": 20.0 + 7 * i, "region": "ns"[i % 2]} for i, user in enumerate(USERS)}
CASES: dict[str, dict[str, Any]] = {
    "learned": {},
    "stated": {"context_schema": {"hour": "number", "device": ["phone", "desktop"], "on": {"kind": "flag"}}},
    "featureless": {"arms": list(ARMS)},
    "priced": {"request_features": ["price"]},
    "users": {"users": TABLE},
    "exact": {"engine": "exact", "policy": "auto-ts"},
    "dense": {"engine": "dense"},
    "trend": {"engine": "local", "engine_options": {"near_rows": 8, "exact_rows": 8, "trend_features": 6}},
    "features": {
        "engine": "features",
        "engine_options": {"exact_rows": 8, "trend_features": 6},
        "context_schema": {"hour": "number", "device": "category", "on": "flag"},
    },
    "window": {"window": 12},
    "hallucinate": {"pending": "hallucinate"},
}
# One change here makes another bandit, which could have been saved as well, or changes only when work is done.
MAY_CHANGE = [
    r"settings/.*",  # another policy, seed, limit or width, as far as the belief could be one of it
    r"(users|arms|retired|feature_names|journal)(/.*)?",  # other names
    r"features",  # of arms that have no reward: those of others are compared with what was learned
    r"pending|pending_made_at|pending_inputs|settled|learned_at_once",  # other decisions, another past
    r"belief/(refused|n_refused|model/reason|fits)(/.*)?",  # what is told
    r"belief/.*/largest",  # how large rewards ever were, which ties go by
    r"belief/schema/fields/.*",  # other names of categories, or another count of unknown ones
    r"inputs/(event|pending)_guests/.*",  # other names of arms that were shown once
    # Numbers a little other, of which the belief could be: it is then conditioned anew.
    r"belief/(begun/)?scaling/.*|inputs/user_features/.*",
]

ONLY_ROWS = r"graph_.*|belief/hyper/graph"  # a file of engine "dense" holds no belief to contradict


def context(t: int) -> dict[str, Any]:
    return {"hour": t % 24, "device": ["phone", "desktop", "watch"][t % 3], "on": t % 4 == 0}


def shown(name: str, arms: Any, t: int, *, guest: bool = False) -> Any:
    if name == "featureless" or not (guest or name == "priced"):
        return {arm: [1.0 + t % 3] for arm in arms} if name == "priced" else list(arms)
    price = [1.0 + t % 3] if name == "priced" else []
    return dict.fromkeys(arms, price or None) | ({f"guest-{t}": [0.1 * t, 0.5, *price]} if guest else {})


def made(name: str) -> ct.Bandit:
    """Returns a bandit that has decided in contexts, learned and grown; a fit of it goes on."""
    bandit = ct.Bandit(**{"graph": GRAPH, "arms": ARMS, "seed": 3, "clock": lambda: 50.0, **CASES[name]})
    rng = np.random.default_rng(1)
    for t in range(40):
        candidates = shown(name, bandit.arms.ids, t, guest=t % 6 == 0)
        decision = bandit.decide(USERS[int(rng.integers(4))], candidates, context(t), keep=t == 30)
        if t % 5:
            bandit.reward(decision.id, float(rng.normal()))
    bandit.retire_arms(["c"])
    bandit.decide("ana", shown(name, "ab", 3), context(41))
    return bandit


@cache
def saved(name: str) -> bytes:
    with TemporaryDirectory() as folder:
        made(name).save(Path(folder) / "b")
        return (Path(folder) / "b").read_bytes()


def told(name: str, bandit: ct.Bandit) -> list[Any]:
    """Returns what is believed now, and after one more reward, a decision and the reward of an old one."""
    users, arms = bandit.graph.users, bandit.arms.ids
    asked = [(user, shown(name, arms, t), context(t)) for t, user in enumerate(users)]
    now = [each for one in asked for pair in bandit.predict(*one).values() for each in pair]
    one: Any = {arms[1]: [2.0]} if name == "priced" else arms[1]
    bandit.learn(users[0], one, 1.0, context(5))
    bandit.decide(users[1], shown(name, arms[:2], 2), context(6))
    then = [each for pair in bandit.predict(*asked[1]).values() for each in pair]
    bandit.reward(next(iter(bandit.pending)), 0.5)
    bandit.predict(*asked[2])
    bandit.explain(users[0], one, context(7))
    return now + then


def loaded(content: bytes) -> ct.Bandit:
    with TemporaryDirectory() as folder:
        (Path(folder) / "b").write_bytes(content)
        return ct.Bandit.load(Path(folder) / "b", clock=lambda: 60.0, journal=None)


@cache
def wanted(name: str) -> list[Any]:
    return told(name, loaded(saved(name)))


def check_mutation(name: str, seed: int) -> None:
    """Changes one thing in a file and loads it; a CoterieError is well, and so is the same belief."""
    where, content = mutated(Raw.of(saved(name)), Random(seed))
    try:
        found = told(name, loaded(content))
    except CoterieError:
        return
    also = [ONLY_ROWS] if name == "dense" else []
    if not any(re.fullmatch(pattern, where) for pattern in [*MAY_CHANGE, *also]):
        np.testing.assert_allclose(found, wanted(name), rtol=0, atol=1e-5, err_msg=where)


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(list(CASES)), seed=st.integers(0, 2**32))
def test_a_changed_file_with_contexts_is_refused_or_believes_the_same(name: str, seed: int) -> None:
    check_mutation(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_thousands_of_changed_files_with_contexts_are_refused_or_believe_the_same(name: str) -> None:
    for seed in range(2_000):
        check_mutation(name, seed)


def array(raw: Raw, name: str) -> Any:
    told = next(each for each in raw.told if each["name"] == name)
    return np.frombuffer(raw.blobs[raw.told.index(told)], told["dtype"]).reshape(told["shape"]).copy()


def put(raw: Raw, name: str, values: Any) -> None:
    place = next(i for i, each in enumerate(raw.told) if each["name"] == name)
    raw.told[place]["shape"], raw.blobs[place] = list(values.shape), values.tobytes()


def _input(name: str, row: int, column: int, value: float) -> Callable[[Raw], None]:
    def change(raw: Raw) -> None:
        values = array(raw, name)
        values[row, column] = value
        put(raw, name, values)

    return change


def _narrower(raw: Raw) -> None:
    for name in ("event_inputs", "pending_inputs"):
        put(raw, name, np.ascontiguousarray(array(raw, name)[:, :-1]))


def _in_state(*way: Any, value: Any) -> Callable[[Raw], None]:
    def change(raw: Raw) -> None:
        table = raw.state
        for key in way[:-1]:
            table = table[key]
        table[way[-1]] = value

    return change


def _second_guest(raw: Raw) -> None:
    guests = raw.state["inputs"]["event_guests"]
    guests.append([guests[0][0], "somebody"])


def _number_as_category(raw: Raw) -> None:
    field = raw.state["belief"]["schema"]["fields"][0]
    field.update(kind="category", categories=["x"], is_open=True)


CHANGES: dict[str, tuple[str, Callable[[Raw], None], str]] = {
    "a reward's number": ("learned", _input("event_inputs", 3, 2, 5.5), "its belief is of other pairs"),
    "a reward's arm": ("learned", _input("event_inputs", 3, 0, 5.5), "its belief is of other pairs|of other arms"),
    "a decision's arm": ("learned", _input("pending_inputs", 2, 0, 5.5), "its inputs are of other arms"),
    "a decision's code": ("featureless", _input("pending_inputs", 2, 0, 4.5), "its inputs are of other arms"),
    "a decision's number": ("learned", _input("pending_inputs", 2, 2, 1e300), "a number of its inputs is too large"),
    "a decision's category": ("learned", _input("pending_inputs", 2, 4, 9.0), "a category that nobody knows"),
    "half a category": ("learned", _input("pending_inputs", 2, 4, 0.5), "a category that nobody knows"),
    "a column": ("learned", _narrower, "has a side of|its inputs have 4 columns"),
    "a schema less": ("learned", _in_state("belief", "schema", "fields", value=[]), "its inputs|as others are"),
    "a number that is a category": ("learned", _number_as_category, "as others are|the schema of contexts is"),
    "another name": ("learned", _in_state("belief", "schema", "fields", 0, "name", value="our"), "the schema of cont"),
    "rows for names": ("learned", _in_state("belief", "schema", "is_named", value=False), "the schema of contexts is"),
    "a scaling of others": (
        "learned",
        _in_state("belief", "scaling", value={"centre": [0.0], "weight": [1.0]}),
        "its inputs are measured as others are|has a side of 1",
    ),
    "no features": ("learned", _in_state("inputs", "has_features", value=False), "as others are|its inputs"),
    "features": ("featureless", _in_state("inputs", "has_features", value=True), "as others are|its inputs"),
    "no guests": ("learned", _in_state("inputs", "event_guests", value=[]), "an arm that is not of its pool has no id"),
    "a guest with two ids": ("learned", _second_guest, "has two ids"),
    "a price less": ("priced", _in_state("settings", "options", "request_features", value=[]), "as others are|inputs"),
    "an age": ("users", _in_state("inputs", "user_features", 0, "age", value=90.0), "is off by"),
    "a region": ("users", _in_state("inputs", "user_features", 0, "region", value="w"), "is off by"),
    "an age that is none": (
        "users",
        _in_state("inputs", "user_features", 0, "age", value="old"),
        "the features of user",
    ),
    "features of fewer": ("users", _in_state("inputs", "user_features", value=[{"age": 3.0}]), "has a side of 1"),
    "no features of users": ("users", _in_state("inputs", "user_features", value=None), "hyperparameters|is off by"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_contradicts_itself_is_refused(what: str) -> None:
    name, change, words = CHANGES[what]
    raw = Raw.of(saved(name))
    change(raw)
    with pytest.raises(SavedFileError, match=words):
        loaded(raw.packed())


def test_a_file_without_contexts_has_nothing_new_in_it() -> None:
    bandit = ct.Bandit(graph=GRAPH, arms=ARMS, policy="auto-ucb")
    for t in range(12):
        bandit.reward(bandit.decide(USERS[t % 4]).id, float(t % 3))
    with TemporaryDirectory() as folder:
        bandit.save(Path(folder) / "b")
        raw = Raw.of((Path(folder) / "b").read_bytes())
    assert {"inputs", "schema", "scaling"}.isdisjoint({*raw.state, *raw.state["belief"]})
    assert {"event_inputs", "pending_inputs"}.isdisjoint(each["name"] for each in raw.told)
    assert raw.state["settings"]["options"] == {}
