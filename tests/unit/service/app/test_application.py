"""The app from making an experiment to its rewards, as a caller sees it."""

import threading
from concurrent.futures import ThreadPoolExecutor

from litestar.testing import TestClient

from coterie.service.app import create_app
from coterie.service.engine.running import RunningEngine
from coterie.service.journal import MemoryJournal
from service_app import DECISIONS, NEWS, service, until


def test_an_experiment_decides_and_learns() -> None:
    with service(news=False) as call:
        made = call("POST", "/v1/experiments", NEWS)
        assert made.status_code == 201
        assert made.json()["n_users"] == 3
        decision = call("POST", DECISIONS, {"user": "ana"})
        assert decision.status_code == 201
        event = decision.json()["event_id"]
        assert call("POST", f"/v1/events/{event}/reward", {"value": 1}).json()["status"] == "applied"
        assert call("GET", "/v1/experiments/news").json()["n_rewards"] == 1
        assert [each["id"] for each in call("GET", "/v1/experiments").json()["experiments"]] == ["news"]


def test_a_repeat_gets_what_was_logged_and_another_body_is_a_conflict() -> None:
    with service() as call:
        first = call("POST", DECISIONS, {"user": "ana", "event_id": "e1"})
        call("POST", "/v1/events/e1/reward", {"value": 1})
        again = call("POST", DECISIONS, {"user": "ana", "event_id": "e1"})
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.content == again.content
        before = call.digest
        other = call("POST", DECISIONS, {"user": "bo", "event_id": "e1"})
        assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
        assert call.digest == before


def test_decisions_and_rewards_of_a_batch_are_each_for_itself() -> None:
    with service() as call:
        given = {"decisions": [{"user": "ana", "event_id": "e1"}, {"user": "zoe"}, {"user": "ana", "event_id": "e1"}]}
        results = call("POST", f"{DECISIONS}/batch", given).json()["results"]
        assert [each["status"] for each in results] == [201, 422, 200]
        assert results[1]["error"]["path"] == "$.user"
        rewards = [{"event_id": "e1", "value": 1}, {"event_id": "e1", "value": 1}, {"event_id": "later", "value": 1}]
        results = call("POST", "/v1/events/rewards", {"rewards": rewards}).json()["results"]
        assert [each["reward"]["status"] for each in results] == ["applied", "duplicate", "held"]


def test_others_are_answered_during_a_batch() -> None:
    with service() as call, ThreadPoolExecutor(1) as aside:
        many = {"decisions": [{"user": "ana", "event_id": f"m{number}"} for number in range(1000)]}
        batch = aside.submit(call, "POST", f"{DECISIONS}/batch", many)
        until(lambda: call.running.engine.state.decided("m0") is not None)
        between = call("POST", DECISIONS, {"user": "bo"}).json()["seq"]
        seqs = [each["decision"]["seq"] for each in batch.result().json()["results"]]
        assert len(seqs) == 1000
        assert seqs[0] < between < seqs[-1]


def test_until_the_replay_is_done_the_process_lives_and_is_not_ready() -> None:
    may_open = threading.Event()

    def open_late() -> MemoryJournal:
        assert may_open.wait(10)
        return MemoryJournal()

    with TestClient(create_app(RunningEngine(open_late))) as client:
        assert client.get("/livez").status_code == 200
        refused = client.get("/readyz")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert client.get("/v1/experiments").status_code == 503
        may_open.set()
        until(lambda: client.get("/readyz").status_code == 200)
        assert client.get("/v1/experiments").status_code == 401
