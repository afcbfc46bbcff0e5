"""Hostile numbers and JSON against every route with a body: 4xx with a path, and not a byte of the belief changes."""

import json
import re
from random import Random
from typing import Any

import pytest

from coterie.service.app import ServiceSettings
from coterie.service.app.description.document import statuses
from coterie.service.app.requests.calls import Route
from coterie.service.app.routes.table import ROUTES
from coterie.service.engine.clock import ServiceClock
from service_app import DECISIONS, NEWS, Caller, service

DEEP = 100_000
EDGE = {"user": "ana", "other": "bo", "weight": 1.0}
GOOD: dict[str, Any] = {  # a body of each route that would be taken
    "POST /v1/experiments": {**NEWS, "id": "more", "default_reward": 0.5, "wait_time": 60},
    "PATCH /v1/experiments/{experiment}": {"wait_time": 60, "default_reward": 0.5},
    "PATCH /v1/experiments/{experiment}/graph/edges": {"edges": [EDGE]},
    "PUT /v1/experiments/{experiment}/graph/edges": {"edges": [EDGE]},
    "PATCH /v1/experiments/{experiment}/users": {"add": [{"id": "dee", "friends": {"ana": 1.0}}]},
    "PUT /v1/experiments/{experiment}/users": {"users": [{"id": "ana", "friends": {"dee": 1.0}}, {"id": "dee"}]},
    "PATCH /v1/experiments/{experiment}/arms": {"put": [{"id": "rum", "features": [0.5, 0.5]}]},
    "PUT /v1/experiments/{experiment}/arms": {"arms": [{"id": "rum", "features": [0.5, 0.5]}]},
    "POST /v1/experiments/{experiment}/decisions": {"user": "ana", "candidates": ["tea"], "k": 1},
    "POST /v1/experiments/{experiment}/decisions/batch": {"decisions": [{"user": "ana", "k": 1}]},
    "POST /v1/events/{event_id}/reward": {"value": 0.5, "place": 1},
    "POST /v1/events/rewards": {"rewards": [{"event_id": "e1", "value": 0.5}]},
    "POST /v1/keys": {"scopes": ["read"]},
    "POST /personalizer/v1.0/rank": {"actions": [{"id": "gin", "features": [{"0": 1.5}]}], "contextFeatures": []},
    "POST /personalizer/v1.0/events/{event_id}/reward": {"value": 0.5},
}
ODD = ["[]", "{}", "[[]]", '{"a": 1}', "-1", "0", "1e50", "1e-320", "2e9", '"x"', '"ana"', '"first"', "false", "1e308"]
WITH_BODY = [route for route in ROUTES if route.body is not None]
NUMBERS = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "-1e400",
    '"1.5"',
    "true",
    "null",
    "9" * 400,
    "0x10",
    "1.",
    ".5",
    "+1",
]
TEXTS = [r'"\ud800"', r'"\u0000"', r'"a\u0000b"', '""', '"\n"', r'"\n"', "7", "null", "true", '"' + "x" * 201 + '"']


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def path_of(route: Route) -> str:
    return re.sub(r"{(\w+)}", lambda found: {"experiment": "news", "event_id": "e1"}[found[1]], route.path)


@pytest.fixture(scope="module")
def call() -> Any:
    with service(ServiceSettings(personalizer_experiment="news")) as caller:
        assert caller("POST", DECISIONS, {"user": "ana", "event_id": "e1"}).status_code == 201
        yield caller


def places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """Yields the path and the value of all that stands in a body."""
    yield path, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in inside:
        yield from places(each, (*path, step))


def with_text(body: Any, path: tuple[Any, ...], text: str) -> bytes:
    """Returns a body as JSON in which something else stands at a place."""
    copy = json.loads(json.dumps(body))
    if not path:
        return text.encode("utf-8", "surrogatepass")
    inside = copy
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = "HERE"
    return json.dumps(copy).replace('"HERE"', text).encode("utf-8", "surrogatepass")


def refused(call: Caller, route: Route, body: bytes, **headers: str) -> Any:
    """Returns the answer to a body that must be refused, and checks that nothing has changed."""
    before = call.digest
    answer = call(route.method, path_of(route), body, headers=headers)
    assert 400 <= answer.status_code < 500, (body[:200], answer.text)
    assert call.digest == before, body[:200]
    error = answer.json()["error"]
    assert error["problem"]
    assert error["rule"]
    assert error["remedy"]
    return answer


def test_every_route_with_a_body_is_tried() -> None:
    assert {named(route) for route in WITH_BODY} == set(GOOD)


@pytest.mark.parametrize("route", WITH_BODY, ids=named)
def test_numbers_that_are_none_are_refused_wherever_a_number_stands(route: Route, call: Caller) -> None:
    numbers = [path for path, value in places(GOOD[named(route)]) if isinstance(value, int | float)]
    for path in numbers:
        for text in NUMBERS:
            if (text == "null" and path[-1] in ("k", "default_reward")) or _is_free(route, path, text):
                continue
            answer = refused(call, route, with_text(GOOD[named(route)], path, text))
            assert answer.status_code == 400, text
            assert answer.json()["error"]["path"].startswith("$")


def _is_free(route: Route, path: tuple[Any, ...], text: str) -> bool:
    """Whether a feature of Personalizer may be this: its features are texts and flags too."""
    return "rank" in route.path and "features" in path and text in ('"1.5"', "true", "null")


@pytest.mark.parametrize("route", WITH_BODY, ids=named)
def test_ids_that_are_none_are_refused_wherever_an_id_stands(route: Route, call: Caller) -> None:
    texts = [path for path, value in places(GOOD[named(route)]) if isinstance(value, str)]
    for path in texts:
        for text in TEXTS:
            if text == "null" and path == ("id",):
                continue  # an experiment without an id gets one
            refused(call, route, with_text(GOOD[named(route)], path, text))


@pytest.mark.parametrize("number", ["1e308", "-1e308", "1e51"])
@pytest.mark.parametrize("route", WITH_BODY, ids=named)
def test_numbers_that_no_model_can_take_are_refused(route: Route, number: str, call: Caller) -> None:
    for path, value in places(GOOD[named(route)]):
        if isinstance(value, int | float):
            body = with_text(GOOD[named(route)], path, number)
            if path[0] == "rewards":
                answer = call(route.method, route.path, body)
                assert answer.json()["results"][0]["status"] == 422
            else:
                refused(call, route, body)


@pytest.mark.parametrize("route", WITH_BODY, ids=named)
def test_odd_json_is_refused(route: Route, call: Caller) -> None:
    good = json.dumps(GOOD[named(route)]).encode()
    first = next(iter(GOOD[named(route)]))
    odd = [b"", b" ", b"null", b"7", b"[]", b'"x"', good[:-1], good + b"x", good + good, b"\xef\xbb\xbf" + good]
    odd += [b"\xff" + good, good.replace(b"{", b'{"\xed\xa0\x80": 1, ', 1), b"{'a': 1}", b"// no\n" + good]
    odd += [good.replace(b"{", b'{"nobody_knows": 1, ', 1), b"\x00" + good, good.decode().encode("utf-16")]
    odd += [good.replace(b"{", f'{{"{first}": 1, '.encode(), 1)]
    odd += [b"[" * DEEP, b'{"a":' * DEEP, with_text(GOOD[named(route)], (first,), "[" * DEEP + "]" * DEEP)]
    for body in odd:
        assert refused(call, route, body).status_code == 400, body[:80]


@pytest.mark.parametrize("route", WITH_BODY, ids=named)
def test_a_field_that_is_given_twice_is_refused_at_its_path(route: Route, call: Caller) -> None:
    body = GOOD[named(route)]
    for path, value in places(body):
        if isinstance(value, dict) and value:
            key, inside = next(iter(value.items()))
            text = json.dumps(value).replace("{", f"{{{json.dumps(key)}: {json.dumps(inside)}, ", 1)
            error = refused(call, route, with_text(body, path, text)).json()["error"]
            steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in (*path, key))
            assert error["path"] == f"${steps}", error


@pytest.mark.parametrize("route", WITH_BODY, ids=named)
def test_other_content_types_are_refused(route: Route, call: Caller) -> None:
    good = json.dumps(GOOD[named(route)]).encode()
    for kind in ("text/plain", "application/xml", "application/x-www-form-urlencoded", "", "application/jsonx"):
        assert refused(call, route, good, **{"content-type": kind}).status_code == 415
    if route.body is not None and route.body.line is None:
        assert refused(call, route, good, **{"content-type": "application/x-ndjson"}).status_code == 415


def changed(body: Any, random: Random) -> bytes:
    """Returns a body with one to three places changed: to something odd, to another body's part, or left out."""
    raw = json.dumps(body).encode()
    for _ in range(random.choice([1, 1, 2, 3])):
        try:
            here = json.loads(raw)
        except ValueError:
            return raw
        path, _value = random.choice(list(places(here)))
        other = json.dumps(random.choice([value for _, value in places(random.choice(list(GOOD.values())))]))
        raw = with_text(here, path, random.choice([*NUMBERS, *TEXTS, *ODD, other, other]))
    return raw


def try_changed_bodies(n: int, seed: int) -> None:
    """Sends so many changed bodies: every answer is documented, and none but a success changes anything."""
    random, taken = Random(seed), 0
    still = ServiceClock(wall=lambda: 1e9, steady=lambda: 0.0)  # so that nothing expires meanwhile
    with service(ServiceSettings(personalizer_experiment="news", log_requests=False), clock=still) as call:
        call("POST", DECISIONS, {"user": "ana", "event_id": "e1"})
        for _ in range(n):
            route = random.choice(WITH_BODY)
            body, before = changed(GOOD[named(route)], random), call.digest
            answer = call(route.method, path_of(route), body)
            assert answer.status_code in statuses(route), (named(route), body[:500], answer.text)
            assert answer.status_code != 503, (named(route), body[:500])
            if answer.status_code >= 400:
                assert call.digest == before, (named(route), body[:500], answer.text)
            else:
                taken += 1
    assert 0 < taken < n


def test_changed_bodies_are_taken_or_refused_whole() -> None:
    try_changed_bodies(400, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 46))
def test_many_changed_bodies_are_taken_or_refused_whole(seed: int) -> None:
    try_changed_bodies(2000, seed)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b'{"user": "ana", "candidates": ["tea", "ale", 7, true]}', "$.candidates[2]"),
        (b'{"user": "ana", "candidates": [{"id": "a", "features": [1, 2]}, {"id": "b", "features": [1, "2"]}], "k": 0}',
         "$.candidates[1].features[1]"),
        (b'{"user": "ana", "context": {"a": 1, "b": [], "c": {}}}', "$.context[...]"),
        (b'{"user": "ana", "exclude": ["a", "b", "", "c"], "candidates": [8]}', "$.exclude[2]"),
        (b'{"user": "ana", "exclude": ["a", ""], "k"', "$.exclude[1]"),
        (b'{"user": 7}', "$.user"),
        (b'{"user": "ana", "more": 7}', "$.more"),
    ],
)  # fmt: skip
def test_the_path_names_the_place_in_a_list(body: bytes, path: str, call: Caller) -> None:
    route = next(route for route in ROUTES if route.path.endswith("/decisions"))
    assert refused(call, route, body).json()["error"]["path"] == path


def test_a_floor_that_no_choice_can_have_is_refused_at_once(call: Caller) -> None:
    route = next(route for route in ROUTES if route.method == "PATCH" and route.path.endswith("{experiment}"))
    assert refused(call, route, b'{"exploration_floor": 0.51}').json()["error"]["path"] == "$.exploration_floor"


def test_a_million_candidates_and_as_many_rows_are_refused(call: Caller) -> None:
    route = next(route for route in ROUTES if route.path.endswith("/decisions"))
    for n, status in ((10_001, 400), (1_000_000, 413)):
        body = json.dumps({"user": "ana", "candidates": ["tea"] * n}).encode()
        assert refused(call, route, body).status_code == status
    edges = next(route for route in ROUTES if route.path.endswith("/edges"))
    lines = b'{"user":"ana","other":"bo"}\n' * 50_001
    assert refused(call, edges, lines, **{"content-type": "application/x-ndjson"}).status_code == 400


@pytest.mark.parametrize(
    ("method", "part", "body"),
    [
        ("PUT", "users", {"users": [{"id": "ana", "friends": {"dee": 2e9}}, {"id": "dee"}]}),
        ("PATCH", "users", {"add": [{"id": "dee"}, {"id": "ana", "friends": {"bo": 2e9}}], "remove": ["cy"]}),
    ],
)
def test_a_change_of_several_parts_is_made_whole_or_not_at_all(
    method: str, part: str, body: dict[str, Any], call: Caller
) -> None:
    route = next(route for route in ROUTES if route.path.endswith(part) and route.method == method)
    assert refused(call, route, json.dumps(body).encode()).status_code == 422


def test_lines_of_ndjson_are_taken_and_odd_ones_are_named(call: Caller) -> None:
    edges = next(route for route in ROUTES if route.path.endswith("/edges") and route.method == "PATCH")
    kind = {"content-type": "application/x-ndjson"}
    lines = b'{"user":"ana","other":"cy"}\n\n{"user":"bo","other":"cy","weight":"1"}\n'
    assert refused(call, edges, lines, **kind).json()["error"]["path"] == "$[1].weight"
    with service() as other:
        good = b'{"user":"ana","other":"cy"}\n{"user":"bo","other":"cy","weight":2}'
        answer = other("PATCH", "/v1/experiments/news/graph/edges", good, headers=kind)
        assert (answer.status_code, answer.json()["version"]) == (200, 1)
        assert other("PUT", "/v1/experiments/news/users", b'{"id":"ana"}', headers=kind).status_code == 200
        assert other.running.engine.view("news").n_users == 1


@pytest.mark.parametrize(
    "query", ["user=ana", "user=ana&arm=tea&arm=tea", "user=ana&arm=tea&more=1", "user=%00&arm=tea"]
)
def test_odd_queries_are_refused(query: str, call: Caller) -> None:
    assert call("GET", f"/v1/experiments/news/explain?{query}").status_code == 400


@pytest.mark.parametrize("event", ["a b", "%00", "x" * 129, "é", "a%0a"])
def test_odd_event_ids_in_a_path_are_refused(event: str, call: Caller) -> None:
    before = call.digest
    for part, body in (("reward", {"value": 1}), ("activate", None)):
        assert call("POST", f"/v1/events/{event}/{part}", body).status_code == 400
    assert call.digest == before


def test_what_was_tried_would_have_been_taken() -> None:
    for route in WITH_BODY:
        with service(ServiceSettings(personalizer_experiment="news")) as call:
            call("POST", DECISIONS, {"user": "ana", "event_id": "e1"})
            assert call(route.method, path_of(route), GOOD[named(route)]).status_code in (200, 201, 204), named(route)
