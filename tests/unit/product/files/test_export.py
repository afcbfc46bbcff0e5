"""Export: plain files that hold what the bandit holds, in a new folder or not at all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import coterie as ct
from coterie.errors import SavedFileError
from coterie.product.files.checked.schema import ARRAYS
from coterie.product.files.export import export_bandit

ARMS = dict(zip("abc", np.random.default_rng(0).normal(size=(3, 2)), strict=True))


def make(**options: Any) -> ct.Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", 7, 0.5)], users=["ana", "bo", 7, "dee"])
    bandit = ct.Bandit(**{"graph": graph, "arms": ARMS, "policy": "lk-gp-ts", "seed": 3, **options})
    first, _ = bandit.decide("ana"), bandit.decide(7, ["b", "c"])
    bandit.reward(first.id, 2.0)
    bandit.learn("dee", "c", -0.1)
    bandit.retire_arms(["a"])
    return bandit


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
        return json.loads((folder / "state.json").read_text(encoding="utf-8")), dict(arrays)


@pytest.mark.parametrize("options", [{}, {"forgetting": 0.5}])
def test_the_files_hold_what_the_bandit_holds(tmp_path: Path, options: dict[str, Any]) -> None:
    bandit = make(**options)
    bandit.export(tmp_path / "plain")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["arrays.npz", "plain", "state.json"]
    state, arrays = read(tmp_path / "plain")
    assert state["coterie"] == ct.__version__
    assert (state["users"], state["arms"], state["retired"]) == (["ana", "bo", 7, "dee"], ["a", "b", "c"], ["a"])
    assert state["counts"] == {"users": 4, "arms": 3, "decisions": 2, "rewards": 2, "pending": 1}
    assert (state["settings"]["policy"], state["settings"]["seed"]) == ("lk-gp-ts", 3)
    weights = sp.csr_array((arrays["graph_weights"], arrays["graph_columns"], arrays["graph_starts"]), shape=(4, 4))
    np.testing.assert_array_equal(weights.toarray(), bandit.graph.weights.toarray())
    np.testing.assert_array_equal(arrays["features"], bandit.arms.features)
    np.testing.assert_array_equal(arrays["event_users"], [0, 3])
    np.testing.assert_array_equal(arrays["event_rewards"], [2.0, -0.1])
    assert arrays["pending"][0].tolist()[:2] == [1, 2]
    assert arrays["settled"].tolist() == [[0, 0]]
    for row, user in enumerate(state["users"]):
        believed = bandit.predict(user, state["arms"])
        assert list(zip(arrays["belief_mean"][row], arrays["belief_std"][row], strict=True)) == list(believed.values())


def test_rewards_are_exported_with_their_contexts(tmp_path: Path) -> None:
    graph, schema = ct.UserGraph.from_edges([("ana", "bo")]), {"hour": "number", "device": "category"}
    bandit = ct.Bandit(graph=graph, arms=["a", "b"], context_schema=schema, places=[1.0, 0.5])
    bandit.learn("ana", "b", 1.0, {"hour": 9, "device": "tv"})
    bandit.rank("bo", k=2, context={"hour": 21, "device": "phone"})
    bandit.export(tmp_path / "plain")
    state, arrays = read(tmp_path / "plain")
    assert arrays["event_inputs"].tolist() == [[1.0, 9.0, 1.0]]
    assert arrays["pending_inputs"][:, 1:].tolist() == [[21.0, 2.0]] * 2
    assert arrays["pending_examined"].tolist() == [1.0, 0.5]
    assert [field["categories"] for field in state["inputs"]["schema"]["fields"]] == [[], ["tv", "phone"]]
    assert state["inputs"]["has_features"] is False
    assert state["belief_is_exported"] is False
    users = ct.Bandit(graph=graph, arms=["a", "b"], users={"ana": {"age": 20}, "bo": {"age": 30}})
    users.export(tmp_path / "users")
    assert read(tmp_path / "users")[1]["belief_mean"].shape == (2, 2)


def test_a_large_table_of_beliefs_is_left_out(tmp_path: Path) -> None:
    export_bandit(make(), tmp_path / "plain", largest_table=11)
    state, arrays = read(tmp_path / "plain")
    assert state["belief_is_exported"] is False
    assert sorted(arrays) == sorted(ARRAYS)


def test_kernels_stand_there_by_name(tmp_path: Path) -> None:
    make(arm_kernel=ct.Matern32(1.0)).export(tmp_path / "plain")
    state, _ = read(tmp_path / "plain")
    assert state["settings"]["options"]["arm_kernel"]["kernel"] == "Matern32"


@pytest.mark.parametrize("there", ["folder", "file", "link"])
def test_what_is_there_is_refused_and_left(tmp_path: Path, there: str) -> None:
    path = tmp_path / "plain"
    if there == "folder":
        path.mkdir()
    elif there == "file":
        path.touch()
    else:
        path.symlink_to("nowhere")
    with pytest.raises(SavedFileError, match="exists already"):
        make().export(path)
    assert list(tmp_path.rglob("*")) == [path]


def test_a_failed_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(SavedFileError, match="No space"):
        make().export(tmp_path / "plain")
    assert not list(tmp_path.iterdir())


def test_contexts_are_exported_with_the_names_of_their_columns(tmp_path: Path) -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo")])
    table = {"ana": {"age": 30}, "bo": {"age": 40}}
    bandit = ct.Bandit(graph=graph, arms={"tea": {"hot": 1.0}}, users=table, request_features=["price"])
    context = {"device": "phone", "hour": 21}
    bandit.learn("ana", {"cola": [0.1, 3.0]}, 1.0, context)
    bandit.decide("bo", {"tea": {"price": 2.0}}, {"device": "desktop", "hour": 9})
    bandit.export(tmp_path / "plain")
    state, arrays = read(tmp_path / "plain")
    assert state["belief_is_exported"] is False
    assert state["inputs"]["columns"] == ["hot", "price", "hour", "device"]
    assert [field["categories"] for field in state["inputs"]["schema"]["fields"]] == [["phone", "desktop"], []]
    assert state["inputs"]["event_guests"] == [[0, "cola"]]
    assert state["inputs"]["user_features"] == [{"age": 30}, {"age": 40}]
    assert arrays["event_inputs"].tolist() == [[0.1, 3.0, 21.0, 1.0]]
    assert arrays["pending_inputs"].tolist() == [[1.0, 2.0, 9.0, 2.0]]
    assert arrays["event_arms"].tolist() == [-1]


def test_features_of_users_alone_leave_the_belief_in_an_export(tmp_path: Path) -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo")])
    bandit = ct.Bandit(graph=graph, arms=["tea", "cola"], users={"ana": [30.0], "bo": [40.0]})
    bandit.learn("ana", "tea", 1.0)
    bandit.export(tmp_path / "plain")
    state, arrays = read(tmp_path / "plain")
    assert (state["inputs"]["columns"], arrays["event_inputs"].tolist()) == (["arm"], [[0.0]])
    assert arrays["belief_mean"].shape == (2, 2)
