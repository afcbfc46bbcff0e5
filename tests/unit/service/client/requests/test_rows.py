from contextlib import suppress

import numpy as np
import pytest
from msgspec.json import decode

from coterie.errors import ParameterError
from coterie.service.client.requests.call import Call, encode
from coterie.service.client.requests.changes import MOST_AT_ONCE, add_users, put_arms, remove_users, set_edges
from coterie.service.client.requests.events import decide_many, reward_many
from coterie.service.client.requests.rows import as_arms, as_candidates, as_edge, batches
from coterie.service.envelopes import DecisionResults, EventReward, RewardResults
from coterie.service.records import Arm, Changed, DecisionRequest, Edge


def test_candidates_are_ids_unless_they_bring_features() -> None:
    assert as_candidates(["tea", Arm(id="ale", features=[1.0])]) == ["tea", Arm(id="ale", features=[1.0])]
    assert as_candidates({"tea": None}) == ["tea"]
    assert as_candidates(None) is None


def test_a_text_is_no_list_of_arms() -> None:
    with pytest.raises(ParameterError, match="arms are 'tea'"):
        as_arms("tea")


@pytest.mark.parametrize("odd", [("ana",), ("ana", "bo", "1"), ("ana", 7), ("ana", "bo", 1, 2)])
def test_an_edge_has_two_users_and_perhaps_a_weight(odd: tuple[str, ...]) -> None:
    with pytest.raises(ParameterError, match="an edge is"):
        as_edge(odd)


def test_numbers_of_numpy_are_numbers() -> None:
    edge = as_edge(("ana", "bo", float(np.float32(0.5))))
    assert edge == Edge(user="ana", other="bo", weight=0.5)
    assert decode(encode(EventReward(event_id="e", value=np.float32(0.5)))) == {"event_id": "e", "value": 0.5}  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="requests hold texts"):
        encode({"value": object()})


def test_no_batch_is_empty_or_too_long() -> None:
    assert list(batches([], 3)) == []
    assert [len(batch) for batch in batches(map(str, range(7)), 3)] == [3, 3, 1]


def test_many_edges_are_sent_in_batches() -> None:
    n, calls, told = 2 * MOST_AT_ONCE + 1, list[Call[object]](), list[int]()
    steps = iter(set_edges("drinks", [("hub", str(i)) for i in range(n)], progress=told.append))
    calls.append(next(steps))
    with suppress(StopIteration):
        while True:
            calls.append(steps.send(Changed(version=len(calls), seq=len(calls))))
    sent = [decode(call.body or b"")["edges"] for call in calls]
    assert [len(each) for each in sent] == [MOST_AT_ONCE, MOST_AT_ONCE, 1]
    assert [edge["other"] for each in sent for edge in each] == [str(i) for i in range(n)]
    assert told == [MOST_AT_ONCE, 2 * MOST_AT_ONCE, n]


def test_what_is_removed_twice_is_refused_but_users_and_arms_can_be_put_twice() -> None:
    assert not next(iter(remove_users("drinks", ["dee"]))).is_repeatable
    assert next(iter(add_users("drinks", ["dee"]))).is_repeatable
    assert next(iter(put_arms("drinks", ["tea"]))).is_repeatable


def test_each_of_many_has_an_id_before_it_is_sent() -> None:
    steps = iter(decide_many("drinks", [DecisionRequest(user="ana"), DecisionRequest(user="bo", event_id="mine")]))
    first, second = decode(next(steps).body or b"")["decisions"]
    assert first["event_id"]
    assert second["event_id"] == "mine"
    with pytest.raises(StopIteration, match=r"\[\]"):
        steps.send(DecisionResults(results=[]))
    again = iter(reward_many([("e", 1.0), EventReward(event_id="f", value=0.0, reward_id="mine")]))
    one, two = decode(next(again).body or b"")["rewards"]
    assert one["reward_id"]
    assert two["reward_id"] == "mine"
    with pytest.raises(StopIteration):
        again.send(RewardResults(results=[]))
