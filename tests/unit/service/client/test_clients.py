"""Both clients try again when that may help, with the same ids, and say what is wrong when it does not."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from msgspec.json import decode

from coterie.errors import ParameterError
from coterie.service.client import AsyncClient, Client, RequestRefusedError, Retries, ServiceError
from coterie.service.client.methods import Method, Methods
from coterie.service.client.requests.call import Plan
from coterie.service.client.requests.changes import archive, create_experiment
from coterie.service.client.requests.events import activate, decide, reward
from coterie.service.client.requests.reading import livez, ready

DECISION = {"event_id": "e", "arm": "tea", "propensity": 1.0, "mean": 0.0, "std": 1.0, "model_version": 0, "seq": 7}
WHY = {"code": "unknown_user", "problem": "user 'zoe' is unknown", "rule": "users are 'ana'", "remedy": "Add her"}
Answer = httpx.Response | Exception


class Service:
    """A service that gives these answers, one after the other, and keeps what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.asked, self.waits = list(answers), list[httpx.Request](), list[float]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def carry_out(self, plan: Plan[Any], *, is_async: bool) -> Any:
        retries = Retries(attempts=3, first_wait=1.0, draw=lambda: 1.0)
        transport = httpx.MockTransport(self)
        if not is_async:
            with Client(
                "http://there", "ctr_a", retries=retries, transport=transport, sleep=self.waits.append
            ) as client:
                return client.carry_out(plan)

        async def run() -> Any:
            async with AsyncClient(
                "http://there", "ctr_a", retries=retries, transport=transport, sleep=self.sleep
            ) as client:
                return await client.carry_out(plan)

        return asyncio.run(run())


@pytest.fixture(params=[False, True], ids=["blocking", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def refusal(status: int, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"error": WHY}, headers=headers)


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.ReadTimeout("too long"),
        httpx.RemoteProtocolError("gone"),
        *map(refusal, (429, 502, 503, 504)),
    ],
    ids=str,
)
def test_a_decision_is_tried_again_with_the_same_event_id(failure: Answer, is_async: bool) -> None:
    service = Service(failure, failure, httpx.Response(201, json=DECISION))
    assert service.carry_out(decide("drinks", "ana"), is_async=is_async).arm == "tea"
    ids = [decode(request.content)["event_id"] for request in service.asked]
    assert len(ids) == 3
    assert len(set(ids)) == 1
    assert service.waits == [1.0, 2.0]


def test_a_reward_is_tried_again_with_the_same_reward_id(is_async: bool) -> None:
    applied = httpx.Response(200, json={"event_id": "e", "status": "duplicate", "seq": 9})
    service = Service(httpx.ReadTimeout("too long"), applied)
    assert service.carry_out(reward("e", 1.0), is_async=is_async).status == "duplicate"
    first, second = (decode(request.content) for request in service.asked)
    assert first == second
    assert first["reward_id"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422])
def test_what_is_refused_is_not_tried_again(status: int, is_async: bool) -> None:
    service = Service(refusal(status))
    with pytest.raises(RequestRefusedError, match=r"user 'zoe' is unknown; users are 'ana'\. Add her") as refused:
        service.carry_out(activate("e"), is_async=is_async)
    assert (refused.value.status, refused.value.code, refused.value.path) == (status, "unknown_user", None)
    assert len(service.asked) == 1


def test_an_error_says_where_in_the_body() -> None:
    where = httpx.Response(422, json={"error": {**WHY, "path": "$.user"}})
    with pytest.raises(RequestRefusedError, match=r"^\$\.user: user 'zoe'") as refused:
        Service(where).carry_out(decide("drinks", "zoe"), is_async=False)
    assert refused.value.path == "$.user"


def test_an_error_of_the_server_is_not_tried_again(is_async: bool) -> None:
    service = Service(httpx.Response(500, text="oops"))
    with pytest.raises(ServiceError, match="the answer has status 500") as failed:
        service.carry_out(decide("drinks", "ana"), is_async=is_async)
    assert failed.value.status == 500
    assert len(service.asked) == 1


def test_it_gives_up_after_so_many_tries(is_async: bool) -> None:
    service = Service(*[httpx.ConnectError("refused")] * 3)
    with pytest.raises(ServiceError, match=r"POST http://there/v1/events/e/activate got no answer.* tried 3 times"):
        service.carry_out(activate("e"), is_async=is_async)
    assert len(service.asked) == 3


def test_it_waits_as_long_as_the_service_asks_for(is_async: bool) -> None:
    service = Service(refusal(429, **{"Retry-After": "4"}), httpx.Response(201, json=DECISION))
    service.carry_out(decide("drinks", "ana"), is_async=is_async)
    assert service.waits == [4.0]


def test_it_does_not_come_before_the_service_wants_it(is_async: bool) -> None:
    service = Service(refusal(503, **{"Retry-After": "3600"}))
    with pytest.raises(ServiceError) as failed:
        service.carry_out(decide("drinks", "ana"), is_async=is_async)
    assert failed.value.status == 503
    assert not service.waits


@pytest.mark.parametrize("failure", [httpx.ReadTimeout("too long"), refusal(504)], ids=str)
@pytest.mark.parametrize("plan", [lambda: create_experiment(arms=["tea"]), lambda: archive("drinks")])
def test_what_may_have_been_done_and_cannot_be_repeated_is_not_tried_again(
    plan: Callable[[], Plan[Any]], failure: Answer, is_async: bool
) -> None:
    service = Service(failure)
    with pytest.raises(ServiceError):
        service.carry_out(plan(), is_async=is_async)
    assert len(service.asked) == 1


def test_what_was_never_sent_is_tried_again_even_if_it_cannot_be_repeated(is_async: bool) -> None:
    service = Service(httpx.ConnectError("refused"), refusal(503), refusal(409))
    with pytest.raises(RequestRefusedError):
        service.carry_out(archive("drinks"), is_async=is_async)
    assert len(service.asked) == 3


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(httpx.Response(200), True), (refusal(503), False), (httpx.ConnectError("refused"), False)],
    ids=str,
)
def test_health_is_asked_once(answer: Answer, expected: bool, is_async: bool) -> None:
    for plan in (livez, ready):
        service = Service(answer)
        assert service.carry_out(plan(), is_async=is_async) is expected
        assert len(service.asked) == 1


def test_an_answer_of_another_server_is_no_answer(is_async: bool) -> None:
    for odd in (httpx.Response(200, text="<html>"), httpx.Response(201, json={"arm": 7})):
        with pytest.raises(ServiceError, match="cannot be read"):
            Service(odd).carry_out(decide("drinks", "ana"), is_async=is_async)


def test_an_answer_may_hold_more_than_this_client_knows(is_async: bool) -> None:
    service = Service(httpx.Response(201, json=DECISION | {"of_tomorrow": 1}))
    assert service.carry_out(decide("drinks", "ana"), is_async=is_async).seq == 7


def test_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTERIE_URL", "http://elsewhere:9/base")
    monkeypatch.setenv("COTERIE_KEY", "ctr_of_the_environment")
    service = Service(httpx.Response(201, json=DECISION))
    with Client(transport=httpx.MockTransport(service)) as client:
        client.decide("drinks", "ana")
    assert str(service.asked[0].url) == "http://elsewhere:9/base/v1/experiments/drinks/decisions"
    assert service.asked[0].headers["Authorization"] == "Bearer ctr_of_the_environment"


@pytest.mark.parametrize("url", ["localhost:8711", "ftp://there", "http://", "http://there:x"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ParameterError, match=r"an address is like http://127.0.0.1:8711"):
        Client(url)


@pytest.mark.parametrize("key", ["ctr_ü", "ctr_a\nb"])
def test_a_key_with_odd_characters_is_refused(key: str) -> None:
    with pytest.raises(ParameterError, match="odd characters"):
        Client(key=key)


def test_the_log_is_read_page_by_page_until_there_is_no_more() -> None:
    events = [{"seq": seq, "kind": "decided"} for seq in (1, 2, 5)]
    pages = [httpx.Response(200, text='{"seq":1}\n{"seq":2}\n'), httpx.Response(200, text='{"seq":5}\n')]
    service = Service(*pages, httpx.Response(200, text=""))
    with Client(transport=httpx.MockTransport(service)) as client:
        assert [event["seq"] for event in client.log("drinks", page=2)] == [event["seq"] for event in events]
    asked = [dict(request.url.params) for request in service.asked]
    assert asked == [{"from_seq": "1", "limit": "2"}, {"from_seq": "3", "limit": "2"}, {"from_seq": "6", "limit": "2"}]

    async def read() -> list[int]:
        again = Service(httpx.Response(200, text='{"seq":1}\n'), httpx.Response(200, text=""))
        async with AsyncClient(transport=httpx.MockTransport(again)) as client:
            return [event["seq"] async for event in client.log("drinks")]

    assert asyncio.run(read()) == [1]


METHODS = [name for name, each in vars(Methods).items() if isinstance(each, Method)]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_the_signature_and_the_docstring_of_its_plan(name: str) -> None:
    with Client() as client:
        found = getattr(client, name)
    assert found.__name__ == name
    assert inspect.getdoc(found)
    assert inspect.signature(found).parameters == inspect.signature(getattr(Client, name)).parameters
