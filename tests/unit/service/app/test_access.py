"""Who may call what: a matrix of roles and routes, made from the routes of the app."""

import re
from itertools import product
from typing import Any

import pytest
from litestar.routes import HTTPRoute

from coterie.service.app import create_app
from coterie.service.app.requests.calls import Route
from coterie.service.app.routes.table import ROUTES
from coterie.service.engine.running import RunningEngine
from coterie.service.journal import MemoryJournal
from service_app import DECISIONS, Caller, service

SCOPES = ("decide", "reward", "read", "admin")
EVERYWHERE, HERE, ELSEWHERE = None, ["news"], ["other"]
OUR_SCOPES = {  # written down apart from the routes' own, so that a slip in one of them is seen
    "POST /v1/experiments": "admin",
    "GET /v1/experiments": "read",
    "GET /v1/experiments/{experiment}": "read",
    "PATCH /v1/experiments/{experiment}": "admin",
    "DELETE /v1/experiments/{experiment}": "admin",
    "POST /v1/experiments/{experiment}/reset": "admin",
    "PATCH /v1/experiments/{experiment}/graph/edges": "admin",
    "PUT /v1/experiments/{experiment}/graph/edges": "admin",
    "PATCH /v1/experiments/{experiment}/users": "admin",
    "PUT /v1/experiments/{experiment}/users": "admin",
    "PATCH /v1/experiments/{experiment}/arms": "admin",
    "PUT /v1/experiments/{experiment}/arms": "admin",
    "POST /v1/experiments/{experiment}/decisions": "decide",
    "POST /v1/experiments/{experiment}/decisions/batch": "decide",
    "POST /v1/events/{event_id}/reward": "reward",
    "POST /v1/events/{event_id}/activate": "reward",
    "POST /v1/events/rewards": "reward",
    "GET /v1/experiments/{experiment}/explain": "read",
    "GET /v1/experiments/{experiment}/graph-report": "read",
    "GET /v1/experiments/{experiment}/export": "read",
    "GET /v1/experiments/{experiment}/log": "read",
    "GET /v1/experiments/{experiment}/evaluations": "read",
    "GET /metrics": "read",
    "GET /v1/keys": "admin",
    "POST /v1/keys": "admin",
    "POST /v1/keys/{key}/rotate": "admin",
    "DELETE /v1/keys/{key}": "admin",
    "POST /personalizer/v1.0/rank": "decide",
    "POST /personalizer/v1.0/events/{event_id}/reward": "reward",
    "POST /personalizer/v1.0/events/{event_id}/activate": "reward",
    "GET /livez": None,
    "GET /readyz": None,
    "GET /openapi.json": None,
    "GET /docs": None,
}


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


@pytest.fixture(scope="module")
def call() -> Any:
    with service() as caller:
        assert caller("POST", DECISIONS, {"user": "ana", "event_id": "e1"}).status_code == 201
        yield caller


@pytest.fixture(scope="module")
def keys(call: Caller) -> dict[tuple[str, str], str]:
    places = {"everywhere": EVERYWHERE, "here": HERE, "elsewhere": ELSEWHERE}
    return {
        (scope, place): call.make_key(scope, experiments=places[place])["key"]
        for scope, place in product(SCOPES, places)
    }


def path_of(route: Route) -> str:
    given = {"experiment": "news", "event_id": "e1", "key": "none"}
    return re.sub(r"{(\w+)}", lambda found: given[found[1]], route.path)


def admitted(route: Route, scope: str, place: str) -> bool:
    """Whether a key gets past the check of its scope; what a handler checks once it has a body is tested apart."""
    wanted = OUR_SCOPES[named(route)]
    if scope not in (wanted, "admin"):
        return False
    if "{experiment}" in route.path:
        return place != "elsewhere"
    if route.path.endswith("/{event_id}/activate"):  # it has no body, so that its handler is reached
        return place != "elsewhere"
    of_some = wanted == "reward" or named(route) in ("GET /v1/experiments", "POST /personalizer/v1.0/rank")
    return place == "everywhere" or of_some


def test_the_app_has_the_routes_of_the_table_and_no_others() -> None:
    app = create_app(RunningEngine(MemoryJournal))
    paths = {route.path_format: route for route in app.routes if isinstance(route, HTTPRoute)}
    assert len(paths) == len(app.routes)
    there = {f"{method} {path}" for path, route in paths.items() for method in route.methods - {"OPTIONS"}}
    assert there == {named(route) for route in ROUTES} == set(OUR_SCOPES)


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_the_scope_of_a_route_is_the_one_written_down(route: Route) -> None:
    assert route.scope == OUR_SCOPES[named(route)]


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_without_a_good_key_nobody_gets_in(route: Route, call: Caller) -> None:
    for headers in ({}, {"authorization": "Bearer ctr_0_no"}, {"authorization": call.key}, {"authorization": "Bearer"}):
        before = call.digest
        answer = call.client.request(route.method, path_of(route), headers=headers)
        assert (answer.status_code == 401) == (route.scope is not None)
        assert "www-authenticate" in answer.headers or route.scope is None
        assert call.digest == before


@pytest.mark.parametrize("route", [route for route in ROUTES if route.scope is not None], ids=named)
def test_a_key_gets_in_where_its_scope_and_experiments_say_so(
    route: Route, call: Caller, keys: dict[tuple[str, str], str]
) -> None:
    for (scope, place), key in keys.items():
        if admitted(route, scope, place) and route.body is None and route.changes:
            continue  # it would be done
        before = call.digest
        answer = call(route.method, path_of(route), b"[", key=key)  # which no route takes
        assert (answer.status_code != 403) == admitted(route, scope, place), (scope, place, answer.text)
        assert call.digest == before


def test_a_key_of_another_experiment_cannot_reward_or_activate_a_decision(
    call: Caller, keys: dict[tuple[str, str], str]
) -> None:
    before = call.digest
    other = keys["reward", "elsewhere"]
    assert call("POST", "/v1/events/e1/reward", {"value": 1}, key=other).status_code == 403
    assert call("POST", "/v1/events/e1/activate", key=other).status_code == 403
    assert call("POST", "/personalizer/v1.0/events/e1/reward", {"value": 1}, key=other).status_code == 403
    batch = call("POST", "/v1/events/rewards", {"rewards": [{"event_id": "e1", "value": 1}]}, key=other)
    assert batch.json()["results"][0]["status"] == 403
    assert call.digest == before


def test_a_held_reward_counts_only_where_its_key_may_reward(call: Caller, keys: dict[tuple[str, str], str]) -> None:
    for place in ("here", "elsewhere"):
        answer = call("POST", f"/v1/events/later-{place}/reward", {"value": 1}, key=keys["reward", place])
        assert answer.json()["status"] == "held"
        learned = call.running.engine.view("news").n_rewards
        assert call("POST", DECISIONS, {"user": "ana", "event_id": f"later-{place}"}).status_code == 201
        assert call.running.engine.view("news").n_rewards - learned == (place == "here")


def test_a_list_has_only_what_the_key_may_read(call: Caller, keys: dict[tuple[str, str], str]) -> None:
    lengths = {
        place: len(call("GET", "/v1/experiments", key=keys["read", place]).json()["experiments"])
        for place in ("everywhere", "here", "elsewhere")
    }
    assert lengths == {"everywhere": 1, "here": 1, "elsewhere": 0}


def test_a_key_that_is_rotated_or_revoked_is_no_good_at_once(call: Caller) -> None:
    made = call.make_key("decide", experiments=["news"])
    assert call("POST", DECISIONS, {"user": "ana"}, key=made["key"]).status_code == 201
    rotated = call("POST", f"/v1/keys/{made['id']}/rotate")
    assert rotated.status_code == 201
    assert rotated.json()["experiments"] == ["news"]
    assert call("POST", DECISIONS, {"user": "ana"}, key=made["key"]).status_code == 401
    new = rotated.json()
    assert call("POST", DECISIONS, {"user": "ana"}, key=new["key"]).status_code == 201
    assert call("DELETE", f"/v1/keys/{new['id']}").status_code == 200
    assert call("POST", DECISIONS, {"user": "ana"}, key=new["key"]).status_code == 401
    assert call("DELETE", f"/v1/keys/{new['id']}").status_code == 404
    told = call("GET", "/v1/keys").text
    assert made["key"] not in told
    assert new["id"] not in told


def test_no_page_of_another_site_may_call(call: Caller) -> None:
    asked = {"origin": "https://elsewhere.example", "access-control-request-method": "POST"}
    for method, path in (("OPTIONS", DECISIONS), ("GET", "/livez"), ("GET", "/v1/experiments")):
        answer = call(method, path, headers=asked)
        assert not [name for name in answer.headers if name.startswith("access-control")]
