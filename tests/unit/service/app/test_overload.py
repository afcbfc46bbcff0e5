"""Too much at once, a disk that is full, a journal that is broken: refused or ended, and it goes on by itself."""

import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from coterie.service.app import ServiceSettings
from coterie.service.engine.commits import QUICK
from coterie.service.journal import Event, JournalBrokenError, JournalFullError, MemoryJournal
from service_app import DECISIONS, NEWS, Caller, service, until

ASKED = {"user": "ana"}


class Gated(MemoryJournal):
    """A journal that writes when it may, and fails as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()
        self.may_write.set()
        self.failure: Exception | None = None

    def append(self, events: Sequence[Event]) -> None:
        """Keeps a batch, once it may."""
        time.sleep(2 * QUICK)  # so that a thread does it
        assert self.may_write.wait(20)
        if self.failure is not None:
            raise self.failure
        super().append(events)


@pytest.fixture
def journal() -> Gated:
    return Gated()


def statuses(call: Caller, n: int) -> list[int]:
    """Returns the statuses of so many decisions at once."""
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(lambda _: call("POST", DECISIONS, ASKED).status_code, range(n)))


def test_more_requests_than_may_be_in_work_are_to_come_again_later(journal: Gated) -> None:
    with service(ServiceSettings(most_requests=4), journal) as call:
        journal.may_write.clear()
        with ThreadPoolExecutor(12) as pool:
            asked = [pool.submit(call, "POST", DECISIONS, ASKED) for _ in range(12)]
            until(lambda: sum(each.done() for each in asked) == 8)
            refused = [each.result() for each in asked if each.done()]
            assert {(each.status_code, each.headers["retry-after"]) for each in refused} == {(503, "1")}
            assert refused[0].json()["error"]["code"] == "busy"
            journal.may_write.set()
            assert sorted(each.result().status_code for each in asked) == [201] * 4 + [503] * 8
        assert statuses(call, 4) == [201] * 4


def test_no_answer_leaves_before_its_commit(journal: Gated) -> None:
    with service(journal=journal) as call:
        journal.may_write.clear()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(call, "POST", DECISIONS, {**ASKED, "event_id": "e1"})
            time.sleep(0.1)
            assert not asked.done()
            assert not journal.find("e1")
            journal.may_write.set()
            assert asked.result().status_code == 201
            assert journal.find("e1")


def test_a_repeat_waits_for_the_commit_of_the_first(journal: Gated) -> None:
    with service(journal=journal) as call:
        journal.may_write.clear()
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(call, "POST", DECISIONS, {**ASKED, "event_id": "e1"}) for _ in range(2)]
            time.sleep(0.1)
            assert not any(each.done() for each in asked)
            journal.may_write.set()
            assert sorted(each.result().status_code for each in asked) == [200, 201]


def test_a_commit_that_takes_too_long_is_in_doubt_and_a_repeat_finds_out(journal: Gated) -> None:
    with service(ServiceSettings(request_seconds=0.3), journal) as call:
        journal.may_write.clear()
        late = call("POST", DECISIONS, {**ASKED, "event_id": "e1"})
        assert (late.status_code, late.json()["error"]["code"]) == (503, "late")
        journal.may_write.set()
        until(lambda: bool(journal.find("e1")))
        assert call("POST", DECISIONS, {**ASKED, "event_id": "e1"}).status_code == 200


def test_a_full_disk_refuses_changes_and_reads_go_on_and_it_resumes(journal: Gated) -> None:
    with service(journal=journal) as call:
        journal.failure = JournalFullError("the disk is full", "there is room for a batch", "Make room")
        for _ in range(2):
            refused = call("POST", DECISIONS, {**ASKED, "event_id": "e1"})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert call("GET", "/v1/experiments/news").status_code == 200
        assert call("GET", "/v1/experiments/news/log").status_code == 200
        assert b"coterie_journal_full 1.0" in call("GET", "/metrics").content
        journal.failure = None
        until(lambda: call("POST", DECISIONS, {**ASKED, "event_id": "e2"}).status_code == 201)
        assert call("POST", DECISIONS, {**ASKED, "event_id": "e1"}).status_code == 200
        assert len([event for event in journal.find("e1") if event.kind == "decided"]) == 1


def test_a_broken_journal_ends_the_process(journal: Gated) -> None:
    ended: list[BaseException] = []
    with service(journal=journal, when_broken=ended.append) as call:
        journal.failure = JournalBrokenError("a commit failed", "nobody knows what is kept", "Start again")
        assert call("POST", DECISIONS, ASKED).status_code == 503
        until(lambda: bool(ended))
        journal.failure = None
        kept = journal.last_seq
        assert call("POST", DECISIONS, ASKED).status_code == 503
        assert journal.last_seq == kept
    assert len(ended) == 1


def test_a_key_that_comes_too_often_is_to_come_again_later() -> None:
    with service(ServiceSettings(rate_per_key=20.0, burst_per_key=5), news=False) as call:
        other = call.make_key("read")["key"]
        found = [call("GET", "/v1/experiments").status_code for _ in range(8)]
        assert 429 in found
        refused = call("GET", "/v1/experiments")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert call("GET", "/v1/experiments", key=other).status_code == 200
        time.sleep(0.2)
        assert call("GET", "/v1/experiments").status_code == 200


def test_bodies_may_be_so_large_together() -> None:
    with service(ServiceSettings(most_bytes_in_work=2048)) as call:
        assert call("POST", DECISIONS, {**ASKED, "candidates": ["tea"] * 1000}).status_code == 503
        assert call("POST", DECISIONS, ASKED).status_code == 201


def test_the_log_has_a_line_for_each_request_and_no_key_or_body(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "coterie.service"), service() as call:
        call("POST", DECISIONS, {"user": "ana", "event_id": "secret-event"})
        key = call.key
    told = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("coterie"))
    lines = [line for line in told.splitlines() if line.startswith("{")]
    assert len(lines) == 2
    assert (
        json.loads(lines[1]).items()
        >= {
            "method": "POST",
            "route": "/v1/experiments/{experiment}/decisions",
            "status": 201,
            "experiment": "news",
        }.items()
    )
    assert key not in told
    assert "secret-event" not in told
    assert "ana" not in told


def test_counts_are_told_and_two_apps_do_not_share_them() -> None:
    with service() as call, service() as other:
        event = call("POST", DECISIONS, ASKED).json()["event_id"]
        call("POST", f"/v1/events/{event}/reward", {"value": 1})
        text = call("GET", "/metrics").text
        assert 'coterie_decisions_total{new="true"} 1.0' in text
        assert 'coterie_rewards_total{status="applied"} 1.0' in text
        assert 'coterie_requests_total{method="POST",route="/v1/experiments",status="201"} 1.0' in text
        assert "coterie_events_durable_total 5.0" in text
        assert 'coterie_decisions_total{new="true"} 0.0' in other("GET", "/metrics").text
        assert NEWS["id"] not in text


def test_the_reads_of_an_experiment() -> None:
    here = "/v1/experiments/news"
    with service() as call:
        for number in range(12):
            event = call("POST", DECISIONS, {"user": "ana"}).json()["event_id"]
            call("POST", f"/v1/events/{event}/reward", {"value": number % 3})
        told = call("GET", f"{here}/explain?user=ana&arm=tea").json()
        assert (told["user"], told["arm"]) == ("ana", "tea")
        assert call("GET", f"{here}/explain?user=ana&arm=tea&context=%7B").status_code == 400
        assert call("GET", f"{here}/explain?user=zoe&arm=tea").status_code == 422
        assert "text" in call("GET", f"{here}/graph-report").json()
        assert len(call("GET", f"{here}/log?limit=3").text.splitlines()) == 3
        assert '"kind":"created"' in call("GET", f"{here}/log").text
        assert call("GET", f"{here}/export").content
        assert call("GET", f"{here}/evaluations?policies=lk-gp-ts").status_code in (200, 422)
        assert call("GET", "/v1/experiments/none/export").status_code == 404
