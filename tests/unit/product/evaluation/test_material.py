"""A log in tables as decisions to judge by: what was not logged is told or refused."""

from typing import Any

import numpy as np
import pytest

from coterie.errors import InputError
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.logs.log import Events, Log, Ragged
from coterie.product.evaluation.material import material_of

GRAPH = UserGraph.from_edges([("ana", "bo")], users=["ana", "bo", "cy"])
POOL = ArmPool([[0.0], [1.0], [2.0]], ids=["tea", "milk", "gin"])


def a_log(arms: Any = POOL, **changes: Any) -> Log:
    columns: dict[str, Any] = {
        "user": np.array([2, 0]),
        "arm": np.array([1, 2]),
        "reward": np.array([0.5, 1.0]),
        "candidates": Ragged.of([[2, 1], []]),
        "propensity": np.array([0.25, 1.0]),
        "time": np.array([7.0, 3.0]),
    }
    return Log(graph=GRAPH, arms=arms, events=Events(**(columns | changes)))


def test_every_column_is_taken() -> None:
    found = material_of(a_log())
    log = found.logged
    assert [log.shown(row).tolist() for row in range(2)] == [[2, 1], [0, 1, 2]]
    assert log.candidates[log.places].tolist() == [1, 2]
    assert (log.users.tolist(), log.rewards.tolist(), log.propensities.tolist()) == ([2, 0], [0.5, 1.0], [0.25, 1.0])
    assert log.in_order().rewards.tolist() == [1.0, 0.5]
    assert found.graph is GRAPH
    assert found.arms is POOL
    assert found.notes == ("Candidates were not logged in 1 of 2 decisions: all 3 arms are.",)


def test_without_candidates_all_arms_are() -> None:
    found = material_of(a_log(candidates=None))
    assert found.logged.candidates.tolist() == [0, 1, 2, 0, 1, 2]
    assert "in 2 of 2 decisions: all 3 arms are" in found.notes[0]


def test_without_the_graph_users_stay() -> None:
    found = material_of(a_log(), graph=False)
    assert (found.graph.n_edges, found.graph.users) == (0, GRAPH.users)


def test_without_features_and_times_there_are_notes() -> None:
    found = material_of(a_log(arms=POOL.ids, time=None))
    assert found.arms.ids == POOL.ids
    np.testing.assert_array_equal(found.arms.features, np.eye(3))
    assert not found.arms.has_features
    assert found.logged.times is None
    assert [each.split(":")[0] for each in found.notes[1:]] == ["The arms have no features", "There are no times"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"propensity": None}, "the log has no propensities"),
        ({"propensity": np.array([np.nan, np.nan])}, "the log has no propensities"),
        ({"propensity": np.array([1.0, np.nan])}, "1 of 2 events have no propensity, the first of them event 2"),
        ({"time": np.array([np.nan, 1.0])}, "1 of 2 events have no time, the first of them event 1"),
        ({"arms": tuple(range(2001)), "candidates": None}, "2001 arms have no features"),
    ],
)
def test_what_cannot_be_judged_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        material_of(a_log(**changes))


def test_a_log_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="2 events have 5 candidates in all"):
        material_of(a_log(), most_candidates=4)
